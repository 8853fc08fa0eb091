//! What a script says.

use bentpipe_base::{Duration, Flags};

/// A whole script.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// File as it was named.
    pub file: String,
    /// Lines `--name=value` at the head.
    pub settings: Vec<Setting>,
    /// What happens, in order.
    pub events: Vec<Event>,
    /// The text that it was read from.
    pub text: String,
}

impl Script {
    /// A line of its text, counted from one.
    pub fn line(&self, line: u32) -> &str {
        self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim()
    }
}

/// A line `--name=value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Line in the file.
    pub line: u32,
    /// What is set.
    pub name: String,
    /// To what.
    pub value: String,
}

/// One thing that happens.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Line in the file.
    pub line: u32,
    /// At which time.
    pub when: When,
    /// What.
    pub action: Action,
}

/// When something happens, or must happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// So long after the beginning of the script, between the two.
    Absolute(Duration, Duration),
    /// So long after the event before, between the two.
    Relative(Duration, Duration),
    /// At any time.
    Any,
}

/// What happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet arrives.
    Inject(PacketSpec),
    /// A packet must leave.
    Expect(PacketSpec),
    /// The application calls.
    Call(Call),
    /// A command in backquotes.
    Command(String),
    /// Assertions about the connection.
    Assert(String),
}

/// A packet.
#[derive(Clone, PartialEq, Debug)]
pub enum PacketSpec {
    /// TCP.
    Tcp(TcpSpec),
    /// ICMP.
    Icmp(IcmpSpec),
}

/// Bits of the ECN field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnSpec {
    /// Not capable.
    None,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Either of the two.
    EctAny,
    /// Congestion experienced.
    Ce,
}

/// A TCP segment with the numbers of the script: those of this end count from its SYN, those of the other are taken as they stand.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpSpec {
    /// ECN field, if the script names it.
    pub ecn: Option<EcnSpec>,
    /// Source and destination port, if the script names them.
    pub ports: Option<(u16, u16)>,
    /// Flags; `None` if any will do.
    pub flags: Option<Flags>,
    /// Sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: Option<u32>,
    /// Window as in the header.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options; `None` if any will do.
    pub options: Option<Vec<TcpOption>>,
}

/// A TCP option; `None` stands for any value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// No operation.
    Nop,
    /// End of the options.
    Eol,
    /// Maximum segment size.
    Mss(Option<u16>),
    /// Window scale.
    WindowScale(Option<u8>),
    /// SACK permitted.
    SackPermitted,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamp value and echo.
    Timestamps(Option<u32>, Option<u32>),
    /// Another kind, with its bytes.
    Other(u8, Vec<u8>),
}

/// An ICMP message about a segment of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IcmpSpec {
    /// Ports of the segment that it quotes, ours first, if the script names them.
    pub ports: Option<(u16, u16)>,
    /// What it says.
    pub kind: IcmpKind,
    /// What it quotes.
    pub echoed: Echoed,
}

/// Type and code of an ICMP message, by its IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpKind {
    /// Type and code for IPv4.
    pub v4: (u8, u8),
    /// Type and code for IPv6.
    pub v6: (u8, u8),
    /// MTU of the next hop.
    pub mtu: u32,
}

/// The segment that an ICMP message quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Echoed {
    /// Its sequence number.
    pub seq: u32,
    /// Its payload bytes.
    pub len: u32,
}

/// A call of the application.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// A call that waits returns at this time, counted as the event's is.
    pub returns: Option<Duration>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// What it must return.
    pub outcome: Outcome,
}

/// What a call must return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Anything.
    Any,
    /// A number.
    Number(i64),
    /// -1 and an error.
    Error(Errno),
}

/// An error as the C library names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errno(pub String);

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Whatever.
    Any,
    /// A number.
    Number(i64),
    /// Names joined by `|`.
    Words(Vec<String>),
    /// Text.
    Text(String),
    /// In brackets or braces.
    List(Vec<Value>),
    /// `name=value`, `name(…)=value`.
    Named(String, Box<Value>),
}

//! Content of a script.

use bentpipe_base::{Duration, Flags};

/// Parsed script.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// Name of the file.
    pub file: String,
    /// Settings `--name=value` at the head.
    pub settings: Vec<Setting>,
    /// Events in order.
    pub events: Vec<Event>,
    /// Source text.
    pub text: String,
}

impl Script {
    /// Returns a line of its text, counted from one.
    pub fn line(&self, line: u32) -> &str {
        self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim()
    }
}

/// Setting `--name=value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Line number in the file.
    pub line: u32,
    /// Name of the setting.
    pub name: String,
    /// Value of the setting.
    pub value: String,
}

/// Event of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Line number in the file.
    pub line: u32,
    /// Time of the event.
    pub when: When,
    /// Action of the event.
    pub action: Action,
}

/// Time at which an event happens or must happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Between these times after the start of the script.
    Absolute(Duration, Duration),
    /// Between these times after the previous event.
    Relative(Duration, Duration),
    /// At any time.
    Any,
}

/// Action of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// An arriving packet.
    Inject(PacketSpec),
    /// A packet that must leave.
    Expect(PacketSpec),
    /// A call of the application.
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
    /// ECT(0) or ECT(1).
    EctAny,
    /// Congestion experienced.
    Ce,
}

/// TCP segment with script numbers: this end's count from its SYN, the peer's are literal.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpSpec {
    /// ECN field, if specified.
    pub ecn: Option<EcnSpec>,
    /// Source and destination port, if specified.
    pub ports: Option<(u16, u16)>,
    /// Flags; `None` matches any.
    pub flags: Option<Flags>,
    /// Sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: Option<u32>,
    /// Window as in the header, unscaled.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options; `None` matches any.
    pub options: Option<Vec<TcpOption>>,
}

/// TCP option; a `None` value matches any.
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
    /// Another kind with its bytes.
    Other(u8, Vec<u8>),
}

/// ICMP message about a segment of this end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IcmpSpec {
    /// Ports of the quoted segment, this end's first, if specified.
    pub ports: Option<(u16, u16)>,
    /// Type and code.
    pub kind: IcmpKind,
    /// Quoted segment.
    pub echoed: Echoed,
}

/// Type and code of an ICMP message, by IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpKind {
    /// Type and code for IPv4.
    pub v4: (u8, u8),
    /// Type and code for IPv6.
    pub v6: (u8, u8),
    /// MTU of the next hop.
    pub mtu: u32,
}

/// Segment quoted by an ICMP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Echoed {
    /// Sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
}

/// Call of the application.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Return time of a waiting call, relative like the event's time.
    pub returns: Option<Duration>,
    /// Name of the function.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<Value>,
    /// Required result.
    pub outcome: Outcome,
}

/// Required result of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Any result.
    Any,
    /// A number.
    Number(i64),
    /// Result -1 with this error.
    Error(Errno),
}

/// Error by its C library name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errno(pub String);

/// Argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Any value.
    Any,
    /// A number.
    Number(i64),
    /// Names joined by `|`.
    Words(Vec<String>),
    /// Text.
    Text(String),
    /// List in brackets or braces.
    List(Vec<Value>),
    /// `name=value`, `name(…)=value`.
    Named(String, Box<Value>),
}

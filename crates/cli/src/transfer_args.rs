//! Arguments of `send` and `receive`.

use std::path::PathBuf;

use bentpipe_host::Network;
use clap::ValueEnum;

/// Text below the help of both.
pub const HELP: &str = "Bentpipe's TCP uses a TUN device and its own address (--address), in addition to the kernel's TCP: the host \
    reaches it there at once, other hosts if this one forwards packets to it. QUIC uses a UDP socket of the kernel and its \
    addresses, and needs no privilege. See docs/on-the-wire.md.";

/// Default addresses of the user-space stack.
pub const USUAL_ADDRESSES: [&str; 2] = ["10.105.0.2/30", "fd62:656e::2/126"];

/// Environment variable with other default addresses.
pub const ADDRESS_VARIABLE: &str = "BENTPIPE_ADDRESS";

/// Transport of `send` and `receive`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Transport {
    /// Bentpipe's TCP
    Tcp,
    /// QUIC over UDP
    Quic,
}

/// Options of this end of a connection.
#[derive(Debug, clap::Args)]
pub struct OnWire {
    /// Transport
    #[arg(long, value_name = "TRANSPORT", default_value = "tcp")]
    pub transport: Transport,
    /// Algorithm of this end (`bentpipe list cc`); over QUIC also `quic:cubic`, `quic:newreno` and `quic:bbr3` of the
    /// stack [default: cubic, or that of --scenario]
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,
    /// Use algorithm and `tcp` settings of the compared flows of this scenario
    #[arg(long, value_name = "SCENARIO")]
    pub scenario: Option<String>,
    /// Change settings of this end: `tcp.ecn=true`, `tcp.user-timeout=20 s`, `cc.KEY=VALUE`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Address of the user-space stack with the prefix length of the network that it shares with the kernel; one per
    /// IP version
    #[arg(
        long,
        value_name = "ADDRESS/LENGTH",
        num_args = 1,
        value_delimiter = ',',
        env = ADDRESS_VARIABLE,
        default_values = USUAL_ADDRESSES
    )]
    pub address: Vec<Network>,
    /// Name of the TUN device [default: the kernel's choice]
    #[arg(long, value_name = "NAME")]
    pub tun: Option<String>,
    /// Maximum packet size in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..))]
    pub mtu: u16,
    /// Print the SHA-256 of sent and received data
    #[arg(long)]
    pub sha256: bool,
    /// Write the statistics as JSON to standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `send`.
#[derive(Debug, clap::Args)]
pub struct SendArgs {
    /// Destination
    #[arg(value_name = "HOST:PORT")]
    pub to: String,
    /// File to send; `-` is standard input
    pub file: Option<PathBuf>,
    /// Send this number of zeros instead of a file, for measurements
    #[arg(long, value_name = "BYTES", conflicts_with = "file")]
    pub zeros: Option<u64>,
    /// Resume an interrupted transfer of this file to `bentpipe receive --resume`, and verify its SHA-256 at the end
    #[arg(long, requires = "file", conflicts_with = "reply")]
    pub resume: bool,
    /// Start from half of what the last transfer to this host found, by Careful Resume (RFC 9959); the file keeps it
    #[arg(long, value_name = "FILE.json")]
    pub remember: Option<PathBuf>,
    /// Write the peer's data to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub reply: Option<PathBuf>,
    /// Write every event of this end as JSON lines, compressed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Accept this certificate of the receiver over QUIC: its fingerprint, which `receive` prints
    #[arg(long, value_name = "SHA256")]
    pub fingerprint: Option<String>,
    /// Write the events of the QUIC stack as qlog, compressed if the name ends in .gz
    #[arg(long, value_name = "FILE.sqlog")]
    pub qlog: Option<PathBuf>,
    /// Options of this end.
    #[command(flatten)]
    pub wire: OnWire,
}

/// Arguments of `receive`.
#[derive(Debug, clap::Args)]
pub struct ReceiveArgs {
    /// Port to listen on
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// File for received data [default: standard output]
    pub file: Option<PathBuf>,
    /// Resume a transfer from `bentpipe send --resume`: store data in FILE.part, and verify the SHA-256 of the whole
    /// file
    #[arg(long, requires = "file", conflicts_with_all = ["source", "answer"])]
    pub resume: bool,
    /// Discard received data, for measurements
    #[arg(long, conflicts_with = "file")]
    pub discard: bool,
    /// Send this number of zeros to every client, for measurements
    #[arg(long, value_name = "BYTES")]
    pub source: Option<u64>,
    /// Send this file to every client while receiving
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub answer: Option<PathBuf>,
    /// Number of connections to serve; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub connections: u64,
    /// Options of this end.
    #[command(flatten)]
    pub wire: OnWire,
}

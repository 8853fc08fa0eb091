//! What the user may type after `send` and `receive`.

use std::path::PathBuf;

use bentpipe_host::Network;

/// What stands below the help of both.
pub const HELP: &str = "Our TCP stands behind a TUN device, beside the kernel's, and has an address of its own (--address): the host \
    reaches it there at once, other hosts if this one forwards packets to it. See docs/on-the-wire.md.";

/// Our end of a connection on real wires.
#[derive(Debug, clap::Args)]
pub struct OnWire {
    /// Algorithm of our end (`bentpipe list cc`) [default: cubic, or that of --scenario]
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,
    /// Be an end of the flows under comparison in this scenario: their algorithm and their `tcp` settings
    #[arg(long, value_name = "SCENARIO")]
    pub scenario: Option<String>,
    /// Change our end: `tcp.ecn=true`, `tcp.user-timeout=20 s`, `cc.KEY=VALUE` (docs/scenarios.md)
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Address of our own with the length of the prefix that it shares with the kernel; one of each IP version
    #[arg(
        long,
        value_name = "ADDRESS/LENGTH",
        num_args = 1,
        value_delimiter = ',',
        env = "BENTPIPE_ADDRESS",
        default_values = ["10.105.0.2/30", "fd62:656e::2/126"]
    )]
    pub address: Vec<Network>,
    /// Name of the TUN device [default: the kernel's choice]
    #[arg(long, value_name = "NAME")]
    pub tun: Option<String>,
    /// Largest packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..))]
    pub mtu: u16,
    /// Tell the SHA-256 of what was sent and of what arrived
    #[arg(long)]
    pub sha256: bool,
    /// Write the statistics as JSON to standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `send`.
#[derive(Debug, clap::Args)]
pub struct SendArgs {
    /// Where to
    #[arg(value_name = "HOST:PORT")]
    pub to: String,
    /// What to send; `-` is standard input
    pub file: Option<PathBuf>,
    /// Send so many zeros instead of a file, for measuring
    #[arg(long, value_name = "BYTES", conflicts_with = "file")]
    pub zeros: Option<u64>,
    /// To a `bentpipe receive --resume`: go on where an earlier transfer of this file broke off, and compare its SHA-256 in the end
    #[arg(long, requires = "file", conflicts_with = "reply")]
    pub resume: bool,
    /// Write what the peer sends back to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub reply: Option<PathBuf>,
    /// Write every event of our end as a line of JSON, compressed if the name ends in .gz: segments, windows, round trips, recoveries
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Our end.
    #[command(flatten)]
    pub wire: OnWire,
}

/// Arguments of `receive`.
#[derive(Debug, clap::Args)]
pub struct ReceiveArgs {
    /// Port to listen on
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Where to write what arrives [default: standard output]
    pub file: Option<PathBuf>,
    /// From a `bentpipe send --resume`: keep what arrives in FILE.part, go on with what is there already, and compare the SHA-256 of the whole
    #[arg(long, requires = "file", conflicts_with_all = ["source", "answer"])]
    pub resume: bool,
    /// Throw away what arrives, for measuring
    #[arg(long, conflicts_with = "file")]
    pub discard: bool,
    /// Send so many zeros to whoever connects, for measuring
    #[arg(long, value_name = "BYTES")]
    pub source: Option<u64>,
    /// Send this file to whoever connects, while theirs arrives
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub answer: Option<PathBuf>,
    /// Connections to serve; 0 is no end
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub connections: u64,
    /// Our end.
    #[command(flatten)]
    pub wire: OnWire,
}

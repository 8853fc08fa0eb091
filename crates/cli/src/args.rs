//! Command-line arguments.

#[cfg(feature = "emulate")]
use std::ffi::OsString;
#[cfg(any(feature = "emulate", feature = "web"))]
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
#[cfg(feature = "emulate")]
use std::time::Duration;

use crate::kernel_args::{self, KernelArgs};
use crate::origin::VERSION;
#[cfg(feature = "pep")]
use crate::pep_args::PepArgs;
#[cfg(feature = "transfer")]
use crate::transfer_args::{self, ReceiveArgs, SendArgs};
use bentpipe_lab::{Setting, Vary};
use clap::{Parser, Subcommand, ValueEnum};

/// Simulates and emulates TCP over satellite links, and speeds up real ones with a transparent proxy.
#[derive(Debug, Parser)]
#[command(name = "bentpipe", version = VERSION, max_term_width = 110)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario once
    #[command(
        after_help = "Example:\n  bentpipe run geo-dumbbell --cc cubic --set link.satellite.loss.rate=1e-4 --report run.html"
    )]
    Run(RunArgs),
    /// Compare algorithms on a scenario, over varied values and seeds
    #[command(
        after_help = "Example:\n  bentpipe compare geo-dumbbell --cc peach,newreno,sack,cubic \\\n    \
        --vary link.satellite.loss.rate=1e-5,1e-4,1e-3 --seeds 5 --report peach.html"
    )]
    Compare(CompareArgs),
    /// Reproduce a paper: run its experiments, draw its figures, check its claims
    #[cfg(feature = "studies")]
    #[command(
        after_help = "Examples:\n  bentpipe paper peach --quick\n  bentpipe paper all --report out/papers\n\n\
        A study of your own is a file: docs/studies.md explains it."
    )]
    Paper(PaperArgs),
    /// List algorithms, scenarios, nodes, queues, losses, traffic or papers
    #[command(after_help = "Example:\n  bentpipe list cc")]
    List(ListArgs),
    /// Print a scenario as TOML with every default
    #[command(after_help = "Example:\n  bentpipe show geo-dumbbell > my.toml")]
    Show(ShowArgs),
    /// Run a program over the links of a scenario, in real time
    #[cfg(feature = "emulate")]
    #[command(after_help = "Examples:\n  bentpipe emulate geo -- curl -O https://example.org/file\n  \
        bentpipe emulate geo --rate 2mbit --loss 1e-3 -- bash\n  \
        bentpipe emulate geo --listen 'iperf3 -s' -- sh -c 'iperf3 -c $BENTPIPE_HOST -R'")]
    Emulate(EmulateArgs),
    /// Measure a real path with UDP probes, and write a scenario that replays it
    #[cfg(feature = "emulate")]
    #[command(
        after_help = "Examples:\n  bentpipe record serve                                   on the one host\n  \
        bentpipe record far.example.org --output path.toml      on the other\n  \
        bentpipe emulate ./path.toml -- COMMAND"
    )]
    Record(RecordArgs),
    /// Send a file with Bentpipe's TCP in user space, or over QUIC
    #[cfg(feature = "transfer")]
    #[command(after_help = transfer_args::HELP)]
    Send(SendArgs),
    /// Receive a file with Bentpipe's TCP in user space, or over QUIC
    #[cfg(feature = "transfer")]
    #[command(after_help = transfer_args::HELP)]
    Receive(ReceiveArgs),
    /// Run the proxy, which splits the TCP connections that its rules select
    #[cfg(feature = "pep")]
    #[command(after_help = crate::pep_args::HELP)]
    Pep(PepArgs),
    /// Write man pages and completions into a folder
    #[cfg(feature = "generate")]
    #[command(hide = true)]
    Generate {
        /// Output folder
        folder: PathBuf,
    },
    /// Serve the laboratory, a page that simulates in a browser
    #[cfg(feature = "web")]
    #[command(after_help = "Example:\n  bentpipe web --listen 127.0.0.1:8080")]
    Web(WebArgs),
    /// Load algorithms into this machine's kernel, select connections for them, watch them
    #[command(after_help = kernel_args::HELP)]
    Kernel(KernelArgs),
}

/// Arguments of `web`.
#[cfg(feature = "web")]
#[derive(Debug, clap::Args)]
pub struct WebArgs {
    /// Address and port to listen at; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8064")]
    pub listen: SocketAddr,
}

/// Scenario with changes.
#[derive(Debug, clap::Args)]
pub struct World {
    /// Path of a scenario file, or name of a built-in scenario
    pub scenario: String,
    /// Change the scenario: `link.satellite.loss.rate=1e-4`, `flow.bulk.count=20`, `duration=60 s`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
}

/// Configuration of a scenario's proxies.
#[derive(Debug, clap::Args)]
pub struct Proxies {
    /// Configure the scenario's proxies by this file of `bentpipe pep`
    #[arg(long, value_name = "PEP.toml")]
    pub proxy: Option<String>,
    /// Class of that file [default: the first that splits connections]
    #[arg(long, value_name = "NAME", requires = "proxy")]
    pub proxy_class: Option<String>,
}

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Scenario with changes.
    #[command(flatten)]
    pub world: World,
    /// Configuration of its proxies.
    #[command(flatten)]
    pub proxies: Proxies,
    /// Algorithm of the compared flows (`bentpipe list cc`)
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,
    /// Seed of all random streams, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Maximum threads for a world of many flows without observers; the result is the same [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub threads: Option<NonZeroUsize>,
    /// Refuse worlds with a higher estimate of memory [default: free memory]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write the result as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write a report with charts: one file, readable offline
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the senders' packets as pcapng, for Wireshark
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<PathBuf>,
    /// Capture at this link, before its queue, instead of at the senders
    #[arg(long, value_name = "LINK", requires = "pcap")]
    pub pcap_link: Option<String>,
    /// Write every event: as JSON lines, compressed if the name ends in .gz, or as a table if it ends in .parquet
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Only these events and sources: `window,dropped`, `flow.bulk.0`, `link.satellite.forward`
    #[arg(long, value_name = "EVENT|SOURCE,...", value_delimiter = ',', requires = "trace")]
    pub trace_only: Vec<String>,
    /// Write the load time of each page or file, as CSV or, if the name ends in .parquet, as Parquet
    #[arg(long, value_name = "FILE")]
    pub pages: Option<PathBuf>,
    /// Write each change of the paths through a constellation, as CSV or Parquet: satellites, handovers, delay
    #[arg(long, value_name = "FILE")]
    pub paths: Option<PathBuf>,
    /// Write one row per flow as Parquet
    #[arg(long, value_name = "FILE.parquet")]
    pub out: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Scenario with changes.
    #[command(flatten)]
    pub world: World,
    /// Configuration of its proxies.
    #[command(flatten)]
    pub proxies: Proxies,
    /// Algorithms to compare, or `all` (`bentpipe list cc`) [default: each flow's own; `--vary flow.NAME.cc=A,B`
    /// varies one]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub cc: Vec<String>,
    /// Algorithm that the others are compared with, seed by seed [default: the first]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Key to vary with its values; several keys are combined
    #[arg(long, value_name = "KEY=V1,V2,...")]
    pub vary: Vec<Vary>,
    /// Runs per point, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub seeds: u32,
    /// First seed, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Parallel runs [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Refuse worlds with a higher estimate of memory [default: free memory]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write the result as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write one row per run as CSV, and FILE.columns.csv with unit and meaning of each column
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the same rows as Parquet
    #[arg(long, value_name = "FILE.parquet")]
    pub out: Option<PathBuf>,
    /// Store finished runs in this folder, and skip stored ones
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Write a report with charts: one file, readable offline
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// Arguments of `paper`.
#[cfg(feature = "studies")]
#[derive(Debug, clap::Args)]
pub struct PaperArgs {
    /// Name of a built-in study (`bentpipe list papers`), `all`, or the path of a study file
    pub study: String,
    /// Only this figure and its claims (repeatable)
    #[arg(long, value_name = "ID")]
    pub figure: Vec<String>,
    /// Run the short form: fewer seeds, shorter runs
    #[arg(long)]
    pub quick: bool,
    /// Runs per point [default: the study's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub seeds: Option<u32>,
    /// Parallel runs [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Refuse worlds with a higher estimate of memory [default: free memory]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write the verdicts as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write pages, figures (SVG, PNG) and verdicts into this folder, and store finished points there
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Store finished runs in this folder instead; `compare --keep` can share it
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Discard stored runs first
    #[arg(long)]
    pub fresh: bool,
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// What to list
    pub what: Listed,
    /// With `cc`: the parameters of the algorithms, their defaults and units
    #[arg(long)]
    pub parameters: bool,
    /// Write the list as JSON to standard output
    #[arg(long)]
    pub json: bool,
}

/// Lists.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Listed {
    /// Congestion-control algorithms
    Cc,
    /// Built-in scenarios
    Scenarios,
    /// Kinds of node
    Nodes,
    /// Queues of a link
    Queues,
    /// Loss models of a link
    Losses,
    /// Access schemes of a link that its members share
    Media,
    /// Applications of a flow
    Traffic,
    /// Built-in studies of papers
    Papers,
}

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Scenario with changes.
    #[command(flatten)]
    pub world: World,
    /// Configuration of its proxies.
    #[command(flatten)]
    pub proxies: Proxies,
}

/// Arguments of `emulate`.
#[cfg(feature = "emulate")]
#[derive(Debug, clap::Args)]
pub struct EmulateArgs {
    /// Path of a scenario file, or name of a built-in scenario
    #[arg(required_unless_present = "join")]
    pub scenario: Option<String>,
    /// Change the scenario: `link.satellite.loss.rate=1e-4`, `flow.bulk.count=20`, `duration=60 s`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
    /// Run the command in a running emulation: that of this process, or the only one
    #[arg(long, value_name = "PID", num_args = 0..=1, conflicts_with_all = ["scenario", "set", "rate", "delay_one_way", "loss", "queue", "listen", "seed", "memory", "pcap", "http", "summary"])]
    pub join: Option<Option<u32>>,
    /// Rate of the satellite link, such as `10mbit`
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub rate: Option<String>,
    /// One-way delay of the satellite link, such as `275ms`
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub delay_one_way: Option<String>,
    /// Loss probability of the satellite link
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub loss: Option<String>,
    /// Queue limit of the satellite link, such as `50p` or a size
    #[arg(long, value_name = "ROOM", allow_negative_numbers = true)]
    pub queue: Option<String>,
    /// Place of the command: end or start of the scenario's flows
    #[arg(long, value_name = "PLACE", default_value = "receiver")]
    pub at: Place,
    /// Start this server on the far side, without access to this host's network (repeatable)
    #[arg(long, value_name = "COMMAND")]
    pub listen: Vec<OsString>,
    /// Seed of all random streams, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Refuse links with a higher estimate of memory [default: free memory]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write the command's packets as pcapng, for Wireshark
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<PathBuf>,
    /// Serve HTTP at this address: GET / returns the state, PATCH / with {"KEY": VALUE} changes links
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// Write the final state as JSON
    #[arg(long, value_name = "FILE.json")]
    pub summary: Option<PathBuf>,
    /// Place of the status: a terminal line, the terminal title, or nowhere
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    pub status: StatusPlace,
    /// Show no status, no summary, and not what has no effect on programs
    #[arg(long, short)]
    pub quiet: bool,
    /// End when the process that started this one ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
    /// Command to run; $BENTPIPE_HOST and $BENTPIPE_HOST6 hold the address of the far host
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `record`.
#[cfg(feature = "emulate")]
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// `serve` to answer probes, or the host to measure the path to, with or without a port
    #[arg(value_name = "serve|HOST[:PORT]")]
    pub host: String,
    /// Address at which `serve` listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from(([0_u16; 8], bentpipe_emu::record::PORT)))]
    pub listen: SocketAddr,
    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub duration: Duration,
    /// Time between two probes
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = humantime::parse_duration)]
    pub interval: Duration,
    /// Keep measured one-way delays, because the clocks of both hosts agree (GPS, PTP)
    #[arg(long)]
    pub clocks_agree: bool,
    /// Scenario file to write
    #[arg(long, short, value_name = "FILE.toml", default_value = "recorded.toml")]
    pub output: PathBuf,
}

/// More threads than any machine has cores.
const MOST_JOBS: usize = 4096;

/// Parses a number of threads or parallel runs.
fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let number: Option<NonZeroUsize> = text.parse().ok();
    number.filter(|number| number.get() <= MOST_JOBS).ok_or_else(|| format!("accepted: 1 to {MOST_JOBS}"))
}

/// Place of the status of `emulate`.
#[cfg(feature = "emulate")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum StatusPlace {
    /// The title, or a line if the command writes elsewhere; nowhere without a terminal
    Auto,
    /// A line on standard error
    Line,
    /// The title of the terminal, which disturbs no command
    Title,
    /// Nowhere
    Off,
}

/// Place of the command of `emulate`.
#[cfg(feature = "emulate")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Place {
    /// The receivers of the compared flows
    Receiver,
    /// The senders of the compared flows
    Sender,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_description_is_sound() {
        Args::command().debug_assert();
    }
}

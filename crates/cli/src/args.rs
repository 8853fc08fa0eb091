//! What the user may type.

#[cfg(feature = "emulate")]
use std::ffi::OsString;
#[cfg(feature = "emulate")]
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
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario once
    Run(RunArgs),
    /// Compare algorithms on a scenario, over varied values and seeds
    #[command(
        after_help = "Example:\n  bentpipe compare geo-dumbbell --cc peach,newreno,sack,cubic \\\n    \
        --vary link.satellite.loss.rate=1e-5,1e-4,1e-3 --seeds 5 --report peach.html"
    )]
    Compare(CompareArgs),
    /// Reproduce a paper: run its experiments, draw its figures, judge its claims
    #[cfg(feature = "studies")]
    #[command(
        after_help = "Examples:\n  bentpipe paper peach --quick\n  bentpipe paper all --report out/papers\n\n\
        A study of your own is a file: docs/studies.md explains it."
    )]
    Paper(PaperArgs),
    /// List what there is: algorithms, scenarios, nodes, queues, losses, traffic, papers
    List(ListArgs),
    /// Show a scenario with every default spelled out, as TOML
    Show(ShowArgs),
    /// Run a command over the links of a scenario, in real time
    #[cfg(feature = "emulate")]
    #[command(after_help = "Examples:\n  bentpipe emulate geo -- curl -O https://example.org/file\n  \
        bentpipe emulate geo --rate 2mbit --loss 1e-3 -- bash\n  \
        bentpipe emulate geo --listen 'iperf3 -s' -- sh -c 'iperf3 -c $BENTPIPE_HOST -R'")]
    Emulate(EmulateArgs),
    /// Measure a real path with UDP probes, into a scenario that replays it
    #[cfg(feature = "emulate")]
    #[command(
        after_help = "Examples:\n  bentpipe record serve                                   on the one host\n  \
        bentpipe record far.example.org --output path.toml      on the other\n  \
        bentpipe emulate ./path.toml -- COMMAND"
    )]
    Record(RecordArgs),
    /// Send a file with our TCP in user space
    #[cfg(feature = "transfer")]
    #[command(after_help = transfer_args::HELP)]
    Send(SendArgs),
    /// Receive a file with our TCP in user space
    #[cfg(feature = "transfer")]
    #[command(after_help = transfer_args::HELP)]
    Receive(ReceiveArgs),
    /// The proxy on a real link: splits the TCP connections that its rules select
    #[cfg(feature = "pep")]
    #[command(after_help = crate::pep_args::HELP)]
    Pep(PepArgs),
    /// Write man pages and completions into a folder
    #[cfg(feature = "generate")]
    #[command(hide = true)]
    Generate {
        /// The folder
        folder: PathBuf,
    },
    /// Load algorithms into the kernel of this machine, choose them for connections, watch them
    #[command(after_help = kernel_args::HELP)]
    Kernel(KernelArgs),
}

/// Which scenario, with which changes.
#[derive(Debug, clap::Args)]
pub struct World {
    /// Path of a scenario file, or name of a built-in scenario
    pub scenario: String,
    /// Change the scenario: `link.satellite.loss.rate=1e-4`, `flow.bulk.count=20`, `duration=60 s`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
}

/// What the proxies of a scenario do.
#[derive(Debug, clap::Args)]
pub struct Proxies {
    /// Let the proxies of the scenario do what this configuration of `bentpipe pep` says
    #[arg(long, value_name = "PEP.toml")]
    pub proxy: Option<String>,
    /// The class of that configuration [default: the first that splits connections]
    #[arg(long, value_name = "NAME", requires = "proxy")]
    pub proxy_class: Option<String>,
}

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Which scenario.
    #[command(flatten)]
    pub world: World,
    /// What its proxies do.
    #[command(flatten)]
    pub proxies: Proxies,
    /// Algorithm of the flows under comparison (`bentpipe list cc`)
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,
    /// Seed of all random streams, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Threads that may execute a world of many flows that nobody watches, with the same result for any number [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub threads: Option<NonZeroUsize>,
    /// Refuse worlds that would take more memory than this, estimated before they are built [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write the result as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write a report with charts, one file that needs no network
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the packets as seen by the senders, for Wireshark
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<PathBuf>,
    /// Capture at this link, before its queue, instead of at the senders
    #[arg(long, value_name = "LINK", requires = "pcap")]
    pub pcap_link: Option<String>,
    /// Write every event: as a line of JSON, compressed if the name ends in .gz, or as a table if it ends in .parquet (docs/tables.md)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Only these events and sources: `window,dropped`, `flow.bulk.0`, `link.satellite.forward` (docs/trace.md)
    #[arg(long, value_name = "EVENT|SOURCE,...", value_delimiter = ',', requires = "trace")]
    pub trace_only: Vec<String>,
    /// Write the load time of each page or file, as CSV or, if the name ends in .parquet, as Parquet (docs/metrics.md)
    #[arg(long, value_name = "FILE")]
    pub pages: Option<PathBuf>,
    /// Write each change of the paths through a constellation, as CSV or Parquet: satellites, handovers, delay
    #[arg(long, value_name = "FILE")]
    pub paths: Option<PathBuf>,
    /// Write one line for each flow as Parquet (docs/tables.md)
    #[arg(long, value_name = "FILE.parquet")]
    pub out: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Which scenario.
    #[command(flatten)]
    pub world: World,
    /// What its proxies do.
    #[command(flatten)]
    pub proxies: Proxies,
    /// Algorithms to compare, or `all` (`bentpipe list cc`) [default: each flow keeps its own; `--vary flow.NAME.cc=A,B` varies one]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub cc: Vec<String>,
    /// Algorithm that the others are compared with, seed by seed [default: the first]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// A quantity that varies, and its values; several are combined
    #[arg(long, value_name = "KEY=V1,V2,...")]
    pub vary: Vec<Vary>,
    /// Runs of each point, with seeds that follow each other
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub seeds: u32,
    /// First seed, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Runs at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Refuse worlds that would take more memory than this, estimated before they are built [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write the result as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write one line for each run as CSV; what the columns mean, with units, beside it in FILE.columns.csv (docs/csv.md)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the same as Parquet (docs/tables.md)
    #[arg(long, value_name = "FILE.parquet")]
    pub out: Option<PathBuf>,
    /// Keep finished runs in this folder and do not repeat those that are there already
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Write a report with charts, one file that needs no network
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// Arguments of `paper`.
#[cfg(feature = "studies")]
#[derive(Debug, clap::Args)]
pub struct PaperArgs {
    /// Name of a built-in study (`bentpipe list papers`), `all`, or the path of a study file
    pub study: String,
    /// Only this figure and the claims about it; may be given several times
    #[arg(long, value_name = "ID")]
    pub figure: Vec<String>,
    /// The short form: fewer seeds, shorter runs
    #[arg(long)]
    pub quick: bool,
    /// Runs of each point, instead of what the study says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub seeds: Option<u32>,
    /// Runs at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Refuse worlds that would take more memory than this, estimated before they are built [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write the verdicts as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write pages, pictures (SVG, PNG) and verdicts there; finished points are kept there too
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Keep finished runs in this folder instead, which `compare --keep` may share
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Forget the runs that an earlier call kept
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

/// What can be listed.
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
    /// What the application of a flow sends
    Traffic,
    /// Built-in studies of papers
    Papers,
}

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Which scenario.
    #[command(flatten)]
    pub world: World,
    /// What its proxies do.
    #[command(flatten)]
    pub proxies: Proxies,
}

/// Arguments of `emulate`.
#[cfg(feature = "emulate")]
#[derive(Debug, clap::Args)]
pub struct EmulateArgs {
    /// Which scenario.
    #[command(flatten)]
    pub world: World,
    /// Rate of the satellite link: `10mbit`, or as in a scenario
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub rate: Option<String>,
    /// One-way delay of the satellite link: `275ms`
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub delay_one_way: Option<String>,
    /// Probability that the satellite link loses a packet
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub loss: Option<String>,
    /// Room in the queue of the satellite link: `50p`, or a size
    #[arg(long, value_name = "ROOM", allow_negative_numbers = true)]
    pub queue: Option<String>,
    /// Where the command stands: where the flows of the scenario end, or where they begin
    #[arg(long, value_name = "PLACE", default_value = "receiver")]
    pub at: Place,
    /// Start this server beyond the links, in a world of its own without the network of this host (repeatable)
    #[arg(long, value_name = "COMMAND")]
    pub listen: Vec<OsString>,
    /// Seed of all random streams, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Refuse links that would take more memory than this, estimated before they are built [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = bentpipe_scenario::read_bytes)]
    pub memory: Option<u64>,
    /// Write what the command sends and receives, for Wireshark
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<PathBuf>,
    /// Answer HTTP here: GET / shows how things stand, PATCH / with {"KEY": VALUE} changes the links
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// Write how things stood in the end as JSON
    #[arg(long, value_name = "FILE.json")]
    pub summary: Option<PathBuf>,
    /// Where to show how things stand: in a line of the terminal, in its title, or nowhere
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    pub status: StatusPlace,
    /// Show neither that nor a summary in the end
    #[arg(long, short)]
    pub quiet: bool,
    /// The command; it finds the address of the host beyond in $BENTPIPE_HOST and $BENTPIPE_HOST6
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `record`.
#[cfg(feature = "emulate")]
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// `serve` to answer probes; otherwise the host to measure the path to, with a port if it is another one
    #[arg(value_name = "serve|HOST[:PORT]")]
    pub host: String,
    /// Where `serve` listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from(([0_u16; 8], bentpipe_emu::record::PORT)))]
    pub listen: SocketAddr,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub duration: Duration,
    /// Time between two probes
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = humantime::parse_duration)]
    pub interval: Duration,
    /// The clocks of both hosts agree (GPS, PTP): keep the one-way delays as they are measured
    #[arg(long)]
    pub clocks_agree: bool,
    /// The scenario to write
    #[arg(long, short, value_name = "FILE.toml", default_value = "recorded.toml")]
    pub output: PathBuf,
}

/// More threads than this no machine has cores for.
const MOST_JOBS: usize = 4096;

/// A number of threads, or of runs at a time.
fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let number: Option<NonZeroUsize> = text.parse().ok();
    number.filter(|number| number.get() <= MOST_JOBS).ok_or_else(|| format!("accepted: 1 to {MOST_JOBS}"))
}

/// Where `emulate` shows how things stand.
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

/// Where the command of `emulate` stands.
#[cfg(feature = "emulate")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Place {
    /// Where the flows under comparison end
    Receiver,
    /// Where they begin
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

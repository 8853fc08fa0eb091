//! What the user may type after `bentpipe pep`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Subcommand;

/// Shown below the list of commands.
pub const HELP: &str = "Examples:\n  sudo bentpipe pep check pep.toml\n  sudo bentpipe pep run --config pep.toml\n\n\
    docs/pep.md is the guide for operators.";

/// Where the Debian package puts it.
const CONFIG: &str = "/etc/bentpipe/pep.toml";

/// Arguments of `pep`.
#[derive(Debug, clap::Args)]
pub struct PepArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PepCommand,
}

/// The commands of the proxy.
#[derive(Debug, Subcommand)]
pub enum PepCommand {
    /// Run the proxy until SIGTERM; SIGHUP reads the configuration again
    Run(PepRunArgs),
    /// Check a configuration and show the packet filter's rules that it stands for; nothing is touched
    Check(PepFile),
    /// Show what this machine has and lacks for a proxy, and the command that fixes it
    Doctor(PepFile),
    /// Show whether a proxy runs, and how it is
    Status(PepStatusArgs),
    /// Stop the running proxy: it takes no new connections, and ends with the last one or when its `drain` is over
    Stop(PepStopArgs),
    /// Show the busiest connections of a running proxy
    Top(PepTopArgs),
    /// Try the proxy over an emulated satellite, in network namespaces, without any configuration
    Try(PepTryArgs),
    /// Remove the rules and routes that a proxy has left behind (kill -9)
    Clean,
}

/// Which configuration.
#[derive(Debug, clap::Args)]
pub struct PepFile {
    /// The configuration [default: /etc/bentpipe/pep.toml]
    #[arg(value_name = "FILE.toml")]
    file: Option<String>,
    /// The same
    #[arg(long, value_name = "FILE.toml", conflicts_with = "file")]
    config: Option<String>,
}

impl PepFile {
    /// Path of the configuration.
    pub fn path(&self) -> &str {
        self.named().unwrap_or(CONFIG)
    }

    /// Path of the configuration, if one was named or is where the package puts it.
    pub fn path_if_there(&self) -> Option<&str> {
        self.named().or_else(|| Path::new(CONFIG).exists().then_some(CONFIG))
    }

    fn named(&self) -> Option<&str> {
        self.file.as_deref().or(self.config.as_deref())
    }
}

/// Arguments of `pep status`.
#[derive(Debug, clap::Args)]
pub struct PepStatusArgs {
    /// Where the proxy is watched (`listen` in the table `[watch]` of its configuration)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    pub from: SocketAddr,
    /// Write JSON to standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `pep stop`.
#[derive(Debug, clap::Args)]
pub struct PepStopArgs {
    /// Cut the connections that exist instead of letting them end
    #[arg(long)]
    pub now: bool,
}

/// Arguments of `pep run`.
#[derive(Debug, clap::Args)]
pub struct PepRunArgs {
    /// The configuration
    #[command(flatten)]
    pub config: PepFile,
    /// Take new connections over from a proxy that runs already, which finishes those that it has and ends
    #[arg(long)]
    pub take_over: bool,
}

/// Arguments of `pep top`.
#[derive(Debug, clap::Args)]
pub struct PepTopArgs {
    /// Where the proxy is watched (`listen` in the table `[watch]` of its configuration)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    pub from: SocketAddr,
    /// How many connections
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub count: usize,
    /// Seconds between two tables, in which rates are measured
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
    /// Show one table and end
    #[arg(long)]
    pub once: bool,
}

/// Arguments of `pep try`.
#[derive(Debug, clap::Args)]
pub struct PepTryArgs {
    /// Path of a scenario file, or name of a built-in scenario: which satellite
    #[arg(default_value = "geo")]
    pub scenario: String,
    /// What to measure: `end-to-end:NAME` without a proxy, `kernel:NAME` with an algorithm of Linux, `NAME` with one of the engine
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub cc: Vec<String>,
    /// Loss rates of the link; `scenario` is that of the scenario
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', default_value = "scenario,1e-3")]
    pub loss: Vec<String>,
    /// Measure the proxy of this configuration as well (at the hub: its first class that splits connections from beyond the satellite)
    #[arg(long, value_name = "PEP.toml")]
    pub proxy: Option<String>,
    /// Downloads side by side
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub flows: u32,
    /// Seconds of the downloads
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Write the result as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write a report with charts, one file that needs no network
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Who to be in the network of one measurement
    #[arg(long, hide = true, requires = "variant")]
    pub part: Option<TryPart>,
    /// The measurement
    #[arg(long, hide = true, default_value = "")]
    pub variant: String,
}

/// Who is who in the network of `pep try`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum TryPart {
    /// In front of the link.
    Client,
    /// Behind it, with the proxy.
    Router,
    /// Behind the router.
    Server,
}

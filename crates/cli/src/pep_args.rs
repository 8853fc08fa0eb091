//! What the user may type after `bentpipe pep`.

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
    Check {
        /// The configuration
        #[arg(value_name = "FILE.toml", default_value = CONFIG)]
        config: String,
    },
    /// Remove the rules and routes that a proxy has left behind (kill -9)
    Clean,
}

/// Arguments of `pep run`.
#[derive(Debug, clap::Args)]
pub struct PepRunArgs {
    /// The configuration
    #[arg(long, value_name = "FILE.toml", default_value = CONFIG)]
    pub config: String,
}

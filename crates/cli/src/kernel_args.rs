//! Arguments of `bentpipe kernel`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

/// Examples at the end of the help.
pub const HELP: &str = "Examples:\n  bentpipe kernel doctor\n  bentpipe kernel load hybla star\n  \
    bentpipe kernel use star --to 10.0.0.0/8\n  bentpipe kernel watch\n  bentpipe kernel unload --all\n\n\
    docs/kernel.md explains it.";

/// Arguments of `kernel`.
#[derive(Debug, clap::Args)]
pub struct KernelArgs {
    /// The command
    #[command(subcommand)]
    pub command: KernelCommand,
}

/// The commands of `kernel`.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Load algorithms into the kernel; they stay until `unload` or the next boot
    Load(LoadArgs),
    /// Unload algorithms; connections that use one keep it until they end
    Unload(UnloadArgs),
    /// List the kernel algorithms, with their differences from the simulator's
    List(Json),
    /// Show the loaded algorithms and the connections that use them
    Status(Json),
    /// Show connections with the state of their algorithm, live
    Watch(WatchArgs),
    /// Check the requirements on this machine, with remedies
    Doctor(Json),
    /// Select an algorithm for connections by destination, interface or control group
    Use(UseArgs),
}

/// Output for machines.
#[derive(Debug, clap::Args)]
pub struct Json {
    /// Write JSON to standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `load`.
#[derive(Debug, clap::Args)]
pub struct LoadArgs {
    /// Names of algorithms (`bentpipe kernel list`)
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "file"])]
    pub names: Vec<String>,
    /// All, except scps-tp without --rate, and peach and swift before kernel 6.6
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Names from a file, one per line; `#` begins a comment. The systemd unit reads /etc/bentpipe/kernel
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "all"])]
    pub file: Option<PathBuf>,
    /// Sending rate of scps-tp, such as `8mbit`
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<u64>,
    /// Second of the UTC minute at which satcp expects a handover; others follow every 15 s [default: 12]
    #[arg(long, value_name = "SECOND", value_parser = second)]
    pub phase: Option<f64>,
    /// Interface through which peach and swift send probes (repeatable) [default: all of this network namespace]. For
    /// a later interface, load again
    #[arg(long, value_name = "NAME")]
    pub interface: Vec<String>,
}

/// Arguments of `unload`.
#[derive(Debug, clap::Args)]
pub struct UnloadArgs {
    /// Names of algorithms
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// All loaded algorithms
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Stop after this number of updates
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Include connections with other algorithms
    #[arg(long)]
    pub all: bool,
    /// Write one line of JSON per connection and update
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `use`.
#[derive(Debug, clap::Args)]
pub struct UseArgs {
    /// Name of a loaded algorithm; `none` removes the rule
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Connections to these addresses (repeatable)
    #[arg(long, value_name = "PREFIX", value_parser = prefix, required_unless_present_any = ["interface", "group"])]
    pub to: Vec<(IpAddr, u8)>,
    /// Connections that leave through this interface (repeatable)
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Connections of the processes in this control group (a folder under the mount of version 2)
    #[arg(long, value_name = "FOLDER")]
    pub group: Option<PathBuf>,
}

/// Parses `8mbit` as bits per second.
fn rate(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 4] = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];
    let lower = text.to_ascii_lowercase();
    let found = UNITS.iter().find_map(|(unit, factor)| {
        let number: f64 = lower.strip_suffix(unit)?.trim().parse().ok()?;
        (number.is_finite() && number > 0.0).then_some(number * factor)
    });
    found
        .map(|bits| bits as u64)
        .ok_or_else(|| "a rate is a number with bit, kbit, mbit or gbit, as 8mbit".into())
}

/// Parses a second of a minute.
fn second(text: &str) -> Result<f64, String> {
    let second = text.parse().ok().filter(|second| (0.0..60.0).contains(second));
    second.ok_or_else(|| "a second of a minute is a number from 0 to below 60, as 12".into())
}

/// Parses the time between two updates, with a lower limit.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let fits = (Duration::from_millis(10)..=Duration::from_secs(86_400)).contains(&interval);
    fits.then_some(interval).ok_or_else(|| "from 10ms to one day".into())
}

/// Parses a network such as `10.0.0.0/8`; an address alone is a network of one.
fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let accepted = || "an address with a length of prefix, as 10.0.0.0/8 or 2001:db8::/32".to_owned();
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().map_err(|_| accepted())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = length.map_or(Ok(most), str::parse).map_err(|_| accepted())?;
    if length > most {
        return Err(format!("a prefix of {address} has at most {most} bits"));
    }
    let beyond = match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits().checked_shl(length.into()).unwrap_or(0)),
        IpAddr::V6(v6) => v6.to_bits().checked_shl(length.into()).unwrap_or(0),
    };
    (beyond == 0)
        .then_some((address, length))
        .ok_or_else(|| format!("{address} has bits beyond the prefix of {length}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_prefixes_are_read_or_refused() {
        assert_eq!(rate("8mbit"), Ok(8_000_000));
        assert_eq!(rate("2.5Gbit"), Ok(2_500_000_000));
        assert!(rate("8").is_err() && rate("-1mbit").is_err() && rate("nanmbit").is_err());
        assert_eq!(prefix("10.0.0.0/8"), Ok(("10.0.0.0".parse().unwrap(), 8)));
        assert_eq!(prefix("10.1.2.3"), Ok(("10.1.2.3".parse().unwrap(), 32)));
        assert_eq!(prefix("::/0"), Ok(("::".parse().unwrap(), 0)));
        assert!(prefix("10.0.0.0/33").is_err() && prefix("10.0.0.1/8").is_err() && prefix("here").is_err());
        assert!(interval("1ms").is_err() && interval("1s").is_ok());
        assert_eq!(second("12.5"), Ok(12.5));
        assert!(second("60").is_err() && second("-1").is_err() && second("nan").is_err());
    }
}

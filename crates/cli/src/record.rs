//! `bentpipe record`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use bentpipe_emu::record::{Clocks, PORT, Plan, record as measure, serve};

use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::output::{Kind, Target};

/// Closer probes would measure the two hosts instead of the path.
const LEAST_INTERVAL: Duration = Duration::from_micros(500);

/// All probes stay in memory until the end.
const MOST_DURATION: Duration = Duration::from_secs(24 * 3600);

/// Answers probes, or measures and writes a scenario.
pub fn record(args: &RecordArgs) -> Result<(), Failure> {
    if args.host == "serve" {
        return Ok(serve(args.listen)?);
    }
    if args.interval < LEAST_INTERVAL || args.duration < args.interval || args.duration > MOST_DURATION {
        let [interval, duration] = [args.interval, args.duration].map(humantime::format_duration);
        return Err(Failure::Request(format!(
            "found --interval {interval} and --duration {duration}, accepted: an --interval of at least 500us, and a --duration that is not \
             shorter and at most 24h"
        )));
    }
    let clocks = if args.clocks_agree { Clocks::Agree } else { Clocks::Apart };
    let server = address(&args.host)?;
    let target = Target::open(&args.output, Kind::Recording)?;
    let (duration, interval) = (args.duration, args.interval);
    eprintln!("bentpipe: measuring the path to {server} for {}", humantime::format_duration(duration));
    let recording = measure(&Plan { server, duration, interval, clocks })?;
    target.write(recording.to_toml(&format!("The path to {}, recorded", args.host)).as_bytes())?;
    eprintln!("bentpipe: wrote {}; replay it with: bentpipe emulate {0} -- COMMAND", args.output.display());
    Ok(())
}

/// Returns the address of a host with an optional port.
fn address(host: &str) -> Result<SocketAddr, Failure> {
    let found = host.to_socket_addrs().or_else(|_| (host, PORT).to_socket_addrs());
    let mut found = found.map_err(|error| Failure::Request(format!("{host}: {error}")))?;
    found.next().ok_or_else(|| Failure::Request(format!("{host}: no address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_bring_its_port() {
        assert_eq!(address("192.0.2.1").unwrap(), SocketAddr::from(([192, 0, 2, 1], PORT)));
        assert_eq!(address("192.0.2.1:9").unwrap(), SocketAddr::from(([192, 0, 2, 1], 9)));
        assert_eq!(address("2001:db8::1").unwrap().port(), PORT);
        assert!(address("no such host").is_err());
    }
}

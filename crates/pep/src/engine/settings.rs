//! The configuration of the engine's connections.

use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_host::{Stack, TIMESTAMPS_LEN};
use bentpipe_scenario::connection_config;
use bentpipe_scenario::deployment::Split;
use bentpipe_tcp::{Config, EcnMode, KeepAlive, ReceiveWindow};

use crate::half::HalfRequest;
use crate::keepalive::Keepalive;

/// Mode for shared networks, of the algorithms that have one.
const SAFE: &str = "cc.mode=safe";
/// Least time by which timeouts exceed the smoothed round trip, as in Linux (`TCP_RTO_MIN`).
const RTO_MARGIN: Duration = Duration::from_millis(200);
/// First receive window in bytes (chosen).
const FIRST_WINDOW: u64 = 256 << 10;

/// Smallest maximum segment size that is taken over, as in Linux (`TCP_MIN_MSS`).
const LEAST_MSS: u16 = 88;
/// Most configurations that are kept (chosen).
const MOST_KNOWN: usize = 64;

/// Configurations that were made before, by their keys.
#[derive(Default)]
pub(crate) struct Settings {
    known: Vec<(ConfigKey, Arc<Config>)>,
}

/// Key of a configuration.
#[derive(Clone, PartialEq)]
pub(crate) struct ConfigKey {
    split: Split,
    is_v4: bool,
    ecn: bool,
    /// Maximum segment size announced by the client's SYN.
    mss: Option<u16>,
}

impl ConfigKey {
    /// For a connection. `answers` is true if it is opened by the peer.
    pub fn new(request: &HalfRequest, answers: bool) -> Self {
        let HalfRequest { split, server, manner, .. } = request;
        Self { split: split.clone(), is_v4: server.is_ipv4(), ecn: negotiates_ecn(answers), mss: manner.mss }
    }
}

impl Settings {
    /// The configuration for `key`. `None` if the algorithm does not exist, which the check of the file rules out.
    pub fn of(&mut self, stack: &Stack, key: ConfigKey) -> Option<Arc<Config>> {
        if let Some((_, config)) = self.known.iter().find(|(known, _)| *known == key) {
            return Some(Arc::clone(config));
        }
        let config = Arc::new(config(stack, &key)?);
        // Clients choose this value, so there may be many.
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.push((key, Arc::clone(&config)));
        Some(config)
    }
}

/// True if Linux would negotiate ECN here (`net.ipv4.tcp_ecn`): 1 always, 2 only if the peer requests it.
fn negotiates_ecn(answers: bool) -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn");
    match setting.as_deref().map(str::trim) {
        Ok("1") => true,
        Ok("2") => answers,
        _ => false,
    }
}

fn config(stack: &Stack, key: &ConfigKey) -> Option<Config> {
    let side = &key.split.satellite;
    let cc = &side.cc;
    let mut usual = connection_config(cc, [SAFE]).or_else(|_| connection_config(cc, [])).ok()?;
    if let Some(law) = &side.law {
        usual.cc = law.clone();
    }
    let address = if key.is_v4 { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let full = stack.full_segment(address);
    let announced = key.mss.filter(|mss| *mss >= LEAST_MSS);
    let buffer = key.split.most_kept();
    let mut rto = usual.rto;
    rto.margin = rto.margin.max(RTO_MARGIN);
    Some(Config {
        rto,
        mss: announced.map_or(full, |mss| full.min(u32::from(mss) - TIMESTAMPS_LEN)),
        timestamps_len: TIMESTAMPS_LEN,
        rate_limit: side.rate_limit.map(|limit| limit.rate),
        careful_resume: side.careful_resume,
        send_buffer: buffer,
        receive_window: ReceiveWindow::Auto { initial: FIRST_WINDOW.min(buffer), limit: buffer },
        keep_alive: Keepalive::of(side).map(keep_alive),
        ecn: if key.ecn { EcnMode::Classic } else { EcnMode::Off },
        ..usual
    })
}

fn keep_alive(keepalive: Keepalive) -> KeepAlive {
    let seconds = |time: std::time::Duration| Duration::from_secs(time.as_secs());
    let Keepalive { idle, interval, questions } = keepalive;
    KeepAlive { idle: seconds(idle), interval: seconds(interval), probes: questions }
}

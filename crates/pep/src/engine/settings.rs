//! The configuration of the engine's connections.

use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_host::{Stack, TIMESTAMPS_LEN};
use bentpipe_scenario::connection_config;
use bentpipe_scenario::deployment::Split;
use bentpipe_tcp::{Config, KeepAlive, ReceiveWindow};

/// Mode for networks that are shared with others, of those algorithms that have one.
const SAFE: &str = "cc.mode=safe";
/// Least time by which timeouts exceed the smoothed round trip, as in Linux (`TCP_RTO_MIN`).
const RTO_MARGIN: Duration = Duration::from_millis(200);
/// Keep-alive of idle connections, as the kernel does it for its half (`tcp_keepalive_time`, `tcp_keepalive_intvl`, `tcp_keepalive_probes`).
const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };
/// First receive window in bytes (chosen).
const FIRST_WINDOW: u64 = 256 << 10;

/// Configurations that were made before, by their keys.
#[derive(Default)]
pub(crate) struct Settings {
    known: Vec<(ConfigKey, Arc<Config>)>,
}

/// What a configuration depends on.
#[derive(Clone, PartialEq)]
pub(crate) struct ConfigKey {
    split: Split,
    is_v4: bool,
    ecn: bool,
}

impl ConfigKey {
    /// For connections over one IP version. `answers` is true if they are opened by the peer.
    pub fn new(split: &Split, is_v4: bool, answers: bool) -> Self {
        Self { split: split.clone(), is_v4, ecn: negotiates_ecn(answers) }
    }
}

impl Settings {
    /// The configuration for `key`. `None` if the algorithm does not exist, which the check of the file rules out.
    pub fn of(&mut self, stack: &Stack, key: ConfigKey) -> Option<Arc<Config>> {
        if let Some((_, config)) = self.known.iter().find(|(known, _)| *known == key) {
            return Some(Arc::clone(config));
        }
        let config = Arc::new(config(stack, &key)?);
        self.known.push((key, Arc::clone(&config)));
        Some(config)
    }
}

/// Whether Linux would negotiate ECN here (`net.ipv4.tcp_ecn`): 1 always, 2 only where the other end asks for it.
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
    let buffer = key.split.most_kept();
    let mut rto = usual.rto;
    rto.margin = rto.margin.max(RTO_MARGIN);
    Some(Config {
        rto,
        mss: stack.full_segment(address),
        timestamps_len: TIMESTAMPS_LEN,
        rate_limit: side.rate_limit,
        send_buffer: buffer,
        receive_window: ReceiveWindow::Auto { initial: FIRST_WINDOW.min(buffer), limit: buffer },
        keep_alive: Some(KEEP_ALIVE),
        ecn: key.ecn,
        ..usual
    })
}

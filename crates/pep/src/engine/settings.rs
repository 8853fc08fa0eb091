//! What the configuration says, as the engine takes it.

use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_host::Stack;
use bentpipe_scenario::connection_config;
use bentpipe_scenario::deployment::Side;
use bentpipe_tcp::{Config, KeepAlive, ReceiveWindow};

/// What algorithms that have such a mode use in networks that belong to others.
const SAFE: &str = "cc.mode=safe";
/// How far timeouts stay above the smoothed round trip, as with Linux (`TCP_RTO_MIN`).
const RTO_MARGIN: Duration = Duration::from_millis(200);
/// An idle connection is asked after this time whether its other end is still there, as the kernel's half is.
const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };
/// Bytes of a direction where nothing limits them but the measured bandwidth-delay product.
const MOST_BUFFER: u64 = 32 << 20;
/// First receive window in bytes.
const FIRST_WINDOW: u64 = 256 << 10;

/// Configurations by what makes them.
#[derive(Default)]
pub(crate) struct Settings {
    known: Vec<(Key, Arc<Config>)>,
}

#[derive(Clone, PartialEq)]
struct Key {
    side: Side,
    buffer: Option<u64>,
    is_v4: bool,
}

impl Settings {
    /// The configuration of connections of one IP version. None if the algorithm does not exist, which the file was checked for.
    pub fn of(
        &mut self,
        stack: &Stack,
        side: &Side,
        buffer: Option<u64>,
        is_v4: bool,
    ) -> Option<Arc<Config>> {
        let key = Key { side: side.clone(), buffer, is_v4 };
        if let Some((_, config)) = self.known.iter().find(|(known, _)| *known == key) {
            return Some(Arc::clone(config));
        }
        let config = Arc::new(config(stack, &key)?);
        self.known.push((key, Arc::clone(&config)));
        Some(config)
    }
}

fn config(stack: &Stack, key: &Key) -> Option<Config> {
    let cc = &key.side.cc;
    let usual = connection_config(cc, [SAFE]).or_else(|_| connection_config(cc, [])).ok()?;
    let address = if key.is_v4 { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let buffer = key.buffer.unwrap_or(MOST_BUFFER);
    let mut rto = usual.rto;
    rto.margin = rto.margin.max(RTO_MARGIN);
    Some(Config {
        rto,
        mss: stack.full_segment(address),
        rate_limit: key.side.rate_limit,
        send_buffer: buffer,
        receive_window: ReceiveWindow::Auto { initial: FIRST_WINDOW.min(buffer), limit: buffer },
        keep_alive: Some(KEEP_ALIVE),
        ..usual
    })
}

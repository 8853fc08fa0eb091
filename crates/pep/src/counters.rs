//! Counters of the packet filter as metrics.

use std::collections::HashMap;

use bentpipe_system::NFT;
use serde_json::Value;

use crate::metrics::Count;
use crate::rules;
use crate::shared::Shared;
use crate::slot::Slot;
use crate::udp;

/// Adds to the metrics what the counters of the rules have grown by. Counters of new rules begin at zero.
pub(crate) fn collect(shared: &Shared) {
    let (now, metrics, deployment) = (read(shared.slot), &shared.metrics, shared.deployment());
    let mut seen = metrics.counters_seen();
    let mut grown = |name: String| -> Count {
        let Some(&now) = now.get(&name) else { return [0; 2] };
        let before = seen.insert(name, now).filter(|before| before[0] <= now[0]).unwrap_or_default();
        [now[0] - before[0], now[1] - before[1]]
    };
    for (reason, name) in rules::unsplit() {
        metrics.leave_alone(reason, grown(name)[0]);
    }
    for (number, class) in deployment.classes.iter().enumerate() {
        for side in udp::SIDES {
            metrics.forward_udp(&class.name, side, grown(udp::forwarded(number, side)));
        }
        metrics.refuse_quic(&class.name, grown(udp::refused(number))[0]);
    }
}

/// The counters of a proxy by their names; none if they cannot be read.
fn read(slot: Slot) -> HashMap<String, Count> {
    let text = NFT.run(&["-j", "list", "counters", "table", "inet", slot.table()], "").unwrap_or_default();
    let ruleset: Value = serde_json::from_str(&text).unwrap_or_default();
    let entries = ruleset["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    let count = |entry: &Value| {
        let counter = entry.get("counter")?;
        let name = counter["name"].as_str()?.to_owned();
        Some((name, [counter["packets"].as_u64()?, counter["bytes"].as_u64()?]))
    };
    entries.iter().filter_map(count).collect()
}

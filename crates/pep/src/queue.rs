//! The queue of the satellite interfaces: FQ-CoDel (RFC 8290) of the kernel, set by `tc`.
//!
//! FQ-CoDel hashes flows into queues, so one flow cannot delay another. CoDel drops packets of the flows that wait too long. With a rate, a token
//! bucket keeps the queue in this machine, where it would otherwise be in the modem.
//!
//! Only a queue that the kernel made by itself is replaced: when ours is removed, the kernel makes the former one again.

use bentpipe_scenario::deployment::{Deployment, FqCodel, interface_fits};
use bentpipe_system::TC;
use serde_json::Value;

use crate::error::Error;
use crate::slot::{SLOTS, Slot};

/// Handles of our queues, by slot (chosen).
const HANDLES: [&str; SLOTS as usize] = ["6270:", "6271:"];
/// Handle of a queue that the kernel made by itself.
const DEFAULT: &str = "0:";

/// The queue at the root of an interface.
struct Root {
    interface: String,
    kind: String,
    handle: String,
}

impl Root {
    fn is_of(&self, slot: Slot) -> bool {
        self.handle == HANDLES[usize::from(slot.0)]
    }

    fn is_of_a_proxy(&self) -> bool {
        Slot::all().any(|slot| self.is_of(slot))
    }

    fn remove(&self) -> Result<(), Error> {
        tc(&format!("qdisc del dev {} root\n", self.interface))
    }
}

/// Returns the roots of all interfaces; none if they cannot be read.
fn roots() -> Vec<Root> {
    let text = TC.run(&["-j", "qdisc", "show"], "").unwrap_or_default();
    let qdiscs: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let word = |qdisc: &Value, key: &str| qdisc[key].as_str().unwrap_or_default().to_owned();
    let of_root = |qdisc: &Value| Root {
        interface: word(qdisc, "dev"),
        kind: word(qdisc, "kind"),
        handle: word(qdisc, "handle"),
    };
    qdiscs.iter().filter(|qdisc| qdisc["root"] == true).map(of_root).collect()
}

fn of_satellite(deployment: &Deployment) -> Vec<Root> {
    let is_of_satellite = |root: &Root| {
        deployment.interfaces.satellite.iter().any(|name| interface_fits(name, &root.interface))
    };
    roots().into_iter().filter(is_of_satellite).collect()
}

fn tc(script: &str) -> Result<(), Error> {
    Ok(TC.run(&["-batch", "-"], script).map(drop)?)
}

/// Sets the queue of each satellite interface, or removes ours if the configuration has none. Tells the user of interfaces without it.
pub(crate) fn install(deployment: &Deployment, slot: Slot) {
    remove(slot);
    let Some(queue) = &deployment.queue else { return };
    for root in of_satellite(deployment) {
        if let Err(error) = replace(&root, queue, slot) {
            eprintln!("bentpipe: satellite-queue: {} has no FQ-CoDel of the proxy: {error}", root.interface);
        }
    }
}

fn replace(root: &Root, queue: &FqCodel, slot: Slot) -> Result<(), Error> {
    let Root { interface, kind, handle } = root;
    if root.is_of_a_proxy() {
        root.remove()?;
    } else if handle != DEFAULT {
        return Err(Error::Request(format!(
            "found the queue {kind} {handle} of somebody else; remove it with `tc qdisc del dev {interface} root`"
        )));
    }
    add(interface, queue, slot)
}

/// Sets the queue of an interface that has none of somebody else.
pub(crate) fn add(interface: &str, queue: &FqCodel, slot: Slot) -> Result<(), Error> {
    tc(&script(interface, queue, slot)).map_err(|error| {
        // The token bucket may exist without its FQ-CoDel.
        let _ = tc(&format!("qdisc del dev {interface} root\n"));
        Error::Missing(format!(
            "{error}; it needs a kernel with CONFIG_NET_SCH_FQ_CODEL, and CONFIG_NET_SCH_TBF for `rate` (modprobe sch_fq_codel sch_tbf)"
        ))
    })
}

/// The commands for `tc` that make the queue.
fn script(interface: &str, queue: &FqCodel, slot: Slot) -> String {
    let FqCodel { rate, target, interval, limit } = queue;
    let handle = HANDLES[usize::from(slot.0)];
    let [target, interval] = [target, interval].map(|time| time.as_nanos() / 1000);
    let fq_codel = format!("fq_codel target {target}us interval {interval}us limit {limit}\n");
    let Some(rate) = rate else {
        return format!("qdisc add dev {interface} root handle {handle} {fq_codel}");
    };
    let bits_per_s = rate.bps();
    // Two packets, or what the rate sends in 5 ms (chosen): a timer of the kernel wakes the bucket late.
    let burst_bytes = (bits_per_s / 8 / 200).max(2 * 1514);
    format!(
        "qdisc add dev {interface} root handle {handle} tbf rate {bits_per_s}bit burst {burst_bytes} limit {burst_bytes}\n\
         qdisc add dev {interface} parent {handle}1 {fq_codel}"
    )
}

/// Removes the queues of a slot. Errors are ignored, because the interface may be gone.
pub(crate) fn remove(slot: Slot) {
    for root in roots().iter().filter(|root| root.is_of(slot)) {
        let _ = root.remove();
    }
}

/// Returns the present queues at the satellite interfaces, as a text to compare.
pub(crate) fn state(deployment: &Deployment) -> String {
    // An older and a newer proxy may run, each with a handle of its own.
    let line = |root: Root| match root.is_of_a_proxy() {
        true => format!("{}: that of a proxy\n", root.interface),
        false => format!("{}: {} {}\n", root.interface, root.kind, root.handle),
    };
    match deployment.queue {
        Some(_) => of_satellite(deployment).into_iter().map(line).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Rate;

    use super::*;

    #[test]
    fn a_rate_puts_a_token_bucket_in_front() {
        let queue = FqCodel::default();
        let plain = "fq_codel target 100000us interval 1200000us limit 10240\n";
        assert_eq!(script("sat0", &queue, Slot(1)), format!("qdisc add dev sat0 root handle 6271: {plain}"));
        let at = |rate| script("sat0", &FqCodel { rate: Some(rate), ..queue }, Slot(0));
        let text = at(Rate::from_bps(18_500_000));
        assert!(text.contains("handle 6270: tbf rate 18500000bit burst 11562 limit 11562\n"), "{text}");
        assert!(text.ends_with(&format!("parent 6270:1 {plain}")), "{text}");
        assert!(at(Rate::from_bps(64_000)).contains("burst 3028 "));
    }
}

//! Configuration of a shared channel, from a direction of a link and its access scheme.

use bentpipe_mac::{Access, MediumConfig, TerminalConfig};
use bentpipe_net::{ConfigError, LinkConfig, OutageEffect, QueueConfig, Schedule};

/// Returns the channel that `terminals` members of a link group share by `access`, and each member's queue and errors.
///
/// # Errors
/// If the direction has a property that a shared channel does not support, or the channel is impossible. Field names are as in
/// the file, relative to the direction.
pub fn shared_channel(
    link: &LinkConfig,
    access: &Access,
    terminals: usize,
) -> Result<(MediumConfig, TerminalConfig), ConfigError> {
    let refuse = |field, found: &str, accepted| Err(ConfigError::new(field, found, accepted));
    let Schedule::Constant(rate) = link.rate else {
        return refuse("rate", "a rate that varies", "a constant rate for a shared medium");
    };
    let Schedule::Constant(delay_one_way) = link.delay_one_way else {
        return refuse("delay_one_way", "a delay that varies", "a constant delay for a shared medium");
    };
    let QueueConfig::DropTail { limit } = link.queue else {
        return refuse("queue.kind", link.queue.name(), "drop-tail at the terminals of a shared medium");
    };
    if !link.outages.intervals.is_empty() || link.outages.effect != OutageEffect::Pause {
        return refuse("outages", "outages", "none on a shared medium");
    }
    if link.arq.is_some() {
        return refuse("arq", "selective-repeat", "off on a shared medium");
    }
    if link.fec.is_some() {
        return refuse("fec", "reed-solomon", "off on a shared medium");
    }
    if link.jitter.is_some() {
        return refuse("jitter", "jitter", "off on a shared medium");
    }
    if link.reordering.is_some() {
        return refuse("reordering", "reordering", "none on a shared medium");
    }
    if link.duplicate_probability > 0.0 {
        return refuse("duplication", "duplication", "none on a shared medium");
    }
    if link.corrupt_probability > 0.0 {
        return refuse("corruption", "corruption", "none on a shared medium");
    }
    let medium = MediumConfig { rate, delay_one_way, access: access.clone() };
    medium.validate(terminals).map_err(|error| error.within("medium"))?;
    Ok((medium, TerminalConfig { queue: limit, loss: link.loss.clone() }))
}

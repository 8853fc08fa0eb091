use bentpipe_base::{Duration, Rate};

use crate::error::check_probability;
use crate::{ConfigError, LossConfig, Outages, QueueConfig, Schedule};

/// Everything that describes one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Transmission rate, counted over the packet's size on the wire. The rate at the start of a packet's transmission
    /// holds for all of it.
    pub rate: Schedule<Rate>,
    /// One-way propagation delay: from the end of transmission to the arrival of the last bit. The delay at the end of
    /// transmission applies.
    pub delay_one_way: Schedule<Duration>,
    /// The queue in front of the transmitter.
    pub queue: QueueConfig,
    /// Transmission errors, met after the queue: a lost packet has used its time on the link.
    pub loss: LossConfig,
    /// Repetition of what errors hit, by the link itself; none if the ends must do that.
    pub arq: Option<ArqConfig>,
    /// When the link is out, and what that does.
    pub outages: Outages,
    /// True (the default) if no packet arrives before one sent earlier, as on one physical path: when the delay
    /// shrinks, a packet that would overtake arrives together with its predecessor. Packets chosen by `reordering` are
    /// exempt.
    pub preserve_order: bool,
    /// Packets held back on the path so that later ones overtake them.
    pub reordering: Option<Reordering>,
    /// Probability that an arriving packet arrives a second time, at the same instant and at no cost in link time.
    pub duplicate_probability: f64,
}

/// Selective repeat on the link: the receiving end asks for every packet that an error hit, and gets it again a round trip of the link later.
///
/// A repetition takes the transmitter as long as the packet did. That time is taken right behind the first transmission instead of a
/// round trip later: the same amount, at a moment when it can be decided. With [`LinkConfig::preserve_order`] the packets behind wait at the
/// receiving end until the repeated one is there; without, they overtake it. Requests are not lost, and cost the other direction nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqConfig {
    /// Most repetitions of a packet, at least 1.
    pub retries: u32,
}

/// Random reordering: a chosen packet takes longer by a uniformly distributed extra delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is chosen.
    pub probability: f64,
    /// Least extra one-way delay.
    pub extra_min: Duration,
    /// Largest extra one-way delay.
    pub extra_max: Duration,
}

impl LinkConfig {
    /// An error-free link of constant rate and delay.
    pub fn new(rate: Rate, delay_one_way: Duration, queue: QueueConfig) -> Self {
        Self {
            rate: Schedule::Constant(rate),
            delay_one_way: Schedule::Constant(delay_one_way),
            queue,
            loss: LossConfig::default(),
            arq: None,
            outages: Outages::default(),
            preserve_order: true,
            reordering: None,
            duplicate_probability: 0.0,
        }
    }

    /// Checks that the link can exist; the error names the first field that prevents it.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.rate.validate().map_err(|e| e.within("rate"))?;
        self.delay_one_way.validate().map_err(|e| e.within("delay_one_way"))?;
        self.queue.validate().map_err(|e| e.within("queue"))?;
        self.loss.validate().map_err(|e| e.within("loss"))?;
        if self.arq.is_some_and(|arq| !(1..=10_000).contains(&arq.retries)) {
            let retries = self.arq.map_or(0, |arq| arq.retries);
            return Err(ConfigError::new("arq.retries", retries, "1 to 10000"));
        }
        self.outages.validate().map_err(|e| e.within("outages"))?;
        if let Some(reordering) = &self.reordering {
            reordering.validate().map_err(|e| e.within("reordering"))?;
        }
        check_probability("duplicate_probability", self.duplicate_probability)
    }

    /// True if nothing but errors ever happens to a packet on this link, and rate and delay never change.
    pub(crate) fn is_plain(&self) -> bool {
        matches!((&self.rate, &self.delay_one_way), (Schedule::Constant(_), Schedule::Constant(_)))
            && self.arq.is_none()
            && self.outages.intervals.is_empty()
            && self.reordering.is_none()
            && self.duplicate_probability <= 0.0
    }

    /// True if packets can arrive in another order than they were sent.
    pub(crate) fn may_reorder(&self) -> bool {
        let delay_varies = !matches!(self.delay_one_way, Schedule::Constant(_));
        self.reordering.is_some() || ((delay_varies || self.arq.is_some()) && !self.preserve_order)
    }
}

impl Reordering {
    fn validate(&self) -> Result<(), ConfigError> {
        check_probability("probability", self.probability)?;
        if self.extra_min > self.extra_max {
            return Err(ConfigError::new("extra_min", self.extra_min, "at most extra_max"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;

    fn good() -> LinkConfig {
        LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(250), QueueConfig::default())
    }

    #[test]
    fn the_plain_link_is_valid() {
        assert_eq!(good().validate(), Ok(()));
    }

    #[test]
    fn errors_name_the_field_what_was_found_and_what_is_accepted() {
        let queue = QueueConfig::DropTail { limit: Limit::Packets(0) };
        let error = LinkConfig { queue, ..good() }.validate().unwrap_err();
        assert_eq!(error.to_string(), "queue.limit: found 0 packets, accepted: at least 1 packet");

        let error = LinkConfig { duplicate_probability: 1.5, ..good() }.validate().unwrap_err();
        assert_eq!(error.field, "duplicate_probability");

        let rate = Schedule::Constant(Rate::ZERO);
        assert_eq!(LinkConfig { rate, ..good() }.validate().unwrap_err().field, "rate.constant");
    }
}

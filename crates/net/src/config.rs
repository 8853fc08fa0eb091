use bentpipe_base::{Duration, Rate};

use crate::error::{ConfigError, check_probability};
use crate::jitter::Jitter;
use crate::loss::LossConfig;
use crate::opportunity::Opportunities;
use crate::outage::Outages;
use crate::queue::QueueConfig;
use crate::schedule::Schedule;

/// Configuration of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Transmission rate for the packet's size on the wire. The rate at the start of a packet's transmission applies to all of
    /// it.
    pub rate: Schedule<Rate>,
    /// Recorded transmission opportunities. They replace `rate`, which then only shows their average ([`Opportunities::rate`]).
    /// Not combined with `arq` or `fec`.
    pub opportunities: Option<Opportunities>,
    /// One-way propagation delay, from the end of transmission to the arrival of the last bit. The value at the end of
    /// transmission applies.
    pub delay_one_way: Schedule<Duration>,
    /// Change of the delay that is drawn for each packet.
    pub jitter: Option<Jitter>,
    /// Queue of the transmitter.
    pub queue: QueueConfig,
    /// Transmission errors, applied after the queue: a lost packet has used link time.
    pub loss: LossConfig,
    /// Retransmission by the link of packets lost to errors; `None` if only the ends retransmit.
    pub arq: Option<ArqConfig>,
    /// Parity packets, from which the far end restores packets lost to errors and outages. Not combined with `arq`.
    pub fec: Option<FecConfig>,
    /// Outages of the link, and their effect.
    pub outages: Outages,
    /// True (the default) if packets arrive in the order of their transmission, as on one physical path. If the delay shrinks, or
    /// by jitter, a packet that would overtake arrives together with its predecessor. Packets selected by `reordering` are exempt.
    pub preserve_order: bool,
    /// Random delay of packets on the path, so that later ones overtake them.
    pub reordering: Option<Reordering>,
    /// Probability that a packet arrives a second time, at the same instant and without link time.
    pub duplicate_probability: f64,
    /// Probability that a packet arrives with one flipped bit, undetected by the link layer. A checksum detects it. Packets
    /// without bytes, such as those of the simulator, are dropped instead.
    pub corrupt_probability: f64,
}

/// Selective-repeat ARQ of the link. The receiving end requests every packet lost to an error, and receives it one round trip of
/// the link later.
///
/// A retransmission occupies the transmitter as long as the packet did. The model schedules it directly after the first
/// transmission instead of a round trip later, so that the fate of a packet is known at once. With
/// [`LinkConfig::preserve_order`], later packets wait at the receiving end for the retransmitted one. Without, they overtake it.
/// Requests are never lost and use no capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqConfig {
    /// Maximum number of retransmissions of a packet, at least 1.
    pub retries: u32,
}

/// Packet-level forward error correction: after every `k` packets the link sends `n - k` parity packets. The far end restores a
/// block's lost packets once any `k` of its `n` packets have arrived (an ideal, maximum-distance-separable code such as
/// Reed–Solomon).
///
/// Data packets are sent as they arrive (the code is systematic), so packets that are not lost are not delayed. Parity packets
/// have the size of the largest packet of their block. They bypass the queue, and queued packets wait for them. With
/// [`LinkConfig::preserve_order`], packets after a lost one wait at the far end until it is restored or given up. Without, they
/// overtake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecConfig {
    /// Number of data packets in a block, at least 1.
    pub k: u32,
    /// Number of packets in a block including parity, more than `k` and at most 255.
    pub n: u32,
    /// Age of a block's first packet, from the start of its transmission, at which parity is sent for an incomplete block. Queued
    /// packets fill the block first.
    pub flush: Duration,
}

impl FecConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        if self.k == 0 {
            return Err(ConfigError::new("k", self.k, "at least 1 packet"));
        }
        if self.n <= self.k {
            return Err(ConfigError::new("n", self.n, "more than k"));
        }
        if self.n > 255 {
            return Err(ConfigError::new(
                "n",
                self.n,
                "at most 255 packets, as a Reed-Solomon code over bytes has",
            ));
        }
        Ok(())
    }
}

/// Random reordering: a selected packet has a uniformly distributed extra delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is selected.
    pub probability: f64,
    /// Minimum extra one-way delay.
    pub extra_min: Duration,
    /// Maximum extra one-way delay.
    pub extra_max: Duration,
}

impl LinkConfig {
    /// Makes an error-free link of constant rate and delay.
    pub fn new(rate: Rate, delay_one_way: Duration, queue: QueueConfig) -> Self {
        Self {
            rate: Schedule::Constant(rate),
            opportunities: None,
            delay_one_way: Schedule::Constant(delay_one_way),
            jitter: None,
            queue,
            loss: LossConfig::default(),
            arq: None,
            fec: None,
            outages: Outages::default(),
            preserve_order: true,
            reordering: None,
            duplicate_probability: 0.0,
            corrupt_probability: 0.0,
        }
    }

    /// Checks that the link is possible; the error names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.rate.validate().map_err(|e| e.within("rate"))?;
        if let Some(opportunities) = &self.opportunities {
            opportunities.validate().map_err(|e| e.within("opportunities"))?;
            if self.arq.is_some() || self.fec.is_some() {
                let found = "recorded opportunities beside arq or fec";
                return Err(ConfigError::new(
                    "opportunities",
                    found,
                    "a rate, or a link that repairs nothing",
                ));
            }
        }
        self.delay_one_way.validate().map_err(|e| e.within("delay_one_way"))?;
        if let Some(jitter) = &self.jitter {
            jitter.validate().map_err(|e| e.within("jitter"))?;
        }
        self.queue.validate().map_err(|e| e.within("queue"))?;
        self.loss.validate().map_err(|e| e.within("loss"))?;
        if self.arq.is_some_and(|arq| !(1..=10_000).contains(&arq.retries)) {
            let retries = self.arq.map_or(0, |arq| arq.retries);
            return Err(ConfigError::new("arq.retries", retries, "1 to 10000"));
        }
        if let Some(fec) = &self.fec {
            fec.validate().map_err(|e| e.within("fec"))?;
            if self.arq.is_some() {
                return Err(ConfigError::new("fec", "parity beside arq", "one of arq and fec"));
            }
        }
        self.outages.validate().map_err(|e| e.within("outages"))?;
        if let Some(reordering) = &self.reordering {
            reordering.validate().map_err(|e| e.within("reordering"))?;
        }
        check_probability("duplicate_probability", self.duplicate_probability)?;
        check_probability("corrupt_probability", self.corrupt_probability)
    }

    /// True if packets only meet errors on this link, and rate and delay are constant.
    pub(crate) fn is_plain(&self) -> bool {
        matches!((&self.rate, &self.delay_one_way), (Schedule::Constant(_), Schedule::Constant(_)))
            && self.opportunities.is_none()
            && self.arq.is_none()
            && self.outages.intervals.is_empty()
            && self.jitter.is_none()
            && self.reordering.is_none()
            && self.duplicate_probability <= 0.0
            && self.corrupt_probability <= 0.0
    }

    /// True if packets can arrive in another order than they were sent.
    pub(crate) fn may_reorder(&self) -> bool {
        let delay_varies = !matches!(self.delay_one_way, Schedule::Constant(_)) || self.jitter.is_some();
        let repairs = self.arq.is_some() || self.fec.is_some();
        self.reordering.is_some() || ((delay_varies || repairs) && !self.preserve_order)
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

    #[test]
    fn a_code_without_packets_without_parity_too_long_or_beside_repetition_is_refused() {
        let refused = |k, n, arq| {
            let fec = Some(FecConfig { k, n, flush: Duration::ZERO });
            LinkConfig { fec, arq, ..good() }.validate().map_err(|error| error.field)
        };
        let field = |field: &str| Err(field.to_owned());
        assert_eq!(refused(0, 4, None), field("fec.k"));
        assert_eq!(refused(4, 4, None), field("fec.n"));
        assert_eq!(refused(4, 256, None), field("fec.n"));
        assert_eq!(refused(4, 5, Some(ArqConfig { retries: 1 })), field("fec"));
        assert_eq!(refused(1, 255, None), Ok(()));
    }
}

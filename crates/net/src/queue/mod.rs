//! Queues of the transmitter.
//!
//! The packet in transmission does not count: a queue of 50 packets holds 50 besides the one being sent. A packet that
//! arrives at an idle transmitter passes through the queue in zero time, so it must also fit the limit. (ns-2 does not
//! count the packet in transmission either. But its drop-tail refuses the packet that would fill the last place, so its
//! limit of 51 is a limit of 50 here.)
//!
//! There are two kinds. A [`Fifo`] decides when a packet arrives and then knows its departure, so it needs no further
//! event. A [`Held`] queue decides when the transmitter becomes free, and holds the packets until then.

pub(crate) mod backlog;
mod codel;
mod drop_front;
mod dual_pi2;
mod fifo;
mod fq_codel;
mod held;
mod pie;
mod priority;
mod push_out;
mod red;
mod timed_fifo;
mod updates;

use backlog::{Backlog, Limit};
use bentpipe_base::Rng;
use codel::CoDel;
pub use codel::CoDelConfig;
use drop_front::DropFront;
use dual_pi2::DualPi2;
pub use dual_pi2::DualPi2Config;
use fifo::{Admission, Threshold};
pub(crate) use fifo::{Admit, Fifo};
use fq_codel::FqCoDel;
pub use fq_codel::{FairBy, FqCoDelConfig};
pub(crate) use held::Held;
use pie::Pie;
pub use pie::PieConfig;
use priority::{Priority, Room};
use push_out::PushOut;
use red::Red;
pub use red::{RedConfig, RedUnit};

use crate::error::ConfigError;
use crate::packet::Packet;

/// Name and meaning of every queue.
pub const QUEUES: &[(&str, &str)] = &[
    ("drop-tail", "first in, first out; a packet at a full queue is dropped"),
    ("drop-front", "first in, first out; a packet at a full queue drops the oldest"),
    ("threshold", "drop-tail; refuses low priority while more than `theta` packets wait"),
    ("push-out", "drop-tail; at a full queue an ordinary packet pushes out the youngest low-priority packet"),
    ("strict", "push-out; sends low priority only while no ordinary packet waits"),
    ("priority", "as strict, with separate room for low priority"),
    ("red", "random early detection (Floyd and Jacobson 1993), gentle by default"),
    ("codel", "controlled delay (RFC 8289)"),
    ("fq-codel", "a CoDel queue for each hash value of the flows or hosts (RFC 8290)"),
    ("pie", "proportional integral controller enhanced (RFC 8033)"),
    ("dualpi2", "a low-latency queue for L4S and a coupled queue for all other packets (RFC 9332)"),
];

/// Queue of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out. A packet that arrives at a full queue is dropped, whatever its priority.
    DropTail {
        /// Limit of queued packets.
        limit: Limit,
    },
    /// First in, first out. A packet that arrives at a full queue drops the oldest packets, whatever their priority, until it fits.
    DropFront {
        /// Limit of queued packets.
        limit: Limit,
    },
    /// Drop-tail that accepts a low-priority packet only if at most `low_priority_threshold` packets are queued. (The
    /// router of the TCP-Peach model in the Georgia Tech Network Simulator uses it with threshold 1.)
    Threshold {
        /// Limit of queued packets.
        limit: Limit,
        /// Maximum number of queued packets at which a low-priority packet is accepted (theta).
        low_priority_threshold: u32,
    },
    /// First in, first out with push-out. A normal-priority packet without room replaces the youngest queued
    /// low-priority packets, and goes to the end. A low-priority packet without room is dropped.
    PushOut {
        /// Limit of queued packets of both priorities.
        limit: Limit,
    },
    /// Two classes with a shared limit. Low priority is sent only while no normal packet is queued, and is pushed out
    /// as with [`QueueConfig::PushOut`] (the lower-effort behaviour of RFC 8622).
    Strict {
        /// Limit of queued packets of both priorities.
        limit: Limit,
    },
    /// Two classes with separate limits. Low priority is sent only while no normal packet is queued.
    Priority {
        /// Limit of normal-priority packets.
        ordinary: Limit,
        /// Limit of low-priority packets.
        low: Limit,
    },
    /// Random early detection (RED).
    Red(RedConfig),
    /// Controlled delay (CoDel).
    CoDel {
        /// Limit of queued packets, meant as the physical memory behind CoDel.
        limit: Limit,
        /// Parameters of CoDel.
        codel: CoDelConfig,
    },
    /// Flow queues with CoDel (FQ-CoDel).
    FqCoDel(FqCoDelConfig),
    /// Proportional integral controller enhanced (PIE).
    Pie(PieConfig),
    /// Two coupled queues, of which one is for L4S (DualPI2).
    DualPi2(DualPi2Config),
}

impl Default for QueueConfig {
    /// Drop-tail with 50 packets, the buffer of the satellite TCP papers.
    fn default() -> Self {
        Self::DropTail { limit: Limit::Packets(50) }
    }
}

impl QueueConfig {
    /// Returns the name of the queue in [`QUEUES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::DropTail { .. } => "drop-tail",
            Self::DropFront { .. } => "drop-front",
            Self::Threshold { .. } => "threshold",
            Self::PushOut { .. } => "push-out",
            Self::Strict { .. } => "strict",
            Self::Priority { .. } => "priority",
            Self::Red(_) => "red",
            Self::CoDel { .. } => "codel",
            Self::FqCoDel(_) => "fq-codel",
            Self::Pie(_) => "pie",
            Self::DualPi2(_) => "dualpi2",
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::DropTail { limit }
            | Self::DropFront { limit }
            | Self::Threshold { limit, .. }
            | Self::PushOut { limit }
            | Self::Strict { limit } => limit.validate("limit"),
            Self::Priority { ordinary, low } => {
                ordinary.validate("ordinary")?;
                low.validate("low")
            }
            Self::Red(red) => red.validate(),
            Self::CoDel { limit, codel } => {
                limit.validate("limit")?;
                codel.validate().map_err(|e| e.within("codel"))
            }
            Self::FqCoDel(fq_codel) => fq_codel.validate(),
            Self::Pie(pie) => pie.validate(),
            Self::DualPi2(dual) => dual.validate(),
        }
    }
}

/// Running queue of a link.
#[derive(Clone, Debug)]
pub(crate) enum Queue<P> {
    Fifo(Fifo),
    Held(Box<Held<P>>),
}

impl<P: Packet> Queue<P> {
    /// Makes the queue of a validated configuration; `rng` makes the link's random stream for queues that need one.
    pub fn new(config: &QueueConfig, rng: impl FnOnce() -> Rng) -> Self {
        match *config {
            QueueConfig::DropTail { limit } => Self::Fifo(Fifo::new(Admission::DropTail(limit))),
            QueueConfig::Threshold { limit, low_priority_threshold } => {
                let threshold = Threshold { limit, low_priority_threshold };
                Self::Fifo(Fifo::new(Admission::Threshold(Box::new(threshold))))
            }
            QueueConfig::Red(red) => Self::Fifo(Fifo::new(Admission::Red(Box::new(Red::new(red, rng()))))),
            QueueConfig::DropFront { limit } => Self::Held(Box::new(Held::DropFront(DropFront::new(limit)))),
            QueueConfig::PushOut { limit } => Self::Held(Box::new(Held::PushOut(PushOut::new(limit)))),
            QueueConfig::Strict { limit } => {
                Self::Held(Box::new(Held::Priority(Priority::new(Room::Shared(limit)))))
            }
            QueueConfig::Priority { ordinary, low } => {
                Self::Held(Box::new(Held::Priority(Priority::new(Room::Separate { ordinary, low }))))
            }
            QueueConfig::CoDel { limit, codel } => {
                Self::Held(Box::new(Held::CoDel(CoDel::new(limit, codel))))
            }
            QueueConfig::FqCoDel(config) => {
                Self::Held(Box::new(Held::FqCoDel(FqCoDel::new(config, rng().bits()))))
            }
            QueueConfig::Pie(config) => Self::Held(Box::new(Held::Pie(Pie::new(config, rng())))),
            QueueConfig::DualPi2(config) => Self::Held(Box::new(Held::DualPi2(DualPi2::new(config)))),
        }
    }

    pub fn backlog(&self) -> Backlog {
        match self {
            Self::Fifo(fifo) => fifo.backlog(),
            Self::Held(held) => held.backlog(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_is_listed_by_its_name_and_accepts_its_defaults() {
        let limit = Limit::Packets(50);
        let queues = [
            QueueConfig::default(),
            QueueConfig::DropFront { limit },
            QueueConfig::Threshold { limit, low_priority_threshold: 3 },
            QueueConfig::PushOut { limit },
            QueueConfig::Strict { limit },
            QueueConfig::Priority { ordinary: limit, low: limit },
            QueueConfig::Red(RedConfig::default()),
            QueueConfig::CoDel { limit, codel: CoDelConfig::default() },
            QueueConfig::FqCoDel(FqCoDelConfig::default()),
            QueueConfig::Pie(PieConfig::default()),
            QueueConfig::DualPi2(DualPi2Config::default()),
        ];
        let listed: Vec<_> = QUEUES.iter().map(|(name, _)| *name).collect();
        assert_eq!(queues.each_ref().map(QueueConfig::name).to_vec(), listed);
        queues.iter().for_each(|queue| assert_eq!(queue.validate(), Ok(())));
    }

    #[test]
    fn impossible_queues_are_refused_by_field() {
        let codel = CoDelConfig { target: bentpipe_base::Duration::ZERO, ..CoDelConfig::default() };
        let limit = Limit::Bytes(9000);
        let refused = |queue: QueueConfig| queue.validate().unwrap_err().field;
        assert_eq!(refused(QueueConfig::CoDel { limit, codel }), "codel.target");
        assert_eq!(refused(QueueConfig::Priority { ordinary: limit, low: Limit::Bytes(0) }), "low");
        let red = RedConfig { max_threshold: 5.0, ..RedConfig::default() };
        assert_eq!(refused(QueueConfig::Red(red)), "max_threshold");
        let fq_codel = FqCoDelConfig { queues: 0, ..FqCoDelConfig::default() };
        assert_eq!(refused(QueueConfig::FqCoDel(fq_codel)), "queues");
        let pie = PieConfig { beta: f64::NAN, ..PieConfig::default() };
        assert_eq!(refused(QueueConfig::Pie(pie)), "beta");
        let dual = DualPi2Config { classic_share: 0.0, ..DualPi2Config::default() };
        assert_eq!(refused(QueueConfig::DualPi2(dual)), "classic_share");
    }
}

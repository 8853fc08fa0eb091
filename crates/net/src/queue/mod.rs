//! Queues in front of the transmitter.
//!
//! The packet in transmission does not wait: a queue of 50 packets holds 50 besides the one being sent. A packet that
//! meets an idle transmitter passes through the queue in no time, so it must fit the limit all the same. (ns-2 does not
//! count the packet in transmission either, but its drop-tail refuses the packet that would fill the last place: its
//! limit of 51 is a limit of 50 here.)
//!
//! There are two kinds. A [`Fifo`] decides when a packet arrives and then knows its departure, so no further event is
//! needed. A [`Held`] queue decides when the transmitter becomes free, and keeps the packets until then.

pub(crate) mod backlog;
mod codel;
mod fifo;
mod fq_codel;
mod held;
mod priority;
mod push_out;
mod red;
mod timed_fifo;

use backlog::{Backlog, Limit};
use bentpipe_base::Rng;
use codel::CoDel;
pub use codel::CoDelConfig;
use fifo::{Admission, Threshold};
pub(crate) use fifo::{Admit, Fifo};
use fq_codel::FqCoDel;
pub use fq_codel::FqCoDelConfig;
pub(crate) use held::Held;
use priority::{Priority, Room};
use push_out::PushOut;
use red::Red;
pub use red::{RedConfig, RedUnit};

use crate::error::ConfigError;
use crate::packet::Packet;

/// Name and meaning of every queue.
pub const QUEUES: &[(&str, &str)] = &[
    ("drop-tail", "first in, first out; a packet that finds no room is dropped"),
    ("threshold", "drop-tail, and accepts low priority only while at most theta packets wait"),
    ("push-out", "drop-tail, but an ordinary packet without room pushes out the youngest of low priority"),
    ("strict", "push-out, and sends low priority only while no ordinary packet waits"),
    ("priority", "two queues with room of their own; sends low priority only while no ordinary packet waits"),
    ("red", "random early detection (Floyd and Jacobson 1993), gentle by default"),
    ("codel", "controlled delay (RFC 8289)"),
    ("fq-codel", "flows hashed into queues that take turns, controlled delay in each (RFC 8290)"),
];

/// The queue of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; an arrival without room is dropped, whatever its priority.
    DropTail {
        /// Room for waiting packets.
        limit: Limit,
    },
    /// Drop-tail that accepts a low-priority packet only if at most `low_priority_threshold` packets wait
    /// (discipline of the router in the Georgia Tech Network Simulator's TCP-Peach model, threshold 1).
    Threshold {
        /// Room for waiting packets.
        limit: Limit,
        /// Most packets waiting at which a low-priority packet is accepted (theta).
        low_priority_threshold: u32,
    },
    /// First in, first out. An ordinary packet that finds no room takes that of the youngest low-priority packets
    /// waiting, and goes to the end; a low-priority packet that finds no room is dropped.
    PushOut {
        /// Room for waiting packets of both priorities.
        limit: Limit,
    },
    /// Two classes in shared room: low priority is sent only while no ordinary packet waits, and gives way as with
    /// [`QueueConfig::PushOut`] (the lower-effort behaviour of RFC 8622).
    Strict {
        /// Room for waiting packets of both priorities.
        limit: Limit,
    },
    /// Two classes in separate room: low priority is sent only while no ordinary packet waits.
    Priority {
        /// Room for ordinary packets.
        ordinary: Limit,
        /// Room for low-priority packets.
        low: Limit,
    },
    /// Random early detection.
    Red(RedConfig),
    /// Controlled delay.
    CoDel {
        /// Room for waiting packets, meant as the physical memory behind CoDel.
        limit: Limit,
        /// CoDel's parameters.
        codel: CoDelConfig,
    },
    /// Flow queues under CoDel.
    FqCoDel(FqCoDelConfig),
}

impl Default for QueueConfig {
    /// Drop-tail with 50 packets, the buffer of the satellite TCP papers.
    fn default() -> Self {
        Self::DropTail { limit: Limit::Packets(50) }
    }
}

impl QueueConfig {
    /// Name of the queue in [`QUEUES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::DropTail { .. } => "drop-tail",
            Self::Threshold { .. } => "threshold",
            Self::PushOut { .. } => "push-out",
            Self::Strict { .. } => "strict",
            Self::Priority { .. } => "priority",
            Self::Red(_) => "red",
            Self::CoDel { .. } => "codel",
            Self::FqCoDel(_) => "fq-codel",
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::DropTail { limit }
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
        }
    }
}

/// The running queue of a link.
#[derive(Clone, Debug)]
pub(crate) enum Queue<P> {
    Fifo(Fifo),
    Held(Box<Held<P>>),
}

impl<P: Packet> Queue<P> {
    /// Of a validated configuration; `rng` makes the link's random stream for queues that need one.
    pub fn new(config: &QueueConfig, rng: impl FnOnce() -> Rng) -> Self {
        match *config {
            QueueConfig::DropTail { limit } => Self::Fifo(Fifo::new(Admission::DropTail(limit))),
            QueueConfig::Threshold { limit, low_priority_threshold } => {
                let threshold = Threshold { limit, low_priority_threshold };
                Self::Fifo(Fifo::new(Admission::Threshold(Box::new(threshold))))
            }
            QueueConfig::Red(red) => Self::Fifo(Fifo::new(Admission::Red(Box::new(Red::new(red, rng()))))),
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
            QueueConfig::Threshold { limit, low_priority_threshold: 3 },
            QueueConfig::PushOut { limit },
            QueueConfig::Strict { limit },
            QueueConfig::Priority { ordinary: limit, low: limit },
            QueueConfig::Red(RedConfig::default()),
            QueueConfig::CoDel { limit, codel: CoDelConfig::default() },
            QueueConfig::FqCoDel(FqCoDelConfig::default()),
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
    }
}

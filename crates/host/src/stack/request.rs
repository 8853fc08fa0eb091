//! Connection requests to any address: the caller decides on acceptance and configuration.

use std::sync::Arc;

use bentpipe_base::{Flags, Instant};
use bentpipe_tcp::{Config, Connection};
use bentpipe_wire::{Arrived, Ends, Header, Offload};

use super::tcp_packet::TcpPacket;
use super::{Id, Stack, Unopened};

/// SYN that waits for an answer.
#[derive(Clone, Debug)]
pub struct Request {
    /// Ends seen from the stack: `local` is the destination address of the SYN.
    pub ends: Ends,
    /// DSCP of the SYN packet.
    pub dscp: u8,
    pub(super) header: Header,
    pub(super) arrived: Arrived,
    /// Sequence number above all that the replaced connection used, if there was one.
    pub(super) above: Option<u32>,
    /// Virtio header of the packet, for forwarding it unchanged.
    pub offload: Offload,
    /// The packet, IP header included.
    pub packet: Box<[u8]>,
}

impl Request {
    /// True if the SYN offers ECN (RFC 3168 section 6.1.1).
    pub fn offers_ecn(&self) -> bool {
        self.header.flags.contains(Flags::ECE | Flags::CWR)
    }

    /// Returns the maximum segment size of the SYN: payload plus TCP options (RFC 6691).
    pub fn mss(&self) -> Option<u32> {
        self.header.options.mss.map(u32::from)
    }
}

impl Stack {
    pub(super) fn take_request(&mut self, request: Request) {
        if self.asking.contains(&request.ends) {
            return;
        }
        if self.asking.len() >= self.config.limits.half_open {
            self.counters.over_limit += 1;
            return;
        }
        self.asking.insert(request.ends);
        self.requests.push_back(request);
    }

    /// Returns the next connection request of a transparent stack. Answer it with [`grant`](Self::grant), [`deny`](Self::deny) or
    /// [`ignore`](Self::ignore). Before the answer, repetitions of its SYN have no effect.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Answers a SYN. The connection is [established](bentpipe_tcp::Events::ESTABLISHED) when the answer is acknowledged.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn grant(&mut self, now: Instant, request: &Request, config: &Arc<Config>) -> Result<Id, Unopened> {
        self.ignore(request);
        if !self.has_room() {
            return Err(Unopened::Full);
        }
        if self.by_ends.contains_key(&request.ends) {
            return Err(Unopened::Exists);
        }
        let config = self.fitted(config, request.ends.remote.ip());
        let engine = Connection::listen(config, self.next_seed());
        let id = self.admit_owned(now, request.ends, engine);
        self.number_above(&request.ends, request.above);
        // Data on a SYN is dropped; its sender retransmits it.
        let arrived = Arrived { len: 0, ..request.arrived };
        self.take_segment(now, id, TcpPacket { header: &request.header, arrived, payload: &[] });
        Ok(id)
    }

    /// Answers a SYN with a reset.
    pub fn deny(&mut self, request: &Request) {
        self.ignore(request);
        self.refuse(&request.ends, &request.header, request.arrived.len as usize);
    }

    /// Leaves a SYN unanswered. A repetition is announced again.
    pub fn ignore(&mut self, request: &Request) {
        self.asking.remove(&request.ends);
    }
}

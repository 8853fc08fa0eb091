//! Connections that others ask for at any address: the caller decides whether there is to be one, and with what configuration.

use std::sync::Arc;

use bentpipe_base::{EcnField, Flags, Instant};
use bentpipe_tcp::{Config, Connection};
use bentpipe_wire::{Arrived, Ends, Header, Offload};

use super::tcp_packet::TcpPacket;
use super::{Id, Stack, Unopened};

/// A SYN that waits for an answer.
#[derive(Clone, Debug)]
pub struct Request {
    /// The ends, seen from the stack: `local` is the address that the SYN is for.
    pub ends: Ends,
    /// Differentiated services code point of its packet.
    pub dscp: u8,
    pub(super) header: Header,
    pub(super) arrived: Arrived,
    /// The connection that it takes the place of ended below this sequence number.
    pub(super) above: Option<u32>,
    /// The virtio header of the packet, with which it can be forwarded unchanged.
    pub offload: Offload,
    /// The packet, IP header included.
    pub packet: Box<[u8]>,
}

impl Request {
    /// Whether the SYN offers ECN (RFC 3168 section 6.1.1).
    pub fn offers_ecn(&self) -> bool {
        self.header.flags.contains(Flags::ECE | Flags::CWR)
    }

    /// Largest segment that the SYN allows: payload with the options of TCP (RFC 6691).
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

    /// The next connection that somebody asks for, if the stack is transparent. To be answered with [`grant`](Self::grant),
    /// [`deny`](Self::deny) or [`ignore`](Self::ignore); until then its SYN may be repeated as often as its sender likes.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Answers a SYN: the connection is [established](bentpipe_tcp::Events::ESTABLISHED) when the answer is acknowledged.
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
        // Data on a SYN is not taken: its sender will retransmit it. A SYN is never ECN-capable, so a mark on it has no meaning (RFC 3168
        // section 6.1.1).
        let arrived = Arrived { len: 0, ecn: EcnField::NotCapable, ..request.arrived };
        self.take_segment(now, id, TcpPacket { header: &request.header, arrived, payload: &[] });
        Ok(id)
    }

    /// Answers a SYN with a reset.
    pub fn deny(&mut self, request: &Request) {
        self.ignore(request);
        self.refuse(&request.ends, &request.header, request.arrived.len as usize);
    }

    /// Leaves a SYN unanswered. If it is repeated, it is announced again.
    pub fn ignore(&mut self, request: &Request) {
        self.asking.remove(&request.ends);
    }
}

//! Chains of connections. A flow that passes proxies has a leg from host to proxy, from proxy to proxy, and from proxy to host. Each leg
//! has a pair of connection ends. The first leg of a flow has the number of the flow; the others are numbered behind all flows.

use std::ops::Range;

use bentpipe_base::Instant;
use bentpipe_tcp::{Connection, State};

use crate::host::proxy::{Leg, Relay};
use crate::host::state::Hosts;
use crate::ids::{EndId, FlowId};

/// Result of a step of a proxy, from one connection to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Relayed {
    /// Bytes that it took from one connection and gave to the other.
    pub bytes: u64,
    /// True if it also closed the other, because the first has ended.
    pub closes: bool,
}

impl Hosts {
    /// True if a flow passes no proxy.
    pub fn is_direct(&self, flow: FlowId) -> bool {
        self.legs_of[flow as usize].is_empty()
    }

    /// Legs of a flow behind its first proxy, from sender to receiver.
    pub fn later_legs(&self, flow: FlowId) -> &[Leg] {
        let Range { start, end } = self.legs_of[flow as usize];
        &self.legs[start as usize..end as usize]
    }

    /// The index of a leg among the later legs, if it is not the first of a flow.
    pub fn later_leg(&self, leg_id: u32) -> Option<usize> {
        (leg_id as usize).checked_sub(self.legs_of.len())
    }

    /// The leg on which the connections of a flow's client begin: the last before the client.
    pub fn leg_of_client(&self, flow: FlowId) -> u32 {
        if self.is_direct(flow) {
            return flow;
        }
        self.legs_of.len() as u32 + self.legs_of[flow as usize].end - 1
    }

    /// The later leg that follows a leg of a flow.
    pub fn leg_after(&self, flow: FlowId, leg_id: u32) -> Option<u32> {
        let later = &self.legs_of[flow as usize];
        let next = self.later_leg(leg_id).map_or(later.start, |leg| leg as u32 + 1);
        later.contains(&next).then_some(next)
    }

    /// The leg that a proxy opens for a connection that waits on another: the next towards the receiver, or where the client connects towards
    /// the server; and the proxy's number.
    pub fn leg_further(&self, id: EndId) -> Option<(u32, u32)> {
        let end = &self.ends[id as usize];
        let first_later = self.legs_of.len() as u32;
        if !id.is_multiple_of(2) {
            let leg = self.leg_after(end.flow, end.leg_id)?;
            return Some((first_later + leg, self.legs[leg as usize].proxy));
        }
        let leg = self.later_leg(end.leg_id)?;
        let is_first = leg as u32 == self.legs_of[end.flow as usize].start;
        Some((if is_first { end.flow } else { end.leg_id - 1 }, self.legs[leg].proxy))
    }

    /// The sending end of the first connection of the chain of an end.
    pub fn first_of_chain(&self, id: EndId) -> EndId {
        let mut sender = id & !1;
        while let Relay::With(inward) | Relay::Holds(inward) = self.ends[sender as usize].relay {
            sender = inward & !1;
        }
        sender
    }

    /// The sending ends of the connections of a chain, from its first.
    pub fn chain(&self, first: EndId) -> Vec<EndId> {
        let mut senders = vec![first];
        let mut last = first;
        while let Relay::With(outward) | Relay::Holds(outward) = self.ends[last as usize + 1].relay {
            senders.push(outward);
            last = outward;
        }
        senders
    }

    /// True if the connection of an end is over.
    pub fn is_over(&self, id: EndId) -> bool {
        matches!(self.ends[id as usize].connection.state(), State::Closed | State::TimeWait)
    }

    /// Relays as many bytes as there is room for from an end of a proxy to another, and the end of the stream after them.
    pub fn relay(&mut self, now: Instant, from: EndId, to: EndId) -> Relayed {
        let behind = if to.is_multiple_of(2) { to } else { from };
        let leg = self.later_leg(self.ends[behind as usize].leg_id).expect("a later leg begins at a proxy");
        let proxy = &mut self.proxies[self.legs[leg].proxy as usize];
        let [source, sink] =
            self.ends.get_disjoint_mut([from as usize, to as usize]).expect("a proxy has two ends");
        let (source, sink) = (&mut source.connection, &mut sink.connection);
        let most_unsent = proxy.config.split.most_unsent(sink.window_bytes());
        let room = most_unsent.saturating_sub(unsent_bytes(sink));
        let bytes = sink.write(now, source.readable().min(room));
        if bytes > 0 {
            let read = source.read(now, bytes);
            debug_assert_eq!(read, bytes, "what is readable can be read");
            let unsent = unsent_bytes(sink);
            debug_assert!(
                unsent <= most_unsent,
                "a proxy holds {unsent} unsent bytes of at most {most_unsent}"
            );
            proxy.relayed_bytes += bytes;
        }
        let has_ended = source.peer_closed() && source.readable() == 0;
        let closes =
            has_ended && matches!(sink.state(), State::SynSent | State::Established | State::CloseWait);
        if closes {
            sink.close(now);
        }
        Relayed { bytes, closes }
    }
}

/// Bytes that were written and have not been sent for the first time.
fn unsent_bytes(connection: &Connection) -> u64 {
    let sent = connection.next_to_send() - connection.oldest_unacknowledged();
    connection.unacknowledged_bytes().saturating_sub(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::end::End;
    use crate::packet::handle::Label;
    use crate::scheduler::timer::Timer;
    use crate::world::samples::{TWO_PROXIES, world_of};
    use bentpipe_base::Duration;
    use bentpipe_tcp::{Config, Connection};
    use bentpipe_traffic::Interest;
    use std::sync::Arc;

    const SPLIT: FlowId = 0;
    const DIRECT: FlowId = 1;

    /// The end of a connection on a leg.
    fn end(connection: Connection, flow: FlowId, leg_id: u32) -> End {
        let interest = Interest::Usual;
        let (relay, label, timer) = (Relay::None, Label::default(), Timer::OFF);
        let (node, route, header_bytes, delays, incarnation) = Default::default();
        End {
            connection,
            timer,
            node,
            route,
            header_bytes,
            label,
            flow,
            leg_id,
            delays,
            relay,
            incarnation,
            interest,
        }
    }

    /// Hosts with an established connection on each leg of the flow that passes both proxies.
    fn hosts() -> Hosts {
        let mut hosts = world_of(TWO_PROXIES).hosts;
        for leg_id in [SPLIT, 2, 3] {
            let config = Arc::new(Config::default());
            let sender = Connection::connect(config.clone(), 1, Instant::ZERO);
            let receiver = Connection::listen(config, 2);
            hosts.ends.extend([sender, receiver].map(|connection| end(connection, SPLIT, leg_id)));
            let first = hosts.ends.len() - 2;
            exchange(&mut hosts.ends[first..], Instant::ZERO);
        }
        for (receiver, sender) in [(1, 2), (3, 4)] {
            hosts.ends[receiver as usize].relay = Relay::With(sender);
            hosts.ends[sender as usize].relay = Relay::With(receiver);
        }
        hosts
    }

    /// Carries segments between two ends until both are silent.
    fn exchange(pair: &mut [End], now: Instant) {
        let mut is_silent = false;
        while !std::mem::replace(&mut is_silent, true) {
            for (from, to) in [(0, 1), (1, 0)] {
                while let Some(mut segment) = pair[from].connection.poll_transmit(now) {
                    pair[to].connection.exchange(now, &mut segment, false);
                    is_silent = false;
                }
            }
        }
    }

    #[test]
    fn legs_follow_each_other_from_sender_to_receiver() {
        let hosts = world_of(TWO_PROXIES).hosts;
        assert_eq!((hosts.is_direct(SPLIT), hosts.is_direct(DIRECT)), (false, true));
        let later: Vec<_> = hosts.later_legs(SPLIT).iter().map(|leg| leg.proxy).collect();
        assert_eq!((later, hosts.later_legs(DIRECT).len()), (vec![0, 1], 0));
        let after: Vec<_> = [SPLIT, 2, 3].iter().map(|leg_id| hosts.leg_after(SPLIT, *leg_id)).collect();
        assert_eq!(after, [Some(0), Some(1), None]);
        assert_eq!(hosts.leg_after(DIRECT, DIRECT), None);
        assert_eq!((hosts.leg_of_client(SPLIT), hosts.leg_of_client(DIRECT)), (3, DIRECT));
    }

    #[test]
    fn a_proxy_connects_further_on_the_next_leg_in_either_direction() {
        let hosts = hosts();
        let further: Vec<_> = (0..6).map(|id| hosts.leg_further(id)).collect();
        assert_eq!(further, [None, Some((2, 0)), Some((SPLIT, 0)), Some((3, 1)), Some((2, 1)), None]);
        assert_eq!(hosts.chain(0), [0, 2, 4]);
        assert!((0..6).all(|id| hosts.first_of_chain(id) == 0 && !hosts.is_over(id)));
    }

    /// Bytes pass a proxy once, in order, and never more than it may hold while the next leg is silent; the end of the stream passes
    /// behind them.
    #[test]
    fn a_proxy_relays_bytes_and_then_the_end_of_the_stream() {
        let mut hosts = hosts();
        let mut now = Instant::ZERO;
        let (written, mut relayed) = (hosts.ends[0].connection.write(now, 50_000), 0);
        hosts.ends[0].connection.close(now);
        let mut closes = false;
        for step in 0..100 {
            now += Duration::from_millis(1);
            exchange(&mut hosts.ends[0..2], now);
            let Relayed { bytes, closes: ended } = hosts.relay(now, 1, 2);
            relayed += bytes;
            closes |= ended;
            if step < 50 {
                assert!(relayed <= 20_000, "the proxy took {relayed} bytes and could send none");
                continue;
            }
            exchange(&mut hosts.ends[2..4], now);
            hosts.ends[3].connection.read(now, u64::MAX);
        }
        assert_eq!((relayed, closes), (written, true));
        assert_eq!((hosts.proxies[0].relayed_bytes, hosts.proxies[1].relayed_bytes), (written, 0));
        assert_eq!(hosts.ends[3].connection.delivered_bytes(), written);
        assert!(hosts.ends[3].connection.peer_closed());
        assert_eq!(hosts.relay(now, 1, 2), Relayed { bytes: 0, closes: false });
    }
}

use bentpipe_base::{Duration, Instant};

use super::lower::Lower;
use super::unit::{Pdu, Unit};
use super::upper::{Destination, Source};
use super::{Layer, Options, RelayConfig};
use crate::Progress;
use crate::outbox::{Fragment, Message};

/// Index of the hop towards the source, and of its port.
const BACK: usize = 0;
/// Index of the hop towards the destination, and of its port.
const ONWARD: usize = 1;
/// Minimum and maximum pause between reconnections of the source. The first reconnection is immediate; the pause doubles until
/// a confirmation arrives.
const RECONNECT: Duration = Duration::from_secs(1);
const RECONNECT_MOST: Duration = Duration::from_secs(60);
/// Number of consecutive reconnections after which the source gives up.
const RECONNECTIONS: u32 = 12;

/// Position of an agent, with its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Place {
    /// Sending host: payload of a packet, retention in bytes, round-trip time of the whole path.
    Source(u32, u64, Duration),
    /// Relay entity with its buffer in bytes.
    Relay(RelayConfig, u64),
    /// Receiving host.
    Destination,
}

/// Counters of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Maximum bytes kept: at the source until confirmation, at a relay entity until the next agent has them.
    pub most_kept_bytes: u64,
    /// Payload bytes that the source sent again end to end.
    pub resent_bytes: u64,
    /// Payload bytes that arrived at the destination again.
    pub duplicate_bytes: u64,
    /// Reconnections of the source.
    pub reconnections: u64,
    /// Units relayed.
    pub relayed_units: u64,
    /// Number of times that a relay entity stopped accepting data.
    pub stops: u64,
    /// Number of crashes.
    pub crashes: u64,
}

#[derive(Debug)]
enum Role {
    Source { upper: Source, reconnect_at: Instant, attempts: u32, failed: Option<&'static str> },
    Relay(Relay),
    Destination(Destination),
}

#[derive(Debug)]
struct Relay {
    config: RelayConfig,
    buffer: u64,
    /// True for a side from which nothing is accepted.
    stopped: [bool; 2],
    dies_at: Instant,
    /// Time of the restart after a crash.
    back_at: Option<Instant>,
}

/// An agent of PETRA.
#[derive(Debug)]
pub struct Node {
    role: Role,
    hops: [Option<Lower>; 2],
    counters: Counters,
}

impl Node {
    /// Makes the agent at a position, with the lower layers back and onward.
    pub fn new(place: Place, options: &Options, layers: [Option<Layer>; 2]) -> Self {
        let [back, onward] = layers;
        let role = match place {
            Place::Source(packet_bytes, room, round_trip) => Role::Source {
                upper: Source::new(options, packet_bytes, room, round_trip),
                reconnect_at: Instant::FAR_FUTURE,
                attempts: 0,
                failed: None,
            },
            Place::Relay(config, buffer) => Role::Relay(Relay {
                dies_at: config.dies_at.map_or(Instant::FAR_FUTURE, |after| Instant::ZERO + after),
                back_at: None,
                stopped: [false; 2],
                config,
                buffer,
            }),
            Place::Destination => Role::Destination(Destination::new(options)),
        };
        let hop = |(opens, layer): (bool, Option<Layer>)| layer.map(|layer| Lower::new(layer, opens));
        Self { role, hops: [(false, back), (true, onward)].map(hop), counters: Counters::default() }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        match &self.role {
            Role::Source { upper, .. } => {
                counters.most_kept_bytes = upper.most_retained_bytes;
                counters.resent_bytes = upper.resent_bytes;
            }
            Role::Destination(upper) => counters.duplicate_bytes = upper.duplicate_bytes,
            Role::Relay(_) => {}
        }
        counters
    }

    pub(crate) fn progress(&self) -> Progress {
        let mut progress = Progress::default();
        for hop in self.hops.iter().flatten() {
            let totals = hop.totals();
            progress.sent_packets += totals.sent_packets;
            progress.repeated_packets += totals.repeated_packets;
            progress.control_packets += totals.control_packets;
            progress.control_bytes += totals.control_bytes;
            progress.timeouts += totals.timeouts;
            progress.srtt = progress.srtt.or(hop.srtt());
        }
        match &self.role {
            Role::Source { upper, failed, .. } => {
                progress.timeouts += upper.timeouts;
                progress.all_acknowledged = upper.is_settled();
                progress.failed = *failed;
            }
            Role::Destination(upper) => progress.fresh_packets = upper.fresh_units,
            Role::Relay(_) => {}
        }
        progress
    }

    pub(crate) fn write(&mut self, now: Instant, message: Message) {
        let Role::Source { upper, reconnect_at, .. } = &mut self.role else { return };
        upper.write(message);
        let is_waiting = *reconnect_at < Instant::FAR_FUTURE;
        if let [_, Some(hop)] = &mut self.hops
            && !hop.is_open()
            && !is_waiting
        {
            hop.open(now);
        }
        self.settle(now);
    }

    pub(crate) fn finish(&mut self, now: Instant) {
        if let Role::Source { upper, .. } = &mut self.role {
            upper.finish();
        }
        self.settle(now);
    }

    fn is_dead(&self) -> bool {
        matches!(&self.role, Role::Relay(relay) if relay.back_at.is_some())
    }

    pub(crate) fn handle(&mut self, now: Instant, port: u8, pdu: &Pdu) {
        if self.is_dead() {
            return;
        }
        if let Some(Some(hop)) = self.hops.get_mut(usize::from(port)) {
            hop.handle(now, pdu);
        }
        self.settle(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.live_or_die(now);
        if self.is_dead() {
            return;
        }
        for hop in self.hops.iter_mut().flatten() {
            hop.handle_timeout(now);
        }
        if let Role::Source { upper, reconnect_at, failed: None, .. } = &mut self.role {
            if *reconnect_at <= now {
                *reconnect_at = Instant::FAR_FUTURE;
                self.counters.reconnections += 1;
                upper.begin_again(now);
                if let Some(hop) = &mut self.hops[ONWARD] {
                    hop.open(now);
                }
            }
            // Nothing can be sent again while the hop is down.
            if self.hops[ONWARD].as_ref().is_some_and(Lower::is_open) {
                upper.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// Executes a crash of a relay entity, or its restart without memory.
    fn live_or_die(&mut self, now: Instant) {
        let Role::Relay(relay) = &mut self.role else { return };
        if relay.dies_at <= now {
            let back = relay.config.back_after.map_or(Instant::FAR_FUTURE, |after| relay.dies_at + after);
            (relay.dies_at, relay.back_at, relay.stopped) = (Instant::FAR_FUTURE, Some(back), [false; 2]);
            self.counters.crashes += 1;
            self.hops.iter_mut().flatten().for_each(Lower::forget);
        }
        relay.back_at = relay.back_at.filter(|back| *back > now);
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        if let Role::Relay(Relay { back_at: Some(back_at), .. }) = self.role {
            return back_at;
        }
        let own = match &self.role {
            Role::Source { failed: Some(_), .. } => return Instant::FAR_FUTURE,
            Role::Source { reconnect_at, .. } if *reconnect_at < Instant::FAR_FUTURE => *reconnect_at,
            Role::Source { upper, .. } => upper.next_timeout(),
            Role::Relay(relay) => relay.dies_at,
            Role::Destination(upper) => upper.next_timeout(),
        };
        self.hops.iter().flatten().map(Lower::next_timeout).fold(own, Instant::min)
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(u8, Pdu)> {
        if self.is_dead() {
            return None;
        }
        let pdu = [BACK, ONWARD].into_iter().find_map(|side| {
            let pdu = self.hops[side].as_mut()?.poll_transmit(now)?;
            Some((side as u8, pdu))
        });
        if pdu.is_none() && self.hops.iter().flatten().any(Lower::has_broken) {
            self.settle(now);
            return self.poll_transmit(now);
        }
        pdu
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Fragment> {
        if let Role::Destination(upper) = &mut self.role { upper.delivered.pop_front() } else { None }
    }

    /// Moves units between the layers and over the hops, and handles broken hops.
    fn settle(&mut self, now: Instant) {
        match &mut self.role {
            Role::Source { .. } => self.settle_source(now),
            Role::Destination(upper) => {
                let Some(hop) = &mut self.hops[BACK] else { return };
                while let Some(unit) = hop.poll_unit(now) {
                    upper.take(now, unit);
                }
                if let Some(unit) = upper.poll_confirmation(now) {
                    hop.offer(now, unit);
                }
                // The agent on the other side of the break reconnects.
                hop.take_break();
            }
            Role::Relay(_) => self.settle_relay(now),
        }
    }

    fn settle_source(&mut self, now: Instant) {
        let Role::Source { upper, reconnect_at, attempts, failed } = &mut self.role else { return };
        let Some(hop) = &mut self.hops[ONWARD] else { return };
        while let Some(unit) = hop.poll_unit(now) {
            if let Unit::Confirm { next, fin } = unit
                && upper.confirm(now, next, fin)
            {
                *attempts = 0;
            }
        }
        if hop.take_break() {
            let wait = match *attempts {
                0 => Duration::ZERO,
                before => (RECONNECT * (1 << (before - 1).min(RECONNECTIONS))).min(RECONNECT_MOST),
            };
            *attempts += 1;
            match (*attempts > RECONNECTIONS, upper.is_settled()) {
                (_, true) => {}
                (true, false) => *failed = Some("relay lost"),
                (false, false) => *reconnect_at = now + wait,
            }
        }
        while hop.has_room()
            && let Some(unit) = upper.next_unit(now)
        {
            hop.offer(now, unit);
        }
    }

    fn settle_relay(&mut self, now: Instant) {
        let Role::Relay(relay) = &mut self.role else { return };
        let [Some(back), Some(onward)] = &mut self.hops else { return };
        // Units in custody on the other side of a break are lost: the source must be informed.
        if onward.take_break() {
            back.reset();
        }
        back.take_break();
        if back.is_open() && !onward.is_open() {
            onward.open(now);
        }
        for side in [BACK, ONWARD] {
            let (from, to) =
                if side == BACK { (&mut *back, &mut *onward) } else { (&mut *onward, &mut *back) };
            loop {
                let kept = to.backlog_bytes();
                let [high, low] =
                    [relay.config.high, relay.config.low].map(|part| relay.buffer as f64 * part);
                let was = relay.stopped[side];
                relay.stopped[side] = kept as f64 >= if was { low } else { high };
                self.counters.stops += u64::from(relay.stopped[side] && !was);
                if relay.stopped[side] {
                    break;
                }
                let Some(unit) = from.poll_unit(now) else { break };
                to.offer(now, unit);
                self.counters.relayed_units += 1;
                self.counters.most_kept_bytes = self.counters.most_kept_bytes.max(to.backlog_bytes());
            }
        }
    }
}

//! Handshakes begun by peers. Up to a limit each has a connection in SYN-RECEIVED. Beyond it they are answered by SYN cookies,
//! which need no state (RFC 4987).

use std::sync::Arc;

use bentpipe_base::{Duration, Flags, Instant, Segment, SynOptions};
use bentpipe_tcp::{Config, Connection};
use bentpipe_wire::{Conversation, Ends, Header, Options};

use super::endpoint::{Endpoint, Numbers, Role};
use super::secret::COOKIE_LIFETIME;
use super::tcp_packet::TcpPacket;
use super::{Id, Stack};

/// Assumed round-trip time after a handshake with a SYN cookie without timestamps, which cannot measure it (chosen).
const GUESSED_ROUND_TRIP: Duration = Duration::from_millis(100);

impl Stack {
    /// Handles a SYN for a listening port.
    pub(super) fn take_syn(&mut self, now: Instant, ends: &Ends, packet: TcpPacket) {
        if !self.takes_another(ends) {
            self.counters.over_limit += 1;
            return;
        }
        if self.half_open >= self.config.limits.half_open {
            self.answer_with_cookie(now, ends, packet.header);
            return;
        }
        let Some(config) = self.listening_config(ends) else { return };
        let engine = Connection::listen(config, self.next_seed());
        let numbers = self.numbers(ends, now);
        let mut endpoint = Endpoint::new(*ends, engine, numbers, self.config.mtu);
        endpoint.role = Role::HalfOpen;
        self.half_open += 1;
        let id = self.admit(endpoint);
        self.take_segment(now, id, packet);
    }

    /// True if one more connection of a peer may be opened to a port. It is refused if the port's accept queue is full, or if the
    /// peer exceeds its share of free connections or memory.
    fn takes_another(&mut self, ends: &Ends) -> bool {
        let waiting = self.listeners.get(&ends.local.port()).map_or(0, |listener| listener.accepted.len());
        waiting < self.config.limits.accept_queue
            && self.has_room()
            && self.accounts.may_open(ends.remote.ip())
    }

    fn listening_config(&self, ends: &Ends) -> Option<Arc<Config>> {
        let listener = self.listeners.get(&ends.local.port())?;
        Some(self.fitted(&listener.config, ends.remote.ip()))
    }

    /// Answers a SYN by a SYN cookie without storing state. Sequence number and timestamp of the SYN-ACK encode the required
    /// information, which the peer's ACK returns.
    fn answer_with_cookie(&mut self, now: Instant, ends: &Ends, syn: &Header) {
        let Some(config) = self.listening_config(ends) else { return };
        self.cookies_until = now + COOKIE_LIFETIME;
        self.counters.cookies += 1;
        let (seq, stamp) = self.secret.cookie(ends, syn, now);
        let offered = &syn.options;
        // The timestamp encodes the other options of the SYN. Without timestamps they are lost, and must not be agreed on.
        let timestamps = offered.timestamps.filter(|_| config.timestamps).map(|(value, _)| (stamp, value));
        let keeps = timestamps.is_some();
        let trial = Connection::listen(Arc::clone(&config), 0);
        let (_, ours) = answer_syn(trial, syn_segment(syn, keeps), now);
        let mut conversation = Conversation::new(seq, 0);
        conversation.hear_syn(syn);
        let mut header = conversation.header(&ours);
        header.options.timestamps = timestamps;
        self.answer(*ends, header);
    }

    /// Opens the connection whose SYN cookie this ACK acknowledges, if it is valid.
    pub(super) fn redeem(&mut self, now: Instant, ends: &Ends, ack: &Header) -> Option<Id> {
        if now >= self.cookies_until {
            // The last cookie is older than the lifetime of cookies.
            return None;
        }
        let cookie = self.secret.check(ends, ack, now)?;
        if !self.takes_another(ends) {
            self.counters.over_limit += 1;
            return None;
        }
        let config = self.listening_config(ends)?;
        self.counters.cookies_redeemed += 1;
        let round_trip = cookie.round_trip.unwrap_or(GUESSED_ROUND_TRIP).max(Duration::from_millis(1));
        let then = now - round_trip;
        let mut syn = Header {
            seq: ack.seq.wrapping_sub(1),
            flags: Flags::SYN,
            options: Options {
                mss: cookie.options.mss,
                window_scale: cookie.options.window_scale,
                sack_permitted: cookie.options.sack_permitted,
                permitted: Some((cookie.options.probes_permitted, cookie.options.feedback)),
                timestamps: ack.options.timestamps.filter(|_| cookie.timestamps).map(|(value, _)| (value, 0)),
                ..Options::default()
            },
            ..Header::default()
        };
        syn.flags.set(Flags::ECE | Flags::CWR, cookie.ecn);
        let segment = syn_segment(&syn, cookie.timestamps);
        let (engine, ours) = answer_syn(Connection::listen(config, self.next_seed()), segment, then);
        let echo = ack.options.timestamps.map_or(0, |(_, echo)| echo);
        let sent = ours.timestamps.map_or(0, |(value, _)| value);
        let numbers = Numbers { initial: ack.ack.wrapping_sub(1), clock: echo.wrapping_sub(sent) };
        let mut endpoint = Endpoint::new(*ends, engine, numbers, self.config.mtu);
        endpoint.conversation.hear_syn(&syn);
        endpoint.knows_probes = cookie.options.probes_permitted;
        // Called for its side effect: the conversation records the window scale of this SYN-ACK.
        endpoint.conversation.header(&ours);
        endpoint.role = Role::HalfOpen;
        self.half_open += 1;
        Some(self.admit(endpoint))
    }
}

/// Returns the SYN for the engine. Without timestamps (`keeps` is false) a cookie encodes only the segment size.
fn syn_segment(syn: &Header, keeps: bool) -> Segment {
    let options = &syn.options;
    let (probes_permitted, feedback) = options.permitted.unwrap_or_default();
    let all = SynOptions {
        mss: options.mss,
        window_scale: options.window_scale,
        sack_permitted: options.sack_permitted,
        // A cookie has no bits for these options, so they are not agreed on.
        snack_permitted: false,
        best_effort: false,
        probes_permitted,
        feedback,
    };
    let kept = if keeps { all } else { SynOptions { mss: options.mss, ..SynOptions::default() } };
    Segment {
        // A cookie has no bit for Accurate ECN either: the answer agrees on classic ECN.
        flags: if keeps { syn.flags - Flags::AE } else { Flags::SYN },
        timestamps: options.timestamps.filter(|_| keeps).map(|(value, _)| (value, 0)),
        syn_options: Some(kept),
        ..Segment::default()
    }
}

/// Passes a SYN to an engine. Returns the engine with its SYN-ACK.
fn answer_syn(mut engine: Connection, syn: Segment, at: Instant) -> (Connection, Segment) {
    engine.handle_segment(at, &syn);
    let answer = engine.poll_transmit(at).unwrap_or_default();
    (engine, answer)
}

//! Numbers that cannot be guessed off the path: initial sequence numbers (RFC 6528), timestamp offsets (RFC 7323 section 5.4),
//! and SYN cookies (RFC 4987 section 3.6). Cookies encode the negotiated options, so that no state is stored.

use std::hash::{Hash, Hasher};

use bentpipe_base::{Duration, Flags, Instant, SynOptions};
use bentpipe_wire::{Ends, Header};
use siphasher::sip::SipHasher13;

/// Key of all these numbers, drawn once per process.
#[derive(Clone, Debug)]
pub(super) struct Secret(SipHasher13);

/// Purpose of a hash. It is part of the input, so that hashes for different purposes are independent.
#[derive(Hash)]
enum Use {
    SequenceNumber,
    Clock,
    Cookie(CookieInput),
}

/// Input of a SYN cookie besides the ends of the connection.
#[derive(Clone, Copy, Hash)]
struct CookieInput {
    /// Initial sequence number of the peer.
    peer: u32,
    period: u32,
    /// Index into [`SIZES`].
    mss: u8,
}

/// Segment sizes that a cookie can encode: for tunnels, IPv6's minimum, PPPoE, Ethernet and larger.
const SIZES: [u16; 8] = [536, 1200, 1300, 1360, 1420, 1440, 1460, 8960];

/// Length of a cookie period. A cookie is valid in its period and the next one, similar to Linux (60 s).
const PERIOD: Duration = Duration::from_secs(64);

/// Age above which no cookie is valid.
pub(super) const COOKIE_LIFETIME: Duration = Duration::from_secs(128);

/// Content of a cookie.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CookieContents {
    /// Options of the SYN, as far as they were encoded.
    pub options: SynOptions,
    /// True if the SYN carried a timestamp, so that all its options are known.
    pub timestamps: bool,
    /// True if the SYN offered ECN.
    pub ecn: bool,
    /// Time since the SYN-ACK left, if timestamps reveal it.
    pub round_trip: Option<Duration>,
}

/// Width in bits of the fields in the timestamp of a SYN-ACK with cookie: window scale (15 for none), SACK, ECN, probes,
/// feedback. The bits above are milliseconds.
const FIELDS: u32 = 12;

impl Secret {
    pub fn new(key: u128) -> Self {
        Self(SipHasher13::new_with_key(&key.to_le_bytes()))
    }

    fn hash(&self, ends: &Ends, purpose: &Use) -> u64 {
        let mut hasher = self.0;
        ends.hash(&mut hasher);
        purpose.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the initial sequence number by RFC 6528 section 3: a clock of 4 us plus a keyed hash of the ends.
    pub fn initial(&self, ends: &Ends, now: Instant) -> u32 {
        let clock = (now.as_nanos() / 4_000) as u32;
        clock.wrapping_add(self.hash(ends, &Use::SequenceNumber) as u32)
    }

    /// Returns the offset of a connection's timestamps.
    pub fn clock_offset(&self, ends: &Ends) -> u32 {
        self.hash(ends, &Use::Clock) as u32
    }

    /// Returns sequence number and timestamp of a SYN-ACK without state. The ends are seen from this stack.
    pub fn cookie(&self, ends: &Ends, syn: &Header, now: Instant) -> (u32, u32) {
        let wanted = syn.options.mss.unwrap_or(SIZES[0]);
        let mss = SIZES.iter().rposition(|size| *size <= wanted).unwrap_or(0) as u8;
        let number = self.encoded(ends, CookieInput { peer: syn.seq, period: period(now), mss });
        (number, timestamp(syn, now))
    }

    /// Encodes a cookie: five bits of time, three of segment size, the rest a keyed hash.
    fn encoded(&self, ends: &Ends, input: CookieInput) -> u32 {
        let hash = self.hash(ends, &Use::Cookie(input)) as u32;
        (input.period & 31) << 27 | u32::from(input.mss) << 24 | hash >> 8
    }

    /// Returns the content of the cookie that this ACK acknowledges. `None` if it is not a valid cookie of this stack, or too
    /// old.
    pub fn check(&self, ends: &Ends, ack: &Header, now: Instant) -> Option<CookieContents> {
        let number = ack.ack.wrapping_sub(1);
        let peer = ack.seq.wrapping_sub(1);
        let mss = (number >> 24 & 7) as u8;
        let current = period(now);
        let fresh = [current, current.wrapping_sub(1)]
            .into_iter()
            .any(|period| self.encoded(ends, CookieInput { peer, period, mss }) == number);
        if !fresh {
            return None;
        }
        let echo = ack.options.timestamps.map(|(_, echo)| echo);
        let mut options = SynOptions { mss: Some(SIZES[usize::from(mss)]), ..SynOptions::default() };
        let Some(echo) = echo else {
            return Some(CookieContents { options, timestamps: false, ecn: false, round_trip: None });
        };
        let scale = (echo >> 8 & 15) as u8;
        options.window_scale = (scale < 15).then_some(scale);
        options.sack_permitted = echo & 1 << 7 != 0;
        options.probes_permitted = echo & 1 << 5 != 0;
        options.feedback = (echo & 31) as u8;
        let elapsed = millis(now).wrapping_sub(echo >> FIELDS) & (u32::MAX >> FIELDS);
        let round_trip = Some(Duration::from_millis(u64::from(elapsed)));
        Some(CookieContents { options, timestamps: true, ecn: echo & 1 << 6 != 0, round_trip })
    }
}

fn period(now: Instant) -> u32 {
    (now.as_nanos() / PERIOD.as_nanos()) as u32
}

fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

fn timestamp(syn: &Header, now: Instant) -> u32 {
    let options = &syn.options;
    let (probes, feedback) = options.permitted.unwrap_or_default();
    let ecn = syn.flags.contains(Flags::ECE | Flags::CWR);
    millis(now) << FIELDS
        | u32::from(options.window_scale.unwrap_or(15)) << 8
        | u32::from(options.sack_permitted) << 7
        | u32::from(ecn) << 6
        | u32::from(probes) << 5
        | u32::from(if feedback < 32 { feedback } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_wire::Options;

    fn ends() -> Ends {
        Ends { local: "192.0.2.1:80".parse().unwrap(), remote: "192.0.2.2:49152".parse().unwrap() }
    }

    fn syn() -> Header {
        let options = Options {
            mss: Some(1440),
            window_scale: Some(9),
            sack_permitted: true,
            timestamps: Some((77, 0)),
            permitted: Some((true, 7)),
            ..Options::default()
        };
        Header { seq: 0xffff_ffff, flags: Flags::SYN | Flags::ECE | Flags::CWR, options, ..Header::default() }
    }

    fn ack(number: u32, stamp: u32) -> Header {
        let options = Options { timestamps: Some((78, stamp)), ..Options::default() };
        Header { seq: 0, ack: number.wrapping_add(1), flags: Flags::ACK, options, ..Header::default() }
    }

    #[test]
    fn a_cookie_brings_back_what_the_syn_said() {
        let secret = Secret::new(1);
        for made_at in [0, 63, 64, 1 << 22] {
            let then = Instant::ZERO + Duration::from_secs(made_at);
            let now = then + Duration::from_millis(550);
            let (number, stamp) = secret.cookie(&ends(), &syn(), then);
            let contents = secret.check(&ends(), &ack(number, stamp), now).unwrap();
            let wanted = SynOptions {
                mss: Some(1440),
                window_scale: Some(9),
                sack_permitted: true,
                snack_permitted: false,
                best_effort: false,
                probes_permitted: true,
                feedback: 7,
            };
            assert_eq!(contents.options, wanted);
            assert!(contents.ecn && contents.timestamps);
            assert_eq!(contents.round_trip, Some(Duration::from_millis(550)));
        }
    }

    #[test]
    fn a_cookie_brings_back_nothing_that_the_syn_did_not_say() {
        let secret = Secret::new(1);
        let options = Options { mss: Some(1440), timestamps: Some((77, 0)), ..Options::default() };
        let syn = Header { flags: Flags::SYN, options, ..syn() };
        let (number, stamp) = secret.cookie(&ends(), &syn, Instant::ZERO);
        let contents = secret.check(&ends(), &ack(number, stamp), Instant::ZERO).unwrap();
        assert_eq!(contents.options, SynOptions { mss: Some(1440), ..SynOptions::default() });
        assert!(!contents.ecn && contents.timestamps);
    }

    /// RFC 7323 section 7.1: the clock of one connection reveals nothing about that of another.
    #[test]
    fn the_timestamps_of_different_ends_begin_at_different_numbers() {
        let secret = Secret::new(1);
        let other = Ends { remote: "192.0.2.3:49152".parse().unwrap(), ..ends() };
        assert_ne!(secret.clock_offset(&ends()), secret.clock_offset(&other));
        assert_ne!(secret.clock_offset(&ends()), Secret::new(2).clock_offset(&ends()));
    }

    #[test]
    fn cookies_are_for_one_peer_and_one_time() {
        let secret = Secret::new(1);
        let now = Instant::ZERO + Duration::from_secs(10_000);
        let (number, stamp) = secret.cookie(&ends(), &syn(), now);
        let ack = ack(number, stamp);
        let other = Ends { remote: "192.0.2.3:49152".parse().unwrap(), ..ends() };
        assert_eq!(secret.check(&other, &ack, now), None);
        assert_eq!(secret.check(&ends(), &Header { seq: 1, ..ack }, now), None, "another SYN");
        assert_eq!(secret.check(&ends(), &ack, now + Duration::from_secs(130)), None, "too late");
        assert_eq!(Secret::new(2).check(&ends(), &ack, now), None, "another key");
        let guessed = (0..1000).filter(|n| {
            let ack = Header { ack: ack.ack ^ ((n + 1) * 4099), ..ack };
            secret.check(&ends(), &ack, now).is_some()
        });
        assert_eq!(guessed.count(), 0);
    }

    /// RFC 6528: the numbers of one pair of ends rise with time; those of different pairs are unrelated.
    #[test]
    fn initial_numbers_rise_and_differ() {
        let secret = Secret::new(1);
        let second = Instant::ZERO + Duration::from_secs(1);
        let step = secret.initial(&ends(), second).wrapping_sub(secret.initial(&ends(), Instant::ZERO));
        assert_eq!(step, 250_000);
        let mut numbers: Vec<u32> = (1..=1000)
            .map(|port| {
                let mut ends = ends();
                ends.remote.set_port(port);
                secret.initial(&ends, Instant::ZERO)
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() > 998, "{}", numbers.len());
        assert_ne!(secret.clock_offset(&ends()), secret.initial(&ends(), Instant::ZERO));
    }
}

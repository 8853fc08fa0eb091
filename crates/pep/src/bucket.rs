//! A rate that several connections share, whichever threads move their bytes.
//!
//! A connection reserves the time that its next bytes take at the shared rate, and sends them when that time begins. Each has at most one
//! reservation, of at most one quantum. So connections that always have bytes to send get equal shares, in turn.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bentpipe_scenario::deployment::{RateLimit, Scope};

/// Time that a quantum takes at the shared rate (chosen).
const QUANTUM: Duration = Duration::from_millis(5);
/// Bytes of a quantum: at least one segment, and at most so many that small messages of other connections wait only briefly (chosen).
const LEAST_QUANTUM: u64 = 1448;
const LARGEST_QUANTUM: u64 = 256 << 10;
/// Time without reservations that is made up for: timers are late (chosen).
const LATE: Duration = Duration::from_millis(10);

/// A shared rate.
#[derive(Debug)]
pub(crate) struct Bucket {
    bytes_per_s: u64,
    began: Instant,
    /// Start of the next reservation, in nanoseconds since `began`.
    next: AtomicU64,
}

impl Bucket {
    pub fn new(bits_per_s: u64, now: Instant) -> Self {
        Self { bytes_per_s: (bits_per_s / 8).max(1), began: now, next: AtomicU64::new(0) }
    }

    fn nanos(&self, bytes: u64) -> u64 {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s);
        u64::try_from(nanos).unwrap_or(u64::MAX / 4)
    }

    fn quantum(&self) -> u64 {
        let bytes = u128::from(self.bytes_per_s) * QUANTUM.as_nanos() / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX).clamp(LEAST_QUANTUM, LARGEST_QUANTUM)
    }

    /// Reserves the transmission time of `bytes` at the shared rate. Returns when they may be sent.
    fn reserve(&self, bytes: u64, now: Instant) -> Instant {
        let now = now.saturating_duration_since(self.began).as_nanos() as u64;
        let earliest = now.saturating_sub(LATE.as_nanos() as u64);
        let after = |next: u64| next.max(earliest).saturating_add(self.nanos(bytes));
        let order = Ordering::Relaxed;
        let before =
            self.next.fetch_update(order, order, |next| Some(after(next))).expect("it always has a value");
        self.began + Duration::from_nanos(before.max(earliest))
    }

    /// Gives the time of bytes back that were not sent.
    fn refund(&self, bytes: u64) {
        let nanos = self.nanos(bytes);
        let order = Ordering::Relaxed;
        let _ = self.next.fetch_update(order, order, |next| Some(next.saturating_sub(nanos)));
    }
}

/// The part of one connection in a shared rate.
#[derive(Debug)]
pub(crate) struct Gate {
    bucket: Arc<Bucket>,
    /// Bytes that may be sent from `at` on.
    granted: u64,
    at: Instant,
}

impl Gate {
    pub fn new(bucket: Arc<Bucket>, now: Instant) -> Self {
        Self { bucket, granted: 0, at: now }
    }

    /// Returns how many of `wanted` bytes may be sent now, or else the time from which some may be sent.
    pub fn allow(&mut self, wanted: usize, now: Instant) -> Result<usize, Instant> {
        if self.granted == 0 {
            self.granted = (wanted as u64).min(self.bucket.quantum());
            self.at = self.bucket.reserve(self.granted, now);
        }
        if now < self.at { Err(self.at) } else { Ok((self.granted as usize).min(wanted)) }
    }

    /// Records `bytes` as sent. Bytes beyond the granted ones delay the next grant.
    pub fn note_sent(&mut self, bytes: usize, now: Instant) {
        let beyond = (bytes as u64).saturating_sub(self.granted);
        self.granted = self.granted.saturating_sub(bytes as u64);
        if beyond > 0 {
            self.bucket.reserve(beyond, now);
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.bucket.refund(self.granted);
    }
}

/// Identity of a shared bucket: class, side, rate, and the client if each client has a bucket.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct BucketKey {
    class: String,
    side: usize,
    bits_per_s: u64,
    client: Option<IpAddr>,
}

/// All shared rates. A rate exists while a connection uses it, so there are at most as many as sides of connections.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    known: Mutex<Known>,
}

/// Buckets that connections use or have used.
#[derive(Debug, Default)]
struct Known {
    buckets: HashMap<BucketKey, Weak<Bucket>>,
    /// Number of entries from which those of unused buckets are removed.
    most: usize,
}

/// Entries of unused buckets are removed when there are more than twice as many as buckets, and more than this number.
const FEW: usize = 64;

impl Buckets {
    /// The gate of a connection that `client` has opened, at a side of its class. `None` if its limit is not shared.
    pub fn gate(&self, class: &str, side: usize, limit: RateLimit, client: IpAddr) -> Option<Gate> {
        let client = match limit.per {
            Scope::Connection => return None,
            Scope::Class => None,
            Scope::Client(prefix) => Some(prefix.of(client)),
        };
        let bits_per_s = limit.rate.bps();
        let key = BucketKey { class: class.to_owned(), side, bits_per_s, client };
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { buckets, most } = &mut *known;
        if let Some(bucket) = buckets.get(&key).and_then(Weak::upgrade) {
            return Some(Gate::new(bucket, now));
        }
        if buckets.len() >= FEW.max(*most) {
            buckets.retain(|_, bucket| bucket.strong_count() > 0);
            *most = 2 * buckets.len();
        }
        let bucket = Arc::new(Bucket::new(bits_per_s, now));
        buckets.insert(key, Arc::downgrade(&bucket));
        Some(Gate::new(bucket, now))
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Rate;
    use bentpipe_scenario::deployment::ClientPrefix;

    use super::*;

    /// Lets connections send for a second whenever they may. Returns how many bytes each has sent.
    fn send_for_a_second(bits_per_s: u64, messages: &[usize]) -> Vec<usize> {
        let begin = Instant::now();
        let bucket = Arc::new(Bucket::new(bits_per_s, begin));
        let mut gates: Vec<Gate> = messages.iter().map(|_| Gate::new(Arc::clone(&bucket), begin)).collect();
        let mut sent = vec![0; messages.len()];
        for tick in 0..10_000 {
            let now = begin + Duration::from_micros(100 * tick);
            for (number, gate) in gates.iter_mut().enumerate() {
                while let Ok(bytes) = gate.allow(messages[number], now) {
                    gate.note_sent(bytes, now);
                    sent[number] += bytes;
                }
            }
        }
        sent
    }

    #[test]
    fn connections_share_a_rate_in_equal_parts() {
        for bits_per_s in [100_000, 8_000_000, 10_000_000_000] {
            let sent = send_for_a_second(bits_per_s, &[1 << 20; 5]);
            let all: usize = sent.iter().sum();
            let rate = bits_per_s as usize / 8;
            let quantum = (rate / 200).clamp(1448, 256 << 10);
            assert!(
                all.abs_diff(rate) <= rate / 50 + quantum,
                "{all} bytes in a second at {bits_per_s} bit/s"
            );
            for bytes in &sent {
                assert!(bytes.abs_diff(all / 5) <= 2 * quantum, "{sent:?}");
            }
        }
    }

    #[test]
    fn small_messages_do_not_wait_for_more_than_a_quantum_of_each_other_connection() {
        let sent = send_for_a_second(8_000_000, &[1 << 20, 1 << 20, 100]);
        // A turn of the two others takes 10 ms, so there are about a hundred turns.
        assert!((9_000..=11_000).contains(&sent[2]), "{sent:?}");
    }

    #[test]
    fn what_a_connection_does_not_send_is_left_to_the_others() {
        let begin = Instant::now();
        let bucket = Arc::new(Bucket::new(8_000_000, begin));
        let mut first = Gate::new(Arc::clone(&bucket), begin);
        assert_eq!(first.allow(1000, begin), Ok(1000));
        let mut second = Gate::new(Arc::clone(&bucket), begin);
        assert_eq!(second.allow(1000, begin), Err(begin + Duration::from_millis(1)));
        drop(first);
        drop(second);
        let mut third = Gate::new(bucket, begin);
        assert_eq!(third.allow(1000, begin), Ok(1000));
    }

    #[test]
    fn who_shares_a_rate_is_said_by_its_scope_and_nobody_left_means_nothing_kept() {
        let buckets = Buckets::default();
        let limit = |per| RateLimit { rate: Rate::from_mbps(8), per };
        let gate = |per, client: &str| buckets.gate("web", 0, limit(per), client.parse().unwrap());
        assert!(gate(Scope::Connection, "10.0.0.1").is_none());
        let shared = |per, one: &str, other: &str| {
            let (one, other) = (gate(per, one).unwrap(), gate(per, other).unwrap());
            Arc::ptr_eq(&one.bucket, &other.bucket)
        };
        let networks = Scope::Client(ClientPrefix { v4: 24, v6: 56 });
        assert!(shared(Scope::Class, "10.0.0.1", "fd00::1"));
        assert!(!shared(Scope::Client(ClientPrefix::default()), "10.0.0.1", "10.0.0.2"));
        assert!(shared(Scope::Client(ClientPrefix::default()), "fd00::1", "fd00::2"));
        assert!(shared(networks, "10.0.0.1", "10.0.0.2"));
        assert!(!shared(networks, "10.0.0.1", "10.0.1.1"));
        for number in 0..10_000u32 {
            let client = IpAddr::from(number.to_be_bytes());
            drop(buckets.gate("web", 0, limit(Scope::Client(ClientPrefix::default())), client));
        }
        assert!(buckets.known.lock().unwrap().buckets.len() <= FEW, "entries of clients that are gone");
    }
}

//! Path MTU and algorithm memory of other hosts. Connections learn both, and later connections to the same host use them.

use std::collections::HashMap;
use std::net::IpAddr;

use bentpipe_base::Instant;
use bentpipe_cc::PathMemory;

use super::path::RAISE_INTERVAL;

/// Hosts that are remembered at most (chosen).
const MOST: usize = 4096;

/// Knowledge about one host.
#[derive(Debug, Default)]
struct KnownHost {
    /// Path MTU that a router reported, with the time of the report.
    mtu: Option<(u16, Instant)>,
    /// Memory of the algorithms.
    memory: Option<PathMemory>,
    /// Time of the last change.
    at: Instant,
}

/// Known hosts. Beyond the limit the host with the oldest news is forgotten.
#[derive(Debug, Default)]
pub(super) struct KnownHosts(HashMap<IpAddr, KnownHost>);

impl KnownHosts {
    fn entry(&mut self, now: Instant, host: IpAddr) -> &mut KnownHost {
        if self.0.len() >= MOST && !self.0.contains_key(&host) {
            let oldest = self.0.iter().min_by_key(|(host, known)| (known.at, **host)).map(|(host, _)| *host);
            oldest.and_then(|host| self.0.remove(&host));
        }
        let known = self.0.entry(host).or_default();
        known.at = now;
        known
    }

    /// Remembers the path MTU to `host` (RFC 8201 section 5.2).
    pub fn remember_mtu(&mut self, now: Instant, host: IpAddr, mtu: u16) {
        self.entry(now, host).mtu = Some((mtu, now));
    }

    /// Returns the path MTU to `host`, if it is known and the path has probably not changed since.
    pub fn mtu(&self, now: Instant, host: IpAddr) -> Option<u16> {
        let (mtu, at) = self.0.get(&host)?.mtu?;
        (now.since(at) < RAISE_INTERVAL).then_some(mtu)
    }

    /// Remembers the memory of the algorithms for `host`, unless there is one.
    pub fn remember(&mut self, now: Instant, host: IpAddr, memory: &PathMemory) {
        self.entry(now, host).memory.get_or_insert_with(|| memory.clone());
    }

    /// Returns the memory of the algorithms for `host`.
    pub fn memory(&self, host: IpAddr) -> Option<PathMemory> {
        self.0.get(&host)?.memory.clone()
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Duration;

    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn host(number: usize) -> IpAddr {
        (number as u32).to_be_bytes().into()
    }

    #[test]
    fn a_path_mtu_is_known_for_ten_minutes() {
        let mut known = KnownHosts::default();
        known.remember_mtu(at(0), host(0), 1400);
        assert_eq!(known.mtu(at(599), host(0)), Some(1400));
        assert_eq!(known.mtu(at(599), host(1)), None);
        assert_eq!(known.mtu(at(600), host(0)), None);
    }

    #[test]
    fn the_host_with_the_oldest_news_makes_room() {
        let mut known = KnownHosts::default();
        let memory = PathMemory::new();
        known.remember(at(0), host(0), &memory);
        known.remember(at(0), host(0), &PathMemory::new());
        for number in 1..MOST {
            known.remember_mtu(at(number as u64), host(number), 1300);
        }
        // News of the oldest host makes the second the oldest.
        known.remember_mtu(at(MOST as u64), host(0), 1300);
        known.remember_mtu(at(MOST as u64), host(MOST), 1300);
        assert_eq!(known.0.len(), MOST);
        assert_eq!([0, 1, 2].map(|number| known.0.contains_key(&host(number))), [true, false, true]);
        assert_eq!(known.memory(host(0)), Some(memory));
    }
}

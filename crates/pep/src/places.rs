//! Places of connections: how many there are, half-open and open, in all and of each client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_scenario::deployment::{ClientPrefix, Limits};

use crate::metrics::Reason;

/// Share of the places that half-open connections may take: one in this number (chosen).
const HALF_OPEN_SHARE: u32 = 2;
/// Minimum number of places for half-open connections (chosen).
const LEAST_HALF_OPEN: u32 = 16;

/// Numbers of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Count {
    /// Connections whose server has answered.
    pub open: u32,
    /// Connections whose server has not answered.
    pub half_open: u32,
}

/// Limits of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    /// Connections, open and half-open.
    connections: u32,
    half_open: u32,
    of_client: Count,
    client: ClientPrefix,
}

impl Bounds {
    /// The configured limits, with at most `connections` connections.
    pub fn new(limits: &Limits, connections: u32) -> Self {
        Self {
            connections,
            half_open: limits.half_open.min((connections / HALF_OPEN_SHARE).max(LEAST_HALF_OPEN)),
            of_client: Count {
                open: limits.per_client.unwrap_or(u32::MAX),
                half_open: limits.half_open_per_client,
            },
            client: limits.client,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    all: Count,
    /// Counts of each client with connections.
    of_clients: HashMap<IpAddr, Count>,
}

/// All places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    counts: Arc<Mutex<Counts>>,
}

/// Place of one connection, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    client: IpAddr,
    is_open: bool,
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers of all connections.
    pub fn count(&self) -> Count {
        self.lock().all
    }

    /// Takes a place for a half-open connection of a client.
    ///
    /// # Errors
    /// Which limit is reached.
    pub fn take(&self, client: IpAddr, bounds: &Bounds) -> Result<Place, Reason> {
        let client = bounds.client.of(client);
        let mut counts = self.lock();
        let own = counts.of_clients.get(&client).copied().unwrap_or_default();
        if counts.all.open + counts.all.half_open >= bounds.connections {
            return Err(Reason::Connections);
        }
        if counts.all.half_open >= bounds.half_open {
            return Err(Reason::HalfOpen);
        }
        if own.half_open >= bounds.of_client.half_open {
            return Err(Reason::HalfOpenOfClient);
        }
        if own.open.saturating_add(own.half_open) >= bounds.of_client.open {
            return Err(Reason::ConnectionsOfClient);
        }
        counts.all.half_open += 1;
        counts.of_clients.entry(client).or_default().half_open += 1;
        Ok(Place { places: self.clone(), client, is_open: false })
    }
}

impl Place {
    /// The connection is open from now on.
    pub fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            let mut counts = self.places.lock();
            let Counts { all, of_clients } = &mut *counts;
            for count in [all, of_clients.entry(self.client).or_default()] {
                count.half_open -= 1;
                count.open += 1;
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.places.lock();
        let leave = |count: &mut Count| match self.is_open {
            true => count.open -= 1,
            false => count.half_open -= 1,
        };
        leave(&mut counts.all);
        let own = counts.of_clients.entry(self.client).or_default();
        leave(own);
        if *own == Count::default() {
            counts.of_clients.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(connections: u32, of_client: u32) -> Bounds {
        let limits = Limits { half_open_per_client: 3, per_client: Some(of_client), ..Limits::default() };
        Bounds::new(&limits, connections)
    }

    fn opened(mut place: Place) -> Place {
        place.open();
        place
    }

    fn take(places: &Places, client: &str, bounds: &Bounds) -> Result<Place, Reason> {
        places.take(client.parse().expect("an address"), bounds)
    }

    #[test]
    fn a_client_that_scans_takes_its_own_share_and_no_more() {
        let (places, bounds) = (Places::default(), bounds(100, 50));
        let scanner: Vec<Place> = (0..9000).filter_map(|_| take(&places, "10.0.0.1", &bounds).ok()).collect();
        assert_eq!(scanner.len(), 3);
        assert_eq!(take(&places, "10.0.0.1", &bounds).err(), Some(Reason::HalfOpenOfClient));
        let other = opened(take(&places, "10.0.0.2", &bounds).expect("others have room"));
        assert_eq!(places.count(), Count { open: 1, half_open: 3 });
        drop(scanner);
        take(&places, "10.0.0.1", &bounds).expect("its SYNs are over");
        drop(other);
        assert_eq!(places.count(), Count::default());
        assert!(places.lock().of_clients.is_empty(), "nothing is kept of clients without connections");
    }

    #[test]
    fn open_connections_of_a_client_have_a_limit_of_their_own() {
        let (places, bounds) = (Places::default(), bounds(100, 5));
        let open: Vec<Place> =
            (0..5).map(|_| opened(take(&places, "fd00::1", &bounds).expect("below the limit"))).collect();
        assert_eq!(
            take(&places, "fd00::2", &bounds).err(),
            Some(Reason::ConnectionsOfClient),
            "the same /64"
        );
        take(&places, "fd00:0:0:1::1", &bounds).expect("another network");
        drop(open);
        take(&places, "fd00::2", &bounds).expect("they have ended");
    }

    #[test]
    fn many_clients_together_leave_half_of_the_places_to_open_connections() {
        let (places, bounds) = (Places::default(), bounds(40, 5));
        let client = |number: u32| IpAddr::from(number.to_be_bytes());
        let scanners: Vec<Place> =
            (0..100).filter_map(|number| places.take(client(number), &bounds).ok()).collect();
        assert_eq!(scanners.len(), 20);
        assert_eq!(places.take(client(1000), &bounds).err(), Some(Reason::HalfOpen));
        let _open: Vec<Place> = scanners.into_iter().map(opened).collect();
        let _more: Vec<Place> =
            (300..320).map(|number| opened(places.take(client(number), &bounds).expect("room"))).collect();
        assert_eq!(places.take(client(2000), &bounds).err(), Some(Reason::Connections));
    }
}

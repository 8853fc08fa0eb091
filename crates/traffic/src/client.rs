//! Clients: applications that ask a server and react to what arrives.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant};

use crate::adaptive::{Player, Viewing};
use crate::browser::Browser;
use crate::fetch::Fetcher;

/// What a client wants to be done with its connections, which it numbers itself from 0. A number is used again after its close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Open a connection to the server.
    Open {
        /// Its number.
        connection: u32,
    },
    /// Send a request, to which the server answers at once. Requests on one connection are answered in their order.
    Ask {
        /// On which connection.
        connection: u32,
        /// Bytes of the request, at least one.
        request: u64,
        /// Bytes of the reply, at least one.
        reply: u64,
    },
    /// Close a connection on which nothing is awaited.
    Close {
        /// Its number.
        connection: u32,
    },
}

/// A client. It is called when a timeout is due, when bytes of replies arrive and when a connection fails; after each call it is asked
/// for what it wants ([`Client::poll_act`]) until that is nothing, then for its next timeout. It begins with a timeout.
#[derive(Clone, Debug)]
pub enum Client {
    /// A reader of web pages.
    Browser(Browser),
    /// A player of adaptive video.
    Player(Player),
    /// A fetcher of files.
    Fetcher(Fetcher),
}

/// How well a client was served.
#[derive(Clone, Debug)]
pub enum Service<'a> {
    /// Pages or files, each from the wish to its last byte.
    Transfers(&'a Transfers),
    /// Video.
    Viewing(Viewing),
}

macro_rules! each {
    ($self:ident, $client:ident => $call:expr) => {
        match $self {
            Client::Browser($client) => $call,
            Client::Player($client) => $call,
            Client::Fetcher($client) => $call,
        }
    };
}

impl Client {
    /// The start, or a time it asked for with [`Client::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        each!(self, client => client.handle_timeout(now));
    }

    /// So many bytes of replies arrived in order.
    pub fn handle_reply(&mut self, now: Instant, connection: u32, bytes: u64) {
        each!(self, client => client.handle_reply(now, connection, bytes));
    }

    /// A connection ended before its time; nothing more comes on it.
    pub fn handle_failure(&mut self, now: Instant, connection: u32) {
        each!(self, client => client.handle_failure(now, connection));
    }

    /// The next thing it wants.
    pub fn poll_act(&mut self) -> Option<Act> {
        each!(self, client => client.poll_act())
    }

    /// When it wants to be called; [`Instant::FAR_FUTURE`] if only something that arrives can move it.
    pub fn next_timeout(&self) -> Instant {
        each!(self, client => client.next_timeout())
    }

    /// How well it was served by now.
    pub fn service(&self, now: Instant) -> Service<'_> {
        match self {
            Self::Browser(browser) => Service::Transfers(browser.loads()),
            Self::Player(player) => Service::Viewing(player.viewing(now)),
            Self::Fetcher(fetcher) => Service::Transfers(fetcher.transfers()),
        }
    }
}

/// Durations of transfers that are complete.
#[derive(Clone, Default, Debug)]
pub struct Transfers(Vec<Duration>);

impl Transfers {
    /// Another one.
    pub(crate) fn note(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Their mean; none without any.
    pub fn mean(&self) -> Option<Duration> {
        let sum = self.0.iter().fold(Duration::ZERO, |sum, time| sum + *time);
        (!self.0.is_empty()).then(|| sum / self.count())
    }

    /// The shortest time that at least a share `p` (above 0 to 1) of them does not exceed; none without any.
    pub fn quantile(&self, p: f64) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = libm::ceil(p * sorted.len() as f64) as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

/// Wishes not yet asked for.
#[derive(Clone, Default, Debug)]
pub(crate) struct Acts(VecDeque<Act>);

impl Acts {
    pub fn push(&mut self, act: Act) {
        self.0.push_back(act);
    }

    pub fn poll(&mut self) -> Option<Act> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_occurred() {
        let mut transfers = Transfers::default();
        assert_eq!((transfers.mean(), transfers.quantile(0.5)), (None, None));
        for seconds in [5, 1, 4, 2] {
            transfers.note(Duration::from_secs(seconds));
        }
        let quantile = |p| transfers.quantile(p).unwrap().as_secs_f64();
        assert_eq!((quantile(0.01), quantile(0.5), quantile(0.75), quantile(0.95)), (1.0, 2.0, 4.0, 5.0));
        assert_eq!(transfers.mean(), Some(Duration::from_secs(3)));
    }
}

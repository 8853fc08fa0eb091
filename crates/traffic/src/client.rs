//! Clients: applications that send requests to a server and react to arrivals.

use bentpipe_base::Instant;

use crate::act::Act;
use crate::adaptive::Player;
use crate::browser::Browser;
use crate::fetch::Fetcher;
use crate::outcome::{ServiceOutcome, TransferOutcome};
use crate::transfers::Transfer;

/// A client. The driver calls it at a timeout, at an arrival of reply bytes and at a connection failure. After each call the
/// driver fetches its requests ([`Client::poll_act`]) until there are none, then its next timeout. The first call is a timeout.
#[derive(Clone, Debug)]
pub enum Client {
    /// A web browser.
    Browser(Browser),
    /// Player of adaptive video.
    Player(Player),
    /// A client that fetches files.
    Fetcher(Fetcher),
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
    /// Handles the start, or a time returned by [`Client::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        each!(self, client => client.handle_timeout(now));
    }

    /// Handles `bytes` bytes of replies that arrived in order.
    pub fn handle_reply(&mut self, now: Instant, connection: u32, bytes: u64) {
        each!(self, client => client.handle_reply(now, connection, bytes));
    }

    /// Handles a connection that ended early; nothing more arrives on it.
    pub fn handle_failure(&mut self, now: Instant, connection: u32) {
        each!(self, client => client.handle_failure(now, connection));
    }

    /// Returns the next request to the driver.
    pub fn poll_act(&mut self) -> Option<Act> {
        each!(self, client => client.poll_act())
    }

    /// Returns the time of the next call; [`Instant::FAR_FUTURE`] if it only waits for arrivals.
    pub fn next_timeout(&self) -> Instant {
        each!(self, client => client.next_timeout())
    }

    /// Returns the complete pages and files.
    pub fn transfers(&self) -> &[Transfer] {
        match self {
            Self::Browser(browser) => browser.loads(),
            Self::Player(_) => &[],
            Self::Fetcher(fetcher) => fetcher.transfers(),
        }
    }

    /// Returns the quality of service up to `now`; `failed_connections` connections ended early.
    pub fn service(&self, now: Instant, failed_connections: u64) -> ServiceOutcome {
        if let Self::Player(player) = self {
            let player = Some(player.viewing(now).outcome());
            return ServiceOutcome { player, ..ServiceOutcome::default() };
        }
        let transfers = Some(TransferOutcome::of(self.transfers(), failed_connections));
        ServiceOutcome { transfers, ..ServiceOutcome::default() }
    }
}

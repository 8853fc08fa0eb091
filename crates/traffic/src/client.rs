//! Clients: applications that ask a server and react to what arrives.

use bentpipe_base::Instant;

use crate::act::Act;
use crate::adaptive::Player;
use crate::browser::Browser;
use crate::fetch::Fetcher;
use crate::outcome::ServiceOutcome;

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

    /// How well it was served by now, with so many connections that ended before their time.
    pub fn service(&self, now: Instant, failed_connections: u64) -> ServiceOutcome {
        let transfers = match self {
            Self::Browser(browser) => browser.loads(),
            Self::Player(player) => {
                let player = Some(player.viewing(now).outcome());
                return ServiceOutcome { player, ..ServiceOutcome::default() };
            }
            Self::Fetcher(fetcher) => fetcher.transfers(),
        };
        let transfers = Some(transfers.outcome(failed_connections));
        ServiceOutcome { transfers, ..ServiceOutcome::default() }
    }
}

//! Clients in the world: their connections, and the server that answers them.
//!
//! The server stands at the near end of a flow and sends; the client at the far end opens connections and asks. As packets carry no payload,
//! the server learns what a request asks for from the client's own notes, when the whole request has arrived.

use std::collections::VecDeque;

use bentpipe_base::Rng;
use bentpipe_scenario::{FlowGroup, Traffic};
use bentpipe_traffic::Client;
use bentpipe_traffic::adaptive::Player;
use bentpipe_traffic::browser::Browser;
use bentpipe_traffic::fetch::Fetcher;

use crate::ids::EndId;

/// A client and its connections.
#[derive(Debug)]
pub(crate) struct ClientApp {
    /// The client.
    pub client: Client,
    /// Its connections by their numbers.
    connections: Vec<Option<ClientConnection>>,
}

/// A connection of a client.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    /// The server's end, once there is one behind all proxies, and the client's.
    pub ends: [Option<EndId>; 2],
    /// Requests that have not arrived as a whole: what is missing of each, and what it asks for.
    pub asked: VecDeque<(u64, u64)>,
    /// What server and client have yet to write.
    pub unwritten: [u64; 2],
}

impl ClientApp {
    /// The client of a flow whose group is one of clients; none if it is not.
    pub fn new(group: &FlowGroup, rng: Rng) -> Option<Self> {
        let client = match &group.traffic {
            Traffic::Web(config) => Client::Browser(Browser::new(*config, rng)),
            Traffic::Adaptive(config) => Client::Player(Player::new(config.clone())),
            Traffic::Ftp(config) => Client::Fetcher(Fetcher::new(*config, rng)),
            _ => return None,
        };
        Some(Self { client, connections: Vec::new() })
    }

    /// The number of the connection with this end.
    pub fn number_of(&self, end: EndId) -> Option<usize> {
        let side = (end % 2) as usize;
        self.connections
            .iter()
            .position(|state| state.as_ref().is_some_and(|state| state.ends[side] == Some(end)))
    }

    pub fn open(&mut self, number: u32, ends: [Option<EndId>; 2]) {
        let needed = self.connections.len().max(number as usize + 1);
        self.connections.resize_with(needed, || None);
        self.connections[number as usize] =
            Some(ClientConnection { ends, asked: VecDeque::new(), unwritten: [0; 2] });
    }

    /// A connection is of no interest any more.
    pub fn forget(&mut self, number: u32) {
        self.connections[number as usize] = None;
    }

    pub fn state(&mut self, number: u32) -> Option<&mut ClientConnection> {
        self.connections.get_mut(number as usize)?.as_mut()
    }
}

impl ClientConnection {
    /// So many bytes of requests arrived; bytes of replies that are due.
    pub fn answer(&mut self, mut arrived: u64) -> u64 {
        let mut due = 0;
        while let Some((missing, reply)) = self.asked.front_mut() {
            let part = arrived.min(*missing);
            *missing -= part;
            arrived -= part;
            if *missing > 0 {
                break;
            }
            due += *reply;
            self.asked.pop_front();
        }
        due
    }
}

//! A client with its connections, and the server that answers it.
//!
//! The server stands at the near end of a flow and sends; the client at the far end opens connections and asks. As packets carry no payload,
//! the server learns what a request asks for from the client's own notes, when the whole request has arrived.

use std::collections::VecDeque;

use crate::client::Client;

/// A client and its connections.
#[derive(Debug)]
pub struct ClientApp {
    /// The client.
    pub client: Client,
    /// Its connections by their numbers.
    connections: Vec<Option<ClientConnection>>,
}

/// A connection of a client.
#[derive(Debug)]
pub struct ClientConnection {
    /// The driver's numbers of the server's end, once there is one behind all proxies, and of the client's.
    pub ends: [Option<u32>; 2],
    /// Requests that have not arrived as a whole: what is missing of each, and what it asks for.
    pub asked: VecDeque<(u64, u64)>,
    /// What server and client have yet to write.
    pub unwritten: [u64; 2],
}

impl ClientApp {
    /// A client without connections.
    pub fn new(client: Client) -> Self {
        Self { client, connections: Vec::new() }
    }

    /// The number of the connection with this end of the server (side 0) or of the client (1).
    pub fn number_of(&self, side: usize, end: u32) -> Option<u32> {
        let is_here = |state: &ClientConnection| state.ends[side] == Some(end);
        let number = self.connections.iter().position(|state| state.as_ref().is_some_and(is_here));
        number.map(|number| number as u32)
    }

    /// A connection with this number is open, as far as these ends are.
    pub fn open(&mut self, number: u32, ends: [Option<u32>; 2]) {
        let needed = self.connections.len().max(number as usize + 1);
        self.connections.resize_with(needed, || None);
        self.connections[number as usize] =
            Some(ClientConnection { ends, asked: VecDeque::new(), unwritten: [0; 2] });
    }

    /// A connection is of no interest any more.
    pub fn forget(&mut self, number: u32) {
        self.connections[number as usize] = None;
    }

    /// The connection with this number, if it is of interest.
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

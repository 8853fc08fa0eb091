//! A client with its connections, and the server that answers it.
//!
//! The server is at the near end of a flow and sends. The client at the far end opens connections and sends requests. Packets
//! carry no payload: the server reads a request's content from the client's records, after the whole request arrived.

use std::collections::VecDeque;

use crate::client::Client;

/// A client with its connections.
#[derive(Debug)]
pub struct ClientApp {
    /// The client.
    pub client: Client,
    /// Connections, indexed by the client's number.
    connections: Vec<Option<ClientConnection>>,
}

/// Connection of a client.
#[derive(Debug)]
pub struct ClientConnection {
    /// The driver's numbers of the server's end (once it exists behind all proxies) and of the client's end.
    pub ends: [Option<u32>; 2],
    /// Incomplete requests: missing bytes of each, and the requested reply size.
    pub asked: VecDeque<(u64, u64)>,
    /// Bytes that server and client have yet to write.
    pub unwritten: [u64; 2],
}

impl ClientApp {
    /// Makes a client without connections.
    pub fn new(client: Client) -> Self {
        Self { client, connections: Vec::new() }
    }

    /// Returns the number of the connection with this end of the server (side 0) or the client (1).
    pub fn number_of(&self, side: usize, end: u32) -> Option<u32> {
        let is_here = |state: &ClientConnection| state.ends[side] == Some(end);
        let number = self.connections.iter().position(|state| state.as_ref().is_some_and(is_here));
        number.map(|number| number as u32)
    }

    /// Records a connection with the ends that are open.
    pub fn open(&mut self, number: u32, ends: [Option<u32>; 2]) {
        let needed = self.connections.len().max(number as usize + 1);
        self.connections.resize_with(needed, || None);
        self.connections[number as usize] =
            Some(ClientConnection { ends, asked: VecDeque::new(), unwritten: [0; 2] });
    }

    /// Removes a connection.
    pub fn forget(&mut self, number: u32) {
        self.connections[number as usize] = None;
    }

    /// Returns the connection with this number, unless it was removed.
    pub fn state(&mut self, number: u32) -> Option<&mut ClientConnection> {
        self.connections.get_mut(number as usize)?.as_mut()
    }
}

impl ClientConnection {
    /// Handles `arrived` bytes of requests. Returns the bytes of the replies due.
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

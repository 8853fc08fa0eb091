use std::collections::VecDeque;

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

use std::collections::VecDeque;

/// Request of a client to its driver about its connections. The client numbers them from 0, and reuses a number after its
/// close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Open a connection to the server.
    Open {
        /// Number of the connection.
        connection: u32,
    },
    /// Send a request, which the server answers at once. Answers on a connection have the order of their requests.
    Ask {
        /// Number of the connection.
        connection: u32,
        /// Bytes of the request, at least one.
        request: u64,
        /// Bytes of the reply, at least one.
        reply: u64,
    },
    /// Close a connection without pending answers.
    Close {
        /// Number of the connection.
        connection: u32,
    },
}

/// Requests not yet fetched by the driver.
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

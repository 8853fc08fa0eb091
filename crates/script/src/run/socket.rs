//! Sockets of a script.

use bentpipe_host::Id;
use bentpipe_tcp::State;

/// Socket as visible to a script.
#[derive(Clone, Debug)]
pub struct Socket {
    /// True if calls return instead of waiting.
    pub is_nonblocking: bool,
    /// True if closing it resets the connection.
    pub resets: bool,
    /// Settings made before listen or connect.
    pub changes: Vec<String>,
    /// Use of the socket.
    pub kind: Kind,
}

/// Use of a socket.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Unused; its port if it is bound.
    New(Option<u16>),
    /// Listening on a port.
    Listener(u16),
    /// Connected.
    Stream(Stream),
}

/// Connection with its stream positions.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Identifier in the stack.
    pub id: Id,
    /// Bytes written.
    pub written: u32,
    /// Bytes read.
    pub read: u32,
    /// True after the sending direction was closed.
    pub is_shut: bool,
    /// True after its error was queried.
    pub is_told: bool,
}

impl Socket {
    /// Makes a connected socket.
    pub fn stream(id: Id, is_nonblocking: bool) -> Self {
        let stream = Stream { id, written: 0, read: 0, is_shut: false, is_told: false };
        Self { is_nonblocking, resets: false, changes: Vec::new(), kind: Kind::Stream(stream) }
    }
}

/// State number of a closed connection.
pub const CLOSED: f64 = 7.0;

/// States with their names and numbers in Linux.
const STATES: [(State, &str, f64); 11] = [
    (State::Established, "TCP_ESTABLISHED", 1.0),
    (State::SynSent, "TCP_SYN_SENT", 2.0),
    (State::SynReceived, "TCP_SYN_RECV", 3.0),
    (State::FinWait1, "TCP_FIN_WAIT1", 4.0),
    (State::FinWait2, "TCP_FIN_WAIT2", 5.0),
    (State::TimeWait, "TCP_TIME_WAIT", 6.0),
    (State::Closed, "TCP_CLOSE", CLOSED),
    (State::CloseWait, "TCP_CLOSE_WAIT", 8.0),
    (State::LastAck, "TCP_LAST_ACK", 9.0),
    (State::Listen, "TCP_LISTEN", 10.0),
    (State::Closing, "TCP_CLOSING", 11.0),
];

/// Returns the number of a state.
pub fn number_of(state: State) -> f64 {
    STATES.iter().find(|(found, ..)| *found == state).map_or(CLOSED, |(.., number)| *number)
}

/// Returns the number of a state by its name.
pub fn state_number(name: &str) -> Option<f64> {
    STATES.iter().find(|(_, found, _)| *found == name).map(|(.., number)| *number)
}

//! Both directions of a connection, as seen by the data that is moved through it.

use bentpipe_host::{Driver, Id};

/// A connection that carries data in both directions.
pub trait Stream {
    /// Returns the bytes that the connection accepts now. More unsent data would only use memory and processor cache.
    fn room(&self) -> usize;
    /// Writes data. Returns the number of bytes accepted.
    fn write(&mut self, bytes: &[u8]) -> usize;
    /// Ends the sent data.
    fn close(&mut self);
    /// Reads data received in order. Returns the number of bytes; zero if there are none now.
    fn read(&mut self, into: &mut [u8]) -> usize;
    /// Removes all data received in order. Returns the number of bytes.
    fn discard(&mut self) -> u64;
}

/// Bounds of the bytes that wait in a connection: as many as a window opens at once.
pub const MOST_UNSENT: u64 = 8 << 20;
pub const LEAST_UNSENT: u64 = 1 << 20;

/// A connection of the user-space TCP.
pub struct OverTcp<'a> {
    pub driver: &'a mut Driver,
    pub id: Id,
}

impl Stream for OverTcp<'_> {
    fn room(&self) -> usize {
        let stack = &self.driver.stack;
        let window = stack.connection(self.id).map_or(0, |connection| {
            let mss = stack.ends(self.id).map_or(0, |ends| stack.full_segment(ends.remote.ip()));
            connection.window_state().cwnd as u64 * u64::from(mss)
        });
        let room = window.clamp(LEAST_UNSENT, MOST_UNSENT).saturating_sub(stack.unsent(self.id));
        stack.send_room(self.id).min(room as usize)
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        self.driver.stack.write(self.driver.now(), self.id, bytes)
    }

    fn close(&mut self) {
        self.driver.stack.close(self.driver.now(), self.id);
    }

    fn read(&mut self, into: &mut [u8]) -> usize {
        self.driver.stack.read(self.driver.now(), self.id, into)
    }

    fn discard(&mut self) -> u64 {
        self.driver.stack.discard(self.driver.now(), self.id)
    }
}

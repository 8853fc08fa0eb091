//! Writing packets to a capture file.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use bentpipe_base::Instant;
use bentpipe_trace::{Capture, Captured};

/// Maximum number of packets that wait for being written (chosen).
const WAITING: usize = 16_384;

/// Direction of a packet at the device of the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// From the command, before the first link.
    Sent = 0,
    /// To the command, after the last link.
    Received = 1,
}

/// Writes packets on a separate thread, so that the emulation never waits for a disk.
#[derive(Debug)]
pub(crate) struct Recorder {
    queue: SyncSender<(Seen, Instant, Vec<u8>)>,
    writer: JoinHandle<io::Result<()>>,
    missed: u64,
}

impl Recorder {
    /// Makes a pcapng file with wall-clock times.
    pub fn start(out: Box<dyn Write + Send>) -> io::Result<Self> {
        let (queue, packets) = sync_channel::<(Seen, Instant, Vec<u8>)>(WAITING);
        let write = move || {
            let mut capture = Capture::new(out, "bentpipe emulate", ["sent by the command", "received"])?;
            for (seen, at, bytes) in packets {
                capture.packet(at, seen as u32, Captured { bytes: &bytes, omitted: 0, comment: "" })?;
            }
            capture.finish().map(|_| ())
        };
        let writer = thread::Builder::new().name("capture".into()).spawn(write)?;
        Ok(Self { queue, writer, missed: 0 })
    }

    /// Queues a packet with the present time. If the disk is too slow, the packet is counted as missed.
    pub fn packet(&mut self, seen: Seen, bytes: &[u8]) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        if let Err(TrySendError::Full(_)) = self.queue.try_send((seen, at, bytes.to_vec())) {
            self.missed += 1;
        }
    }

    /// Completes the file and returns the number of missed packets.
    pub fn finish(self) -> io::Result<u64> {
        drop(self.queue);
        self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(self.missed)
    }
}

//! One line of JSON for each finished connection.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::report::Report;
use crate::shared::Shared;

/// Most lines that wait for the disk (chosen). Further ones are lost and counted.
const WAITING: usize = 4096;
/// Longest time until a line is in the file (chosen).
const DELAY: Duration = Duration::from_millis(500);

/// Opens the file and starts the thread that writes.
pub(crate) fn open(path: &str) -> Result<(File, SyncSender<Report>, Receiver<Report>), Error> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file =
        file.map_err(|error| Error::Request(format!("watch.connections: cannot write {path}: {error}")))?;
    let (sender, receiver) = sync_channel(WAITING);
    Ok((file, sender, receiver))
}

/// Writes until the last sender has gone. A full disk loses lines and nothing else.
pub(crate) fn write(file: File, reports: Receiver<Report>, shared: Arc<Shared>) -> Result<(), Error> {
    let work = move || {
        let mut out = BufWriter::new(file);
        let mut unflushed = 0;
        loop {
            match reports.recv_timeout(DELAY) {
                Ok(report) => {
                    unflushed += 1;
                    let line = serde_json::to_string(&report).unwrap_or_default();
                    if writeln!(out, "{line}").is_err() {
                        shared.metrics.lines_lost.inc();
                    }
                }
                Err(RecvTimeoutError::Timeout) if unflushed > 0 => {
                    if out.flush().is_err() {
                        shared.metrics.lines_lost.inc_by(unflushed);
                        // Lines that could not be written are dropped: a second attempt could write a part of a line before the next
                        // one.
                        let (file, _) = out.into_parts();
                        out = BufWriter::new(file);
                    }
                    unflushed = 0;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    thread::Builder::new()
        .name("lines".into())
        .spawn(work)
        .map(drop)
        .map_err(Error::at("cannot start a thread"))
}

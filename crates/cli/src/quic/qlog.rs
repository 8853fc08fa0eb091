//! Events of the stack in a file, as qlog.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};

use crate::failure::Failure;
use crate::output::{Kind, Target};

/// A file for the events of one connection.
pub struct Qlog {
    target: Target,
    title: String,
    /// First error of the writer. The stack drops it.
    error: Arc<Mutex<Option<io::Error>>>,
}

/// Gives the writer to the first connection.
struct Factory {
    writer: Mutex<Option<Writer>>,
    title: String,
}

/// Writer that notes its first error. The stack requires a type that threads may share.
struct Writer {
    inner: Mutex<Box<dyn Write + Send>>,
    error: Arc<Mutex<Option<io::Error>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Qlog {
    /// Opens the file. The title names the congestion control `cc`, because no event of the stack does.
    pub fn open(path: &Path, cc: &str) -> Result<Self, Failure> {
        let title = format!("bentpipe send --transport quic --cc {cc}");
        Ok(Self { target: Target::open(path, Kind::Qlog)?, title, error: Arc::default() })
    }

    /// Returns the stack's access to the file.
    pub fn factory(&self) -> Result<Arc<dyn QlogFactory>, Failure> {
        let writer = Writer { inner: Mutex::new(self.target.events()?), error: self.error.clone() };
        Ok(Arc::new(Factory { writer: Mutex::new(Some(writer)), title: self.title.clone() }))
    }

    /// Gives the file its name, after the connection is dropped.
    pub fn finish(self) -> Result<(), Failure> {
        if let Some(error) = lock(&self.error).take() {
            return Err(Failure::Work(format!("cannot write {error}")));
        }
        self.target.finish()
    }
}

impl QlogFactory for Factory {
    fn for_connection(&self, _: Side, _: SocketAddr, _: ConnectionId, _: Instant) -> Option<QlogConfig> {
        let mut config = QlogConfig::new(Box::new(lock(&self.writer).take()?));
        config.title(Some(self.title.clone()));
        Some(config)
    }
}

impl Writer {
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            lock(&self.error).get_or_insert_with(|| io::Error::new(error.kind(), error.to_string()));
        })
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = lock(&self.inner).write(bytes);
        self.noted(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = lock(&self.inner).flush();
        self.noted(result)
    }
}

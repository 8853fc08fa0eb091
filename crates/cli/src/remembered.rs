//! Capacities of paths in a file, for Careful Resume (RFC 9959) from one `bentpipe send` to the next.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Capacity, PathMemory};
use bentpipe_tcp::Config;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::output::{self, Kind, Target};

/// Maximum size of the file in bytes: more than 100,000 hosts.
const LARGEST: u64 = 16 << 20;

/// Content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    capacities: BTreeMap<IpAddr, Entry>,
}

/// Capacity of the path to one host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    bytes: u64,
    min_rtt_s: f64,
    /// Seconds since 1970.
    saved_at_s: u64,
}

/// The file and the memory of this connection.
pub struct Remembered {
    target: Target,
    content: Content,
    host: IpAddr,
    memory: PathMemory,
    lifetime: Duration,
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Remembered {
    /// Reads the file, if there is one, and switches Careful Resume on for a connection to `host`.
    pub fn open(path: &Path, host: IpAddr, config: &mut Config) -> Result<Self, Failure> {
        let target = output::open(Some(&path.to_owned()), Kind::Capacities)?;
        let content = match std::fs::metadata(path) {
            Ok(found) if found.len() > LARGEST => {
                let (found, most) = (found.len(), LARGEST);
                return Err(wrong(path, format!("{found} bytes, accepted: at most {most}")));
            }
            Ok(_) => std::fs::read(path).map_err(|error| wrong(path, error))?,
            Err(_) => Vec::new(),
        };
        let content: Content = match content.is_empty() {
            true => Content::default(),
            false => serde_json::from_slice(&content).map_err(|error| wrong(path, error))?,
        };
        let resume = config.careful_resume.get_or_insert_default();
        let lifetime = resume.lifetime;
        let memory = PathMemory::new();
        if let Some(entry) = content.capacities.get(&host) {
            let age = Duration::from_secs(now_s().saturating_sub(entry.saved_at_s));
            let rtt_s = entry.min_rtt_s;
            if !(rtt_s > 0.0 && rtt_s < 1e4) {
                return Err(wrong(
                    path,
                    format!("min_rtt_s of {host}: found {rtt_s}, accepted: above 0, below 10000"),
                ));
            }
            // The clock of this connection begins at zero, so the age shortens the life.
            if age < lifetime {
                resume.lifetime = lifetime - age;
                let min_rtt = Duration::from_secs_f64(rtt_s);
                memory.save_capacity(Capacity { bytes: entry.bytes, min_rtt, at: Instant::ZERO });
            }
        }
        config.memory = Some(memory.clone());
        let target = target.expect("a path was given");
        Ok(Self { target, content, host, memory, lifetime })
    }

    /// Writes what this connection found. A capacity that proved wrong, and what is older than the lifetime, is removed.
    pub fn save(mut self) -> Result<(), Failure> {
        let now = now_s();
        let lifetime_s = self.lifetime.as_secs_f64();
        self.content.capacities.retain(|_, entry| (now.saturating_sub(entry.saved_at_s) as f64) < lifetime_s);
        match self.memory.capacity() {
            None => drop(self.content.capacities.remove(&self.host)),
            // Unchanged since it was read.
            Some(capacity) if capacity.at == Instant::ZERO => {}
            Some(Capacity { bytes, min_rtt, .. }) => {
                let entry = Entry { bytes, min_rtt_s: min_rtt.as_secs_f64(), saved_at_s: now };
                self.content.capacities.insert(self.host, entry);
            }
        }
        let text =
            serde_json::to_string_pretty(&self.content).map_err(|error| Failure::Work(error.to_string()))?;
        self.target.write((text + "\n").as_bytes())
    }
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Request(format!("--remember {}: {why}", path.display()))
}

//! What `send` and `receive` have in common: the stack of our own, and what there is to tell of a connection.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::REGISTRY;
use bentpipe_host::{DeviceConfig, Driver, Id, Limits, Network};
use bentpipe_scenario::{Draft, changed_config, connection_config};
use bentpipe_tcp::{Config, Connection, Reflection, State};
use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::output::{Kind, Target};
use crate::resume::{Partial, Rest, hex};
use crate::transfer_args::OnWire;

/// How long one turn waits at most: so often progress is shown, and Ctrl-C is heard.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// Bytes moved in one piece between a file and a connection, at most and at least.
pub const PIECE: usize = 256 << 10;
const LEAST_PIECE: usize = 4 << 10;
/// The standard streams in place of a file.
const STANDARD: &str = "-";

/// What algorithms that have such a mode use in networks that belong to others.
const SAFE: &str = "cc.mode=safe";

/// The algorithm where nothing names one.
const USUAL: &str = "cubic";

/// Which end of a flow we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The one that sends.
    Sender,
    /// The one that receives.
    Receiver,
}

/// The configuration of our ends: with the receiver half of the algorithm, if it has one.
pub fn config(args: &OnWire, end: End) -> Result<Config, Failure> {
    let (base, cc) = match &args.scenario {
        Some(scenario) => end_of_flow(scenario, args.cc.as_deref(), end)?,
        None => {
            let cc = args.cc.as_deref().unwrap_or(USUAL);
            (connection_config(cc, [])?, cc.to_owned())
        }
    };
    let has_safe_mode = connection_config(&cc, [SAFE]).is_ok();
    let settings = has_safe_mode.then_some(SAFE).into_iter().chain(args.set.iter().map(String::as_str));
    let mut config = changed_config(base, &cc, settings)?;
    let entry = REGISTRY.iter().find(|entry| entry.name == config.cc.name());
    let half = entry.and_then(|entry| entry.receiver);
    config.reflection = half.map(|half| Reflection { number: half.number, build: half.build });
    Ok(config)
}

/// What an end of the flows under comparison is in a scenario, and the name of its algorithm.
fn end_of_flow(scenario: &str, cc: Option<&str>, end: End) -> Result<(Config, String), Failure> {
    let mut draft = Draft::load(scenario)?;
    cc.map_or(Ok(()), |cc| draft.set_cc(cc))?;
    let found = draft.scenario()?;
    let flow = found.compared_flow().ok_or_else(|| {
        Failure::Request(format!("--scenario {scenario}: found no flow group, accepted: a scenario with one"))
    })?;
    let config = match end {
        End::Sender => &flow.sender,
        End::Receiver => &flow.receiver,
    };
    Ok((Config::clone(config), flow.cc.clone()))
}

/// An address of ours that no other stack of ours in this network namespace may have meanwhile: two would answer each other's packets.
pub struct Claim {
    _names: Vec<UnixListener>,
}

impl Claim {
    /// Claims the addresses, by names that the kernel forgets with their owner.
    fn of(networks: &[Network]) -> Result<Self, Failure> {
        let claim = |network: &Network| {
            let name = SocketAddr::from_abstract_name(format!("bentpipe {}", network.own));
            name.and_then(|name| UnixListener::bind_addr(&name)).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Failure::Request(format!(
                    "--address: found {}, which another send or receive has at this moment; accepted: a network of its own for each, \
                     such as --address 10.105.0.6/30",
                    network.own
                )),
                _ => Failure::Missing(format!("cannot claim {}: {error}", network.own)),
            })
        };
        Ok(Self { _names: networks.iter().map(claim).collect::<Result<_, _>>()? })
    }
}

/// The device and the stack, and the claim to its addresses.
pub fn driver(args: &OnWire) -> Result<(Driver, Claim), Failure> {
    let mut networks: Vec<Network> = args.address.clone();
    networks.sort_by_key(|network| network.own.is_ipv6());
    if networks.len() == 2 && networks[0].own.is_ipv4() == networks[1].own.is_ipv4() {
        return Err(Failure::Request("found two addresses of one IP version, accepted: one of each".into()));
    }
    let claim = Claim::of(&networks)?;
    let config = DeviceConfig { name: args.tun.clone(), networks, mtu: args.mtu };
    let driver = Driver::new(&config, Limits::default()).map_err(|why| Failure::Missing(why.to_string()))?;
    Ok((driver, claim))
}

/// Where bytes come from.
pub enum Input {
    /// A file or a pipe.
    File(std::fs::File),
    /// So many zeros.
    Zeros(u64),
    /// Nothing yet: what it is to be is still open.
    Later,
    /// The rest of a file that the peer has a part of.
    Rest(Rest),
}

impl Input {
    /// The file at this path, or standard input.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let unreadable = |error| Failure::Request(format!("cannot read {}: {error}", path.display()));
        if path.as_os_str() == STANDARD {
            let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(unreadable)?;
            return Ok(Self::File(stdin.into()));
        }
        let file = std::fs::File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(Failure::Request(format!("cannot read {}: that is a directory", path.display())));
        }
        Ok(Self::File(file))
    }

    /// Bytes that it holds, where that is known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::File(file) => file.metadata().ok().filter(|metadata| metadata.is_file()).map(|m| m.len()),
            Self::Zeros(len) => Some(*len),
            Self::Rest(rest) => Some(rest.left()),
            Self::Later => None,
        }
    }

    /// What to wait for before reading; zeros are always there.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(file) => Some(file.as_fd()),
            Self::Zeros(_) | Self::Later | Self::Rest(_) => None,
        }
    }

    /// The next piece, of at most so many bytes; empty at the end.
    pub fn read(&mut self, into: &mut Vec<u8>, at_most: usize) -> io::Result<()> {
        into.resize(at_most, 0);
        let len = match self {
            Self::File(file) => file.read(into)?,
            Self::Zeros(left) => {
                let len = (*left).min(at_most as u64);
                *left -= len;
                into[..len as usize].fill(0);
                len as usize
            }
            Self::Rest(rest) => rest.read(into)?,
            Self::Later => 0,
        };
        into.truncate(len);
        Ok(())
    }
}

/// Where bytes go.
pub enum Output {
    /// A file, which stands at its path only when it is whole, or a device.
    File(std::fs::File, Target),
    /// Standard output.
    Standard(std::fs::File),
    /// A file that goes on where an earlier transfer broke off.
    Partial(Box<Partial>),
    /// A few words that we read ourselves.
    Words(Vec<u8>),
    /// Nowhere.
    Nowhere,
}

impl Output {
    /// A new file at this path, or standard output.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == STANDARD {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            return Ok(Self::Standard(stdout.map_err(|error| Failure::unwritable(path, &error))?.into()));
        }
        let target = Target::open(path, Kind::Data)?;
        Ok(Self::File(target.file()?, target))
    }

    /// What to wait for before writing.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(file, _) | Self::Standard(file) => Some(file.as_fd()),
            Self::Partial(_) | Self::Words(_) | Self::Nowhere => None,
        }
    }

    /// What it is called.
    fn name(&self) -> String {
        match self {
            Self::File(_, target) => target.path().display().to_string(),
            Self::Standard(_) => "standard output".to_owned(),
            Self::Partial(partial) => partial.part().display().to_string(),
            Self::Words(_) | Self::Nowhere => "nowhere".to_owned(),
        }
    }

    /// Puts a file that is whole in its place.
    fn finish(self) -> Result<(), Failure> {
        match self {
            Self::File(file, target) => {
                drop(file);
                target.finish()
            }
            Self::Partial(partial) => partial.finish(),
            Self::Standard(_) | Self::Words(_) | Self::Nowhere => Ok(()),
        }
    }

    /// Takes what arrived, if that needs no waiting; false if it must be written.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        match self {
            Self::Partial(partial) => partial.take(bytes).map(|()| true),
            Self::Words(words) if words.len() < MOST_WORDS => {
                words.extend(bytes);
                Ok(true)
            }
            Self::Words(_) => Err(Failure::Work(
                "the other end says too much, accepted: an end with --resume at both".into(),
            )),
            Self::Nowhere => Ok(true),
            Self::File(..) | Self::Standard(_) => Ok(false),
        }
    }
}

/// More than the receiver of a file has to say.
const MOST_WORDS: usize = 4096;

/// Bytes that wait in a connection until they may leave: as much as a window opens at once, at most and at least so much. More would
/// only use memory and, in the caches of the processor, push out what is in use.
const MOST_UNSENT: u64 = 8 << 20;
const LEAST_UNSENT: u64 = 1 << 20;

/// Bytes on their way from a source into a connection.
pub struct Feed {
    input: Input,
    piece: Vec<u8>,
    done: usize,
    ended: bool,
    closed: bool,
    /// Taken by the connection.
    pub bytes: u64,
    /// Of all that was read, if it is wanted.
    pub hash: Option<Sha256>,
}

impl Feed {
    /// Everything that `input` holds, and then the end of the stream.
    pub fn new(input: Input) -> Self {
        Self { input, piece: Vec::new(), done: 0, ended: false, closed: false, bytes: 0, hash: None }
    }

    /// True if all has been read, and the stream is closed or will be.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// What to wait for: nothing while the connection has no room.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        if self.ended || self.done < self.piece.len() { None } else { self.input.waits_for() }
    }

    /// Bytes that the connection takes now.
    fn room(driver: &Driver, id: Id) -> usize {
        let window = driver.stack.connection(id).map_or(0, |connection| {
            let mss = driver.stack.ends(id).map_or(0, |ends| driver.stack.full_segment(ends.remote.ip()));
            connection.window_state().cwnd as u64 * u64::from(mss)
        });
        window.clamp(LEAST_UNSENT, MOST_UNSENT).saturating_sub(driver.stack.unsent(id)) as usize
    }

    /// Moves what can be moved now.
    pub fn pump(&mut self, driver: &mut Driver, id: Id, ready: bool) -> Result<(), Failure> {
        if matches!(self.input, Input::Later) {
            return Ok(());
        }
        let mut ready = ready || self.input.waits_for().is_none();
        let mut room = Self::room(driver, id);
        loop {
            if self.done == self.piece.len() && !self.ended && ready {
                // What the connection does not take is hardly read.
                let at_most = driver.stack.send_room(id).clamp(LEAST_PIECE, PIECE);
                self.input
                    .read(&mut self.piece, at_most)
                    .map_err(|error| Failure::Work(format!("cannot read: {error}")))?;
                if let Some(hash) = &mut self.hash {
                    hash.update(&self.piece);
                }
                self.done = 0;
                self.ended = self.piece.is_empty();
                // More may be there, but a pipe would make us wait for it.
                ready = self.input.len().is_some();
            }
            let rest = &self.piece[self.done..];
            let taken = driver.stack.write(driver.now(), id, &rest[..rest.len().min(room)]);
            self.done += taken;
            room -= taken;
            self.bytes += taken as u64;
            if self.done < self.piece.len() || !ready || self.ended {
                break;
            }
        }
        if self.ended && !std::mem::replace(&mut self.closed, true) {
            driver.stack.close(driver.now(), id);
        }
        // Very many streams may wait for their peers: none keeps more than it must.
        if self.piece.capacity() > 4 * LEAST_PIECE && self.piece.len() <= LEAST_PIECE {
            self.piece.shrink_to_fit();
        }
        Ok(())
    }
}

/// Bytes on their way from a connection to a destination.
pub struct Drain {
    output: Output,
    piece: Vec<u8>,
    done: usize,
    /// Handed to the destination.
    pub bytes: u64,
    /// Of all that arrived, if it is wanted.
    pub hash: Option<Sha256>,
}

/// Bytes that a pipe takes without making the writer wait, once it says that it is ready (POSIX `PIPE_BUF`).
const PIPE_PIECE: usize = 4096;

impl Drain {
    /// Everything that arrives goes to `output`.
    pub fn new(output: Output) -> Self {
        Self { output, piece: Vec::new(), done: 0, bytes: 0, hash: None }
    }

    /// What the peer said, if we read it ourselves.
    pub fn words(&self) -> &[u8] {
        match &self.output {
            Output::Words(words) => words,
            _ => &[],
        }
    }

    /// The file that goes on where an earlier transfer broke off, if it is one.
    pub fn partial(&self) -> Option<&Partial> {
        match &self.output {
            Output::Partial(partial) => Some(partial),
            _ => None,
        }
    }

    /// What to wait for: nothing while there is nothing to write.
    pub fn waits_for(&self, driver: &Driver, id: Id) -> Option<BorrowedFd<'_>> {
        let waiting = driver.stack.connection(id).map_or(0, Connection::readable);
        if waiting == 0 && self.done == self.piece.len() { None } else { self.output.waits_for() }
    }

    /// Moves what can be moved now.
    pub fn pump(&mut self, driver: &mut Driver, id: Id, ready: bool) -> Result<(), Failure> {
        if matches!(self.output, Output::Nowhere) && self.hash.is_none() {
            self.bytes += driver.stack.discard(driver.now(), id);
            return Ok(());
        }
        if !matches!(self.output, Output::File(..) | Output::Standard(_)) {
            return self.keep(driver, id);
        }
        let name = || self.output.name();
        let (Output::File(file, _) | Output::Standard(file)) = &self.output else { return Ok(()) };
        let mut file = file;
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut ready = ready || regular;
        while ready {
            if self.done == self.piece.len() {
                self.piece.resize(PIECE, 0);
                let len = driver.stack.read(driver.now(), id, &mut self.piece);
                self.piece.truncate(len);
                self.done = 0;
                if let Some(hash) = &mut self.hash {
                    hash.update(&self.piece);
                }
                if len == 0 {
                    break;
                }
            }
            let rest = &self.piece[self.done..];
            let at_most = if regular { rest.len() } else { rest.len().min(PIPE_PIECE) };
            let written = file
                .write(&rest[..at_most])
                .map_err(|error| Failure::Work(format!("cannot write {}: {error}", name())))?;
            self.done += written;
            self.bytes += written as u64;
            ready = regular;
        }
        Ok(())
    }

    /// Moves everything that has arrived to where nothing needs to be waited for.
    fn keep(&mut self, driver: &mut Driver, id: Id) -> Result<(), Failure> {
        self.piece.resize(PIECE, 0);
        loop {
            let len = driver.stack.read(driver.now(), id, &mut self.piece);
            if len == 0 {
                self.piece.clear();
                self.done = 0;
                return Ok(());
            }
            if let Some(hash) = &mut self.hash {
                hash.update(&self.piece[..len]);
            }
            self.output.take(&self.piece[..len])?;
            self.bytes += len as u64;
        }
    }

    /// Puts the file of a stream that came whole in its place; otherwise nothing is left of it.
    pub fn finish(self) -> Result<(), Failure> {
        self.output.finish()
    }

    /// Everything that arrived has been written.
    pub fn is_empty(&self, driver: &Driver, id: Id) -> bool {
        self.done == self.piece.len() && driver.stack.connection(id).is_none_or(|c| c.readable() == 0)
    }
}

/// How far the transfer is, on standard error if that is a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of so many bytes, where that is known.
    pub fn new(what: String, total: Option<u64>) -> Self {
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{msg} {bar:30.cyan/blue.dim} {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left",
            ),
            None => (ProgressBar::new_spinner(), "{msg} {spinner} {decimal_bytes}  {decimal_bytes_per_sec}"),
        };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar: bar.with_message(what) }
    }

    /// Now it is known how many bytes there are.
    pub fn expect(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    /// Says something while the bar is there.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("bentpipe: {text}"));
    }

    /// So many bytes are through.
    pub fn show(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What a connection did: one element of the JSON document.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The peer.
    pub peer: std::net::SocketAddr,
    /// Algorithm of our end.
    pub cc: &'static str,
    /// Whether both streams ended in order.
    pub complete: bool,
    /// Why not.
    pub error: Option<String>,
    /// Payload bytes that the peer acknowledged.
    pub sent_bytes: u64,
    /// Payload bytes that arrived in order.
    pub received_bytes: u64,
    /// From the beginning of the connection to the last byte.
    pub duration_s: f64,
    /// The larger of both directions over that time.
    pub goodput_bps: f64,
    /// Smoothed round-trip time.
    pub srtt_ms: Option<f64>,
    /// Congestion window in segments at the end.
    pub cwnd_segments: f64,
    /// Data segments sent, those sent again included.
    pub sent_segments: u64,
    /// Those sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Low-priority probes sent.
    pub probes_sent: u64,
    /// Replies to them.
    pub probes_acked: u64,
    /// Smoothed round-trip time of probes, where the peer answers them by reports of duplicates.
    pub probe_srtt_ms: Option<f64>,
    /// The path treats probes as data: nothing at its bottleneck knows low priority.
    pub probes_are_ordinary: bool,
    /// Data segments that held nothing new.
    pub duplicate_segments: u64,
    /// SHA-256 of what was sent, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_sha256: Option<String>,
    /// SHA-256 of what arrived, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_sha256: Option<String>,
}

impl Report {
    /// Of the connection `id`, which began at `begin`.
    pub fn of(driver: &Driver, id: Id, begin: Instant, cc: &'static str) -> Option<Self> {
        let connection = driver.stack.connection(id)?;
        let stats = connection.stats();
        let sent_bytes = connection.acknowledged_bytes();
        let duration_s = driver.now().since(begin).as_secs_f64();
        let bytes = sent_bytes.max(stats.delivered_bytes);
        Some(Self {
            peer: driver.stack.ends(id)?.remote,
            cc,
            complete: true,
            error: None,
            sent_bytes,
            received_bytes: stats.delivered_bytes,
            duration_s,
            goodput_bps: bytes as f64 * 8.0 / duration_s.max(1e-9),
            srtt_ms: connection.srtt().map(Duration::as_millis_f64),
            cwnd_segments: connection.window_state().cwnd,
            sent_segments: stats.sent_segments,
            retransmitted_segments: stats.retransmitted_segments,
            timeouts: stats.timeouts,
            probes_sent: stats.probes_sent,
            probes_acked: stats.probes_acked,
            probe_srtt_ms: connection.probe_srtt().map(Duration::as_millis_f64),
            probes_are_ordinary: connection.probes_are_ordinary(),
            duplicate_segments: stats.duplicate_segments,
            sent_sha256: None,
            received_sha256: None,
        })
    }

    /// With the digests of both streams, as far as they were asked for.
    pub fn with_digests(self, feed: &Feed, drain: &Drain) -> Self {
        let digits = |hash: &Option<Sha256>| hash.clone().map(|hash| hex(&hash.finalize()));
        let of_file = match &feed.input {
            Input::Rest(rest) => rest.digits(),
            _ => None,
        };
        let of_partial = drain.partial().filter(|partial| partial.last_word().is_some()).map(Partial::digits);
        Self {
            sent_sha256: of_file.or_else(|| digits(&feed.hash)),
            received_sha256: of_partial.or_else(|| digits(&drain.hash)),
            ..self
        }
    }

    /// The transfer did not come to its end.
    pub fn fail(&mut self, why: &str) {
        self.complete = false;
        self.error = Some(why.to_owned());
    }

    /// One line for people, on standard error: standard output may be the data.
    pub fn tell(&self) {
        let rate = self.goodput_bps / 1e6;
        let rtt = self.srtt_ms.map_or(String::new(), |rtt| format!(", round trip {rtt:.1} ms"));
        let probes = match self.probes_sent {
            0 => String::new(),
            sent => {
                let rtt = self.probe_srtt_ms.map_or(String::new(), |rtt| format!(" after {rtt:.1} ms"));
                format!(", {} of {sent} probes answered{rtt}", self.probes_acked)
            }
        };
        if self.probes_are_ordinary {
            eprintln!(
                "{}: probes got through full queues and were lost no more often than data: nothing on this path knows low priority (DSCP \
                 LE), and replies prove nothing there",
                self.peer
            );
        }
        eprintln!(
            "{}: sent {}, received {} in {:.3} s, {rate:.3} Mbit/s{rtt}, {} of {} segments sent again, {} timeouts{probes}",
            self.peer,
            DecimalBytes(self.sent_bytes),
            DecimalBytes(self.received_bytes),
            self.duration_s,
            self.retransmitted_segments,
            self.sent_segments,
            self.timeouts,
        );
        for (what, digits) in [("sent", &self.sent_sha256), ("received", &self.received_sha256)] {
            if let Some(digits) = digits {
                eprintln!("{}: SHA-256 of what was {what}: {digits}", self.peer);
            }
        }
    }
}

/// Both streams have ended, as far as this end can know.
pub const fn is_over(state: State) -> bool {
    matches!(state, State::TimeWait | State::Closed)
}

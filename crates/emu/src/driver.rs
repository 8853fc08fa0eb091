//! The loop that gives the links real time and real packets.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_base::Instant;
use bentpipe_net::{ConfigError, LinkStats};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::chain::Chain;
use crate::clock::Clock;
use crate::device::Device;
use crate::frame::Frame;
use crate::meter::{Fidelity, Meter};
use crate::path::{Hop, Path};
use crate::sleeper::Sleeper;

/// Reads of one device before the other one has its turn: deliveries wait for reads.
const READS_AT_ONCE: u32 = 4;
/// Buffers kept for later packets; more are given back to the system.
const SPARE_BUFFERS: usize = 4096;

/// The emulator: two devices and the links between them. Index 0 is the command's side, and what comes from there.
#[derive(Debug)]
pub(crate) struct Driver {
    clock: Clock,
    devices: [Device; 2],
    chains: [Chain; 2],
    pool: Vec<Vec<u8>>,
    meter: Meter,
    sleeper: Sleeper,
    shared: Arc<Shared>,
}

/// What the emulator shows to other threads, and how they stop it.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    wake: EventFd,
    snapshot: Mutex<Snapshot>,
}

/// How things stand.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Time since the start.
    pub at: Instant,
    /// Each link from the command to the host beyond: its counters, and the packets that wait.
    pub up: Vec<(LinkStats, u32)>,
    /// Each link from the host beyond to the command.
    pub down: Vec<(LinkStats, u32)>,
    /// How good the emulation is.
    pub fidelity: Option<Fidelity>,
}

impl Shared {
    pub fn new() -> nix::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Self { stop: AtomicBool::new(false), wake, snapshot: Mutex::default() })
    }

    /// Tells the emulator to end.
    pub fn stop(&self) -> nix::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.write(1).map(|_| ())
    }

    /// How things stood at most a tenth of a second ago.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Driver {
    /// Joins `devices` (the command's side, the host beyond) by `path`.
    pub fn new(path: &Path, devices: [Device; 2], shared: Arc<Shared>) -> Result<Self, ConfigError> {
        let clock = Clock::start();
        let chain = |hops: &[Hop]| {
            let names: Vec<_> = hops.iter().map(Hop::stream).collect();
            Chain::new(names.iter().map(String::as_str).zip(hops.iter().map(|hop| &hop.config)), path.seed)
        };
        Ok(Self {
            clock,
            devices,
            chains: [chain(&path.up)?, chain(&path.down)?],
            pool: Vec::new(),
            meter: Meter::new(),
            sleeper: Sleeper::new(clock),
            shared,
        })
    }

    /// Carries packets until it is told to stop, and says how things stand in the end.
    pub fn run(mut self) -> Snapshot {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.hand_over();
            let read = self.take_in();
            let now = self.clock.now();
            if now >= self.meter.window_end() {
                self.report(now);
            } else if read == 0 {
                self.rest();
            }
        }
        self.report(self.clock.now());
        self.shared.snapshot()
    }

    /// Gives the kernel every packet that has arrived.
    fn hand_over(&mut self) {
        let now = self.clock.now();
        for (from, to) in [(0, 1), (1, 0)] {
            self.chains[from].advance(now);
            let mut overdue = 0;
            while let Some((due, frame)) = self.chains[from].pop_arrived() {
                overdue += 1;
                self.meter.leaves(due, self.clock.now(), frame.packet().len() as u32);
                if self.devices[to].write(&frame).is_err() {
                    self.meter.lost(1);
                }
                recycle(&mut self.pool, frame);
            }
            self.meter.backlog(overdue);
            while let Some(frame) = self.chains[from].pop_dropped() {
                recycle(&mut self.pool, frame);
            }
        }
    }

    /// Offers what the kernel has to the links; returns how many packets.
    fn take_in(&mut self) -> usize {
        let mut taken = 0;
        for from in [0, 1] {
            let chain = &mut self.chains[from];
            for _ in 0..READS_AT_ONCE {
                let now = self.clock.now();
                match self.devices[from].read(&mut self.pool, |frame| chain.enqueue(now, frame)) {
                    Ok(count) => taken += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => self.meter.lost(1),
                }
            }
        }
        taken
    }

    /// Sleeps until something is to be done.
    fn rest(&mut self) {
        let [up, down] = self.chains.each_ref().map(Chain::next_event);
        let deadline = up.min(down).min(self.meter.window_end());
        let [command, host] = self.devices.each_ref().map(Device::as_fd);
        self.sleeper.wait(deadline, &[command, host, self.shared.wake.as_fd()]);
    }

    fn report(&mut self, now: Instant) {
        for device in &mut self.devices {
            self.meter.lost(device.newly_lost());
        }
        self.meter.close_window(now);
        let [up, down] = self.chains.each_mut().map(|chain| chain.stats(now));
        let snapshot = Snapshot { at: now, up, down, fidelity: Some(self.meter.fidelity()) };
        *self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

fn recycle(pool: &mut Vec<Vec<u8>>, frame: Frame) {
    if pool.len() < SPARE_BUFFERS {
        pool.push(frame.into_buffer());
    }
}

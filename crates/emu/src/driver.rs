//! The loop that gives links real time and real packets.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::Arc;

use bentpipe_base::Instant;
use bentpipe_net::ConfigError;

use crate::capture::{Recorder, Seen};
use crate::chain::{Chain, LinkChange, Stage, StageState};
use crate::clock::Clock;
use crate::device::Device;
use crate::frame::Frame;
use crate::meter::Meter;
use crate::path::{Hop, Path};
use crate::poller::Poller;
use crate::shared::{LinkState, Shared, Snapshot};

/// Index of the command's side and of packets from there.
const COMMAND: usize = 0;
/// Index of the far host's side.
const HOST: usize = 1;
/// Reads of one device before the other one's turn (chosen: few, because deliveries wait for reads).
const READS_AT_ONCE: u32 = 4;
/// Maximum number of kept buffers (chosen); further ones are freed.
const SPARE_BUFFERS: usize = 4096;

/// The emulator: two devices and the links between them.
#[derive(Debug)]
pub(crate) struct Driver {
    clock: Clock,
    devices: [Device; 2],
    chains: [Chain; 2],
    pool: Vec<Vec<u8>>,
    meter: Meter,
    poller: Poller,
    shared: Arc<Shared>,
    path: Path,
    /// Number of changes of link properties.
    changes: u32,
    recorder: Option<Recorder>,
}

impl Driver {
    /// Connects `devices` (command's side, far host) by `path`.
    pub fn new(path: Path, devices: [Device; 2], shared: Arc<Shared>) -> Result<Self, ConfigError> {
        let clock = Clock::start();
        let chain = |hops: &[Hop]| Chain::new(hops.iter().map(|hop| Stage::new(hop, path.seed)));
        Ok(Self {
            clock,
            devices,
            chains: [chain(&path.up)?, chain(&path.down)?],
            pool: Vec::new(),
            meter: Meter::new(),
            poller: Poller::new(clock),
            shared,
            path,
            changes: 0,
            recorder: None,
        })
    }

    /// Captures the command's packets in both directions.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Forwards packets until a stop request. Returns the final state and the recorder.
    pub fn run(mut self) -> (Snapshot, Option<Recorder>) {
        while !self.shared.stopped() {
            self.deliver();
            let read = self.read_devices();
            let now = self.clock.now();
            if now >= self.meter.window_end() {
                self.report(now);
            } else if read == 0 {
                self.sleep();
            }
        }
        self.report(self.clock.now());
        (self.shared.snapshot(), self.recorder)
    }

    /// Passes all packets at the far end to the kernel.
    fn deliver(&mut self) {
        let now = self.clock.now();
        for (from, to) in [(COMMAND, HOST), (HOST, COMMAND)] {
            self.chains[from].advance(now);
            let mut overdue = 0;
            while let Some((due, frame)) = self.chains[from].pop_arrived() {
                overdue += 1;
                self.meter.note_departure(due, self.clock.now(), frame.packet().len() as u32);
                if let Some(recorder) = self.recorder.as_mut().filter(|_| to == COMMAND) {
                    recorder.packet(Seen::Received, frame.packet());
                }
                self.meter.note_lost(self.devices[to].write(&frame));
                recycle(&mut self.pool, frame);
            }
            self.meter.note_lost(self.devices[to].flush());
            self.meter.note_backlog(overdue);
            self.poller.note_delivered(overdue);
            while let Some(frame) = self.chains[from].pop_dropped() {
                recycle(&mut self.pool, frame);
            }
        }
    }

    /// Reads packets from the kernel and offers them to the links. Returns their number.
    fn read_devices(&mut self) -> usize {
        let mut taken = 0;
        for from in [COMMAND, HOST] {
            let (chain, clock) = (&mut self.chains[from], self.clock);
            for _ in 0..READS_AT_ONCE {
                let take = |frame: Frame| {
                    if frame.is_of_link_scope() {
                        return;
                    }
                    if let Some(recorder) = self.recorder.as_mut().filter(|_| from == COMMAND) {
                        recorder.packet(Seen::Sent, frame.packet());
                    }
                    // The time is read after the packet: an interruption of this thread before must not make the
                    // packet leave too early.
                    chain.enqueue(clock.now(), frame);
                };
                match self.devices[from].read(&mut self.pool, take) {
                    Ok(count) => taken += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => self.meter.note_lost(1),
                }
            }
        }
        taken
    }

    /// Sleeps until a packet, a deadline or a message.
    fn sleep(&mut self) {
        let [up, down] = self.chains.each_ref().map(Chain::next_event);
        let deadline = up.min(down).min(self.meter.window_end());
        let [command, host] = self.devices.each_ref().map(Device::as_fd);
        if !self.poller.wait(deadline, &[command, host, self.shared.wake_fd().as_fd()]) {
            return;
        }
        if let Some(change) = self.shared.take_change() {
            self.change(&change.path);
            // After a long change, the requester no longer waits for the answer.
            let _ = change.done.send(());
        }
    }

    /// Gives the properties of `path` to the links that differ.
    fn change(&mut self, path: &Path) {
        let now = self.clock.now();
        self.changes += 1;
        for (chain, before, after) in
            [(COMMAND, &self.path.up, &path.up), (HOST, &self.path.down, &path.down)]
        {
            for (index, (old, new)) in before.iter().zip(after).enumerate() {
                if old.config == new.config {
                    continue;
                }
                let stream = format!("{}/change {}", new.stream(), self.changes);
                let change =
                    LinkChange { before: &old.config, after: &new.config, seed: path.seed, stream: &stream };
                let done = self.chains[chain].reconfigure(now, index, &change);
                done.expect("a scenario's links are checked");
            }
        }
        self.path = path.clone();
    }

    fn report(&mut self, now: Instant) {
        for device in &mut self.devices {
            self.meter.note_lost(device.newly_lost());
        }
        self.meter.close_window(now);
        let [up, down] = &mut self.chains;
        let (up, down) = (states(&self.path.up, up, now), states(&self.path.down, down, now));
        let fidelity = Some(self.meter.fidelity());
        let left_out = self.path.left_out.clone();
        self.shared.show(Snapshot { at_s: now.as_secs_f64(), up, down, left_out, fidelity });
    }
}

fn states(hops: &[Hop], chain: &mut Chain, now: Instant) -> Vec<LinkState> {
    let state = |(hop, standing): (&Hop, StageState)| LinkState {
        name: hop.link.clone(),
        direction: hop.direction,
        rate_bps: standing.rate.bps(),
        delay_one_way_ms: standing.delay_one_way.as_millis_f64(),
        waiting_packets: standing.waiting_packets,
        stats: standing.stats,
    };
    hops.iter().zip(chain.states(now)).map(state).collect()
}

fn recycle(pool: &mut Vec<Vec<u8>>, frame: Frame) {
    if pool.len() < SPARE_BUFFERS {
        pool.push(frame.into_buffer());
    }
}

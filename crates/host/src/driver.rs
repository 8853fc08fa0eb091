//! A stack, a device and a clock.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::time;

use bentpipe_base::{Duration, Instant};
use bentpipe_wire::{Header, IpFields, Offload, Packet, Payload};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::{Device, DeviceConfig, Limits, NoDevice, Stack, StackConfig};

/// Drives a [`Stack`] over a [`Device`] in real time.
pub struct Driver {
    /// The connections.
    pub stack: Stack,
    device: Device,
    epoch: time::Instant,
    /// The packet that is read, behind its virtio header.
    read_buffer: Box<[u8]>,
    /// The packet that is written, or its headers, behind its virtio header.
    write_buffer: Vec<u8>,
    trimmed_at: Instant,
    /// Packets that the device did not take.
    refused: u64,
    outlet: Option<Outlet>,
}

/// Sends packets another way than by the device: true if it has sent this one.
pub type Outlet = Box<dyn FnMut(&[IoSlice<'_>]) -> bool + Send>;

/// Files that the caller waits for beside packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interest<'a> {
    /// Wait until this can be read.
    pub input: Option<BorrowedFd<'a>>,
    /// Wait until this can be written.
    pub output: Option<BorrowedFd<'a>>,
}

/// Which of them are ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// The input.
    pub input: bool,
    /// The output.
    pub output: bool,
}

/// Most packets read from the device before packets are sent again, so that acknowledgements do not wait for long (chosen).
const BATCH: usize = 64;
/// How often unused memory is freed (chosen).
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

impl Driver {
    /// Makes the device and a stack behind it: a transparent one, if the device has no networks.
    ///
    /// # Errors
    /// [`NoDevice`] says what this machine lacks.
    pub fn new(config: &DeviceConfig, limits: Limits) -> Result<Self, NoDevice> {
        let device = Device::new(config)?;
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| NoDevice::Other(io::Error::other(error)))?;
        let stack = Stack::new(StackConfig {
            addresses: config.networks.iter().map(|network| network.own).collect(),
            transparent: config.networks.is_empty(),
            mtu: config.mtu,
            offload: true,
            key: u128::from_ne_bytes(key),
            limits,
        });
        Ok(Self {
            stack,
            device,
            epoch: time::Instant::now(),
            read_buffer: vec![0; Device::BUFFER].into(),
            write_buffer: Vec::with_capacity(Device::BUFFER),
            trimmed_at: Instant::ZERO,
            refused: 0,
            outlet: None,
        })
    }

    /// Time since the driver was made.
    pub fn now(&self) -> Instant {
        let nanos = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // The clock begins at one second, because other code takes a time of zero for one that was never set.
        Instant::ZERO + Duration::from_secs(1) + Duration::from_nanos(nanos)
    }

    /// Packets that the device did not take; for the connections they are lost.
    pub fn refused_packets(&self) -> u64 {
        self.refused
    }

    /// Sends all packets that may leave; waits until a packet arrives, a timer expires, one of the files is ready, or `at_most` is over; then
    /// handles what arrived. The answers leave at the next turn, after the application has read and written, so that they advertise its room.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn turn(&mut self, at_most: Duration, interest: Interest<'_>) -> io::Result<Ready> {
        self.flush();
        let now = self.now();
        let wait = self.stack.next_timeout().since(now);
        let wait = Duration::from_nanos(wait.as_nanos().min(at_most.as_nanos()));
        let ready = self.wait(wait, interest)?;
        self.take()?;
        Ok(ready)
    }

    /// Handles arriving packets and expired timers, without waiting. For callers that wait for more files than [`turn`](Self::turn) can, that of the
    /// [device](AsFd::as_fd) among them. False if more packets may be waiting.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn take(&mut self) -> io::Result<bool> {
        let drained = self.take_packets()?;
        let now = self.now();
        self.stack.handle_timeouts(now);
        if now.since(self.trimmed_at) >= TRIM_INTERVAL {
            self.trimmed_at = now;
            self.stack.trim();
        }
        Ok(drained)
    }

    /// Time until the next deadline. Valid after [`flush`](Self::flush).
    pub fn time_to_deadline(&self) -> Duration {
        self.stack.next_timeout().since(self.now())
    }

    /// Gives each packet of a connection to `outlet` first, headers of offloading and of protocols in its first piece. If that returns true, it has sent the
    /// packet another way; otherwise the packet goes to the device.
    pub fn set_outlet(&mut self, outlet: Outlet) {
        self.outlet = Some(outlet);
    }

    /// Writes a packet to the device that belongs to no connection.
    pub fn send(&mut self, packet: &[u8]) {
        self.write_buffer.clear();
        self.write_buffer.extend_from_slice(&Offload::default().to_bytes(0));
        self.write_buffer.extend_from_slice(packet);
        if self.device.write(&self.write_buffer).is_err() {
            self.refused += 1;
        }
    }

    /// Waits for the device, or the files.
    fn wait(&self, wait: Duration, interest: Interest<'_>) -> io::Result<Ready> {
        let mut polled = vec![PollFd::new(self.device.as_fd(), PollFlags::POLLIN)];
        polled.extend(interest.input.map(|input| PollFd::new(input, PollFlags::POLLIN)));
        polled.extend(interest.output.map(|output| PollFd::new(output, PollFlags::POLLOUT)));
        let wait = TimeSpec::from_duration(time::Duration::from_nanos(wait.as_nanos()));
        match ppoll(&mut polled, Some(wait), None) {
            // A signal interrupted the wait; its handler, which belongs to the caller, has seen it.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut files = polled[1..].iter().map(|file| file.any().unwrap_or(true));
        Ok(Ready {
            input: interest.input.is_some() && files.next().unwrap_or(false),
            output: interest.output.is_some() && files.next().unwrap_or(false),
        })
    }

    fn take_packets(&mut self) -> io::Result<bool> {
        let now = self.now();
        for _ in 0..BATCH {
            let len = match self.device.read(&mut self.read_buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if let Ok((offload, packet)) = Offload::read(&self.read_buffer[..len]) {
                self.stack.handle_packet(now, &offload, packet);
            }
            if self.stack.must_report() {
                self.flush();
            }
        }
        Ok(false)
    }

    /// Writes all packets that may leave now to the device. For each connection of a transparent stack that has ended, a segment without any
    /// flag is sent as well. No TCP sends such a segment. The packet filter that directs the packets of connections to this device recognises by
    /// it that a connection is over, and drops it.
    pub fn flush(&mut self) {
        while let Some(ends) = self.stack.poll_forgotten() {
            let mut packet = Vec::with_capacity(60);
            let nothing = Payload::Bytes(&[]);
            Packet { ends, ip: IpFields::default(), tcp: Header::default(), payload: nothing }
                .write_headers(&mut packet);
            self.send(&packet);
        }
        let now = self.now();
        let Self { stack, device, write_buffer, refused, outlet, .. } = self;
        while stack.send_packet(now, write_buffer, |pieces| {
            if !outlet.as_mut().is_some_and(|outlet| outlet(pieces)) {
                *refused += u64::from(device.write_pieces(pieces).is_err());
            }
        }) {}
    }
}

impl AsFd for Driver {
    /// The device.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

//! Driver of a stack: a device and a clock.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::time;

use bentpipe_base::{Duration, Instant};
use bentpipe_wire::{Header, IpFields, Offload, Packet, Payload};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::{Device, DeviceConfig, Limits, NoDevice, Stack, StackConfig};

/// Driver of a [`Stack`] over a [`Device`] in real time.
pub struct Driver {
    /// Stack with the connections.
    pub stack: Stack,
    device: Device,
    epoch: time::Instant,
    /// Buffer of the received packet, with its virtio header.
    read_buffer: Box<[u8]>,
    /// Buffer of the sent packet or its headers, with its virtio header.
    write_buffer: Vec<u8>,
    trimmed_at: Instant,
    /// Number of packets refused by the device.
    refused: u64,
    outlet: Option<Outlet>,
}

/// Sends packets another way than by the device: true if it has sent this one.
pub type Outlet = Box<dyn FnMut(&[IoSlice<'_>]) -> bool + Send>;

/// Files of the caller to wait for in addition to packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interest<'a> {
    /// File to wait for until it is readable.
    pub input: Option<BorrowedFd<'a>>,
    /// File to wait for until it is writable.
    pub output: Option<BorrowedFd<'a>>,
}

impl Interest<'_> {
    /// Waits at most `at_most` for these files, or for `first`: a device or a socket with packets.
    ///
    /// # Errors
    /// If the kernel cannot wait for a file.
    pub fn wait(self, first: PollFd<'_>, at_most: time::Duration) -> io::Result<Ready> {
        let mut polled = vec![first];
        polled.extend(self.input.map(|input| PollFd::new(input, PollFlags::POLLIN)));
        polled.extend(self.output.map(|output| PollFd::new(output, PollFlags::POLLOUT)));
        match ppoll(&mut polled, Some(TimeSpec::from_duration(at_most)), None) {
            // A signal interrupted the wait; the caller's handler has processed it.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut files = polled[1..].iter().map(|file| file.any().unwrap_or(true));
        Ok(Ready {
            input: self.input.is_some() && files.next().unwrap_or(false),
            output: self.output.is_some() && files.next().unwrap_or(false),
        })
    }
}

/// Files that are ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// True if the input is readable.
    pub input: bool,
    /// True if the output is writable.
    pub output: bool,
}

/// Maximum number of packets read before packets are sent again, so that acknowledgements are not delayed (chosen).
const BATCH: usize = 64;
/// Interval for freeing unused memory (chosen).
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

impl Driver {
    /// Makes the device and its stack. Without networks the stack is transparent.
    ///
    /// # Errors
    /// [`NoDevice`] with the reason.
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

    /// Returns the time since the driver was made, plus one second.
    pub fn now(&self) -> Instant {
        let nanos = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // The clock starts at one second, because other code reads zero as "never set".
        Instant::ZERO + Duration::from_secs(1) + Duration::from_nanos(nanos)
    }

    /// Returns the number of packets refused by the device; for the connections they are lost.
    pub fn refused_packets(&self) -> u64 {
        self.refused
    }

    /// Sends all pending packets, then waits for a packet, a timer, one of the files, or `at_most`. Then it handles the arrivals.
    /// Replies leave at the next call, after the application has read and written, so that they advertise the new window.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn turn(&mut self, at_most: Duration, interest: Interest<'_>) -> io::Result<Ready> {
        self.flush();
        let now = self.now();
        let wait = self.stack.next_timeout().since(now);
        let wait = Duration::from_nanos(wait.as_nanos().min(at_most.as_nanos()));
        let device = PollFd::new(self.device.as_fd(), PollFlags::POLLIN);
        let ready = interest.wait(device, time::Duration::from_nanos(wait.as_nanos()))?;
        self.take()?;
        Ok(ready)
    }

    /// Handles arrived packets and expired timers without waiting. It serves callers that wait for more files than
    /// [`turn`](Self::turn) supports, the [device](AsFd::as_fd) included. Returns false if more packets may be waiting.
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

    /// Returns the time until the next deadline. Valid after [`flush`](Self::flush).
    pub fn time_to_deadline(&self) -> Duration {
        self.stack.next_timeout().since(self.now())
    }

    /// Gives each packet of a connection to `outlet` first, headers of offloading and of protocols in its first piece. If that returns true, it has sent the
    /// packet another way; otherwise the packet goes to the device.
    pub fn set_outlet(&mut self, outlet: Outlet) {
        self.outlet = Some(outlet);
    }

    /// Writes a packet that belongs to no connection to the device.
    pub fn send(&mut self, packet: &[u8]) {
        self.write_buffer.clear();
        self.write_buffer.extend_from_slice(&Offload::default().to_bytes(0));
        self.write_buffer.extend_from_slice(packet);
        if self.device.write(&self.write_buffer).is_err() {
            self.refused += 1;
        }
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

    /// Writes a segment without any flag to the device for each connection of a transparent stack that has ended. No TCP sends such a
    /// segment. It informs the packet filter, which directs connections to this device, of the end; the filter drops the segment.
    pub fn report_ended(&mut self) {
        while let Some(ends) = self.stack.poll_forgotten() {
            let mut packet = Vec::with_capacity(60);
            let nothing = Payload::Bytes(&[]);
            Packet { ends, ip: IpFields::default(), tcp: Header::default(), payload: nothing }
                .write_headers(&mut packet);
            self.send(&packet);
        }
    }

    /// Writes all pending packets to the device, after [`report_ended`](Self::report_ended).
    pub fn flush(&mut self) {
        self.report_ended();
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
    /// Returns the file descriptor of the device.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

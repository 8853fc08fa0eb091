//! TUN devices, which exchange packets with the kernel.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::coalescer::Coalescer;
use crate::frame::Frame;
use crate::path::LARGEST_PACKET;

/// Packets that the kernel queues for the emulator (chosen: more than 0.1 s at 1 Gbit/s).
pub(crate) const KERNEL_QUEUE: u32 = 10_000;

/// Maximum packets of one read (chosen); the kernel passes at most 64 KiB at once.
const BATCH: usize = 1024;

/// A TUN device in the network namespace of its creation. The kernel removes it when this is dropped.
pub(crate) struct Device {
    tun: SyncDevice,
    name: String,
    /// `/proc/net/dev` of its namespace.
    counters: File,
    /// Data of one read: a virtio header and a packet of up to 64 KiB, which may consist of many segments.
    raw: Vec<u8>,
    buffers: Vec<Vec<u8>>,
    sizes: Vec<usize>,
    coalescer: Coalescer,
    lost_before: u64,
}

impl Device {
    /// Makes the device `name` for packets of up to `mtu` bytes, in the network namespace of the calling thread.
    pub fn new(name: &str, mtu: u16) -> io::Result<Self> {
        let tun = DeviceBuilder::new()
            .name(name)
            .mtu(mtu)
            .with(|builder| {
                builder.offload(true);
            })
            .enable(false)
            .build_sync()?;
        tun.set_nonblocking(true)?;
        Ok(Self {
            tun,
            name: name.to_owned(),
            counters: File::open("/proc/thread-self/net/dev")?,
            raw: vec![0; VIRTIO_NET_HDR_LEN + 65_536],
            buffers: vec![Vec::new(); BATCH],
            sizes: vec![0; BATCH],
            coalescer: Coalescer::default(),
            lost_before: 0,
        })
    }

    /// Returns the descriptor to poll for packets.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor stays open while `tun` exists, which the result borrows through `self`.
        unsafe { BorrowedFd::borrow_raw(self.tun.as_raw_fd()) }
    }

    /// Reads once and passes the data to `take` as packets of at most the MTU. Buffers come from `pool`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] without a packet; any other if the data is not a packet.
    pub fn read(&mut self, pool: &mut Vec<Vec<u8>>, mut take: impl FnMut(Frame)) -> io::Result<usize> {
        for buffer in self.buffers.iter_mut().filter(|buffer| buffer.is_empty()) {
            *buffer = pool.pop().unwrap_or_else(|| Frame::buffer(LARGEST_PACKET));
        }
        let (raw, buffers, sizes) = (&mut self.raw, &mut self.buffers, &mut self.sizes);
        let count = self.tun.recv_multiple(raw, buffers, sizes, 0)?;
        for (buffer, size) in buffers.iter_mut().zip(sizes.iter()).take(count) {
            take(Frame::new(std::mem::take(buffer), *size));
        }
        Ok(count)
    }

    /// Passes a packet to the kernel as an arriving one, at the latest with the next [`flush`](Self::flush). Returns
    /// the number of packets that the kernel refused.
    pub fn write(&mut self, frame: &Frame) -> u64 {
        if self.coalescer.append(frame.packet()) {
            return 0;
        }
        let lost = self.flush();
        self.coalescer.begin(frame.packet());
        lost
    }

    /// Passes the coalesced packets to the kernel. Returns the number of packets that the kernel refused.
    pub fn flush(&mut self) -> u64 {
        let packets = self.coalescer.packets();
        if packets == 0 {
            return 0;
        }
        let taken = self.tun.send(self.coalescer.finish());
        self.coalescer.clear();
        if taken.is_ok() { 0 } else { packets }
    }

    /// Returns the number of packets for the emulator that the kernel dropped since the last call.
    pub fn newly_lost(&mut self) -> u64 {
        let lost = self.transmit_drops().unwrap_or(self.lost_before);
        let newly = lost.saturating_sub(self.lost_before);
        self.lost_before = lost;
        newly
    }

    /// Returns the number of packets that the device dropped instead of passing them on: column `drop` of
    /// `/proc/net/dev`.
    fn transmit_drops(&mut self) -> Option<u64> {
        let mut text = String::new();
        self.counters.rewind().ok()?;
        self.counters.read_to_string(&mut text).ok()?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&self.name)?.strip_prefix(':'))?;
        line.split_whitespace().nth(11)?.parse().ok()
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

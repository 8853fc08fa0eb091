//! State of a half: from the kernel by `TCP_INFO` and `SO_MEMINFO`, or from the engine.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::half::{Half, Telemetry};

/// Bytes of `struct tcp_info` in Linux 4.6 and later, up to the delivery rate; newer kernels have more fields.
const TCP_INFO: usize = 168;
/// State of a connection that has ended, the first byte of `struct tcp_info`.
const TCP_CLOSE: u8 = 7;
/// Entries of `SO_MEMINFO` (`linux/sock_diag.h`).
const MEMINFO: usize = 9;
const RMEM_ALLOC: usize = 0;
const FORWARD_ALLOC: usize = 4;
const WMEM_QUEUED: usize = 5;

impl Half {
    /// Returns the state of the connection; all zero if the kernel does not report it.
    pub(crate) fn telemetry(&self) -> Telemetry {
        match self {
            Self::Engine(control) => control.telemetry(),
            Self::Kernel(socket) => tcp_info(socket).unwrap_or_default(),
        }
    }

    /// Bytes of memory in the buffers of the half.
    pub(crate) fn memory(&self) -> u64 {
        let socket = match self {
            Self::Engine(control) => return control.carried().held,
            Self::Kernel(socket) => socket,
        };
        let mut words = [0u32; MEMINFO];
        let read = option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words);
        if read.is_none() {
            return 0;
        }
        u64::from(words[RMEM_ALLOC]) + u64::from(words[FORWARD_ALLOC]) + u64::from(words[WMEM_QUEUED])
    }

    /// Name of the congestion control, if the kernel has one here.
    pub(crate) fn congestion_control(&self) -> Option<String> {
        let Self::Kernel(socket) = self else { return None };
        let mut name = [0u8; 16];
        let length = option(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name)?;
        let name = name[..length].split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

fn tcp_info(stream: &impl AsFd) -> Option<Telemetry> {
    let mut info = [0u8; TCP_INFO];
    option(stream, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    let word = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_ne_bytes(info[at..at + 8].try_into().expect("eight bytes"));
    let micros = |at: usize| Duration::from_micros(word(at).into());
    let (mss, unacked, unsent) = (word(16), word(24), word(144));
    Some(Telemetry {
        srtt: micros(68),
        // The kernel's largest number means "not measured yet".
        rtt_min: if word(148) == u32::MAX { Duration::ZERO } else { micros(148) },
        cwnd: word(80),
        acked_bytes: long(120),
        received_bytes: long(128),
        retransmitted_segments: word(100).into(),
        delivery_rate_bps: long(160) * 8,
        queued_bytes: u64::from(unacked) * u64::from(mss) + u64::from(unsent),
    })
}

/// Bytes that wait in a socket of TCP for being sent or acknowledged, a FIN included; `None` if its connection has ended.
pub(crate) fn unacknowledged(socket: &impl AsFd) -> Option<u64> {
    let mut info = [0u8; TCP_INFO];
    option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    if info[0] == TCP_CLOSE {
        return None;
    }
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one number, which outlives the call.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    (done == 0).then_some(u64::try_from(bytes).unwrap_or(0))
}

/// Reads a socket option. Returns how many bytes it has.
fn option<T>(stream: &impl AsFd, level: i32, name: i32, value: &mut T) -> Option<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let socket = stream.as_fd().as_raw_fd();
    // SAFETY: `value` is plain numbers of `length` bytes, and both outlive the call.
    let done = unsafe { libc::getsockopt(socket, level, name, (&raw mut *value).cast(), &raw mut length) };
    (done == 0).then_some(length as usize)
}

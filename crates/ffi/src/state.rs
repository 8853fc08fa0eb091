//! Structs that cross the border.

use std::ffi::c_char;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::careful_resume;
use bentpipe_cc::packets::{PacketControl, Settings};

use crate::BENTPIPE_CC_NEVER;
use crate::error::Failure;
use crate::memory::BentpipeCcMemory;

/// Properties of a path. Zero for `datagram_bytes` or `initial_window` means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BentpipeCcSettings {
    /// Bytes of a full datagram, as bentpipe_cc_on_sent counts them; default 1200.
    pub datagram_bytes: u32,
    /// Initial window in datagrams; default 10.
    pub initial_window: u32,
    /// True to send windows of algorithms without a rate in bursts; false paces them.
    pub unpaced: bool,
    /// True if packets leave ECN-capable and marks are reported.
    pub ecn: bool,
    /// Seed of the algorithm's random numbers, different for each connection.
    pub seed: u64,
    /// Memory that the connections to this destination share; NULL for none.
    pub memory: *const BentpipeCcMemory,
    /// Careful Resume (RFC 9959): the nanoseconds after which a saved capacity is deleted. 0 switches it off. It needs a memory, and the
    /// caller must obey bentpipe_cc_departure.
    pub careful_resume_ns: u64,
}

impl BentpipeCcSettings {
    /// Returns these settings with the defaults of absent values.
    ///
    /// # Safety
    /// `self.memory` is NULL or a memory.
    pub(crate) unsafe fn checked(&self) -> Result<Settings, Failure> {
        let default = Settings::default();
        let or = |value: u32, default: u32| if value == 0 { default } else { value };
        // SAFETY: the caller vouches for the memory.
        let memory = unsafe { self.memory.as_ref() }.map(|memory| memory.paths.clone());
        let resumes = self.careful_resume_ns != 0;
        if resumes && memory.is_none() {
            return Err(Failure::nothing_to_resume());
        }
        let lifetime = Duration::from_nanos(self.careful_resume_ns);
        Ok(Settings {
            datagram_bytes: or(self.datagram_bytes, default.datagram_bytes),
            initial_window: or(self.initial_window, default.initial_window),
            paced: !self.unpaced,
            ecn: self.ecn,
            seed: self.seed,
            memory,
            careful_resume: resumes.then(|| careful_resume::Config { lifetime, ..Default::default() }),
        })
    }
}

/// State of a path.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BentpipeCcState {
    /// Bytes that may be in flight, at least one datagram.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Slow-start threshold in bytes; BENTPIPE_CC_NEVER if there is none.
    pub ssthresh: u64,
    /// Pacing rate in bytes per second; 0 if only the window limits the sender.
    pub pacing_rate: u64,
    /// Bytes that may leave back to back at the pacing rate.
    pub burst: u64,
    /// Smoothed round-trip time in nanoseconds; 0 before the first sample.
    pub srtt_ns: u64,
    /// Time of the next bentpipe_cc_on_timeout; BENTPIPE_CC_NEVER for none.
    pub timeout_ns: u64,
    /// Acknowledgements and losses of unknown or settled packets.
    pub ignored: u64,
    /// True if packets must leave as ECT(1).
    pub ect1: bool,
    /// Name of the algorithm's phase.
    pub phase: [c_char; BENTPIPE_CC_PHASE_BYTES],
}

/// Bytes of a phase, the final NUL included. A longer name is cut.
pub const BENTPIPE_CC_PHASE_BYTES: usize = 32;

impl BentpipeCcState {
    pub(crate) fn of(control: &mut PacketControl) -> Self {
        let state = control.state();
        let window = control.window();
        let ssthresh = state.ssthresh * f64::from(control.segment_bytes());
        let mut phase = [0; BENTPIPE_CC_PHASE_BYTES];
        for (to, from) in phase[..BENTPIPE_CC_PHASE_BYTES - 1].iter_mut().zip(state.phase.bytes()) {
            *to = from as c_char;
        }
        Self {
            window,
            in_flight: control.in_flight(),
            ssthresh: if ssthresh.is_finite() { ssthresh as u64 } else { BENTPIPE_CC_NEVER },
            pacing_rate: control.pacing_rate().map_or(0, Rate::bps).div_ceil(8),
            burst: control.burst(),
            srtt_ns: control.srtt().map_or(0, Duration::as_nanos),
            timeout_ns: control.timeout().as_nanos(),
            ignored: control.ignored(),
            ect1: control.is_scalable(),
            phase,
        }
    }
}

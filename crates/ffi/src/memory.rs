//! Memory that the connections to one destination share.

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Capacity, PathMemory};

use crate::error::{self, BentpipeCcStatus, Failure};

/// Memory that the connections to one destination share. Any thread may use it at any time. It lives until it and every handle that was
/// made with it are freed.
pub struct BentpipeCcMemory {
    pub(crate) paths: PathMemory,
}

/// Capacity of a path, as the last connection found it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BentpipeCcCapacity {
    /// Bytes acknowledged within one round trip; 0 if no capacity is saved.
    pub bytes: u64,
    /// Smallest round-trip time in nanoseconds.
    pub min_rtt_ns: u64,
    /// Time of the save on the caller's clock.
    pub saved_at_ns: u64,
}

/// Makes an empty memory for one destination.
#[unsafe(no_mangle)]
pub extern "C" fn bentpipe_cc_memory_new() -> *mut BentpipeCcMemory {
    Box::into_raw(Box::new(BentpipeCcMemory { paths: PathMemory::new() }))
}

/// Frees a memory; NULL is ignored. Handles that were made with it keep what they share.
///
/// # Safety
/// `memory` is a memory that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_memory_free(memory: *mut BentpipeCcMemory) {
    if !memory.is_null() {
        // SAFETY: the caller vouches for the memory, which `bentpipe_cc_memory_new` made from a box.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// Writes the saved capacity into `*capacity`, so that the caller can keep it in a file. Connections save it while they run and in
/// bentpipe_cc_close, if they use Careful Resume.
///
/// # Safety
/// `memory` is a memory, and `capacity` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_memory_capacity(
    memory: *const BentpipeCcMemory,
    capacity: *mut BentpipeCcCapacity,
) -> BentpipeCcStatus {
    error::report(|| {
        // SAFETY: the caller vouches for both pointers that are not NULL.
        let (memory, capacity) = unsafe { (memory.as_ref(), capacity.as_mut()) };
        let (memory, capacity) =
            (memory.ok_or(Failure::null("memory"))?, capacity.ok_or(Failure::null("capacity"))?);
        let saved = memory.paths.capacity();
        *capacity = saved.map_or_else(BentpipeCcCapacity::default, |saved| BentpipeCcCapacity {
            bytes: saved.bytes,
            min_rtt_ns: saved.min_rtt.as_nanos(),
            saved_at_ns: saved.at.as_nanos(),
        });
        Ok(())
    })
}

/// Saves a capacity that an earlier process found. 0 bytes delete the saved one.
///
/// # Safety
/// `memory` is a memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_memory_set_capacity(
    memory: *mut BentpipeCcMemory,
    capacity: BentpipeCcCapacity,
) -> BentpipeCcStatus {
    error::report(|| {
        // SAFETY: the caller vouches for the memory.
        let memory = unsafe { memory.as_ref() }.ok_or(Failure::null("memory"))?;
        let BentpipeCcCapacity { bytes, min_rtt_ns, saved_at_ns } = capacity;
        if bytes == 0 {
            memory.paths.forget_capacity();
            return Ok(());
        }
        if min_rtt_ns == 0 {
            return Err(Failure::no_round_trip());
        }
        let (min_rtt, at) = (Duration::from_nanos(min_rtt_ns), Instant::from_nanos(saved_at_ns));
        memory.paths.save_capacity(Capacity { bytes, min_rtt, at });
        Ok(())
    })
}

//! Asks the processor for memory that the next events will need: with thousands of flows every event meets structures that no
//! cache still holds, and what to fetch is known some events ahead.

/// Cache lines of this size on every machine that matters; elsewhere it is only a stride.
const LINE: usize = 64;

/// Fetches `value` into the cache. Changes nothing else, and does nothing where there is no such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_front(value, size_of::<T>().div_ceil(LINE));
}

/// Fetches the first `lines` cache lines of `value`.
#[inline(always)]
pub(crate) fn prefetch_front<T>(value: &T, lines: usize) {
    debug_assert!((lines - 1) * LINE < size_of::<T>(), "not beyond the value");
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = core::ptr::from_ref(value).cast::<i8>();
        for line in 0..lines {
            // SAFETY: a prefetch never faults and has no architectural effect; the address stays within `value`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(line * LINE)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

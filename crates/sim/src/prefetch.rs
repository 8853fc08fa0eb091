//! Asks the processor for memory that the next events will need: with thousands of flows every event meets structures that no
//! cache still holds, and what to fetch is known some events ahead.

/// Cache lines of this size on every machine that matters; elsewhere it is only a stride.
const LINE: usize = 64;

/// Fetches `value` into the cache. Changes nothing else, and does nothing where there is no such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_all(std::slice::from_ref(value));
}

/// Fetches all `values`.
#[inline(always)]
pub(crate) fn prefetch_all<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = values.as_ptr().cast::<i8>();
        for offset in (0..size_of_val(values)).step_by(LINE) {
            // SAFETY: a prefetch never faults and has no architectural effect; the address stays within `values`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, LINE);
}

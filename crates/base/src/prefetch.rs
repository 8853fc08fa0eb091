//! Memory asked for ahead: where no cache holds what will be needed, but where it lies is known some steps before.

/// Lines of a cache are as long as this on every machine that matters; elsewhere it is only a stride.
const LINE: usize = 64;

/// Fetches `value` into the cache, all of it. Changes nothing else, and does nothing where there is no such instruction.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        let before = start.addr() % LINE;
        for offset in (0..before + size_of_val(value)).step_by(LINE) {
            // SAFETY: a prefetch never faults and has no architectural effect, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_sub(before).wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, LINE);
}

//! Prefetching of memory into the cache, if its address is known some steps before its use.

/// Cache line size in bytes on all relevant machines; on others it is only a stride.
const LINE: usize = 64;

/// Prefetches all of `value` into the cache. It has no other effect, and does nothing on machines without the
/// instruction.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    fetch(core::ptr::from_ref(value).cast(), size_of_val(value), align_of_val(value));
}

/// Prefetches an item of a slice. An index outside the slice is ignored.
#[inline(always)]
pub fn prefetch_item<T>(items: &[T], index: usize) {
    fetch(items.as_ptr().wrapping_add(index).cast(), size_of::<T>(), align_of::<T>());
}

#[inline(always)]
fn fetch(start: *const i8, size: usize, align: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // For most types it is known at compile time that they begin at a line, or fit into the line in which they
        // begin.
        let before = if align >= LINE || size <= align { 0 } else { start.addr() % LINE };
        let mut offset = 0;
        while offset < before + size {
            // SAFETY: a prefetch never faults and has no architectural effect, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_sub(before).wrapping_add(offset)) };
            offset += LINE;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, size, align, LINE);
}

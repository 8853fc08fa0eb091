//! Memory asked for ahead: where no cache holds what will be needed, but where it lies is known some steps before.

/// Lines of a cache are as long as this on every machine that matters; elsewhere it is only a stride.
const LINE: usize = 64;

/// Fetches `value` into the cache, all of it. Changes nothing else, and does nothing where there is no such instruction.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    fetch(core::ptr::from_ref(value).cast(), size_of_val(value), align_of_val(value));
}

/// The same of an item of a slice; nothing of value if there is no such item, which is not looked at.
#[inline(always)]
pub fn prefetch_item<T>(items: &[T], index: usize) {
    fetch(items.as_ptr().wrapping_add(index).cast(), size_of::<T>(), align_of::<T>());
}

#[inline(always)]
fn fetch(start: *const i8, size: usize, align: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // Of most types it is known beforehand that they begin with a line, or fit into the one in which they begin.
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

//! Passage of requests and answers through the memory of WebAssembly.
//!
//! The page asks for [`room`], writes a request there, and calls [`ask`]. The answer stays until the instance ends.

use std::sync::Once;

use crate::answer::answer;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Tells the simulated seconds.
    safe fn progress(seconds: f64);
    /// Tells the message of a panic, after which the instance is unusable.
    fn broke(message: *const u8, length: usize);
}

/// Returns the address of memory for a request of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr()
}

/// Answers the request of `length` bytes in a [`room`]. Returns the address of the answer in the upper half and its length in the
/// lower one.
///
/// # Safety
/// `request` is the address of a room of this length, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ask(request: *mut u8, length: usize) -> u64 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| tell(&panic.to_string()))));
    // SAFETY: the caller got the address and the length from `room`, which leaked a boxed slice.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(request, length)) };
    let answer = answer(&String::from_utf8_lossy(&request), &|seconds| progress(seconds));
    let answer = Box::leak(answer.into_bytes().into_boxed_slice());
    ((answer.as_ptr() as u64) << 32) | answer.len() as u64
}

fn tell(message: &str) {
    // SAFETY: the page reads the text before it returns.
    unsafe { broke(message.as_ptr(), message.len()) }
}

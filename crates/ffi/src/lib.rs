//! Congestion control for transports in C: the interface `bentpipe_cc.h`.
//!
//! A handle is one [`PacketControl`]: the sender of one path of one connection. Times are nanoseconds of the caller's clock, which
//! never runs backwards. Sizes are bytes.
//!
//! Every function returns a status; [`bentpipe_cc_last_error`] explains it. No panic leaves the library: a handle whose algorithm
//! panicked refuses every later call, except [`bentpipe_cc_free`].

mod error;
mod memory;
mod state;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bentpipe_base::{Duration, Instant, Notice};
use bentpipe_cc::packets::{AckInfo, PacketControl, Settings, supported};
use bentpipe_cc::{Algorithm, Wake};

pub use error::BentpipeCcStatus;
use error::Failure;
pub use memory::{
    BentpipeCcCapacity, BentpipeCcMemory, bentpipe_cc_memory_capacity, bentpipe_cc_memory_free,
    bentpipe_cc_memory_new, bentpipe_cc_memory_set_capacity,
};
pub use state::{BentpipeCcSettings, BentpipeCcState};

/// Time of an event that never comes.
pub const BENTPIPE_CC_NEVER: u64 = u64::MAX;

/// Congestion control of one path. Any thread may use a handle, but only one at a time. Different handles share nothing but
/// their memory.
pub struct BentpipeCc {
    control: PacketControl,
    panicked: bool,
}

/// Returns the version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn bentpipe_cc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the reason of the last failure in this thread, one sentence; empty before the first. It is valid until the next failure
/// in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn bentpipe_cc_last_error() -> *const c_char {
    error::last()
}

/// Writes the name of the algorithm with this index into `name`, which has `size` bytes. The indices begin with 0;
/// BENTPIPE_CC_STATUS_UNKNOWN_ALGORITHM is the end of the list.
///
/// # Safety
/// `name` points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_algorithm(
    index: usize,
    name: *mut c_char,
    size: usize,
) -> BentpipeCcStatus {
    error::report(|| {
        let entry = supported().nth(index).ok_or_else(|| Failure::no_such_index(index))?;
        if name.is_null() || size <= entry.name.len() {
            return Err(Failure::buffer_too_small(entry.name.len() + 1, size));
        }
        // SAFETY: the caller vouches for the buffer, and the name with its NUL fits.
        unsafe {
            name.copy_from_nonoverlapping(entry.name.as_ptr().cast(), entry.name.len());
            name.add(entry.name.len()).write(0);
        }
        Ok(())
    })
}

/// Makes the sender of one path and writes its handle into `*cc`. `parameters` is a JSON object of the algorithm's parameters, or
/// NULL for their defaults. `settings` may be NULL for the defaults, and is not used after the call. On failure `*cc` is NULL.
///
/// # Safety
/// `algorithm` and `parameters` are NUL-terminated strings, `settings` and its memory are valid, and `cc` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_new(
    algorithm: *const c_char,
    parameters: *const c_char,
    settings: *const BentpipeCcSettings,
    cc: *mut *mut BentpipeCc,
) -> BentpipeCcStatus {
    error::report(|| {
        // SAFETY: the caller vouches for every pointer that is not NULL.
        let (settings, cc) = unsafe { (settings.as_ref(), cc.as_mut()) };
        let cc = cc.ok_or(Failure::null("cc"))?;
        *cc = std::ptr::null_mut();
        // SAFETY: the caller vouches for both strings.
        let (name, parameters) = unsafe { (text(algorithm, "algorithm")?, parameters_text(parameters)?) };
        let settings = match settings {
            // SAFETY: the caller vouches for its memory.
            Some(settings) => unsafe { settings.checked()? },
            None => Settings::default(),
        };
        let algorithm = configured(name, parameters)?;
        let control = PacketControl::new(&algorithm, &settings).map_err(Failure::refused)?;
        *cc = Box::into_raw(Box::new(BentpipeCc { control, panicked: false }));
        Ok(())
    })
}

/// Frees a handle; NULL is ignored.
///
/// # Safety
/// `cc` is a handle that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_free(cc: *mut BentpipeCc) {
    if !cc.is_null() {
        // SAFETY: the caller vouches for the handle, which `bentpipe_cc_new` made from a box.
        let cc = unsafe { Box::from_raw(cc) };
        let _ = error::report(AssertUnwindSafe(|| {
            drop(cc);
            Ok(())
        }));
    }
}

/// Handles the complete handshake and its round trip; 0 if it gave no sample.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_established(
    cc: *mut BentpipeCc,
    now_ns: u64,
    rtt_ns: u64,
) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.established(at(now_ns), sample(rtt_ns))) }
}

/// Returns the time at which a packet of `bytes` may leave, at least `now_ns`. BENTPIPE_CC_NEVER: not before another event, because
/// the window is full, or after a failure. To be asked before each packet.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_departure(cc: *mut BentpipeCc, now_ns: u64, bytes: u32) -> u64 {
    let mut departure = None;
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| departure = control.departure(at(now_ns), bytes)) };
    departure.map_or(BENTPIPE_CC_NEVER, Instant::as_nanos)
}

/// Handles the departure of a packet that the peer must acknowledge. BENTPIPE_CC_STATUS_NOT_RISING if `number` is not above all earlier
/// numbers.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_sent(
    cc: *mut BentpipeCc,
    now_ns: u64,
    number: u64,
    bytes: u32,
) -> BentpipeCcStatus {
    let sent =
        |control: &mut PacketControl| control.on_sent(at(now_ns), number, bytes).map_err(Failure::not_rising);
    // SAFETY: the caller vouches for the handle.
    unsafe { try_call(cc, sent) }
}

/// Handles a packet that an ACK newly acknowledges; bentpipe_cc_end_ack follows. An unknown number is ignored and counted.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_acked(cc: *mut BentpipeCc, number: u64) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.on_acked(number)) }
}

/// Handles a packet that the transport declares lost. bentpipe_cc_end_ack, bentpipe_cc_end_losses or
/// bentpipe_cc_on_persistent_congestion follows. An unknown number is ignored and counted.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_lost(cc: *mut BentpipeCc, number: u64) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.on_lost(number)) }
}

/// Handles a packet that counts no longer, because its keys were discarded (RFC 9002 section 6.4) or because it was a lost probe of
/// the path MTU. An unknown number is ignored and counted.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_discarded(cc: *mut BentpipeCc, number: u64) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.on_discarded(number)) }
}

/// Handles the end of an ACK. `rtt_ns` is its round-trip sample without the peer's ACK delay; 0 for none. `app_limited` says that
/// the application or the peer's flow control limited the sender since the last ACK. `marks` is the number of packets newly
/// reported with ECN-CE.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_end_ack(
    cc: *mut BentpipeCc,
    now_ns: u64,
    rtt_ns: u64,
    app_limited: bool,
    marks: u32,
) -> BentpipeCcStatus {
    let info = AckInfo { rtt: sample(rtt_ns), app_limited, marks };
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.end_ack(at(now_ns), info)) }
}

/// Handles the end of losses that a timer found.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_end_losses(cc: *mut BentpipeCc, now_ns: u64) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.end_losses(at(now_ns))) }
}

/// Handles persistent congestion (RFC 9002 section 7.6), or a timeout that declares everything in flight lost.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_persistent_congestion(
    cc: *mut BentpipeCc,
    now_ns: u64,
) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.on_persistent_congestion(at(now_ns))) }
}

/// Handles the proof that every packet of the last loss episode had arrived: its reduction is undone, once.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_spurious(cc: *mut BentpipeCc, now_ns: u64) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.on_spurious(at(now_ns))) }
}

/// Sets the bytes of a full datagram after a change of the path MTU. Window and rate in bytes stay as they are.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_set_datagram_bytes(cc: *mut BentpipeCc, bytes: u32) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.set_datagram_bytes(bytes)) }
}

/// Handles the begin (`outage` true) or the end of an outage that the satellite link announced.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_outage(
    cc: *mut BentpipeCc,
    now_ns: u64,
    outage: bool,
) -> BentpipeCcStatus {
    let notice = if outage { Notice::Outage } else { Notice::Restored };
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.on_notice(at(now_ns), notice)) }
}

/// Handles the time `timeout_ns` of the state. `*ask_for_ack` becomes true if a packet that the peer acknowledges, such as a PING,
/// must leave. `ask_for_ack` may be NULL.
///
/// # Safety
/// `cc` is a handle, and `ask_for_ack` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_on_timeout(
    cc: *mut BentpipeCc,
    now_ns: u64,
    ask_for_ack: *mut bool,
) -> BentpipeCcStatus {
    let mut wake = Wake::Quiet;
    // SAFETY: the caller vouches for both pointers.
    unsafe {
        let status = call(cc, |control| wake = control.on_timeout(at(now_ns)));
        if let Some(ask_for_ack) = ask_for_ack.as_mut() {
            *ask_for_ack = wake == Wake::AskForAck;
        }
        status
    }
}

/// Handles the end of the connection, before bentpipe_cc_free.
///
/// # Safety
/// `cc` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_close(cc: *mut BentpipeCc, now_ns: u64) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe { call(cc, |control| control.close(at(now_ns))) }
}

/// Writes the present state into `*state`. To be read after every event.
///
/// # Safety
/// `cc` is a handle, and `state` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bentpipe_cc_state(
    cc: *mut BentpipeCc,
    state: *mut BentpipeCcState,
) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for both pointers.
    unsafe {
        try_call(cc, |control| {
            *state.as_mut().ok_or(Failure::null("state"))? = BentpipeCcState::of(control);
            Ok(())
        })
    }
}

/// Runs a call that cannot fail by itself.
///
/// # Safety
/// `cc` is NULL or a handle.
unsafe fn call(cc: *mut BentpipeCc, run: impl FnOnce(&mut PacketControl)) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    unsafe {
        try_call(cc, |control| {
            run(control);
            Ok(())
        })
    }
}

/// Runs a call. A panic makes the handle unusable.
///
/// # Safety
/// `cc` is NULL or a handle.
unsafe fn try_call(
    cc: *mut BentpipeCc,
    run: impl FnOnce(&mut PacketControl) -> Result<(), Failure>,
) -> BentpipeCcStatus {
    // SAFETY: the caller vouches for the handle.
    let cc = unsafe { cc.as_mut() };
    error::report(|| {
        let cc = cc.ok_or(Failure::null("cc"))?;
        if cc.panicked {
            return Err(Failure::panicked());
        }
        catch_unwind(AssertUnwindSafe(|| run(&mut cc.control))).unwrap_or_else(|_| {
            cc.panicked = true;
            Err(Failure::panicked())
        })
    })
}

/// Makes the algorithm `name` with these parameters.
fn configured(name: &str, parameters: &str) -> Result<Algorithm, Failure> {
    if Algorithm::from_name(name).is_none() {
        return Err(Failure::unknown(name));
    }
    let mut json = serde_json::Deserializer::from_str(parameters);
    let configured = Algorithm::from_parameters(name, &mut json)
        .and_then(|configured| json.end().map(|()| configured))
        .map_err(|error| Failure::parameters(name, &error))?;
    Ok(configured.expect("the name is known"))
}

/// # Safety
/// `pointer` is NULL or a NUL-terminated string.
unsafe fn parameters_text<'a>(pointer: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller vouches for the string.
    if pointer.is_null() { Ok("{}") } else { unsafe { text(pointer, "parameters") } }
}

/// # Safety
/// `pointer` is NULL or a NUL-terminated string.
unsafe fn text<'a>(pointer: *const c_char, argument: &'static str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(argument));
    }
    // SAFETY: the caller vouches for the string.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| Failure::not_utf8(argument))
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn sample(nanos: u64) -> Option<Duration> {
    (nanos != 0).then(|| Duration::from_nanos(nanos))
}

//! Status of a call, and the message of the last failure of each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bentpipe_cc::packets::{NotRising, Refused, supported};

/// Result of a call. Every value except BENTPIPE_CC_STATUS_OK has a message in bentpipe_cc_last_error.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BentpipeCcStatus {
    /// Success.
    Ok = 0,
    /// No algorithm has this name or index.
    UnknownAlgorithm = 1,
    /// The parameters are not a JSON object of this algorithm's parameters.
    InvalidParameters = 2,
    /// The algorithm needs what no packet transport offers, such as probes.
    Refused = 3,
    /// The packet number is not above all earlier ones. Nothing was changed.
    NotRising = 4,
    /// An argument is NULL, a string is not UTF-8, or a buffer is too small.
    InvalidArgument = 5,
    /// The algorithm failed by a defect of the library. The handle accepts only bentpipe_cc_free.
    Panicked = 6,
}

/// A status with its message.
pub(crate) struct Failure {
    status: BentpipeCcStatus,
    message: String,
}

impl Failure {
    fn new(status: BentpipeCcStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn null(argument: &str) -> Self {
        Self::new(BentpipeCcStatus::InvalidArgument, format!("`{argument}` is NULL"))
    }

    pub fn not_utf8(argument: &str) -> Self {
        Self::new(BentpipeCcStatus::InvalidArgument, format!("`{argument}` is not UTF-8"))
    }

    pub fn buffer_too_small(needed: usize, size: usize) -> Self {
        let message = format!("the buffer has {size} bytes, and the name needs {needed}");
        Self::new(BentpipeCcStatus::InvalidArgument, message)
    }

    pub fn no_round_trip() -> Self {
        let message = "`capacity.min_rtt_ns` is 0, and a capacity has a round trip";
        Self::new(BentpipeCcStatus::InvalidArgument, message)
    }

    pub fn nothing_to_resume() -> Self {
        let message = "`settings.careful_resume_ns` is not 0, and `settings.memory` is NULL";
        Self::new(BentpipeCcStatus::InvalidArgument, message)
    }

    pub fn no_such_index(index: usize) -> Self {
        let message =
            format!("no algorithm has the index {index}: the last one is {}", supported().count() - 1);
        Self::new(BentpipeCcStatus::UnknownAlgorithm, message)
    }

    pub fn unknown(name: &str) -> Self {
        let names: Vec<_> = supported().map(|entry| entry.name).collect();
        let message = format!("no algorithm is called `{name}`; these are: {}", names.join(", "));
        Self::new(BentpipeCcStatus::UnknownAlgorithm, message)
    }

    pub fn parameters(name: &str, error: &serde_json::Error) -> Self {
        Self::new(BentpipeCcStatus::InvalidParameters, format!("parameters of `{name}`: {error}"))
    }

    pub fn refused(refused: Refused) -> Self {
        Self::new(BentpipeCcStatus::Refused, refused.to_string())
    }

    pub fn not_rising(error: NotRising) -> Self {
        Self::new(BentpipeCcStatus::NotRising, error.to_string())
    }

    pub fn panicked() -> Self {
        let message = "the algorithm failed by a defect of the library; free the handle";
        Self::new(BentpipeCcStatus::Panicked, message)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the message of the last failure in this thread.
pub(crate) fn last() -> *const c_char {
    LAST.with_borrow(|message| message.as_ptr())
}

/// Runs a call, stores the message of its failure, and stops a panic.
pub(crate) fn report(call: impl FnOnce() -> Result<(), Failure>) -> BentpipeCcStatus {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(Failure::panicked()));
    let Err(Failure { status, message }) = result else { return BentpipeCcStatus::Ok };
    let message = CString::new(message.replace('\0', " ")).expect("it has no NUL");
    LAST.set(message);
    status
}

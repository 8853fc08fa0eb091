//! Errors as exceptions of `bentpipe._errors`, with the messages of the command line.

use std::any::Any;

use bentpipe_cli::embed::Failure;
use bentpipe_lab::RunError;
use pyo3::prelude::*;

fn of(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("bentpipe._errors").and_then(|module| module.getattr(class));
        class.and_then(|class| class.call1((message,))).map_or_else(|error| error, PyErr::from_value)
    })
}

/// Error of the request: exit code 2 of the command line.
pub fn request(message: impl ToString) -> PyErr {
    of("RequestError", message.to_string())
}

/// Error of the work: exit code 1.
pub fn work(message: impl ToString) -> PyErr {
    of("WorkError", message.to_string())
}

/// Returns the message of an aborted run: a Python policy that raised an exception, or a
/// bug of Bentpipe.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a run broke".into())
}

/// Returns that message as an exception.
pub fn of_panic(panic: Box<dyn Any + Send>) -> PyErr {
    work(panic_text(panic.as_ref()))
}

/// Returns a command's error as an exception.
pub fn of_command(failure: Failure) -> PyErr {
    match failure {
        Failure::Work(message) => work(message),
        Failure::Request(message) => request(message),
        Failure::Missing(message) => of("MissingError", message),
    }
}

/// Returns the exception for a run without a result.
pub fn of_run(why: RunError) -> PyErr {
    match why {
        RunError::Impossible(why) => request(why),
        RunError::Stopped => work("stopped before the end; no result was written"),
        RunError::Unwritten(error) => work(format!("cannot write {error}")),
    }
}

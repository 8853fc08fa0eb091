//! Mistakes as exceptions: those of `bentpipe._errors`, with the words of the command line.

use std::any::Any;

use bentpipe_cli::embed::Failure;
use bentpipe_lab::Unsimulated;
use pyo3::prelude::*;

fn of(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("bentpipe._errors").and_then(|module| module.getattr(class));
        class.and_then(|class| class.call1((message,))).map_or_else(|error| error, PyErr::from_value)
    })
}

/// The request was wrong: exit code 2 of the command line.
pub fn request(message: impl ToString) -> PyErr {
    of("RequestError", message.to_string())
}

/// The work failed: exit code 1.
pub fn work(message: impl ToString) -> PyErr {
    of("WorkError", message.to_string())
}

/// What a run says that broke off: a policy in Python that raised, or a bug of ours.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a run broke".into())
}

/// The same as an exception.
pub fn of_panic(panic: Box<dyn Any + Send>) -> PyErr {
    work(panic_text(panic.as_ref()))
}

/// What a command says.
pub fn of_command(failure: Failure) -> PyErr {
    match failure {
        Failure::Work(message) => work(message),
        Failure::Request(message) => request(message),
        Failure::Missing(message) => of("MissingError", message),
    }
}

/// Why there is no result of a run.
pub fn of_run(why: Unsimulated) -> PyErr {
    match why {
        Unsimulated::Impossible(why) => request(why),
        Unsimulated::Stopped => work("stopped before the end; nothing is kept"),
        Unsimulated::Unwritten(error) => work(format!("cannot write {error}")),
    }
}

//! Progress bar of a transfer.

use indicatif::{ProgressBar, ProgressStyle};

/// Progress on standard error if it is a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Makes a bar for this number of bytes, if known.
    pub fn new(what: String, total: Option<u64>) -> Self {
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{msg} {bar:30.cyan/blue.dim} {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left",
            ),
            None => (ProgressBar::new_spinner(), "{msg} {spinner} {decimal_bytes}  {decimal_bytes_per_sec}"),
        };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar: bar.with_message(what) }
    }

    /// Sets the total number of bytes.
    pub fn expect(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    /// Prints a message above the bar.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("bentpipe: {text}"));
    }

    /// Sets the number of transferred bytes.
    pub fn show(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

//! The bar of a transfer.

use indicatif::{ProgressBar, ProgressStyle};

/// How far the transfer is, on standard error if that is a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of so many bytes, where that is known.
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

    /// Now it is known how many bytes there are.
    pub fn expect(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    /// Says something while the bar is there.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("bentpipe: {text}"));
    }

    /// So many bytes are through.
    pub fn show(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

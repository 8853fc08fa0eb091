//! A progress bar on standard error, if that is a terminal.

use std::ops::ControlFlow;

use bentpipe_lab::Progress;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::interrupt::Interrupt;

/// Shows the progress and forwards requests to stop.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl Bar {
    /// Makes a bar for this number of runs.
    pub fn new(what: &'static str, interrupt: &Interrupt) -> Self {
        let bar = ProgressBar::new(0).with_message(what);
        let style = ProgressStyle::with_template("{msg} {bar:40.cyan/blue.dim} {pos} of {len}  {prefix}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, interrupt: interrupt.clone() }
    }

    /// Makes a bar for this simulated time, and the function to call with the finished seconds.
    pub fn of_time(total_s: f64) -> impl Fn(f64) + Sync {
        let bar = ProgressBar::new(1000).with_message("Simulating");
        let style = ProgressStyle::with_template("{msg} {bar:40.cyan/blue.dim} {percent} %  {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let bar = Cleared(bar);
        move |done_s| bar.0.set_position((1000.0 * done_s / total_s) as u64)
    }

    /// Shows `progress`; breaks after Ctrl-C.
    pub fn observe(&self, progress: Progress) -> ControlFlow<()> {
        self.bar.set_length(progress.total as u64);
        self.bar.set_position(progress.done as u64);
        let time = match progress.left() {
            Some(left) if progress.done < progress.total => format!("{} left", HumanDuration(left)),
            _ => String::new(),
        };
        self.bar.set_prefix(time);
        if self.interrupt.wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Makes a bar that disappears at the end.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

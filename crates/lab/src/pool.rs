//! Work on all cores that can be watched and stopped.

use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Progress of the work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Items done.
    pub done: usize,
    /// Items in all.
    pub total: usize,
    /// Time since the start.
    pub elapsed: Duration,
}

impl Progress {
    /// Estimated time left, from the mean time per finished item; `None` before the first item.
    pub fn left(&self) -> Option<Duration> {
        let rest = self.total.saturating_sub(self.done) as f64;
        (self.done > 0).then(|| self.elapsed.mul_f64(rest / self.done as f64))
    }
}

/// Threads of a work, and the flag that stops it.
#[derive(Clone, Debug)]
pub struct Workers {
    /// Number of threads.
    pub threads: usize,
    /// Set by another thread to stop early.
    pub stop: Arc<AtomicBool>,
}

/// Interval at which the observer is called while no item finishes.
const TICK: Duration = Duration::from_millis(100);

/// Number of threads: `jobs`, or one per core without a value.
pub fn threads(jobs: Option<NonZeroUsize>) -> usize {
    jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Does `work` for every item on `threads` threads. Results are in the order of the items. A panic becomes the `Err` of its item.
///
/// `observe` is called after every item and about ten times a second. If it breaks, no new item starts, running items are abandoned
/// (their threads end with them or with the process), and items without a result are `None`.
pub fn run_all<T, R, F, O>(
    items: Vec<T>,
    threads: usize,
    work: F,
    mut observe: O,
) -> Vec<Option<Result<R, String>>>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
    F: Fn(&T) -> Result<R, String> + Send + Sync + 'static,
    O: FnMut(Progress) -> ControlFlow<()>,
{
    let total = items.len();
    let shared = Arc::new(Shared { items, work, next: AtomicUsize::new(0), halt: AtomicBool::new(false) });
    let (sender, receiver) = channel();
    for _ in 0..threads.min(total) {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        thread::spawn(move || shared.work_off(&sender));
    }
    drop(sender);
    let results = collect(&receiver, total, &mut observe);
    shared.halt.store(true, Ordering::Relaxed);
    results
}

struct Shared<T, F> {
    items: Vec<T>,
    work: F,
    next: AtomicUsize,
    halt: AtomicBool,
}

impl<T, F> Shared<T, F> {
    fn work_off<R>(&self, results: &Sender<(usize, Result<R, String>)>)
    where
        F: Fn(&T) -> Result<R, String>,
    {
        while !self.halt.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = self.items.get(index) else { return };
            let result = catch_unwind(AssertUnwindSafe(|| (self.work)(item)));
            let result = result.unwrap_or_else(|panic| Err(describe(panic.as_ref())));
            if results.send((index, result)).is_err() {
                return;
            }
        }
    }
}

fn collect<R>(
    receiver: &Receiver<(usize, Result<R, String>)>,
    total: usize,
    observe: &mut impl FnMut(Progress) -> ControlFlow<()>,
) -> Vec<Option<Result<R, String>>> {
    let mut results: Vec<_> = (0..total).map(|_| None).collect();
    let (begin, mut done) = (Instant::now(), 0);
    while done < total {
        match receiver.recv_timeout(TICK) {
            Ok((index, result)) => {
                results[index] = Some(result);
                done += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if observe(Progress { done, total, elapsed: begin.elapsed() }).is_break() {
            break;
        }
    }
    results
}

fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the simulator broke: {}", text.unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(x: &u64) -> Result<u64, String> {
        thread::sleep(Duration::from_millis(20 - x % 20));
        if *x == 7 { panic!("seven") } else { Ok(x * x) }
    }

    #[test]
    fn order_is_that_of_the_items_for_any_number_of_threads() {
        let all = |threads| run_all((0..20).collect(), threads, square, |_| ControlFlow::Continue(()));
        let one = all(1);
        assert_eq!(one[3], Some(Ok(9)));
        assert_eq!(one[7], Some(Err("the simulator broke: seven".into())));
        assert_eq!(one, all(4));
    }

    #[test]
    fn stops_and_keeps_what_is_done() {
        let stop_at_three =
            |p: Progress| if p.done >= 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let results = run_all((20..100).collect(), 2, square, stop_at_three);
        assert_eq!(results.iter().flatten().count(), 3);
    }

    #[test]
    fn a_slow_item_does_not_hold_up_the_stop() {
        let begin = Instant::now();
        let slow = |_: &u32| {
            thread::sleep(Duration::from_secs(30));
            Ok(())
        };
        let results = run_all(vec![1, 2], 2, slow, |_| ControlFlow::Break(()));
        assert_eq!(results, [None, None]);
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn time_left() {
        let progress = |done| Progress { done, total: 4, elapsed: Duration::from_secs(6) };
        assert_eq!(progress(0).left(), None);
        assert_eq!(progress(3).left(), Some(Duration::from_secs(2)));
    }
}

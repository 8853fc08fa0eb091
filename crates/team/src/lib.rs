//! Threads that execute the parts of one computation together, step by step (bulk-synchronous parallelism; Valiant
//! 1990).
//!
//! A [`Team`] lends each part to a thread, which executes some steps on it and returns it. In a step a part can send
//! data to every other part through an [`Exchange`], and in a later step receive the data of the others. So a thread
//! waits only for data that it needs. If parts have little work, one thread executes the steps for all of them in
//! turn, with the same result.

use std::any::Any;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

/// Work on one part.
pub type Step<'a, T> = Box<dyn Fn(&mut T) + Send + Sync + 'a>;

/// Steps, and the part to execute them on.
type Task<'a, T> = (Arc<Vec<Step<'a, T>>>, &'a mut T);

/// Number of polls before a waiting thread sleeps. They take about 0.1 ms, as long as a wake-up.
const LOOKS_BEFORE_SLEEP: u32 = 1 << 11;

/// Receives from a channel. It polls first, because most messages arrive sooner than a sleeping thread wakes up.
fn receive<T>(from: &Receiver<T>) -> Result<T, RecvError> {
    let awake = (0..LOOKS_BEFORE_SLEEP).find_map(|_| {
        spin_loop();
        from.try_recv().ok()
    });
    awake.map_or_else(|| from.recv(), Ok)
}

/// State that the threads of a team share.
#[derive(Debug)]
struct Common<T> {
    /// Drops the exchanges of a part.
    leave: fn(&mut T),
    /// Panic of the first part that panicked.
    cause: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<T> Common<T> {
    /// Executes steps on a part. After a panic, no other part waits for this one.
    fn take_steps(&self, steps: &[Step<'_, T>], part: &mut T) {
        let result = catch_unwind(AssertUnwindSafe(|| steps.iter().for_each(|step| step(part))));
        if let Err(panic) = result {
            self.cause.lock().expect("nobody panics with it").get_or_insert(panic);
            (self.leave)(part);
        }
    }
}

/// Parts of one computation, with a thread for each. Between steps their owner can use the parts directly.
#[derive(Debug)]
pub struct Team<'a, T> {
    parts: Vec<&'a mut T>,
    /// True if the threads are used.
    pub is_parallel: bool,
    /// Channels to and from the thread of each part but the first.
    threads: Vec<(Sender<Task<'a, T>>, Receiver<&'a mut T>)>,
    common: Arc<Common<T>>,
}

impl<'a, T: Send> Team<'a, T> {
    /// Starts a thread for each part but the first, which stays with the caller. `leave` drops the exchanges of a
    /// part that panicked.
    pub fn new<'scope>(parts: Vec<&'a mut T>, leave: fn(&mut T), scope: &'scope Scope<'scope, 'a>) -> Self {
        let common = Arc::new(Common { leave, cause: Mutex::default() });
        let start = |_| {
            let (to, tasks) = channel::<Task<'a, T>>();
            let (done, from) = channel();
            let common = common.clone();
            scope.spawn(move || {
                while let Ok((steps, part)) = receive(&tasks) {
                    common.take_steps(&steps, part);
                    done.send(part).expect("the first part waits for all others");
                }
            });
            (to, from)
        };
        let threads = (1..parts.len()).map(start).collect();
        Self { parts, is_parallel: true, threads, common }
    }

    /// Executes `work` on each part.
    ///
    /// # Panics
    /// As [`take_steps`](Self::take_steps).
    pub fn each(&mut self, work: impl Fn(&mut T) + Send + Sync + 'a) {
        self.take_steps(vec![Box::new(work)]);
    }

    /// Executes these steps on each part.
    ///
    /// # Panics
    /// With the panic of a step, after all parts have stopped.
    pub fn take_steps(&mut self, steps: Vec<Step<'a, T>>) {
        if !self.is_parallel {
            return steps.iter().for_each(|step| self.parts.iter_mut().for_each(|part| step(part)));
        }
        let steps = Arc::new(steps);
        for (part, (to, _)) in self.parts.drain(1..).zip(&self.threads) {
            to.send((steps.clone(), part)).expect("a thread waits for work until it is told the end");
        }
        self.common.take_steps(&steps, self.parts[0]);
        for (_, from) in &self.threads {
            self.parts.push(receive(from).expect("a thread returns each part that it gets"));
        }
        if let Some(panic) = self.common.cause.lock().expect("nobody panics with it").take() {
            resume_unwind(panic);
        }
    }
}

impl<'a, T> Deref for Team<'a, T> {
    type Target = [&'a mut T];

    fn deref(&self) -> &Self::Target {
        &self.parts
    }
}

impl<T> DerefMut for Team<'_, T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.parts
    }
}

/// Channels through which a part sends data to each part, itself included, and receives data from each.
#[derive(Debug)]
pub struct Exchange<T> {
    to: Vec<Sender<T>>,
    from: Vec<Receiver<T>>,
    /// Data to send to each part.
    pub giving: Vec<T>,
    /// Data last received from each part. Its user empties it; it becomes the next `giving`, which reuses the memory.
    pub got: Vec<T>,
}

impl<T: Default> Exchange<T> {
    /// Makes one exchange for each of `count` parts.
    pub fn between(count: usize) -> Vec<Self> {
        let empty = || (0..count).map(|_| T::default()).collect();
        let exchange = |_| Self { to: Vec::new(), from: Vec::new(), giving: empty(), got: empty() };
        let mut all: Vec<_> = (0..count).map(exchange).collect();
        for giver in 0..count {
            for receiver in 0..count {
                let (to, from) = channel();
                all[giver].to.push(to);
                all[receiver].from.push(from);
            }
        }
        all
    }

    /// Sends the data in `giving`.
    pub fn give(&mut self) {
        for ((to, giving), got) in self.to.iter().zip(&mut self.giving).zip(&mut self.got) {
            let given = std::mem::replace(giving, std::mem::take(got));
            // A part that has left needs no data.
            let _ = to.send(given);
        }
    }

    /// Waits for the data of each part; a part that has left sends none.
    pub fn get(&mut self) {
        for (from, got) in self.from.iter().zip(&mut self.got) {
            *got = receive(from).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    struct Part {
        number: u32,
        exchange: Option<Exchange<Vec<u32>>>,
        seen: Vec<u32>,
    }

    fn parts(count: usize) -> Vec<Part> {
        let exchanges = Exchange::between(count).into_iter();
        (0..)
            .zip(exchanges)
            .map(|(number, it)| Part { number, exchange: Some(it), seen: Vec::new() })
            .collect()
    }

    impl Part {
        fn exchange(&mut self) -> &mut Exchange<Vec<u32>> {
            self.exchange.as_mut().expect("it has not left")
        }

        /// Sends each part both part numbers.
        fn give(&mut self) {
            let number = self.number;
            for (to, list) in (0..).zip(&mut self.exchange().giving) {
                list.push(10 * number + to);
            }
            self.exchange().give();
        }

        fn get(&mut self) {
            self.exchange().get();
            let mut got = std::mem::take(&mut self.exchange().got);
            got.iter_mut().for_each(|list| self.seen.append(list));
            self.exchange().got = got;
        }
    }

    /// Runs a team with this number of parts.
    fn with_team(count: usize, work: impl FnOnce(&mut Team<'_, Part>)) -> Vec<Part> {
        let mut all = parts(count);
        let lent = all.iter_mut().collect();
        thread::scope(|scope| work(&mut Team::new(lent, |part: &mut Part| part.exchange = None, scope)));
        all
    }

    #[test]
    fn each_part_gets_what_each_gives_with_threads_and_without() {
        let all = with_team(3, |team| {
            for is_parallel in [true, false, true] {
                team.is_parallel = is_parallel;
                team.take_steps(vec![Box::new(Part::give), Box::new(Part::get)]);
            }
            team.each(|part| part.seen.push(100 + part.number));
        });
        for Part { number, seen, .. } in all {
            let once = [number, 10 + number, 20 + number];
            assert_eq!(seen, [&once[..], &once, &once, &[100 + number]].concat());
        }
    }

    /// Whichever part panics or waits for the panicking one: the caller gets the cause, and all threads return.
    #[test]
    fn a_part_that_panics_keeps_nobody_waiting() {
        for count in 1..4 {
            for broken in 0..count {
                for is_parallel in [true, false] {
                    let run = || {
                        with_team(count as usize, |team| {
                            team.is_parallel = is_parallel;
                            let fail = move |part: &mut Part| assert!(part.number != broken, "part {broken}");
                            team.take_steps(vec![Box::new(fail), Box::new(Part::give), Box::new(Part::get)]);
                        })
                    };
                    let panic = catch_unwind(run).map(drop).expect_err("one panics");
                    assert_eq!(panic.downcast_ref(), Some(&format!("part {broken}")));
                }
            }
        }
    }
}

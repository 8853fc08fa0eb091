//! Browser: requests a page, then the objects that it names, then waits for the reading time.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, Rng};

use crate::act::{Act, Acts};
use crate::transfers::Transfer;
use crate::web::{Model, Object};

/// Configuration of a browser.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Model of the pages.
    pub model: Model,
    /// Number of parallel connections, at least one.
    pub connections: u32,
    /// True if a connection serves several objects in sequence (HTTP/1.1), false for one object (HTTP/1.0).
    pub persistent: bool,
    /// Factor of the reading times.
    pub view_scale: f64,
}

impl Default for Config {
    /// Choi and Limb's pages over four connections, one object each.
    fn default() -> Self {
        Self { model: Model::ChoiLimb, connections: 4, persistent: false, view_scale: 1.0 }
    }
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Closed,
    Idle,
    /// Object being loaded, and its missing bytes.
    Busy(Object, u64),
}

#[derive(Clone, Debug)]
enum Phase {
    /// The user reads the page until the next click at this time.
    Reading(Instant),
    Loading(Loading),
}

/// Page being loaded.
#[derive(Clone, Debug)]
struct Loading {
    clicked: Instant,
    /// Objects not discovered yet.
    unknown: Vec<Object>,
    /// Objects to request, each from a time on.
    wanted: VecDeque<(Instant, Object)>,
    /// Objects that have not arrived.
    missing: usize,
}

/// Web browser that loads pages.
#[derive(Clone, Debug)]
pub struct Browser {
    config: Config,
    phase: Phase,
    lines: Vec<Line>,
    acts: Acts,
    loads: Vec<Transfer>,
    rng: Rng,
}

impl Browser {
    /// Makes a browser whose reader clicks at the start.
    pub fn new(config: Config, rng: Rng) -> Self {
        let lines = vec![Line::Closed; config.connections as usize];
        let phase = Phase::Reading(Instant::ZERO);
        Self { config, phase, lines, acts: Acts::default(), loads: Vec::new(), rng }
    }

    /// Returns the times from clicks to the last byte of the page.
    pub fn loads(&self) -> &[Transfer] {
        &self.loads
    }

    pub(crate) fn poll_act(&mut self) -> Option<Act> {
        self.acts.poll()
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        match &self.phase {
            Phase::Reading(until) => *until,
            Phase::Loading(page) => {
                let next = page.wanted.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
                let has_line = self.lines.iter().any(|line| !matches!(line, Line::Busy(..)));
                if has_line { next } else { Instant::FAR_FUTURE }
            }
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Phase::Reading(until) = self.phase {
            if now < until {
                return;
            }
            let page = self.config.model.page(&mut self.rng);
            self.phase = Phase::Loading(Loading {
                clicked: now,
                missing: 1 + page.inline.len(),
                unknown: page.inline,
                wanted: VecDeque::from([(now, page.main)]),
            });
        }
        self.ask(now);
    }

    pub(crate) fn handle_reply(&mut self, now: Instant, connection: u32, bytes: u64) {
        let line = &mut self.lines[connection as usize];
        let Line::Busy(_, missing) = line else { return };
        *missing = missing.saturating_sub(bytes);
        if *missing > 0 {
            return;
        }
        *line = if self.config.persistent { Line::Idle } else { Line::Closed };
        if !self.config.persistent {
            self.acts.push(Act::Close { connection });
        }
        self.finish_object(now);
        self.ask(now);
    }

    pub(crate) fn handle_failure(&mut self, now: Instant, connection: u32) {
        let line = std::mem::replace(&mut self.lines[connection as usize], Line::Closed);
        if let (Line::Busy(object, _), Phase::Loading(page)) = (line, &mut self.phase) {
            page.wanted.push_front((now, object));
        }
        self.ask(now);
    }

    fn finish_object(&mut self, now: Instant) {
        let Phase::Loading(page) = &mut self.phase else { return };
        page.missing -= 1;
        let mut at = now;
        for object in page.unknown.drain(..) {
            at += object.gap;
            page.wanted.push_back((at, object));
        }
        if page.missing == 0 {
            self.loads.push(Transfer { completed_at: now, took: now.since(page.clicked) });
            let view = self.config.model.view(&mut self.rng).mul_f64(self.config.view_scale);
            // Minimum reading time, also for an empty page.
            self.phase = Phase::Reading(now + view.max(Duration::from_millis(1)));
        }
    }

    /// Requests the discovered objects, as far as connections are available.
    fn ask(&mut self, now: Instant) {
        let Phase::Loading(page) = &mut self.phase else { return };
        while let Some(&(_, object)) = page.wanted.front().filter(|(at, _)| *at <= now) {
            let idle = self.lines.iter().position(|line| *line == Line::Idle);
            let closed = || self.lines.iter().position(|line| *line == Line::Closed);
            let Some(index) = idle.or_else(closed) else { return };
            page.wanted.pop_front();
            let connection = index as u32;
            if self.lines[index] == Line::Closed {
                self.acts.push(Act::Open { connection });
            }
            self.lines[index] = Line::Busy(object, object.reply);
            self.acts.push(Act::Ask { connection, request: object.request, reply: object.reply });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(browser: &mut Browser) -> Vec<Act> {
        std::iter::from_fn(|| browser.poll_act()).collect()
    }

    /// Serves each request after `rtt`. Returns the maximum number of open connections, and the total opened.
    fn serve(config: Config, pages: u64) -> (Browser, (usize, u32)) {
        let mut browser = Browser::new(config, Rng::stream(8, "browser"));
        let rtt = Duration::from_millis(500);
        let mut due: VecDeque<(Instant, u32, u64)> = VecDeque::new();
        let (mut open, mut most, mut opened) = (std::collections::BTreeSet::new(), 0, 0);
        while (browser.loads.len() as u64) < pages {
            let arrival = due.front().map_or(Instant::FAR_FUTURE, |(at, ..)| *at);
            let now = arrival.min(browser.next_timeout());
            assert_ne!(now, Instant::FAR_FUTURE);
            if arrival == now {
                let (_, connection, bytes) = due.pop_front().unwrap();
                browser.handle_reply(now, connection, bytes);
            } else {
                browser.handle_timeout(now);
            }
            for act in acts(&mut browser) {
                match act {
                    Act::Open { connection } => {
                        opened += 1;
                        assert!(open.insert(connection));
                    }
                    Act::Ask { connection, reply, .. } => {
                        assert!(open.contains(&connection));
                        due.push_back((now + rtt, connection, reply));
                    }
                    Act::Close { connection } => assert!(open.remove(&connection)),
                }
            }
            most = most.max(open.len());
        }
        (browser, (most, opened))
    }

    #[test]
    fn pages_load_over_at_most_four_connections_one_object_each() {
        let (browser, (most, opened)) = serve(Config::default(), 200);
        assert_eq!(most, 4);
        assert!(opened > 600, "{opened}");
        // A page of one object takes one round trip.
        assert_eq!(browser.loads.iter().map(|load| load.took).min(), Some(Duration::from_millis(500)));
    }

    #[test]
    fn one_persistent_connection_is_opened_once_and_slower() {
        let single = Config { connections: 1, persistent: true, ..Config::default() };
        let (browser, (most, opened)) = serve(single, 200);
        assert_eq!((most, opened), (1, 1));
        let (parallel, _) = serve(Config { persistent: true, ..Config::default() }, 200);
        let mean = |browser: &Browser| crate::TransferOutcome::of(browser.loads(), 0).mean_s;
        assert!(mean(&browser) > mean(&parallel));
    }

    #[test]
    fn what_a_failed_connection_owed_is_asked_for_again() {
        let mut browser = Browser::new(Config::default(), Rng::stream(8, "browser"));
        browser.handle_timeout(Instant::ZERO);
        let first = acts(&mut browser);
        assert!(matches!(first[..], [Act::Open { connection: 0 }, Act::Ask { .. }]), "{first:?}");
        browser.handle_failure(Instant::ZERO + Duration::from_secs(1), 0);
        assert_eq!(acts(&mut browser), first);
    }
}

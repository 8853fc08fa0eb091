//! Receiving end of STP, which reports missing packets when polled.

use std::collections::{BTreeMap, VecDeque};

use super::Pdu;
use crate::outbox::Fragment;
use crate::{Config, Progress};

/// Maximum number of gaps in a STAT: Q.2110's 67 list elements are the borders of 33
/// gaps.
const STAT_GAPS: usize = 33;

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver {
    window: u64,
    /// VR(R), and VR(H): the highest number expected.
    base: u64,
    expected: u64,
    held: BTreeMap<u64, Fragment>,
    out: VecDeque<Pdu>,
    delivered: VecDeque<Fragment>,
    progress: Progress,
}

impl Receiver {
    /// Makes an end that waits for a connection.
    pub fn new(config: Config) -> Self {
        Self {
            window: u64::from(config.window),
            base: 0,
            expected: 0,
            held: BTreeMap::new(),
            out: VecDeque::new(),
            delivered: VecDeque::new(),
            progress: Progress::default(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Pdu> {
        let pdu = self.out.pop_front()?;
        self.progress.control_packets += 1;
        self.progress.control_bytes += u64::from(pdu.bytes());
        Some(pdu)
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Fragment> {
        self.delivered.pop_front()
    }

    /// Returns the first number beyond the window. Data not yet read counts against the
    /// window.
    fn limit(&self) -> u64 {
        self.base + self.window - (self.delivered.len() as u64).min(self.window)
    }

    pub(crate) fn handle(&mut self, pdu: &Pdu) {
        let limit = self.limit();
        match *pdu {
            Pdu::Begin => self.out.push_back(Pdu::BeginAck { limit }),
            Pdu::End => self.out.push_back(Pdu::EndAck),
            Pdu::Data { number, fragment } if (self.base..limit).contains(&number) => {
                self.take(number, fragment)
            }
            Pdu::Poll { poll, next, stamp } => {
                // A loss of the last packets before the poll is detected here.
                self.expected = self.expected.max(next.min(limit));
                let gaps = self.gaps();
                self.out.push_back(Pdu::Status { base: self.base, limit, poll, echo: stamp, gaps });
            }
            _ => {}
        }
    }

    fn take(&mut self, number: u64, fragment: Fragment) {
        let is_fresh = self.held.insert(number, fragment).is_none();
        self.progress.fresh_packets += u64::from(is_fresh);
        if number > self.expected {
            let (base, limit) = (self.base, self.limit());
            self.out.push_back(Pdu::Gap { base, limit, gap: (self.expected, number) });
        }
        self.expected = self.expected.max(number + 1);
        while let Some(fragment) = self.held.remove(&self.base) {
            self.base += 1;
            self.delivered.push_back(fragment);
        }
    }

    fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut from = self.base;
        for &number in self.held.keys() {
            if number > from {
                gaps.push((from, number));
            }
            from = number + 1;
        }
        if self.expected > from {
            gaps.push((from, self.expected));
        }
        gaps.truncate(STAT_GAPS);
        gaps
    }
}

//! Every packet on every link in an interval of a run, for the live view.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use bentpipe_base::{Duration, Instant, Probe, Segment};
use bentpipe_lab::Names;
use bentpipe_net::{LinkConfig, Schedule};
use bentpipe_outcome::{LinkEvent, Observer, Passing};
use bentpipe_scenario::{Scenario, Topology};
use bentpipe_sim::RunOptions;
use bentpipe_trace::Event;
use serde::{Deserialize, Serialize};

use crate::run::Progress;
use crate::sky::{self, Fade, Sky};
use crate::world::{Refusal, World};

/// Interval that the page wants to see.
#[derive(Deserialize)]
pub struct WatchRequest {
    world: World,
    /// `None` if each flow keeps its own algorithm.
    cc: Option<String>,
    seed: u64,
    /// Seconds of the run at which the interval begins and ends.
    from_s: f64,
    until_s: f64,
}

/// Maximum number of packets on links in an answer: more need more memory than a phone has.
const MOST_HOPS: usize = 400_000;

/// Packets and windows in an interval. Times are in microseconds since the start of the run.
#[derive(Default, Serialize)]
pub struct Watched {
    /// Name, group and direction of each link.
    links: Vec<Watching>,
    /// Names of the flows.
    flows: Vec<String>,
    hops: Hops,
    windows: Windows,
    /// The constellation, if there is one.
    sky: Option<Sky>,
    /// Attenuation of each link with weather, over the whole run.
    fades: Vec<Fade>,
    /// Time until which all packets are in the answer.
    until_us: u64,
}

#[derive(Serialize)]
struct Watching {
    name: String,
    group: String,
    direction: &'static str,
}

/// One packet on one link per index.
#[derive(Default, Serialize)]
struct Hops {
    link: Vec<u32>,
    flow: Vec<u32>,
    kind: Vec<u8>,
    /// Arrival at the queue.
    offered: Vec<u64>,
    /// End of the wait in the queue.
    left: Vec<u64>,
    /// Arrival at the far end, or the loss.
    ended: Vec<u64>,
}

/// Congestion windows, one change per index.
#[derive(Default, Serialize)]
struct Windows {
    at: Vec<u64>,
    flow: Vec<u32>,
    segments: Vec<f64>,
}

/// Kind of a packet, and whether the link loses it. The page draws each in its own way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Data = 0,
    Retransmission = 1,
    Probe = 2,
    Ack = 3,
    Lost = 4,
}

/// A packet on a link.
struct Hop {
    identity: (u32, u64, u64, u32),
    offered: Instant,
    kind: Kind,
}

/// Speed of a link, if it is constant: the time of a packet from the transmitter to the far end.
type Travel = Option<(u64, Duration)>;

struct Watcher<'a> {
    from: Instant,
    /// Raised when the answer has [`MOST_HOPS`] packets, so that the run stops.
    full: &'a AtomicBool,
    travel: Vec<Travel>,
    on_links: Vec<VecDeque<Hop>>,
    /// Highest sequence number that each end sent.
    sent_to: BTreeMap<u32, u64>,
    /// Ends of retransmitted segments, by receiving end.
    again: BTreeSet<(u32, u64)>,
    watched: Watched,
}

impl<'a> Watcher<'a> {
    fn new(scenario: &Scenario, from: Instant, full: &'a AtomicBool) -> Result<Self, Refusal> {
        let names = Names::of(scenario).map_err(|error| error.to_string())?;
        let topology = Topology::new(scenario)?;
        let link = |edge: bentpipe_scenario::Edge<'_>| Watching {
            name: edge.name.to_string(),
            group: edge.group.to_owned(),
            direction: edge.direction,
        };
        let links: Vec<_> = topology.links().map(link).collect();
        let watched = Watched { links, flows: names.flows, ..Watched::default() };
        Ok(Self {
            from,
            full,
            travel: topology.links().map(|edge| travel(edge.config)).collect(),
            on_links: watched.links.iter().map(|_| VecDeque::new()).collect(),
            sent_to: BTreeMap::new(),
            again: BTreeSet::new(),
            watched,
        })
    }

    fn kind(&self, passing: &Passing<'_>) -> Kind {
        let Some(segment) = passing.segment else { return Kind::Data };
        match segment.probe {
            Probe::Probe(_) => Kind::Probe,
            _ if segment.len == 0 => Kind::Ack,
            _ if self.again.contains(&(passing.to_end, segment.seq)) => Kind::Retransmission,
            _ => Kind::Data,
        }
    }

    fn end(&mut self, passing: &Passing<'_>, at: Instant, lost: bool) {
        let line = &mut self.on_links[passing.link as usize];
        let wanted = identity(passing);
        // A queue that is full refuses the last packet that came.
        let place = if lost {
            line.iter().rposition(|hop| hop.identity == wanted)
        } else {
            line.iter().position(|hop| hop.identity == wanted)
        };
        let Some(hop) = place.and_then(|place| line.remove(place)) else { return };
        if at < self.from || self.is_full() {
            return;
        }
        let hops = &mut self.watched.hops;
        hops.link.push(passing.link);
        hops.flow.push(passing.to_end / 2);
        let kind = if lost { Kind::Lost } else { hop.kind };
        hops.kind.push(kind as u8);
        hops.offered.push(micros(hop.offered));
        hops.left.push(micros(left(&hop, (at, lost), (passing.bytes, self.travel[passing.link as usize]))));
        hops.ended.push(micros(at));
        self.watched.until_us = micros(at);
        self.full.store(self.is_full(), Ordering::Relaxed);
    }

    /// Notes a retransmission. Its first link got it at this moment, as if it were new.
    fn note_retransmission(&mut self, segment: (u32, u64), at: Instant) {
        self.again.insert(segment);
        for hop in self.on_links.iter_mut().filter_map(VecDeque::back_mut) {
            if hop.offered == at && (hop.identity.0, hop.identity.1) == segment && hop.kind == Kind::Data {
                hop.kind = Kind::Retransmission;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.watched.hops.link.len() >= MOST_HOPS
    }
}

impl Observer for Watcher<'_> {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        match event {
            LinkEvent::Offered { .. } => {
                let hop = Hop { identity: identity(passing), offered: at, kind: self.kind(passing) };
                self.on_links[passing.link as usize].push_back(hop);
            }
            LinkEvent::Dropped(_) => self.end(passing, at, true),
            LinkEvent::Delivered => self.end(passing, at, false),
        }
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        match event {
            Event::Sent(segment) if segment.len > 0 && segment.probe == Probe::No => {
                let sent_to = self.sent_to.entry(end).or_default();
                let repeats = segment.seq < *sent_to;
                *sent_to = (*sent_to).max(segment.seq + u64::from(segment.len));
                if repeats {
                    self.note_retransmission((end ^ 1, segment.seq), at);
                }
            }
            Event::Window(state) if end.is_multiple_of(2) && !self.is_full() => {
                let windows = &mut self.watched.windows;
                windows.at.push(micros(at));
                windows.flow.push(end / 2);
                windows.segments.push((state.cwnd * 10.0).round() / 10.0);
            }
            _ => {}
        }
    }

    fn on_fresh(&mut self, _at: Instant, end: u32) {
        self.sent_to.remove(&end);
    }
}

fn identity(passing: &Passing<'_>) -> (u32, u64, u64, u32) {
    let of = |segment: &Segment| (segment.seq, segment.ack);
    let (seq, ack) = passing.segment.map_or((0, 0), of);
    (passing.to_end, seq, ack, passing.bytes)
}

/// Time at which a packet leaves the queue: its end less transmission and propagation, if the link has constant ones. A packet that
/// is lost stays.
fn left(hop: &Hop, (at, lost): (Instant, bool), (bytes, travel): (u32, Travel)) -> Instant {
    match travel {
        Some((bps, delay)) if !lost => {
            let transmission = Duration::from_secs_f64(f64::from(bytes) * 8.0 / bps as f64);
            (at - (delay + transmission)).max(hop.offered)
        }
        _ => hop.offered,
    }
}

fn travel(config: &LinkConfig) -> Travel {
    match (&config.rate, &config.delay_one_way) {
        (Schedule::Constant(rate), Schedule::Constant(delay)) if rate.bps() > 0 => Some((rate.bps(), *delay)),
        _ => None,
    }
}

fn micros(at: Instant) -> u64 {
    at.since(Instant::ZERO).as_nanos() / 1000
}

/// Runs a scenario until the end of the interval, and returns its packets.
pub fn watch(request: &WatchRequest, progress: Progress<'_>) -> Result<Watched, Refusal> {
    let mut draft = request.world.draft()?;
    if let Some(cc) = &request.cc {
        draft.set_cc(cc)?;
    }
    let mut scenario = draft.scenario_for(Some(request.seed))?;
    let fades = sky::fades(&scenario);
    let until = Duration::from_secs_f64(request.until_s.clamp(0.001, scenario.duration.as_secs_f64()));
    (scenario.duration, scenario.measure_from) = (until, Duration::ZERO);
    if !(0.0..until.as_secs_f64()).contains(&request.from_s) {
        let accepted = format!("from 0 s to before {} s", until.as_secs_f64());
        return Err(format!("found packets from {} s, accepted: {accepted}", request.from_s).into());
    }
    let from = Instant::ZERO + Duration::from_secs_f64(request.from_s);
    let full = AtomicBool::new(false);
    let mut watcher = Watcher::new(&scenario, from, &full)?;
    let options = RunOptions { progress: Some(progress), stop: Some(&full), ..RunOptions::default() };
    let run = bentpipe_sim::run_observed(&scenario, &options, &mut watcher);
    if !full.load(Ordering::Relaxed) {
        run.map_err(|error| error.to_string())?;
    }
    let mut watched = watcher.watched;
    watched.sky = sky::sky(&scenario, request.from_s)?;
    watched.fades = fades;
    if watched.hops.link.len() < MOST_HOPS {
        watched.until_us = micros(Instant::ZERO + until);
    }
    Ok(watched)
}

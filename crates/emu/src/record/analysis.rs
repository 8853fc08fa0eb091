//! Conversion of probe samples to a scenario.

use std::fmt::Write;
use std::time::Duration;

/// Knowledge about the two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clocks {
    /// None: the minimum delay of each direction is taken as half of the minimum round trip.
    #[default]
    Apart,
    /// The clocks agree, by GPS or PTP or because they are the same: each direction has its measured delay.
    Agree,
}

/// Times of one probe, in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sample {
    /// Departure, by the client's clock.
    pub sent_ns: u64,
    /// True if the probe reached the server.
    pub reached: bool,
    /// Arrival, by the server's clock; known if `arrived_ns` is.
    pub received_ns: u64,
    /// Departure of the reply, by the server's clock; known if `arrived_ns` is.
    pub replied_ns: u64,
    /// Arrival of the reply, by the client's clock, if it arrived.
    pub arrived_ns: Option<u64>,
}

/// A measured path.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(super) samples: Vec<Sample>,
    pub(super) clocks: Clocks,
    /// Rates of the packet trains, there and back, in bits per second.
    pub(super) rates: Vec<[Option<f64>; 2]>,
    /// Size of a probe with all headers, in bytes.
    pub(super) probe_bytes: usize,
    pub(super) interval: Duration,
}

/// One direction, in seconds since the start of the recording.
struct Direction {
    rate_bps: f64,
    /// Departure time of each probe, and its delay without transmission time if it arrived.
    passed: Vec<(f64, Option<f64>)>,
}

/// Minimum time between two changes of the delay in the scenario (chosen).
const DELAY_STEP_S: f64 = 0.1;
/// Minimum time between two changes of the loss rate in the scenario (chosen).
const LOSS_STEP_S: f64 = 1.0;
/// Minimum number of consecutive losses of an outage (chosen).
const OUTAGE_PROBES: usize = 5;
/// Minimum length of an outage (chosen).
const OUTAGE_S: f64 = 0.1;
/// Rate of a link without a measured packet train (chosen: no bottleneck).
const UNKNOWN_BPS: f64 = 1e9;
/// Queue of the links. The recorded delays include queueing on the path, so this queue must drop nothing.
const QUEUE: &str = "10000 packets";

impl Recording {
    /// Returns the scenario that replays the recording. `far` is the server; `near`, the client, downloads. Each
    /// direction of the link treats packets as the path treated probes.
    pub fn to_toml(&self, title: &str) -> String {
        let [up, down] = self.directions();
        let duration = self.samples.len() as f64 * self.interval.as_secs_f64();
        let mut text = format!("title = {title:?}\nduration = \"{duration:.3} s\"\nseed = 1\n\n");
        let assumption = match self.clocks {
            Clocks::Agree => "The clocks of both ends agree, by --clocks-agree.",
            Clocks::Apart => {
                "The clocks were not compared: the minimum delay of both directions is taken as half of the minimum round trip."
            }
        };
        let (sent, lost) = (self.samples.len(), [&up, &down].map(Direction::lost));
        let _ = writeln!(
            text,
            "# {sent} probes; lost {} from near to far, {} back. {assumption}",
            lost[0], lost[1]
        );
        text += "\n[node.far]\n\n[node.near]\n\n[link.satellite]\nbetween = [\"far\", \"near\"]\n";
        down.write(&mut text, "link.satellite");
        text += "\n[link.satellite.reverse]\n";
        up.write(&mut text, "link.satellite.reverse");
        text + "\n[flow.bulk]\nfrom = \"far\"\nto = \"near\"\n"
    }

    /// From the client to the server, and back.
    fn directions(&self) -> [Direction; 2] {
        let start = self.samples.first().map_or(0, |sample| sample.sent_ns);
        let shift = self.clock_shift_s();
        let rates = [0, 1].map(|way| median(self.rates.iter().filter_map(|rates| rates[way]).collect()));
        let rates = rates.map(|rate| rate.unwrap_or(UNKNOWN_BPS));
        let transmission = rates.map(|rate| self.probe_bytes as f64 * 8.0 / rate);
        let seconds = |from: u64, to: u64| (i128::from(to) - i128::from(from)) as f64 / 1e9;
        let there = self.samples.iter().filter_map(|sample| {
            let delay = sample
                .arrived_ns
                .map(|_| seconds(sample.sent_ns, sample.received_ns) - shift - transmission[0]);
            // If the reply was lost, only the arrival of the probe is known.
            (delay.is_some() || !sample.reached).then(|| (seconds(start, sample.sent_ns), delay))
        });
        let back = self.samples.iter().filter(|sample| sample.reached).map(|sample| {
            let delay = sample
                .arrived_ns
                .map(|arrived| seconds(sample.replied_ns, arrived) + shift - transmission[1]);
            (seconds(start, sample.sent_ns), delay)
        });
        [
            Direction { rate_bps: rates[0], passed: there.collect() },
            Direction { rate_bps: rates[1], passed: back.collect() },
        ]
    }

    /// Returns the offset of the server's clock against the client's.
    fn clock_shift_s(&self) -> f64 {
        if self.clocks == Clocks::Agree {
            return 0.0;
        }
        let seconds = |from: u64, to: u64| (i128::from(to) - i128::from(from)) as f64 / 1e9;
        let arrived = self.samples.iter().filter_map(|sample| Some((sample, sample.arrived_ns?)));
        let (there, back) = arrived.fold((f64::INFINITY, f64::INFINITY), |least, (sample, arrived)| {
            let there = seconds(sample.sent_ns, sample.received_ns);
            (least.0.min(there), least.1.min(seconds(sample.replied_ns, arrived)))
        });
        if there.is_finite() { (there - back) / 2.0 } else { 0.0 }
    }
}

impl Direction {
    fn lost(&self) -> usize {
        self.passed.iter().filter(|(_, delay)| delay.is_none()).count()
    }

    fn write(&self, text: &mut String, link: &str) {
        let outages = self.outages();
        let rate = (self.rate_bps / 1e3).max(1.0).round();
        let _ = writeln!(
            text,
            "rate = \"{rate} kbit/s\"\nqueue = \"{QUEUE}\"\nloss = [{}]",
            self.losses(&outages)
        );
        let spans = outages.iter().map(|(from, to)| format!("[\"{from:.6} s\", \"{to:.6} s\"]"));
        let spans = spans.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "outages = {{ intervals = [{spans}], effect = \"blind\" }}");
        let _ = writeln!(text, "\n[{link}.delay-one-way]\ntable = [");
        for (at, delay) in self.delays() {
            let _ = writeln!(text, "    [\"{at:.1} s\", \"{:.3} ms\"],", delay * 1e3);
        }
        *text += "]\n";
    }

    /// Returns the median delay of each step with an arrival; the first step starts at zero.
    fn delays(&self) -> Vec<(f64, f64)> {
        let steps =
            by_step(self.passed.iter().filter_map(|(at, delay)| Some((*at, (*delay)?))), DELAY_STEP_S);
        let medians = steps.into_iter().filter_map(|(step, delays)| Some((step, median(delays)?)));
        let mut points: Vec<(f64, f64)> =
            medians.map(|(step, delay)| (step as f64 * DELAY_STEP_S, delay.max(0.0))).collect();
        match points.first_mut() {
            Some(first) => first.0 = 0.0,
            None => points.push((0.0, 0.0)),
        }
        points
    }

    /// Returns the times without arrivals, by the receiver's clock.
    fn outages(&self) -> Vec<(f64, f64)> {
        let mut outages: Vec<(f64, f64)> = Vec::new();
        let (mut delay, mut begin, mut count) = (0.0, 0.0, 0);
        for (at, passed) in &self.passed {
            match passed {
                None => {
                    if count == 0 {
                        begin = at + delay;
                    }
                    count += 1;
                }
                Some(measured) => {
                    delay = *measured;
                    let end = at + delay;
                    if count >= OUTAGE_PROBES && end - begin >= OUTAGE_S {
                        outages.push((begin, end));
                    }
                    count = 0;
                }
            }
        }
        outages
    }

    /// Returns the loss rate of each step outside of outages, where it changes.
    fn losses(&self, outages: &[(f64, f64)]) -> String {
        let out = |at: f64| outages.iter().any(|(from, to)| (*from..*to).contains(&at));
        let typical = median(self.passed.iter().filter_map(|(_, delay)| *delay).collect()).unwrap_or(0.0);
        let counted = self.passed.iter().filter(|(at, delay)| delay.is_some() || !out(at + typical));
        let steps =
            by_step(counted.map(|(at, delay)| (*at, f64::from(u8::from(delay.is_none())))), LOSS_STEP_S);
        let mut points: Vec<(usize, f64)> = vec![(0, 0.0)];
        for (step, lost) in steps {
            let share = lost.iter().sum::<f64>() / lost.len() as f64;
            match points.last_mut() {
                Some(last) if last.0 == step => last.1 = share,
                Some(last) if (last.1 - share).abs() < 1e-9 => {}
                _ => points.push((step, share)),
            }
        }
        let points = points.iter().map(|(step, share)| format!("[\"{step} s\", {share:?}]"));
        points.collect::<Vec<_>>().join(", ")
    }
}

/// Groups values by the number of their step.
fn by_step(
    values: impl Iterator<Item = (f64, f64)>,
    step_s: f64,
) -> std::collections::BTreeMap<usize, Vec<f64>> {
    let mut steps: std::collections::BTreeMap<usize, Vec<f64>> = std::collections::BTreeMap::new();
    for (at, value) in values {
        steps.entry((at / step_s) as usize).or_default().push(value);
    }
    steps
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Duration as Span, Instant, Rate};
    use bentpipe_net::{Link, LinkConfig, Packet, Schedule};
    use bentpipe_scenario::Draft;

    /// Ten seconds of probes, one every 10 ms. The server's clock is an hour ahead.
    fn recording(clocks: Clocks) -> Recording {
        const HOUR: u64 = 3_600_000_000_000;
        let sample = |n: u64| {
            let at = n * 10_000_000;
            // Forward delay 60 ms, from 5 s on 80 ms; backward delay 40 ms. 10 % forward loss in the third second;
            // forward outage from 7 to 7.5 s.
            let there = if n < 500 { 60_000_000 } else { 80_000_000 };
            let spoilt = (200..300).contains(&n) && n % 10 == 5;
            let reached = !spoilt && !(700..750).contains(&n);
            let sent_ns = HOUR + at;
            let received_ns = sent_ns + HOUR + there;
            let back = n % 100 != 99;
            let arrived_ns = (reached && back).then_some(sent_ns + there + 41_000_000);
            Sample { sent_ns, reached, received_ns, replied_ns: received_ns + 1_000_000, arrived_ns }
        };
        let rates = vec![[Some(1e6), Some(8e6)], [None, Some(8e6)], [Some(1e6), None]];
        let interval = Duration::from_millis(10);
        Recording { samples: (0..1000).map(sample).collect(), clocks, rates, probe_bytes: 100, interval }
    }

    /// Returns the links from far to near and from near to far.
    fn replayed(recording: &Recording) -> [LinkConfig; 2] {
        let text = recording.to_toml("a test");
        let scenario = Draft::parse("recorded.toml", &text).and_then(|draft| draft.scenario());
        let mut scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let link = scenario.links.remove(0);
        [link.forward, link.reverse]
    }

    #[derive(Clone)]
    struct Probe;

    impl Packet for Probe {
        fn size(&self) -> u32 {
            100
        }
    }

    #[test]
    fn a_replayed_link_treats_the_probes_as_the_path_did() {
        let recording = recording(Clocks::Apart);
        let [down, up] = replayed(&recording);
        assert_eq!(up.rate, Schedule::Constant(Rate::from_mbps(1)));
        assert_eq!(down.rate, Schedule::Constant(Rate::from_mbps(8)));
        let mut link = Link::new(&up, 1, "up").unwrap();
        let mut delays_ms = Vec::new();
        for n in 0..1000_u64 {
            let sent = Instant::ZERO + Span::from_millis(10 * n);
            link.enqueue(sent, Probe);
            let arrived = std::iter::once(link.next_event()).find(|at| *at != Instant::FAR_FUTURE).unwrap();
            let delivered = link.deliver(arrived).is_some();
            delays_ms.push(delivered.then(|| (arrived.since(sent).as_millis_f64() * 100.0).round() / 100.0));
        }
        // Half of the minimum round trip is 50 ms. Delay above the minimum stays in its direction.
        assert_eq!((delays_ms[0], delays_ms[499], delays_ms[620]), (Some(50.0), Some(50.0), Some(70.0)));
        assert!(delays_ms[705..745].iter().all(Option::is_none), "the outage");
        assert!(delays_ms[300..690].iter().all(Option::is_some), "and nothing else");
        let lost = delays_ms[200..300].iter().filter(|delay| delay.is_none()).count();
        assert!((2..25).contains(&lost), "{lost}");
    }

    #[test]
    fn clocks_that_agree_keep_the_directions_apart() {
        let mut recording = recording(Clocks::Agree);
        for sample in &mut recording.samples {
            sample.received_ns -= 3_600_000_000_000;
            sample.replied_ns -= 3_600_000_000_000;
        }
        let [down, up] = replayed(&recording);
        let first_ms = |link: &LinkConfig| match &link.delay_one_way {
            Schedule::Table { points, .. } => points[0].1.as_millis_f64(),
            other => panic!("{other:?}"),
        };
        // 100 bytes take 0.8 ms at 1 Mbit/s and 0.1 ms at 8 Mbit/s, which the links add again.
        assert!((first_ms(&up) - 59.2).abs() < 0.01 && (first_ms(&down) - 39.9).abs() < 0.01);
        assert!(
            down.outages.intervals.is_empty(),
            "what never reached the server was not lost on the way back"
        );
    }
}

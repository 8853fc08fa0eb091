//! Quantities that vary over time.

use core::fmt;

use bentpipe_base::{Duration, Instant, Rate};

use crate::error::ConfigError;

/// Quantity that a [`Schedule`] can vary, stored as an unsigned integer.
pub trait Quantity: Copy + fmt::Display {
    /// Minimum value that a link supports.
    const LEAST: u64;
    /// [`Quantity::LEAST`] in words.
    const ACCEPTED: &'static str;
    /// Returns the bare number: bits per second of a rate, nanoseconds of a duration.
    fn raw(self) -> u64;
}

impl Quantity for Rate {
    // A link of rate zero would hold its packet forever.
    const LEAST: u64 = 1;
    const ACCEPTED: &'static str = "at least 1 bit/s (an outage stops a link)";
    fn raw(self) -> u64 {
        self.bps()
    }
}

impl Quantity for Duration {
    const LEAST: u64 = 0;
    const ACCEPTED: &'static str = "0 s or more";
    fn raw(self) -> u64 {
        self.as_nanos()
    }
}

/// A value as a function of time, counted from [`Instant::ZERO`].
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule<T> {
    /// Constant.
    Constant(T),
    /// Values at points in time.
    Table {
        /// Time and value; the first at time zero, times strictly ascending. The last value holds forever unless the table
        /// repeats.
        points: Vec<(Duration, T)>,
        /// Interpolation between two points.
        interpolation: Interpolation,
        /// Repetition period, longer than the last point's time. With linear interpolation the value moves towards the first
        /// point after the last one.
        repeat_every: Option<Duration>,
    },
    /// `mean + amplitude * sin(2 pi (t + phase) / period)`.
    Sine {
        /// Mean value.
        mean: T,
        /// Maximum deviation from the mean, less than the mean so that the value stays positive.
        amplitude: T,
        /// Period of the oscillation.
        period: Duration,
        /// Phase at time zero, as a time.
        phase: Duration,
    },
}

/// Interpolation of a [`Schedule::Table`] between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Interpolation {
    /// The value of a point holds until the next one.
    #[default]
    Step,
    /// The value is linear between points.
    Linear,
}

impl<T: Quantity> Schedule<T> {
    /// Returns the values from the start to `end` as times and [raw](Quantity::raw) values, for drawing. They are the points of a
    /// table if there are at most `most`, otherwise `most` evenly spaced ones. The last is at `end`; a constant has two.
    pub fn course(&self, end: Duration, most: usize) -> Vec<(Duration, u64)> {
        let mut evaluator = Evaluator::new(self);
        let mut value = |time: Duration| (time, evaluator.at(Instant::ZERO + time));
        let steps = most.max(2) as u64 - 1;
        let even = || (0..=steps).map(|step| end.mul_f64(step as f64 / steps as f64)).collect::<Vec<_>>();
        let times = match self {
            Self::Constant(_) => vec![Duration::ZERO, end],
            Self::Sine { .. } => even(),
            Self::Table { points, repeat_every, .. } => {
                let period = repeat_every.unwrap_or(Duration::MAX);
                let rounds = (0..)
                    .map(|round| period.as_nanos().saturating_mul(round))
                    .take_while(|begin| *begin < end.as_nanos());
                let of_round = |begin: u64| {
                    points
                        .iter()
                        .map(move |point| Duration::from_nanos(begin.saturating_add(point.0.as_nanos())))
                };
                let times = rounds.flat_map(of_round).take_while(|time| *time < end).take(most + 1);
                let mut times: Vec<_> = times.collect();
                times.push(end);
                if times.len() > most { even() } else { times }
            }
        };
        times.into_iter().map(&mut value).collect()
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Constant(value) => check_value("constant", *value),
            Self::Table { points, repeat_every, .. } => {
                validate_points(points)?;
                validate_period(*repeat_every, points.last().map(|point| point.0))
            }
            Self::Sine { mean, amplitude, period, .. } => {
                check_value("mean", *mean)?;
                if amplitude.raw() > 0 && amplitude.raw() >= mean.raw() {
                    return Err(ConfigError::new("amplitude", amplitude, "less than the mean"));
                }
                if period.is_zero() {
                    return Err(ConfigError::new("period", period, "longer than 0 s"));
                }
                Ok(())
            }
        }
    }
}

/// Checks that the period of a table exceeds the time of its last point.
pub(crate) fn validate_period(period: Option<Duration>, last: Option<Duration>) -> Result<(), ConfigError> {
    match period.filter(|period| last.is_none_or(|last| *period <= last)) {
        Some(period) => {
            Err(ConfigError::new("repeat_every", period, "longer than the time of the last point"))
        }
        None => Ok(()),
    }
}

fn check_value<T: Quantity>(field: &str, value: T) -> Result<(), ConfigError> {
    if value.raw() < T::LEAST {
        return Err(ConfigError::new(field, value, T::ACCEPTED));
    }
    Ok(())
}

fn validate_points<T: Quantity>(points: &[(Duration, T)]) -> Result<(), ConfigError> {
    match points.first() {
        None => return Err(ConfigError::new("points", "none", "at least one point")),
        Some((time, _)) if !time.is_zero() => {
            return Err(ConfigError::new(
                "points",
                format!("a first point at {time}"),
                "a first point at 0 s",
            ));
        }
        Some(_) => {}
    }
    for pair in points.windows(2) {
        if pair[0].0 >= pair[1].0 {
            let found = format!("{} after {}", pair[1].0, pair[0].0);
            return Err(ConfigError::new("points", found, "strictly ascending times"));
        }
    }
    points.iter().try_for_each(|(_, value)| check_value("points", *value))
}

/// Evaluator of a [`Schedule`] at mostly ascending times.
#[derive(Clone, Debug)]
pub(crate) enum Evaluator {
    Constant(u64),
    Table(TableCursor),
    Sine { mean: f64, amplitude: f64, period: f64, phase: f64 },
}

impl Evaluator {
    /// Makes an evaluator of a validated schedule.
    pub fn new<T: Quantity>(schedule: &Schedule<T>) -> Self {
        match schedule {
            Schedule::Constant(value) => Self::Constant(value.raw()),
            Schedule::Table { points, interpolation, repeat_every } => Self::Table(TableCursor {
                points: points.iter().map(|(time, value)| (time.as_nanos(), value.raw())).collect(),
                interpolation: *interpolation,
                period: repeat_every.map(Duration::as_nanos),
                index: 0,
                // An interval of zero length.
                piece: [(0, 0); 2],
            }),
            Schedule::Sine { mean, amplitude, period, phase } => Self::Sine {
                mean: mean.raw() as f64,
                amplitude: amplitude.raw() as f64,
                period: period.as_secs_f64(),
                phase: phase.as_secs_f64(),
            },
        }
    }

    /// Returns the bare value at `time`. It is O(1) if successive times are in the same or the next interval of a table,
    /// logarithmic otherwise.
    #[inline]
    pub fn at(&mut self, time: Instant) -> u64 {
        match self {
            Self::Constant(value) => *value,
            Self::Table(table) => table.at(time),
            Self::Sine { mean, amplitude, period, phase } => {
                let turns = (time.as_secs_f64() + *phase) / *period;
                let angle = core::f64::consts::TAU * (turns - libm::floor(turns));
                libm::round(*mean + *amplitude * libm::sin(angle)) as u64
            }
        }
    }
}

/// Table with the present position.
#[derive(Clone, Debug)]
pub(crate) struct TableCursor {
    /// Points of (nanoseconds, value), the first at zero.
    points: Vec<(u64, u64)>,
    interpolation: Interpolation,
    period: Option<u64>,
    /// Index of the point before the last queried time.
    index: usize,
    /// That point and the next one, copied here: a packet over many links uses a cursor on each, whose table is elsewhere in
    /// memory.
    piece: [(u64, u64); 2],
}

impl TableCursor {
    #[inline(never)]
    fn at(&mut self, time: Instant) -> u64 {
        let nanos = time.as_nanos();
        let nanos = self.period.map_or(nanos, |period| nanos % period);
        if !(self.piece[0].0..self.piece[1].0).contains(&nanos) {
            self.seek(nanos);
        }
        let [(from, value), (to, next)] = self.piece;
        let (past, span) = (nanos - from, to - from);
        // A 64-bit division where that suffices: one of 128 bits is a function call for every packet.
        let moved = |rise: u64| match rise.checked_mul(past) {
            Some(product) => product / span,
            None => (u128::from(rise) * u128::from(past) / u128::from(span)) as u64,
        };
        if next >= value { value + moved(next - value) } else { value - moved(value - next) }
    }

    /// Moves to the last point at or before `nanos`.
    #[inline(never)]
    fn seek(&mut self, nanos: u64) {
        if self.points[self.index].0 > nanos {
            self.index = 0;
        }
        let ahead = &self.points[self.index + 1..];
        self.index += match ahead {
            [] => 0,
            [next, ..] if nanos < next.0 => 0,
            [_, after, ..] if nanos < after.0 => 1,
            _ => ahead.partition_point(|point| point.0 <= nanos),
        };
        let point = self.points[self.index];
        // In the next repetition if the table repeats; otherwise the last value is kept.
        let again = || {
            (self.period.unwrap_or(u64::MAX), if self.period.is_some() { self.points[0].1 } else { point.1 })
        };
        let (to, next) = self.points.get(self.index + 1).copied().unwrap_or_else(again);
        self.piece = [point, (to, if self.interpolation == Interpolation::Linear { next } else { point.1 })];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn at_secs(schedule: &Schedule<Rate>, secs: f64) -> u64 {
        Evaluator::new(schedule).at(Instant::ZERO + Duration::from_secs_f64(secs))
    }

    fn table(interpolation: Interpolation, repeat_every: Option<Duration>) -> Schedule<Rate> {
        let points =
            vec![(S(0), Rate::from_bps(100)), (S(10), Rate::from_bps(200)), (S(20), Rate::from_bps(50))];
        Schedule::Table { points, interpolation, repeat_every }
    }

    #[test]
    fn steps_hold_until_the_next_point_and_the_last_for_ever() {
        let steps = table(Interpolation::Step, None);
        let values = [0.0, 9.999, 10.0, 19.9, 20.0, 1e6].map(|t| at_secs(&steps, t));
        assert_eq!(values, [100, 100, 200, 200, 50, 50]);
    }

    #[test]
    fn lines_join_the_points() {
        let lines = table(Interpolation::Linear, None);
        let values = [0.0, 5.0, 10.0, 15.0, 20.0, 99.0].map(|t| at_secs(&lines, t));
        assert_eq!(values, [100, 150, 200, 125, 50, 50]);
    }

    #[test]
    fn a_repeated_table_returns_to_its_first_point() {
        let lines = table(Interpolation::Linear, Some(S(30)));
        let values = [25.0, 30.0, 35.0, 55.0].map(|t| at_secs(&lines, t));
        assert_eq!(values, [75, 100, 150, 75]);
    }

    #[test]
    fn one_cursor_gives_what_fresh_ones_give_forwards_backwards_and_across_periods() {
        for schedule in [table(Interpolation::Linear, Some(S(30))), table(Interpolation::Step, None)] {
            let mut cursor = Evaluator::new(&schedule);
            for secs in [0.0, 4.0, 25.0, 26.0, 31.0, 93.0, 12.0, 12.0, 3.0, 29.9, 600.5] {
                let time = Instant::ZERO + Duration::from_secs_f64(secs);
                assert_eq!(cursor.at(time), at_secs(&schedule, secs), "at {secs} s");
            }
        }
    }

    #[test]
    fn the_course_of_a_table_goes_through_its_points_in_every_round() {
        let course = |schedule: &Schedule<Rate>, end, most| {
            let course = schedule.course(S(end), most).into_iter();
            course.map(|(time, value)| (time.as_secs_f64(), value)).collect::<Vec<_>>()
        };
        let repeated = table(Interpolation::Step, Some(S(30)));
        let points = [(0.0, 100), (10.0, 200), (20.0, 50), (30.0, 100), (40.0, 200), (45.0, 200)];
        assert_eq!(course(&repeated, 45, 100), points);
        assert_eq!(course(&repeated, 45, 4), [(0.0, 100), (15.0, 200), (30.0, 100), (45.0, 200)]);
        assert_eq!(course(&Schedule::Constant(Rate::from_bps(7)), 9, 10), [(0.0, 7), (9.0, 7)]);
    }

    #[test]
    fn sine() {
        let schedule = Schedule::Sine {
            mean: Rate::from_bps(1000),
            amplitude: Rate::from_bps(100),
            period: S(40),
            phase: S(0),
        };
        let values = [0.0, 10.0, 20.0, 30.0, 50.0].map(|t| at_secs(&schedule, t));
        assert_eq!(values, [1000, 1100, 1000, 900, 1100]);
    }

    #[test]
    fn impossible_tables_are_refused() {
        let refused = |points: &[(u64, u64)], repeat_every| {
            let points = points.iter().map(|&(t, v)| (S(t), Rate::from_bps(v))).collect();
            Schedule::Table { points, interpolation: Interpolation::Step, repeat_every }
                .validate()
                .unwrap_err()
        };
        assert_eq!(refused(&[], None).found, "none");
        assert_eq!(refused(&[(1, 5)], None).accepted, "a first point at 0 s");
        assert_eq!(refused(&[(0, 5), (0, 6)], None).accepted, "strictly ascending times");
        assert_eq!(refused(&[(0, 5), (1, 0)], None).found, "0 bit/s");
        assert_eq!(refused(&[(0, 5), (2, 6)], Some(S(2))).field, "repeat_every");
    }
}

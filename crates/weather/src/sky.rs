use bentpipe_base::Duration;
use bentpipe_net::ConfigError;

use crate::SlantPath;

/// Attenuation of a link over time: linear between two points, constant after the last.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Weather {
    /// No attenuation.
    #[default]
    Clear,
    /// Given attenuation in dB.
    Attenuation {
        /// Time and attenuation in dB; times strictly ascending.
        points: Vec<(Duration, f64)>,
    },
    /// Rain.
    Rain {
        /// Time and rain rate in mm/h; times strictly ascending.
        points: Vec<(Duration, f64)>,
        /// Path through the rain.
        path: SlantPath,
    },
}

impl Weather {
    /// Returns the name of the kind of weather.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Attenuation { .. } => "attenuation",
            Self::Rain { .. } => "rain",
        }
    }

    /// Checks that the weather is possible.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (field, points) = match self {
            Self::Clear => return Ok(()),
            Self::Attenuation { points } => ("attenuation", points),
            Self::Rain { points, path } => {
                path.validate()?;
                ("rain", points)
            }
        };
        if points.is_empty() {
            return Err(ConfigError::new(field, "no points", "at least one point"));
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            let found = format!("{} after {}", pair[1].0, pair[0].0);
            return Err(ConfigError::new(field, found, "strictly ascending times"));
        }
        match points.iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
            Some((_, value)) => Err(ConfigError::new(field, value, "0 or more")),
            None => Ok(()),
        }
    }

    /// Returns the attenuation in dB at `time`.
    pub fn attenuation_db(&self, time: Duration) -> f64 {
        match self {
            Self::Clear => 0.0,
            Self::Attenuation { points } => at(points, time),
            Self::Rain { points, path } => path.attenuation_db(at(points, time)),
        }
    }

    /// Returns the time after which nothing changes.
    pub fn settles(&self) -> Duration {
        match self {
            Self::Clear => Duration::ZERO,
            Self::Attenuation { points } | Self::Rain { points, .. } => {
                points.last().map_or(Duration::ZERO, |point| point.0)
            }
        }
    }
}

/// Returns the interpolated value at `time`; constant before the first point.
fn at(points: &[(Duration, f64)], time: Duration) -> f64 {
    let next = points.partition_point(|point| point.0 <= time);
    let Some(&(from, value)) = points[..next].last() else {
        return points.first().map_or(0.0, |point| point.1);
    };
    match points.get(next) {
        None => value,
        Some(&(to, then)) => value + (then - value) * (time - from).as_secs_f64() / (to - from).as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn lines_join_the_points() {
        let weather = Weather::Attenuation { points: vec![(S(10), 2.0), (S(20), 6.0), (S(21), 0.0)] };
        let values = [0, 10, 15, 20, 21, 99].map(|s| weather.attenuation_db(S(s)));
        assert_eq!(values, [2.0, 2.0, 4.0, 6.0, 0.0, 0.0]);
        assert_eq!(weather.settles(), S(21));
    }

    #[test]
    fn impossible_weather_is_refused() {
        let refused = |points: &[(u64, f64)]| {
            let points = points.iter().map(|&(s, db)| (S(s), db)).collect();
            Weather::Attenuation { points }.validate().unwrap_err().accepted
        };
        assert_eq!(refused(&[]), "at least one point");
        assert_eq!(refused(&[(1, 0.0), (1, 2.0)]), "strictly ascending times");
        assert_eq!(refused(&[(1, -1.0)]), "0 or more");
        let path = SlantPath { frequency_ghz: 100.0, ..SlantPath::default() };
        let rain = Weather::Rain { points: vec![(S(0), 1.0)], path };
        assert_eq!(rain.validate().unwrap_err().field, "frequency");
    }
}

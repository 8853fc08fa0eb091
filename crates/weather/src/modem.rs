use bentpipe_base::{Duration, Rate};
use bentpipe_net::ConfigError;

use crate::modcod::{DVB_S2, DVB_S2X, Modcod};

/// A modem on a satellite link.
#[derive(Clone, Debug, PartialEq)]
pub struct Modem {
    /// Family of modulations and codes.
    pub standard: Standard,
    /// Symbols per second.
    pub symbol_rate: u64,
    /// Es/N0 at the receiver under a clear sky in dB: the result of the link budget.
    pub clear_sky_db: f64,
    /// Modulation and code in use.
    pub coding: Coding,
}

/// A family of modulations and codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// EN 302 307-1.
    DvbS2,
    /// EN 302 307-2, which extends EN 302 307-1.
    DvbS2x,
}

/// Selection of modulation and code.
#[derive(Clone, Debug, PartialEq)]
pub enum Coding {
    /// A constant value.
    Fixed(&'static Modcod),
    /// The most efficient one that the signal allows.
    Adaptive(Acm),
}

/// Adaptive coding and modulation (EN 302 307-1, section 4 and annex D.5): the receiver measures, and the transmitter follows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Acm {
    /// Margin in dB above the required signal of a code in use.
    pub margin_db: f64,
    /// Further margin in dB that is required to change to a more efficient code.
    pub hysteresis_db: f64,
    /// Interval between two measurements.
    pub interval: Duration,
    /// Delay from a measurement to the first frame that uses it: over the satellite and back.
    pub feedback_delay: Duration,
}

impl Default for Acm {
    fn default() -> Self {
        Self {
            margin_db: 0.5,
            hysteresis_db: 0.5,
            interval: Duration::from_millis(100),
            feedback_delay: Duration::from_millis(500),
        }
    }
}

impl Default for Modem {
    fn default() -> Self {
        Self {
            standard: Standard::DvbS2,
            symbol_rate: 5_000_000,
            clear_sky_db: 12.0,
            coding: Coding::Adaptive(Acm::default()),
        }
    }
}

impl Standard {
    /// Returns its modulations and codes by efficiency, without those that need more signal than a more efficient one.
    pub fn ladder(self) -> Vec<&'static Modcod> {
        let mut all: Vec<_> = self.all().collect();
        all.sort_by(|a, b| a.efficiency().total_cmp(&b.efficiency()).then(b.es_n0_db.total_cmp(&a.es_n0_db)));
        let mut ladder: Vec<&'static Modcod> = Vec::new();
        for modcod in all {
            while ladder.last().is_some_and(|last| last.es_n0_db >= modcod.es_n0_db) {
                ladder.pop();
            }
            ladder.push(modcod);
        }
        ladder
    }

    /// Returns all its modulations and codes.
    pub fn all(self) -> impl Iterator<Item = &'static Modcod> {
        let added = match self {
            Self::DvbS2 => &[],
            Self::DvbS2x => DVB_S2X,
        };
        DVB_S2.iter().chain(added)
    }

    /// Returns the modulation and code of this name.
    pub fn find(self, name: &str) -> Option<&'static Modcod> {
        self.all().find(|modcod| modcod.name == name)
    }
}

impl Modem {
    /// Returns the packet rate of a modulation and code: the bits of a frame in the time of a frame.
    pub fn rate(&self, modcod: &Modcod) -> Rate {
        let bits = u128::from(self.symbol_rate) * u128::from(modcod.data_bits());
        Rate::from_bps((bits / u128::from(modcod.symbols())) as u64)
    }

    /// Returns the duration of a frame.
    pub fn frame(&self, modcod: &Modcod) -> Duration {
        let nanos = u128::from(modcod.symbols()) * 1_000_000_000;
        Duration::from_nanos(nanos.div_ceil(u128::from(self.symbol_rate)) as u64)
    }

    /// Checks that the modem is possible.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(1_000..=10_000_000_000).contains(&self.symbol_rate) {
            return Err(ConfigError::new("symbol_rate", self.symbol_rate, "1 kBd to 10 GBd"));
        }
        if !(-50.0..=100.0).contains(&self.clear_sky_db) {
            return Err(ConfigError::new("clear_sky", self.clear_sky_db, "-50 dB to 100 dB"));
        }
        match &self.coding {
            Coding::Fixed(_) => Ok(()),
            Coding::Adaptive(acm) => acm.validate(),
        }
    }
}

impl Acm {
    fn validate(&self) -> Result<(), ConfigError> {
        let decibels = |field, db: f64| {
            let fits = (0.0..=50.0).contains(&db);
            if fits { Ok(()) } else { Err(ConfigError::new(field, db, "0 dB to 50 dB")) }
        };
        decibels("margin", self.margin_db)?;
        decibels("hysteresis", self.hysteresis_db)?;
        if self.interval < Duration::from_millis(1) {
            return Err(ConfigError::new("interval", self.interval, "at least 1 ms"));
        }
        Ok(())
    }

    /// Returns the step of `ladder` that follows `current` at this signal. If the present step has lost its margin, it goes down
    /// to the best one with margin. Otherwise it goes up to the best one with margin and hysteresis. The lowest step has no
    /// alternative.
    pub fn follow(&self, ladder: &[&Modcod], current: usize, es_n0_db: f64) -> usize {
        let best = |extra: f64| ladder.iter().rposition(|modcod| modcod.es_n0_db + extra <= es_n0_db);
        let holds = ladder[current].es_n0_db + self.margin_db <= es_n0_db;
        if !holds {
            return best(self.margin_db).unwrap_or(0).min(current);
        }
        best(self.margin_db + self.hysteresis_db).unwrap_or(0).max(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_the_bits_of_a_frame_in_the_time_of_a_frame() {
        let modem = Modem { symbol_rate: 10_000_000, ..Modem::default() };
        let modcod = Standard::DvbS2.find("qpsk 1/2").unwrap();
        // 32,128 bits in 32,490 symbols.
        assert_eq!(modem.frame(modcod), Duration::from_micros(3_249));
        assert_eq!(modem.rate(modcod).bps(), 10_000_000 * 32_128 / 32_490);
        for modcod in Standard::DvbS2x.all() {
            let bits = modem.rate(modcod).bps() as f64 * modem.frame(modcod).as_secs_f64();
            assert!((bits - f64::from(modcod.data_bits())).abs() < 0.1, "{}", modcod.name);
        }
    }

    #[test]
    fn a_ladder_ascends_in_both_columns() {
        for standard in [Standard::DvbS2, Standard::DvbS2x] {
            let ladder = standard.ladder();
            assert!(ladder.windows(2).all(|two| two[0].es_n0_db < two[1].es_n0_db));
            assert!(ladder.windows(2).all(|two| two[0].efficiency() < two[1].efficiency()));
        }
        // 8PSK 8/9 and 9/10 need more signal than the more efficient 16APSK 3/4.
        let ladder = Standard::DvbS2.ladder();
        assert!(!ladder.iter().any(|modcod| modcod.name.starts_with("8psk 8") || modcod.name == "8psk 9/10"));
    }

    #[test]
    fn adaptive_coding_keeps_its_margin_and_climbs_with_hysteresis() {
        let ladder = Standard::DvbS2.ladder();
        let step = |name: &str| ladder.iter().position(|modcod| modcod.name == name).unwrap();
        let acm = Acm { margin_db: 0.5, hysteresis_db: 0.5, ..Acm::default() };
        let (half, two_thirds) = (step("qpsk 1/2"), step("qpsk 2/3"));
        // QPSK 2/3 needs 3.1 dB: 3.6 dB with margin, and 4.1 dB to change up.
        assert_eq!(acm.follow(&ladder, half, 4.09), step("qpsk 3/5"));
        assert_eq!(acm.follow(&ladder, half, 4.11), two_thirds);
        assert_eq!(acm.follow(&ladder, two_thirds, 3.61), two_thirds);
        assert_eq!(acm.follow(&ladder, two_thirds, 3.59), step("qpsk 3/5"));
        assert_eq!(acm.follow(&ladder, two_thirds, -20.0), 0);
        assert_eq!(acm.follow(&ladder, 0, 100.0), ladder.len() - 1);
    }
}

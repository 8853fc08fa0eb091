use bentpipe_base::{Duration, Rate};
use bentpipe_net::ConfigError;

use crate::modcod::{DVB_S2, DVB_S2X, Modcod};

/// A modem on a satellite link.
#[derive(Clone, Debug, PartialEq)]
pub struct Modem {
    /// Which modulations and codes it knows.
    pub standard: Standard,
    /// Symbols a second.
    pub symbol_rate: u64,
    /// Ratio of energy per symbol to noise density at the receiver under a clear sky, in dB: what the link budget comes to.
    pub clear_sky_db: f64,
    /// Which of them it uses.
    pub coding: Coding,
}

/// A family of modulations and codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// EN 302 307-1.
    DvbS2,
    /// EN 302 307-2, which adds to the former.
    DvbS2x,
}

/// Which modulation and code a modem uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Coding {
    /// Always the same.
    Fixed(&'static Modcod),
    /// The most efficient one that the signal allows.
    Adaptive(Acm),
}

/// Adaptive coding and modulation (EN 302 307-1, section 4 and annex D.5): the receiver measures, the transmitter follows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Acm {
    /// Signal above the need of a code without which it is not used, in dB.
    pub margin_db: f64,
    /// Signal above that without which the modem does not change up, in dB.
    pub hysteresis_db: f64,
    /// Time between two measurements.
    pub interval: Duration,
    /// From a measurement to the first frame that obeys it: over the satellite and back.
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
    /// Its modulations and codes by efficiency, without those that need more signal than a better one.
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

    /// All its modulations and codes.
    pub fn all(self) -> impl Iterator<Item = &'static Modcod> {
        let added = match self {
            Self::DvbS2 => &[],
            Self::DvbS2x => DVB_S2X,
        };
        DVB_S2.iter().chain(added)
    }

    /// The modulation and code of this name.
    pub fn find(self, name: &str) -> Option<&'static Modcod> {
        self.all().find(|modcod| modcod.name == name)
    }
}

impl Modem {
    /// Rate of packets with a modulation and code: exactly the bits of a frame in the time of a frame.
    pub fn rate(&self, modcod: &Modcod) -> Rate {
        let bits = u128::from(self.symbol_rate) * u128::from(modcod.data_bits());
        Rate::from_bps((bits / u128::from(modcod.symbols())) as u64)
    }

    /// Time of a frame.
    pub fn frame(&self, modcod: &Modcod) -> Duration {
        let nanos = u128::from(modcod.symbols()) * 1_000_000_000;
        Duration::from_nanos(nanos.div_ceil(u128::from(self.symbol_rate)) as u64)
    }

    /// Checks that there can be such a modem.
    ///
    /// # Errors
    /// Names the first field that prevents it.
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

    /// The step of `ladder` to use after `current` at this signal: down to the best that has its margin as soon as the present one has
    /// lost it, up to the best that has margin and hysteresis. At the bottom there is nothing lower.
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
        // QPSK 2/3 needs 3.1 dB: with margin 3.6, to climb there 4.1.
        assert_eq!(acm.follow(&ladder, half, 4.09), step("qpsk 3/5"));
        assert_eq!(acm.follow(&ladder, half, 4.11), two_thirds);
        assert_eq!(acm.follow(&ladder, two_thirds, 3.61), two_thirds);
        assert_eq!(acm.follow(&ladder, two_thirds, 3.59), step("qpsk 3/5"));
        assert_eq!(acm.follow(&ladder, two_thirds, -20.0), 0);
        assert_eq!(acm.follow(&ladder, 0, 100.0), ladder.len() - 1);
    }
}

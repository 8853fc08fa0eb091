use bentpipe_net::ConfigError;

/// Specific attenuation of rain, `gamma = k R^alpha` in dB/km for a rain rate `R` in mm/h (Recommendation ITU-R P.838-3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RainLaw {
    /// Factor.
    pub k: f64,
    /// Exponent.
    pub alpha: f64,
}

/// Terms `a exp(-((log10 f - b) / c)^2)` of a coefficient, then slope and offset of its line in `log10 f`.
type Fit<const N: usize> = ([[f64; 3]; N], f64, f64);

/// P.838-3, tables 1 to 4: `log10 k` and `alpha`, horizontal and vertical.
const K_HORIZONTAL: Fit<4> = (
    [
        [-5.33980, -0.10008, 1.13098],
        [-0.35351, 1.26970, 0.45400],
        [-0.23789, 0.86036, 0.15354],
        [-0.94158, 0.64552, 0.16817],
    ],
    -0.18961,
    0.71147,
);
const K_VERTICAL: Fit<4> = (
    [
        [-3.80595, 0.56934, 0.81061],
        [-3.44965, -0.22911, 0.51059],
        [-0.39902, 0.73042, 0.11899],
        [0.50167, 1.07319, 0.27195],
    ],
    -0.16398,
    0.63297,
);
const ALPHA_HORIZONTAL: Fit<5> = (
    [
        [-0.14318, 1.82442, -0.55187],
        [0.29591, 0.77564, 0.19822],
        [0.32177, 0.63773, 0.13164],
        [-5.37610, -0.96230, 1.47828],
        [16.1721, -3.29980, 3.43990],
    ],
    0.67849,
    -1.95537,
);
const ALPHA_VERTICAL: Fit<5> = (
    [
        [-0.07771, 2.33840, -0.76284],
        [0.56727, 0.95545, 0.54039],
        [-0.20238, 1.14520, 0.26809],
        [-48.2991, 0.791669, 0.116226],
        [48.5833, 0.791459, 0.116479],
    ],
    -0.053739,
    0.83433,
);

/// Evaluates equations (2) and (3) of P.838-3.
fn fit<const N: usize>((terms, slope, offset): Fit<N>, log_f: f64) -> f64 {
    let term = |[a, b, c]: [f64; 3]| {
        let x = (log_f - b) / c;
        a * libm::exp(-x * x)
    };
    terms.into_iter().map(term).sum::<f64>() + slope * log_f + offset
}

/// Path of the signal through the rain.
#[derive(Clone, Debug, PartialEq)]
pub struct SlantPath {
    /// Frequency in GHz, 1 to 55 (range of the slant-path method).
    pub frequency_ghz: f64,
    /// Elevation of the satellite in degrees, above 0 and up to 90.
    pub elevation_deg: f64,
    /// Tilt of the polarisation from the horizontal in degrees, 0 to 90; 45 for circular polarisation.
    pub tilt_deg: f64,
    /// Height of the rain above sea level in km (ITU-R P.839: mean height of the 0 degree isotherm plus 0.36 km).
    pub rain_height_km: f64,
    /// Height of the station above sea level in km.
    pub station_height_km: f64,
    /// Latitude of the station in degrees.
    pub latitude_deg: f64,
}

impl Default for SlantPath {
    /// A Ka-band downlink to central Europe.
    fn default() -> Self {
        Self {
            frequency_ghz: 20.0,
            elevation_deg: 35.0,
            tilt_deg: 45.0,
            rain_height_km: 3.0,
            station_height_km: 0.0,
            latitude_deg: 47.0,
        }
    }
}

/// Effective radius of the Earth in km (P.618-13, section 2.2.1.1).
const EARTH_RADIUS_KM: f64 = 8500.0;

fn radians(degrees: f64) -> f64 {
    degrees * (core::f64::consts::PI / 180.0)
}

impl RainLaw {
    /// Computes the law for a frequency from 1 to 1000 GHz, an elevation and a polarisation tilt in degrees: equations (4) and
    /// (5) of P.838-3.
    pub fn new(frequency_ghz: f64, elevation_deg: f64, tilt_deg: f64) -> Self {
        let log_f = libm::log10(frequency_ghz);
        let k_h = libm::pow(10.0, fit(K_HORIZONTAL, log_f));
        let k_v = libm::pow(10.0, fit(K_VERTICAL, log_f));
        let (alpha_h, alpha_v) = (fit(ALPHA_HORIZONTAL, log_f), fit(ALPHA_VERTICAL, log_f));
        let cos = libm::cos(radians(elevation_deg));
        let mix = cos * cos * libm::cos(2.0 * radians(tilt_deg));
        let k = (k_h + k_v + (k_h - k_v) * mix) / 2.0;
        let alpha = (k_h * alpha_h + k_v * alpha_v + (k_h * alpha_h - k_v * alpha_v) * mix) / (2.0 * k);
        Self { k, alpha }
    }

    /// Returns the attenuation in dB/km at a rain rate in mm/h.
    pub fn db_per_km(self, rain_mm_h: f64) -> f64 {
        self.k * libm::pow(rain_mm_h, self.alpha)
    }
}

impl SlantPath {
    /// Checks that the path is possible.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let within = |field, value: f64, least, most, accepted| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError::new(field, value, accepted))
            }
        };
        within("frequency", self.frequency_ghz, 1.0, 55.0, "1 to 55 GHz")?;
        within("elevation", self.elevation_deg, 1.0, 90.0, "1 to 90 degrees")?;
        within("tilt", self.tilt_deg, 0.0, 90.0, "0 to 90 degrees")?;
        within("rain_height", self.rain_height_km, 0.0, 10.0, "0 to 10 km")?;
        within("station_height", self.station_height_km, 0.0, 10.0, "0 to 10 km")?;
        within("latitude", self.latitude_deg, -90.0, 90.0, "-90 to 90 degrees")
    }

    /// Returns the attenuation in dB at a rain rate in mm/h at the station. It is the specific attenuation times the effective
    /// path length through the rain (P.618-13, section 2.2.1.1, steps 2 to 9).
    ///
    /// The Recommendation defines the effective length for the rate exceeded in 0.01 % of the year. Here it is used for the
    /// present rate: heavier rain has smaller cells at any time.
    pub fn attenuation_db(&self, rain_mm_h: f64) -> f64 {
        let height = self.rain_height_km - self.station_height_km;
        if height <= 0.0 || rain_mm_h <= 0.0 {
            return 0.0;
        }
        let gamma = RainLaw::new(self.frequency_ghz, self.elevation_deg, self.tilt_deg).db_per_km(rain_mm_h);
        gamma * self.effective_length_km(height, gamma)
    }

    /// Steps 2 to 9: length of the path below the top of the rain, reduced because rain cells are finite.
    fn effective_length_km(&self, height: f64, gamma: f64) -> f64 {
        let (f, elevation) = (self.frequency_ghz, radians(self.elevation_deg));
        let (sin, cos) = (libm::sin(elevation), libm::cos(elevation));
        let slant = if self.elevation_deg >= 5.0 {
            height / sin
        } else {
            2.0 * height / (libm::sqrt(sin * sin + 2.0 * height / EARTH_RADIUS_KM) + sin)
        };
        let ground = slant * cos;
        let shrink = 0.78 * libm::sqrt(ground * gamma / f) + 0.38 * libm::expm1(-2.0 * ground);
        let horizontal = 1.0 / (1.0 + shrink);
        let zeta = libm::atan2(height, ground * horizontal);
        let within = if zeta > elevation { ground * horizontal / cos } else { height / sin };
        let chi = (36.0 - libm::fabs(self.latitude_deg)).max(0.0);
        let grow =
            -31.0 * libm::expm1(-self.elevation_deg / (1.0 + chi)) * libm::sqrt(within * gamma) / (f * f);
        within / (1.0 + libm::sqrt(sin) * (grow - 0.45))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, relative: f64) {
        assert!((found / expected - 1.0).abs() < relative, "found {found}, expected {expected}");
    }

    /// P.838-3, table 5: k and alpha, horizontal and vertical.
    #[test]
    fn coefficients_are_those_of_the_table() {
        for (f, k_h, alpha_h, k_v, alpha_v) in [
            (10.0, 0.01217, 1.2571, 0.01129, 1.2156),
            (12.0, 0.02386, 1.1825, 0.02455, 1.1216),
            (20.0, 0.09164, 1.0568, 0.09611, 0.9847),
            (30.0, 0.2403, 0.9485, 0.2291, 0.9129),
        ] {
            let (horizontal, vertical) = (RainLaw::new(f, 0.0, 0.0), RainLaw::new(f, 0.0, 90.0));
            close(horizontal.k, k_h, 5e-4);
            close(horizontal.alpha, alpha_h, 1e-4);
            close(vertical.k, k_v, 5e-4);
            close(vertical.alpha, alpha_v, 1e-4);
        }
    }

    /// A case of the validation examples of ITU-R Study Group 3 (CG-3M3J-13): London, 14.25 GHz.
    const LONDON: SlantPath = SlantPath {
        frequency_ghz: 14.25,
        elevation_deg: 31.076_991_235_657,
        tilt_deg: 0.0,
        rain_height_km: 2.452_740_000_000_000_3,
        station_height_km: 0.031_382_983_999_999_6,
        latitude_deg: 51.5,
    };

    #[test]
    fn specific_attenuation_agrees_with_the_validation_example() {
        let law = RainLaw::new(LONDON.frequency_ghz, LONDON.elevation_deg, LONDON.tilt_deg);
        close(law.k, 0.039_754_879_732_931_3, 1e-9);
        close(law.alpha, 1.124_180_428_137_91, 1e-9);
        close(law.db_per_km(26.480_52), 1.581_308_393_668_69, 1e-9);
    }

    /// The example has 0.495317 dB exceeded in 1 % of the year; step 10 of the Recommendation converts from 0.01 %.
    #[test]
    fn the_slant_path_agrees_with_the_validation_example() {
        let rare = LONDON.attenuation_db(26.480_52);
        let scaled = rare * libm::pow(100.0, -(0.655 - 0.045 * libm::log(rare)));
        close(scaled, 0.495_317, 1e-3);
    }

    #[test]
    fn more_rain_a_higher_frequency_and_a_lower_satellite_weaken_the_signal() {
        let path = SlantPath::default();
        assert_eq!(path.attenuation_db(0.0), 0.0);
        let rates: Vec<_> = (0..150).map(|rate| path.attenuation_db(f64::from(rate))).collect();
        assert!(rates.is_sorted(), "{rates:?}");
        let at = |frequency_ghz, elevation_deg| SlantPath { frequency_ghz, elevation_deg, ..path.clone() };
        let bands = [4.0, 12.0, 20.0, 30.0, 50.0].map(|f| at(f, 35.0).attenuation_db(20.0));
        assert!(bands.is_sorted(), "{bands:?}");
        let elevations = [60.0, 45.0, 20.0, 10.0, 4.0].map(|e| at(20.0, e).attenuation_db(20.0));
        assert!(elevations.is_sorted(), "{elevations:?}");
        // A station above the rain has no attenuation.
        assert_eq!(SlantPath { station_height_km: 4.0, ..path }.attenuation_db(50.0), 0.0);
    }
}

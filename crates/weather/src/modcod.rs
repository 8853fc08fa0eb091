/// A modulation and code of DVB-S2 or DVB-S2X with normal FECFRAMEs (64,800 coded bits), without pilots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Modcod {
    /// Name as in the standard, in lower case: `qpsk 1/4`, `16apsk 2/3-l`.
    pub name: &'static str,
    /// Bits protected by the outer code per frame (K_bch); 80 of them are the BBFRAME header.
    pub k_bch: u32,
    /// Bits per symbol.
    pub bits_per_symbol: u32,
    /// Required Es/N0 in dB for quasi-error-free reception.
    pub es_n0_db: f64,
}

/// Header bits of a BBFRAME.
const HEADER_BITS: u32 = 80;
/// Coded bits per frame.
const FRAME_BITS: u32 = 64_800;
/// Symbols of a frame's physical-layer header, and of each slot of the rest.
const SLOT_SYMBOLS: u32 = 90;

impl Modcod {
    /// Returns the symbols per frame: header and whole slots.
    pub const fn symbols(&self) -> u32 {
        let payload = FRAME_BITS.div_ceil(self.bits_per_symbol);
        payload.div_ceil(SLOT_SYMBOLS) * SLOT_SYMBOLS + SLOT_SYMBOLS
    }

    /// Returns the packet bits per frame.
    pub const fn data_bits(&self) -> u32 {
        self.k_bch - HEADER_BITS
    }

    /// Returns the packet bits per symbol.
    pub fn efficiency(&self) -> f64 {
        f64::from(self.data_bits()) / f64::from(self.symbols())
    }
}

const fn modcod(name: &'static str, bits_per_symbol: u32, k_bch: u32, es_n0_db: f64) -> Modcod {
    Modcod { name, k_bch, bits_per_symbol, es_n0_db }
}

/// EN 302 307-1 V1.4.1, sorted by efficiency: K_bch from table 5a, ideal Es/N0 for a packet error rate of 1e-7 from
/// table 13.
pub const DVB_S2: &[Modcod] = &[
    modcod("qpsk 1/4", 2, 16_008, -2.35),
    modcod("qpsk 1/3", 2, 21_408, -1.24),
    modcod("qpsk 2/5", 2, 25_728, -0.30),
    modcod("qpsk 1/2", 2, 32_208, 1.00),
    modcod("qpsk 3/5", 2, 38_688, 2.23),
    modcod("qpsk 2/3", 2, 43_040, 3.10),
    modcod("qpsk 3/4", 2, 48_408, 4.03),
    modcod("qpsk 4/5", 2, 51_648, 4.68),
    modcod("qpsk 5/6", 2, 53_840, 5.18),
    modcod("qpsk 8/9", 2, 57_472, 6.20),
    modcod("8psk 3/5", 3, 38_688, 5.50),
    modcod("qpsk 9/10", 2, 58_192, 6.42),
    modcod("8psk 2/3", 3, 43_040, 6.62),
    modcod("8psk 3/4", 3, 48_408, 7.91),
    modcod("8psk 5/6", 3, 53_840, 9.35),
    modcod("16apsk 2/3", 4, 43_040, 8.97),
    modcod("8psk 8/9", 3, 57_472, 10.69),
    modcod("8psk 9/10", 3, 58_192, 10.98),
    modcod("16apsk 3/4", 4, 48_408, 10.21),
    modcod("16apsk 4/5", 4, 51_648, 11.03),
    modcod("16apsk 5/6", 4, 53_840, 11.61),
    modcod("16apsk 8/9", 4, 57_472, 12.89),
    modcod("16apsk 9/10", 4, 58_192, 13.13),
    modcod("32apsk 3/4", 5, 48_408, 12.73),
    modcod("32apsk 4/5", 5, 51_648, 13.64),
    modcod("32apsk 5/6", 5, 53_840, 14.28),
    modcod("32apsk 8/9", 5, 57_472, 15.69),
    modcod("32apsk 9/10", 5, 58_192, 16.05),
];

/// EN 302 307-2 V1.1.1 (DVB-S2X): additional modulations and codes from table 20a, sorted by efficiency.
pub const DVB_S2X: &[Modcod] = &[
    modcod("qpsk 2/9", 2, 14_208, -2.85),
    modcod("qpsk 13/45", 2, 18_528, -2.03),
    modcod("qpsk 9/20", 2, 28_968, 0.22),
    modcod("qpsk 11/20", 2, 35_448, 1.45),
    modcod("8apsk 5/9-l", 3, 35_808, 4.73),
    modcod("8apsk 26/45-l", 3, 37_248, 5.13),
    modcod("8psk 23/36", 3, 41_208, 6.12),
    modcod("16apsk 1/2-l", 4, 32_208, 5.97),
    modcod("8psk 25/36", 3, 44_808, 7.02),
    modcod("16apsk 8/15-l", 4, 34_368, 6.55),
    modcod("8psk 13/18", 3, 46_608, 7.49),
    modcod("16apsk 5/9-l", 4, 35_808, 6.84),
    modcod("16apsk 26/45", 4, 37_248, 7.51),
    modcod("16apsk 3/5", 4, 38_688, 7.80),
    modcod("16apsk 3/5-l", 4, 38_688, 7.41),
    modcod("16apsk 28/45", 4, 40_128, 8.10),
    modcod("16apsk 23/36", 4, 41_208, 8.38),
    modcod("16apsk 2/3-l", 4, 43_008, 8.43),
    modcod("16apsk 25/36", 4, 44_808, 9.27),
    modcod("16apsk 13/18", 4, 46_608, 9.71),
    modcod("16apsk 7/9", 4, 50_208, 10.65),
    modcod("32apsk 2/3-l", 5, 43_040, 11.10),
    modcod("16apsk 77/90", 4, 55_248, 11.99),
    modcod("32apsk 32/45", 5, 45_888, 11.75),
    modcod("32apsk 11/15", 5, 47_328, 12.17),
    modcod("32apsk 7/9", 5, 50_208, 13.05),
    modcod("64apsk 32/45-l", 6, 45_888, 13.98),
    modcod("64apsk 11/15", 6, 47_328, 14.81),
    modcod("64apsk 7/9", 6, 50_208, 15.47),
    modcod("64apsk 4/5", 6, 51_648, 15.87),
    modcod("64apsk 5/6", 6, 53_840, 16.55),
    modcod("256apsk 29/45-l", 8, 41_568, 16.98),
    modcod("128apsk 3/4", 7, 48_408, 17.73),
    modcod("256apsk 2/3-l", 8, 43_008, 17.24),
    modcod("128apsk 7/9", 7, 50_208, 18.53),
    modcod("256apsk 31/45-l", 8, 44_448, 18.10),
    modcod("256apsk 32/45", 8, 45_888, 18.59),
    modcod("256apsk 11/15-l", 8, 47_328, 18.84),
    modcod("256apsk 3/4", 8, 48_408, 19.57),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn efficiency(name: &str) -> f64 {
        DVB_S2.iter().chain(DVB_S2X).find(|modcod| modcod.name == name).unwrap().efficiency()
    }

    /// Compares with the column "spectral efficiency" of table 13 of EN 302 307-1 and table 20a of EN 302 307-2.
    #[test]
    fn efficiencies_are_those_of_the_standard() {
        for (name, expected) in [
            ("qpsk 1/4", 0.490243),
            ("qpsk 1/2", 0.988858),
            ("qpsk 9/10", 1.788612),
            ("8psk 3/5", 1.779991),
            ("8psk 9/10", 2.679207),
            ("16apsk 2/3", 2.637201),
            ("16apsk 9/10", 3.567342),
            ("32apsk 3/4", 3.703295),
            ("32apsk 9/10", 4.453027),
            ("qpsk 2/9", 0.434841),
            ("8apsk 5/9-l", 1.647211),
            ("16apsk 77/90", 3.386618),
            ("32apsk 2/3-l", 3.291954),
            ("64apsk 5/6", 4.936639),
            ("128apsk 3/4", 5.163248),
            ("256apsk 29/45-l", 5.065690),
            ("256apsk 3/4", 5.900855),
        ] {
            let found = efficiency(name);
            assert!((found - expected).abs() < 1e-6, "{name}: found {found}, expected {expected}");
        }
    }

    #[test]
    fn tables_are_sorted_by_efficiency_and_names_are_unique() {
        for table in [DVB_S2, DVB_S2X] {
            assert!(table.is_sorted_by(|a, b| a.efficiency() <= b.efficiency()));
        }
        let mut names: Vec<_> = DVB_S2.iter().chain(DVB_S2X).map(|modcod| modcod.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 28 + 39);
    }

    #[test]
    fn no_code_beats_shannon() {
        for modcod in DVB_S2.iter().chain(DVB_S2X) {
            let capacity = libm::log2(1.0 + libm::pow(10.0, modcod.es_n0_db / 10.0));
            assert!(modcod.efficiency() < capacity, "{}", modcod.name);
            assert!(modcod.efficiency() > 0.6 * capacity, "{} is far from any code of its kind", modcod.name);
        }
    }
}

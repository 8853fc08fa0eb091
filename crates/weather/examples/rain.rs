//! Prints attenuation and signal of a Ka-band downlink for several rain rates.
//!
//! `cargo run --package bentpipe-weather --example rain`

use bentpipe_weather::{Modem, SlantPath};

fn main() {
    let (path, modem) = (SlantPath::default(), Modem::default());
    for rain_mm_h in [0.0, 5.0, 20.0, 50.0] {
        let attenuation_db = path.attenuation_db(rain_mm_h);
        let signal_db = modem.clear_sky_db - attenuation_db;
        println!("{rain_mm_h:4} mm/h: attenuation {attenuation_db:4.1} dB, Es/N0 {signal_db:4.1} dB");
    }
}

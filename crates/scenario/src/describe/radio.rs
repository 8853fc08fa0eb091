use std::path::Path;

use bentpipe_base::Duration;
use bentpipe_weather::{Acm, Coding, Modcod, Modem, SlantPath, Standard, Weather};

use super::schedule::Points;
use crate::error::Place;
use crate::file::read_text;
use crate::form::{Form, Keys};
use crate::suggest::did_you_mean;
use crate::tree::{Node, Value};
use crate::unit::{
    Codec, DECIBEL, DECIBEL_FROM_ZERO, DEGREES, GIGAHERTZ, KILOMETRES, RAIN_RATE, Refused, SYMBOL_RATE, TEXT,
    TIME, TIME_ABOVE_ZERO, Words,
};

const MODEM_KINDS: &[Keys] = &[("none", &[]), ("dvb-s2", MODEM_KEYS), ("dvb-s2x", MODEM_KEYS)];

const MODEM_KEYS: &[&str] =
    &["symbol-rate", "clear-sky", "modcod", "margin", "hysteresis", "interval", "feedback-delay"];

/// Modem of a link; `None` if the scenario sets rate and losses directly.
pub(super) fn modem(form: &mut Form<'_>, modem: &mut Option<Modem>) {
    let name = |standard: Standard| if standard == Standard::DvbS2 { "dvb-s2" } else { "dvb-s2x" };
    let current = modem.as_ref().map_or("none", |modem| name(modem.standard));
    form.kinds(current, MODEM_KINDS, |form, kind| match kind {
        "none" => *modem = None,
        kind => {
            let modem = modem.get_or_insert_with(Modem::default);
            modem.standard = if kind == "dvb-s2" { Standard::DvbS2 } else { Standard::DvbS2x };
            dvb(form, modem);
        }
    });
}

fn dvb(form: &mut Form<'_>, modem: &mut Modem) {
    form.field("symbol-rate", &mut modem.symbol_rate, &SYMBOL_RATE);
    form.field("clear-sky", &mut modem.clear_sky_db, &DECIBEL);
    let mut modcod = match modem.coding {
        Coding::Fixed(modcod) => Some(modcod),
        Coding::Adaptive(_) => None,
    };
    form.field("modcod", &mut modcod, &Modcods(modem.standard));
    match (modcod, &mut modem.coding) {
        (Some(modcod), coding) => *coding = Coding::Fixed(modcod),
        (None, Coding::Adaptive(acm)) => adaptive(form, acm),
        (None, coding) => {
            let mut acm = Acm::default();
            adaptive(form, &mut acm);
            *coding = Coding::Adaptive(acm);
        }
    }
}

fn adaptive(form: &mut Form<'_>, acm: &mut Acm) {
    form.field("margin", &mut acm.margin_db, &DECIBEL_FROM_ZERO);
    form.field("hysteresis", &mut acm.hysteresis_db, &DECIBEL_FROM_ZERO);
    form.field("interval", &mut acm.interval, &TIME_ABOVE_ZERO);
    form.field("feedback-delay", &mut acm.feedback_delay, &TIME);
}

/// Codec of a modulation and coding name, or `"adaptive"`.
struct Modcods(Standard);

impl Codec<Option<&'static Modcod>> for Modcods {
    fn read(&self, value: &Value) -> Result<Option<&'static Modcod>, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        if text == "adaptive" {
            return Ok(None);
        }
        self.0.find(text).map(Some).ok_or_else(|| {
            let names: Vec<_> = self.0.all().map(|modcod| modcod.name).collect();
            Refused::meant(did_you_mean(text, &names))
        })
    }
    fn show(&self, typed: &Option<&'static Modcod>) -> Value {
        Value::Text(typed.map_or("adaptive", |modcod| modcod.name).to_owned())
    }
    fn accepted(&self) -> String {
        let names: Vec<_> = self.0.all().map(|modcod| modcod.name).collect();
        format!("\"adaptive\", or a modulation and code: {}", names.join(", "))
    }
}

const RAIN_KEYS: &[&str] =
    &["rain", "frequency", "elevation", "polarisation", "rain-height", "station-height", "latitude"];

const FILE_KEYS: &[&str] =
    &["file", "frequency", "elevation", "polarisation", "rain-height", "station-height", "latitude"];

const WEATHER_KINDS: &[Keys] =
    &[("clear", &[]), ("attenuation", &["attenuation"]), ("rain", RAIN_KEYS), ("file", FILE_KEYS)];

/// Weather on a link.
pub(super) fn weather(form: &mut Form<'_>, weather: &mut Weather) {
    form.kinds(weather.name(), WEATHER_KINDS, |form, kind| match kind {
        "attenuation" => {
            let mut points = match weather {
                Weather::Attenuation { points } => std::mem::take(points),
                _ => Vec::new(),
            };
            form.required("attenuation", &mut points, &Points(&DECIBEL_FROM_ZERO));
            *weather = Weather::Attenuation { points };
        }
        "rain" => {
            let (mut points, mut path) = rain(weather);
            form.required("rain", &mut points, &Points(&RAIN_RATE));
            slant(form, &mut path);
            *weather = Weather::Rain { points, path };
        }
        "file" => {
            let (_, mut path) = rain(weather);
            let series = recorded(form);
            slant(form, &mut path);
            *weather = match series {
                Some(Recorded::Rain(points)) => Weather::Rain { points, path },
                Some(Recorded::Attenuation(points)) => Weather::Attenuation { points },
                None => Weather::Clear,
            };
        }
        _ => *weather = Weather::Clear,
    });
}

fn rain(weather: &Weather) -> (Vec<(Duration, f64)>, SlantPath) {
    match weather {
        Weather::Rain { points, path } => (points.clone(), path.clone()),
        _ => (Vec::new(), SlantPath::default()),
    }
}

fn slant(form: &mut Form<'_>, path: &mut SlantPath) {
    form.field("frequency", &mut path.frequency_ghz, &GIGAHERTZ);
    form.field("elevation", &mut path.elevation_deg, &DEGREES);
    form.field("polarisation", &mut path.tilt_deg, &Polarisation);
    form.field("rain-height", &mut path.rain_height_km, &KILOMETRES);
    form.field("station-height", &mut path.station_height_km, &KILOMETRES);
    form.field("latitude", &mut path.latitude_deg, &DEGREES);
}

/// Codec of a tilt from the horizontal, or its name.
struct Polarisation;

const POLARISATIONS: Words<f64> = Words(&[("horizontal", 0.0), ("vertical", 90.0), ("circular", 45.0)]);

impl Codec<f64> for Polarisation {
    fn read(&self, value: &Value) -> Result<f64, Refused> {
        POLARISATIONS.read(value).or_else(|word| DEGREES.read(value).map_err(|_| word))
    }
    fn show(&self, typed: &f64) -> Value {
        let is_word = POLARISATIONS.0.iter().any(|(_, tilt)| tilt == typed);
        if is_word { POLARISATIONS.show(typed) } else { DEGREES.show(typed) }
    }
    fn accepted(&self) -> String {
        format!("{}, or a tilt from the horizontal such as \"30 deg\"", POLARISATIONS.accepted())
    }
}

/// Content of a weather file.
enum Recorded {
    Rain(Vec<(Duration, f64)>),
    Attenuation(Vec<(Duration, f64)>),
}

const RECORDED: &str = "a file of lines `seconds,value` below a line `time_s,attenuation_db` or `time_s,rain_mm_h`, \
    its path as seen from the scenario";

/// Reads the key `file`. Output shows the points, so that a printed scenario needs no file.
fn recorded(form: &mut Form<'_>) -> Option<Recorded> {
    let mut name = String::new();
    form.required("file", &mut name, &TEXT);
    let Form::Read(reading) = form else { return None };
    let node: &Node = reading.get("file")?;
    let beside = match &node.place {
        Place::File { file, .. } => Path::new(file.as_ref()).parent(),
        _ => None,
    };
    let path = beside.map_or_else(|| Path::new(&name).to_owned(), |beside| beside.join(&name));
    let series = read_text(&path).ok().and_then(|text| parse(&text));
    if series.is_none() {
        reading.refuse("file", node, RECORDED.to_owned(), None);
    }
    series
}

fn parse(text: &str) -> Option<Recorded> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let head = lines.next()?;
    let point = |line: &str| {
        let (time, value) = line.split_once(',')?;
        let (time, value): (f64, f64) = (time.trim().parse().ok()?, value.trim().parse().ok()?);
        (time >= 0.0).then(|| (Duration::from_secs_f64(time), value))
    };
    let points = lines.map(point).collect::<Option<Vec<_>>>()?;
    match head {
        "time_s,rain_mm_h" => Some(Recorded::Rain(points)),
        "time_s,attenuation_db" => Some(Recorded::Attenuation(points)),
        _ => None,
    }
}

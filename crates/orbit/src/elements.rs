//! Two-line elements, propagated by SGP4.

use core::f64::consts::TAU;

use sgp4::{Constants, MinutesSinceEpoch};

use crate::error::OrbitError;
use crate::planes::{Closure, Planes, Satellite};
use crate::vector::Vector;

/// Length of an element line.
const LINE_LENGTH: usize = 69;

/// Maximum difference of ascending nodes within a plane, in degrees. Operational shells keep their planes to a fraction of a
/// degree, at least 5 degrees apart.
const PLANE_GAP_DEG: f64 = 1.0;

/// A satellite.
#[derive(Debug)]
pub(crate) struct Elements {
    pub name: String,
    constants: Constants,
    /// Years from J2000 to the epoch, for the sidereal time.
    epoch_years: f64,
    /// Minutes from the epoch to time zero.
    minutes_at_zero: f64,
    mean_motion_per_day: f64,
    eccentricity: f64,
    inclination_deg: f64,
}

impl Elements {
    /// Returns the position `seconds` after time zero.
    pub fn position(&self, seconds: f64) -> Result<Vector, OrbitError> {
        self.state(seconds).map(|(position, _)| position)
    }

    /// Returns position in km and velocity in km/s.
    fn state(&self, seconds: f64) -> Result<(Vector, Vector), OrbitError> {
        let minutes = self.minutes_at_zero + seconds / 60.0;
        let vector = |[x, y, z]: [f64; 3]| Vector { x, y, z };
        match self.constants.propagate_afspc_compatibility_mode(MinutesSinceEpoch(minutes)) {
            Ok(prediction) if prediction.position.iter().all(|part| part.is_finite()) => {
                Ok((vector(prediction.position), vector(prediction.velocity)))
            }
            Ok(_) => Err(self.lost(seconds, "no finite number".to_owned())),
            Err(error) => Err(self.lost(seconds, error.to_string())),
        }
    }

    fn lost(&self, seconds: f64, what: String) -> OrbitError {
        OrbitError::Lost { satellite: self.name.clone(), seconds, what }
    }

    /// Returns the maximum latitude in radians, plus one degree for SGP4's deviation from the Keplerian orbit.
    pub fn northernmost(&self) -> f64 {
        let from_pole = libm::fabs(90.0 - self.inclination_deg);
        (91.0 - from_pole).to_radians()
    }

    /// Returns bounds of the angular speed in radians per second and of the distance from the Earth's centre in km. They include
    /// 2 % for SGP4's deviation from the Keplerian orbit.
    pub fn bounds(&self) -> (f64, f64) {
        let mean_motion = TAU * self.mean_motion_per_day / 86_400.0;
        let axis = libm::cbrt(crate::earth::GRAVITY_KM3_PER_S2 / (mean_motion * mean_motion));
        let e = self.eccentricity;
        let at_perigee = mean_motion * libm::sqrt(1.0 - e * e) / ((1.0 - e) * (1.0 - e));
        (at_perigee * 1.02, axis * (1.0 + e) * 1.02)
    }
}

/// Reads the satellites of a text; empty lines and lines that begin with `#` are ignored.
pub(crate) fn read(text: &str) -> Result<Vec<Elements>, OrbitError> {
    let lines = text.lines().map(str::trim_end).enumerate().map(|(index, line)| (index + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    let mut read = Vec::new();
    while let Some((number, line)) = lines.next() {
        let (name, (first_number, first)) = if line.starts_with("1 ") {
            (None, (number, line))
        } else {
            let name = line.strip_prefix("0 ").unwrap_or(line).trim();
            match lines.next() {
                Some(first) if first.1.starts_with("1 ") => (Some(name), first),
                _ => return Err(broken(number, "neither an element line nor a name before one".to_owned())),
            }
        };
        let Some((second_number, second)) = lines.next_if(|(_, line)| line.starts_with("2 ")) else {
            return Err(broken(first_number, "its second line, which begins with 2, is missing".to_owned()));
        };
        check(first_number, first)?;
        check(second_number, second)?;
        read.push((first_number, parse(name, first_number, first, second)?));
    }
    let Some(latest) = read.iter().map(|(_, parsed)| parsed.datetime).max() else {
        return Err(broken(1, "no elements in the text".to_owned()));
    };
    read.into_iter().map(|(number, parsed)| elements(number, parsed, &latest)).collect()
}

fn broken(line: usize, what: String) -> OrbitError {
    OrbitError::Elements { line, what }
}

/// Checks length, characters and checksum of a line.
fn check(number: usize, line: &str) -> Result<(), OrbitError> {
    if !line.is_ascii() {
        return Err(broken(number, "found a character that is not ASCII".to_owned()));
    }
    if line.len() != LINE_LENGTH {
        let what = format!("found {} characters, accepted: {LINE_LENGTH}", line.len());
        return Err(broken(number, what));
    }
    let (body, found) = line.split_at(LINE_LENGTH - 1);
    let value = |byte: u8| match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        b'-' => 1,
        _ => 0,
    };
    let sum = body.bytes().map(value).sum::<u32>() % 10;
    if found != sum.to_string() {
        return Err(broken(number, format!("found checksum {found}, but the line adds up to {sum}")));
    }
    Ok(())
}

fn parse(name: Option<&str>, number: usize, first: &str, second: &str) -> Result<sgp4::Elements, OrbitError> {
    sgp4::Elements::from_tle(name.map(str::to_owned), first.as_bytes(), second.as_bytes())
        .map_err(|error| broken(number, error.to_string()))
}

/// Makes a satellite from its lines; `zero` is the epoch at time zero.
fn elements(
    number: usize,
    parsed: sgp4::Elements,
    zero: &sgp4::chrono::NaiveDateTime,
) -> Result<Elements, OrbitError> {
    let refused = |what: String| broken(number, what);
    // Published elements are fitted to the constants of WGS 72 (Vallado et al., "Revisiting Spacetrack Report #3", AIAA 2006-6753).
    let constants = Constants::from_elements_afspc_compatibility_mode(&parsed)
        .map_err(|error| refused(error.to_string()))?;
    let since = parsed.datetime_to_minutes_since_epoch(zero).map_err(|error| refused(error.to_string()))?;
    let name = parsed.object_name.clone().unwrap_or_else(|| parsed.norad_id.to_string());
    Ok(Elements {
        name,
        constants,
        epoch_years: parsed.epoch(),
        minutes_at_zero: since.0,
        mean_motion_per_day: parsed.mean_motion,
        eccentricity: parsed.eccentricity,
        inclination_deg: parsed.inclination,
    })
}

/// Returns the angle of Greenwich from the x axis at time zero, the latest epoch.
pub(crate) fn greenwich(elements: &[Elements]) -> f64 {
    let latest = elements.iter().map(|satellite| satellite.epoch_years).fold(f64::MIN, f64::max);
    sgp4::iau_epoch_to_sidereal_time(latest)
}

/// Groups satellites with close ascending nodes at time zero into planes, from west to east, with the widest gap last.
pub(crate) fn planes(elements: &[Elements]) -> Result<Planes, OrbitError> {
    let mut nodes = Vec::new();
    let mut phases = Vec::new();
    for (satellite, orbit) in elements.iter().enumerate() {
        let (position, velocity) = orbit.state(0.0)?;
        let normal = cross(position, velocity);
        let node = Vector { x: -normal.y, y: normal.x, z: 0.0 };
        let ahead = cross(normal, node) * (1.0 / normal.length());
        phases.push(full_turn(libm::atan2(position.dot(ahead), position.dot(node))));
        nodes.push((full_turn(libm::atan2(node.y, node.x)).to_degrees(), satellite as Satellite));
    }
    nodes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let gap_after = |index: usize| {
        let next = nodes[(index + 1) % nodes.len()].0;
        let gap = next - nodes[index].0;
        if index + 1 == nodes.len() { gap + 360.0 } else { gap }
    };
    let gaps = (0..nodes.len()).map(|index| (gap_after(index), index)).filter(|gap| gap.0 > PLANE_GAP_DEG);
    let gaps: Vec<_> = gaps.collect();
    let widest = gaps.iter().max_by(|a, b| a.0.total_cmp(&b.0)).copied().unwrap_or((360.0, nodes.len() - 1));
    let mut members = vec![Vec::new()];
    for step in 1..=nodes.len() {
        let index = (widest.1 + step) % nodes.len();
        members.last_mut().expect("one plane from the start").push(nodes[index].1);
        if step < nodes.len() && gap_after(index) > PLANE_GAP_DEG {
            members.push(Vec::new());
        }
    }
    for plane in &mut members {
        plane.sort_by(|a, b| phases[*a as usize].total_cmp(&phases[*b as usize]));
    }
    let closure = match members.len() {
        0..=2 => Closure::Open,
        planes if widest.0 < 2.0 * 360.0 / planes as f64 => Closure::Ring,
        _ => Closure::Seam,
    };
    Ok(Planes { members, phases, closure })
}

fn cross(a: Vector, b: Vector) -> Vector {
    Vector { x: a.y * b.z - a.z * b.y, y: a.z * b.x - a.x * b.z, z: a.x * b.y - a.y * b.x }
}

fn full_turn(angle: f64) -> f64 {
    if angle < 0.0 { angle + TAU } else { angle }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753";
    const SECOND: &str = "2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667";

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn vanguard_1_is_where_the_reference_implementation_has_it() {
        // AIAA 2006-6753, verification output of satellite 5.
        let satellite = &read(&format!("{FIRST}\n{SECOND}\n")).unwrap()[0];
        let expected = [
            (0.0, [7022.46529266, -1400.08296755, 0.03995155]),
            (360.0, [-7154.03120202, -3783.17682504, -3536.19412294]),
        ];
        for (minutes, [x, y, z]) in expected {
            let off = satellite.position(minutes * 60.0).unwrap() - Vector { x, y, z };
            assert!(off.length() < 1e-3, "{minutes} min: {off:?}");
        }
    }

    #[test]
    fn names_and_comments_are_read() {
        let satellites =
            read(&format!("# one\n0 VANGUARD 1\n{FIRST}\n{SECOND}\n\n{FIRST}\n{SECOND}")).unwrap();
        let names: Vec<_> = satellites.iter().map(|satellite| satellite.name.as_str()).collect();
        assert_eq!(names, ["VANGUARD 1", "5"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong_sum = FIRST.replace("4753", "4754");
        let found = refused(&format!("# made up\n{wrong_sum}\n{SECOND}"));
        assert_eq!(found, "line 2: found checksum 4, but the line adds up to 3");
        let found = refused(&format!("NAME\n{FIRST}\n{}", &SECOND[..60]));
        assert_eq!(found, "line 3: found 60 characters, accepted: 69");
        let found = refused(FIRST);
        assert_eq!(found, "line 1: its second line, which begins with 2, is missing");
        assert_eq!(refused("\n\n"), "line 1: no elements in the text");
        assert_eq!(refused("nonsense"), "line 1: neither an element line nor a name before one");
        let garbled = FIRST.replace("58002B", "5800ß");
        assert!(refused(&format!("{garbled}\n{SECOND}")).starts_with("line 1: found a character"));
        let other = SECOND.replace("00005", "00006").replace("413667", "413668");
        assert!(refused(&format!("{FIRST}\n{other}")).starts_with("line 1: "));
    }
}

//! Satellites that a constellation leaves out, for its user.

use bentpipe_base::Duration;
use bentpipe_orbit::{LeftOut, Reason};

use crate::model::Scenario;
use crate::sky::{ConstellationGroup, Orbits};

/// Maximum number of satellites named in a sentence.
const NAMED: usize = 5;

impl Scenario {
    /// Returns a line for each satellite that cannot fly, or that has no links and therefore serves no station.
    pub fn satellites_left_out(&self) -> Vec<String> {
        let lines = |group: &ConstellationGroup| {
            let line = |one: &LeftOut| format!("constellation.{}: {}", group.name, group.said(one));
            group.left_out(self.duration).iter().map(line).collect::<Vec<_>>()
        };
        self.constellations.iter().flat_map(lines).collect()
    }

    /// Returns a sentence for each kind of reason why satellites are left out. It names the first satellites.
    pub fn notes_on_satellites(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for group in &self.constellations {
            let all = group.left_out(self.duration);
            let (lost, idle): (Vec<_>, Vec<_>) =
                all.iter().partition(|one| matches!(one.reason, Reason::CannotFly(_)));
            let idle = (idle, ["has no links and serves no station", "have no links and serve no station"]);
            for (satellites, what) in [(lost, ["cannot fly"; 2]), idle] {
                let mut named: Vec<_> = satellites.iter().take(NAMED).map(|one| group.said(one)).collect();
                if satellites.len() > NAMED {
                    named.push(format!("{} more, see `bentpipe show`", satellites.len() - NAMED));
                }
                if !named.is_empty() {
                    let name = &group.name;
                    let what = match satellites.len() {
                        1 => format!("1 satellite {}", what[0]),
                        count => format!("{count} satellites {}", what[1]),
                    };
                    notes.push(format!("constellation.{name}: {what}: {}", named.join("; ")));
                }
            }
        }
        notes
    }
}

impl ConstellationGroup {
    /// Returns the satellites that are left out of a run of this duration. Without links between satellites, the shells do not
    /// matter.
    fn left_out(&self, duration: Duration) -> Vec<LeftOut> {
        let all = self.fly(duration).map(|satellites| satellites.left_out().to_vec()).unwrap_or_default();
        let counts = |one: &LeftOut| self.links.is_some() || matches!(one.reason, Reason::CannotFly(_));
        all.into_iter().filter(counts).collect()
    }

    fn said(&self, LeftOut { satellite, line, reason }: &LeftOut) -> String {
        let file = match &self.orbits {
            Orbits::Elements { file, .. } => file,
            Orbits::Shell(_) | Orbits::Geostationary(_) => "",
        };
        let space = if satellite.is_empty() { "" } else { " " };
        format!("{satellite}{space}({file}:{line}): {reason}")
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::Draft;

    const BENT_PIPES: &str = "constellation.starlink.links=none";

    /// Returns a scenario over elements of a shell, with `more` behind them.
    fn scenario(more: &str, settings: &[&str]) -> Scenario {
        let folder = tempfile::tempdir().unwrap();
        let shell = include_str!("../../scenarios/starlink-shell.tle");
        std::fs::write(folder.path().join("sky.tle"), format!("{shell}{more}")).unwrap();
        let mut text = include_str!("../../scenarios/leo-starlink.toml").replace("starlink-shell", "sky.tle");
        if settings.contains(&BENT_PIPES) {
            let between =
                "[constellation.starlink.between]\nrate = \"10 Gbit/s\"\nqueue = \"1000 packets\"\n";
            text = text.replace(between, "");
        }
        let file = folder.path().join("sky.toml");
        std::fs::write(&file, text).unwrap();
        let mut draft = Draft::load(file.to_str().unwrap()).unwrap();
        settings.iter().for_each(|setting| draft.set(setting).unwrap());
        draft.scenario().unwrap()
    }

    fn climbing(count: usize) -> String {
        let summed = |body: String| {
            let value = |c: char| if c == '-' { 1 } else { c.to_digit(10).unwrap_or(0) };
            let sum = body.chars().map(value).sum::<u32>() % 10;
            format!("{body}{sum}\n")
        };
        (0..count).fold(String::new(), |mut text, number| {
            let id = 90_000 + number;
            let first = format!("1 {id}U 26001A   26001.00000000  .00000000  00000-0  00000-0 0  999");
            let second = format!("2 {id}  53.0000   7.0000 0000001   0.0000   9.0000 15.40000000    1");
            write!(text, "CLIMBS-{number}\n{}{}", summed(first), summed(second)).unwrap();
            text
        })
    }

    #[test]
    fn satellites_left_out_are_named_with_file_line_and_reason() {
        assert!(scenario("", &[]).notes_on_satellites().is_empty());
        let of = scenario(&format!("{}BROKEN\n1 short line that is no element line\n", climbing(7)), &[]);
        let [lost, idle] = &of.notes_on_satellites()[..] else { panic!("{:?}", of.notes_on_satellites()) };
        let broken = "constellation.starlink: 1 satellite cannot fly: (sky.tle:3193): its second line";
        assert!(lost.starts_with(broken), "{lost}");
        let climbs = "constellation.starlink: 7 satellites have no links and serve no station: CLIMBS-0 (sky.tle:3172): 104 km below \
                      its shell; CLIMBS-1 (sky.tle:3175): ";
        assert!(idle.starts_with(climbs) && idle.ends_with("; 2 more, see `bentpipe show`"), "{idle}");
        assert_eq!(of.satellites_left_out().len(), 8);
        let bent_pipes = scenario(&climbing(7), &[BENT_PIPES]);
        assert!(bent_pipes.satellites_left_out().is_empty());
    }

    #[test]
    fn a_run_begins_at_the_epoch_that_is_given() {
        let epoch = |text: &str| {
            let scenario = scenario("", &[&format!("constellation.starlink.epoch={text}")]);
            scenario.constellations[0].fly(scenario.duration).unwrap().greenwich(bentpipe_base::Instant::ZERO)
        };
        assert_eq!(epoch("latest"), epoch("2026-01-01T01:00:00+01:00"));
        assert!(epoch("latest") != epoch("2026-01-01T06:00:00Z"));
    }
}

//! Unit that a loss rate counts: packets, bits or bytes.

use bentpipe_net::{LossConfig, LossModel};

use crate::model::Scenario;
use crate::sky::ConstellationGroup;

impl Scenario {
    /// Returns what the loss rate at a key of `--set` counts, such as "per bit". `None` for other keys and for models without a
    /// rate.
    pub fn loss_rate_counts(&self, key: &str) -> Option<&'static str> {
        let path = key.strip_suffix(".rate").unwrap_or(key);
        let (_, loss) = self.losses().into_iter().find(|(known, _)| known == path)?;
        counts(loss)
    }

    /// Returns a line for each loss rate of a link: its key, and what it counts. The other direction is listed if it differs.
    pub fn loss_rates(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for pair in self.losses().chunks(2) {
            let differs = pair[0].1 != pair[pair.len() - 1].1;
            for (key, loss) in &pair[..if differs { 2 } else { 1 }] {
                lines.extend(counts(loss).map(|counts| format!("{key}.rate: {counts}")));
            }
        }
        lines
    }

    /// Returns the transmission errors of all links with their keys, both directions in succession. Links between satellites have
    /// one direction and come last.
    fn losses(&self) -> Vec<(String, &LossConfig)> {
        let mut losses = Vec::new();
        for link in &self.links {
            let path = format!("link.{}", link.name);
            losses.push((format!("{path}.loss"), &link.forward.loss));
            losses.push((format!("{path}.reverse.loss"), &link.reverse.loss));
        }
        for group in &self.constellations {
            let path = format!("constellation.{}.ground", group.name);
            losses.push((format!("{path}.loss"), &group.up.loss));
            losses.push((format!("{path}.down.loss"), &group.down.loss));
        }
        let between = |group: &'_ ConstellationGroup| format!("constellation.{}.between.loss", group.name);
        losses.extend(self.constellations.iter().map(|group| (between(group), &group.between.loss)));
        losses
    }
}

/// Returns what the rate of a loss model counts.
fn counts(loss: &LossConfig) -> Option<&'static str> {
    match &loss.model {
        LossModel::Packet { .. } => Some("per packet"),
        LossModel::Bit { .. } => Some("per bit"),
        LossModel::Byte { .. } => Some("per byte"),
        LossModel::Bursts { .. } => Some("share of lost packets"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Draft;

    fn scenario(name: &str, settings: &[&str]) -> crate::Scenario {
        let mut draft = Draft::load(name).unwrap();
        settings.iter().for_each(|setting| draft.set(setting).unwrap());
        draft.scenario().unwrap()
    }

    #[test]
    fn a_loss_rate_counts_packets_bits_or_bytes() {
        for (kind, expected) in [
            ("packet", Some("per packet")),
            ("bit", Some("per bit")),
            ("byte", Some("per byte")),
            ("bursts", Some("share of lost packets")),
            ("none", None),
        ] {
            let setting = format!("link.satellite.loss={{ kind = \"{kind}\" }}");
            let scenario = scenario("geo-single", &[&setting]);
            for key in ["link.satellite.loss.rate", "link.satellite.reverse.loss.rate", "link.satellite.loss"]
            {
                assert_eq!(scenario.loss_rate_counts(key), expected, "{kind} {key}");
            }
            assert_eq!(scenario.loss_rate_counts("link.satellite.rate"), None);
        }
        let between = scenario("leo-iridium", &["constellation.iridium.between.loss=0.01"]);
        let key = "constellation.iridium.between.loss.rate";
        assert_eq!(between.loss_rate_counts(key), Some("per packet"));
        assert_eq!(between.loss_rates(), [format!("{key}: per packet")]);
    }

    #[test]
    fn directions_are_listed_once_unless_they_differ() {
        let bit = "link.satellite.loss={ kind = \"bit\", rate = 1e-6 }";
        let packet = "link.satellite.reverse.loss={ kind = \"packet\", rate = 1e-3 }";
        let satellite = |settings: &[&str]| -> Vec<_> {
            let lines = scenario("geo-single", settings).loss_rates();
            lines.into_iter().filter(|line| line.starts_with("link.satellite.")).collect()
        };
        assert_eq!(satellite(&[bit]), ["link.satellite.loss.rate: per bit"]);
        let both = ["link.satellite.loss.rate: per bit", "link.satellite.reverse.loss.rate: per packet"];
        assert_eq!(satellite(&[bit, packet]), both);
    }
}

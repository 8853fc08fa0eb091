//! Files embedded in the binary: those under `scenarios/`, by way of a link in this crate, so that its package holds them.

use crate::file::note_read;

/// Name and text of each file.
type Files = &'static [(&'static str, &'static str)];

/// Scenarios, keyed by name.
pub(crate) const SCENARIOS: Files = &[
    ("geo", include_str!("../scenarios/geo.toml")),
    ("geo-access", include_str!("../scenarios/geo-access.toml")),
    ("leo-access", include_str!("../scenarios/leo-access.toml")),
    ("leo-starlink-access", include_str!("../scenarios/leo-starlink-access.toml")),
    ("leo-moving", include_str!("../scenarios/leo-moving.toml")),
    ("l-band", include_str!("../scenarios/l-band.toml")),
    ("geo-dumbbell", include_str!("../scenarios/geo-dumbbell.toml")),
    ("geo-single", include_str!("../scenarios/geo-single.toml")),
    ("geo-fairness", include_str!("../scenarios/geo-fairness.toml")),
    ("geo-terrestrial", include_str!("../scenarios/geo-terrestrial.toml")),
    ("geo-video", include_str!("../scenarios/geo-video.toml")),
    ("geo-web", include_str!("../scenarios/geo-web.toml")),
    ("geo-stp", include_str!("../scenarios/geo-stp.toml")),
    ("geo-sctp", include_str!("../scenarios/geo-sctp.toml")),
    ("geo-petra", include_str!("../scenarios/geo-petra.toml")),
    ("wired-snoop", include_str!("../scenarios/wired-snoop.toml")),
    ("geo-vsat", include_str!("../scenarios/geo-vsat.toml")),
    ("vsat-access", include_str!("../scenarios/vsat-access.toml")),
    ("vsat-rain", include_str!("../scenarios/vsat-rain.toml")),
    ("geo-voip", include_str!("../scenarios/geo-voip.toml")),
    ("leo-dtn", include_str!("../scenarios/leo-dtn.toml")),
    ("leo-iridium", include_str!("../scenarios/leo-iridium.toml")),
    ("leo-teledesic", include_str!("../scenarios/leo-teledesic.toml")),
    ("leo-starlink", include_str!("../scenarios/leo-starlink.toml")),
    ("leo-recorded", include_str!("../scenarios/leo-recorded.toml")),
];

/// Two-line elements used by scenarios.
pub(crate) const ELEMENTS: Files = &[("starlink-shell", include_str!("../scenarios/starlink-shell.tle"))];

/// Link recordings used by scenarios.
pub(crate) const SERIES: Files = &[
    ("leo-recorded.csv", include_str!("../scenarios/leo-recorded.csv")),
    ("12mbit.trace", include_str!("../scenarios/12mbit.trace")),
];

/// Returns the text of the file called `name`.
pub(crate) fn text(files: Files, name: &str) -> Option<&'static str> {
    let text = files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)?;
    note_read(&format!("built-in/{name}"), text.as_bytes());
    Some(text)
}

/// Returns the names of files.
pub(crate) fn names(files: Files) -> impl Iterator<Item = &'static str> {
    files.iter().map(|(name, _)| *name)
}

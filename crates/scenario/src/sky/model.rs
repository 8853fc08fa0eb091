//! A constellation as a user describes it.

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{LinkConfig, QueueConfig};
use bentpipe_orbit::{Constellation, Grid, Handover, OrbitError, Rules, Shell, Sky, Spread, Station};

/// Satellites, and the links that they offer.
#[derive(Clone, PartialEq, Debug)]
pub struct ConstellationGroup {
    /// Name of the constellation.
    pub name: String,
    /// How the satellites move.
    pub orbits: Orbits,
    /// A satellite is used while it stands higher than this above the horizon, in degrees.
    pub elevation_mask_deg: f64,
    /// Which of those serves a ground station.
    pub handover: Handover,
    /// Links between satellites; none for bent pipes.
    pub grid: Option<Grid>,
    /// Time between two steps, at which links and routes may change.
    pub step: Duration,
    /// What becomes of packets when their link is given up.
    pub in_flight: InFlight,
    /// How long a link between ground and satellite carries nothing after a station has changed to it.
    pub interruption: Duration,
    /// From a ground station up to a satellite; the delay is that of the geometry.
    pub up: LinkConfig,
    /// Down to a ground station.
    pub down: LinkConfig,
    /// From satellite to satellite.
    pub between: LinkConfig,
}

/// How the satellites of a constellation move.
#[derive(Clone, PartialEq, Debug)]
pub enum Orbits {
    /// On circular orbits.
    Shell(Shell),
    /// Not at all, seen from the ground: over these longitudes in degrees east.
    Geostationary(Vec<f64>),
    /// As two-line elements say.
    Elements {
        /// Name of built-in elements, or path of a file.
        file: String,
        /// What is in it.
        text: Arc<str>,
    },
}

/// What becomes of packets when their link is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFlight {
    /// Packets being sent or on the path arrive, and go on by the new routes; those that wait are rerouted at once.
    Rerouted,
    /// All packets of the link are lost: those that wait, those being sent and those on the path.
    Lost,
}

/// Where a ground station stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// Degrees north of the equator.
    pub latitude_deg: f64,
    /// Degrees east of Greenwich.
    pub longitude_deg: f64,
    /// It has an antenna for every satellite in view.
    pub gateway: bool,
}

impl ConstellationGroup {
    /// One of which only the name is known.
    pub(crate) fn unread(name: &str) -> Self {
        let link = LinkConfig::new(Rate::ZERO, Duration::ZERO, QueueConfig::default());
        Self {
            name: name.to_owned(),
            orbits: Orbits::Shell(Shell { spread: Spread::Delta, phasing: 0.0, ..Shell::IRIDIUM }),
            elevation_mask_deg: 0.0,
            handover: Handover::Nearest,
            grid: Some(Grid::PLUS),
            step: Duration::from_secs(10),
            in_flight: InFlight::Rerouted,
            interruption: Duration::ZERO,
            up: link.clone(),
            down: link.clone(),
            between: link,
        }
    }

    /// The satellites.
    ///
    /// # Errors
    /// If they cannot fly.
    pub fn fly(&self) -> Result<Constellation, OrbitError> {
        match &self.orbits {
            Orbits::Shell(shell) => Constellation::of_shell(shell),
            Orbits::Geostationary(longitudes) => Constellation::geostationary(longitudes),
            Orbits::Elements { text, .. } => Constellation::from_elements(text),
        }
    }

    /// By what rules links are held.
    pub fn rules(&self) -> Rules {
        Rules {
            elevation_mask_deg: self.elevation_mask_deg,
            handover: self.handover,
            grid: self.grid,
            step: self.step,
        }
    }

    /// The sky over ground stations, at time zero.
    ///
    /// # Errors
    /// If a rule or a station makes no sense.
    pub fn sky<'a>(
        &self,
        constellation: &'a Constellation,
        stations: &[Station],
    ) -> Result<Sky<'a>, OrbitError> {
        Sky::new(constellation, stations, self.rules())
    }
}

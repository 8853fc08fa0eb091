//! Description of a constellation by the user.

use std::sync::{Arc, Mutex};

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{LinkConfig, Outage, QueueConfig};
use bentpipe_orbit::{Constellation, Grid, Handover, OrbitError, Place, Rules, Shell, Sky, Spread, Station};

use crate::series::Recordings;
use crate::sky::cache::Cache;
use crate::sky::links::{self, Line, LinksFile};

/// Satellites with their links.
#[derive(Clone, PartialEq, Debug)]
pub struct ConstellationGroup {
    /// Name of the constellation.
    pub name: String,
    /// Motion of the satellites.
    pub orbits: Orbits,
    /// Minimum elevation above the horizon for a usable satellite, in degrees.
    pub elevation_mask_deg: f64,
    /// Rule that selects the serving satellite.
    pub handover: Handover,
    /// Links between satellites; `None` for bent pipes.
    pub links: Option<Links>,
    /// Time between two steps. Links and routes may change only at a step.
    pub step: Duration,
    /// Treatment of packets on a link that is given up.
    pub in_flight: InFlight,
    /// Outage of a ground link after a station has switched to it.
    pub interruption: Duration,
    /// Link from a ground station to a satellite; its delay follows from the geometry.
    pub up: LinkConfig,
    /// Link from a satellite to a ground station.
    pub down: LinkConfig,
    /// Files from which properties of `up` and `down` were read.
    pub recordings: [Recordings; 2],
    /// Link between satellites.
    pub between: LinkConfig,
}

/// Orbits, the lines of explicit links, and the end of a constellation.
type Flight = (Orbits, Option<Arc<[Line]>>, Duration);

static FLYING: Cache<Flight, Constellation> = Cache(Mutex::new(Vec::new()));

/// Motion of the satellites.
#[derive(Clone, PartialEq, Debug)]
pub enum Orbits {
    /// A constellation of circular orbits.
    Shell(Shell),
    /// Geostationary satellites at these longitudes, in degrees east.
    Geostationary(Vec<f64>),
    /// Orbits from mean elements.
    Elements {
        /// Name of built-in elements, or path of a file.
        file: String,
        /// Content of the file.
        text: Arc<str>,
        /// Date of time zero, as the time since the beginning of 1970; `None` for the latest epoch of the file.
        epoch: Option<Duration>,
    },
}

/// Links between satellites.
#[derive(Clone, PartialEq, Debug)]
pub enum Links {
    /// Links to neighbours.
    Grid(Grid),
    /// Links that a file lists.
    File(LinksFile),
}

/// Treatment of packets on a link that is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFlight {
    /// Packets being sent or on the path arrive, and continue on the new routes. Queued packets are rerouted at
    /// once.
    Rerouted,
    /// All packets of the link are lost: queued, being sent or on the path.
    Lost,
}

/// Position of a ground station.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Position {
    /// Position at time zero.
    pub place: Place,
    /// Later positions of a moving station.
    pub way: Vec<(Duration, Place)>,
    /// Intervals in which no satellite serves the station.
    pub outages: Vec<Outage>,
    /// True for a gateway with an antenna for every satellite in view.
    pub gateway: bool,
}

impl ConstellationGroup {
    /// Makes a constellation with default values, of which only the name is known.
    pub(crate) fn unread(name: &str) -> Self {
        let link = LinkConfig::new(Rate::ZERO, Duration::ZERO, QueueConfig::default());
        Self {
            name: name.to_owned(),
            orbits: Orbits::Shell(Shell { spread: Spread::Delta, phasing: 0.0, ..Shell::IRIDIUM }),
            elevation_mask_deg: 0.0,
            handover: Handover::Nearest,
            links: Some(Links::Grid(Grid::PLUS)),
            step: Duration::from_secs(10),
            in_flight: InFlight::Rerouted,
            interruption: Duration::ZERO,
            up: link.clone(),
            down: link.clone(),
            recordings: [Recordings::default(), Recordings::default()],
            between: link,
        }
    }

    /// Returns the satellites that have positions from time zero to `until`. A catalogue that was read before is not read again.
    ///
    /// # Errors
    /// If the orbits or the listed links are invalid.
    pub fn fly(&self, until: Duration) -> Result<Arc<Constellation>, OrbitError> {
        let lines = match &self.links {
            Some(Links::File(file)) => Some(file.lines.clone()),
            Some(Links::Grid(_)) | None => None,
        };
        FLYING.answer((self.orbits.clone(), lines, until), |(orbits, lines, until)| {
            let constellation = match orbits {
                Orbits::Shell(shell) => Constellation::of_shell(shell),
                Orbits::Geostationary(longitudes) => Constellation::geostationary(longitudes),
                Orbits::Elements { text, epoch, .. } => Constellation::from_elements(text, *epoch, *until),
            }?;
            let Some(lines) = lines else { return Ok(constellation) };
            let links = links::resolve(lines, &constellation)?;
            Ok(constellation.with_links(links))
        })
    }

    /// Returns the rules for links.
    pub fn rules(&self) -> Rules {
        Rules {
            elevation_mask_deg: self.elevation_mask_deg,
            handover: self.handover,
            grid: self.links.as_ref().map(|links| match links {
                Links::Grid(grid) => *grid,
                Links::File(_) => Grid::NONE,
            }),
            step: self.step,
        }
    }

    /// Returns the view of the constellation from ground stations, at time zero.
    ///
    /// # Errors
    /// If a rule or a station is invalid.
    pub fn sky<'a>(
        &self,
        constellation: &'a Constellation,
        stations: &[Station],
    ) -> Result<Sky<'a>, OrbitError> {
        Sky::new(constellation, stations, self.rules())
    }
}

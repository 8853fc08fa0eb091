//! Selection of the satellite that serves a station.

use bentpipe_base::Duration;

use crate::constellation::Constellation;
use crate::coverage::Seen;
use crate::earth::LIGHT_KM_PER_S;
use crate::error::OrbitError;
use crate::planes::Satellite;

/// Handover rule of a station.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Handover {
    /// Always the highest satellite, which over a sphere is the nearest.
    #[default]
    Nearest,
    /// The highest satellite, but a visible one is replaced only by one that is higher by this margin.
    Hysteresis {
        /// Margin in degrees of elevation, 0 or more.
        margin_deg: f64,
    },
    /// A satellite serves while it is in view. Its successor is the one that stays in view longest.
    LongestVisible,
    /// A satellite serves while it is in view. Its successor is the next one in its plane if that is in view, else the highest
    /// one. This is ns-2's rule.
    InPlane,
    /// Every satellite in view may serve, and each path uses those that minimise its length. A scheduler with knowledge of the
    /// whole network could do this. The first and the last satellite of a path change only for a path that is shorter by more
    /// than the margin.
    ShortestPath {
        /// One-way delay that another path must save.
        margin: Duration,
    },
}

impl Handover {
    /// Returns the length in km that another path must save; `None` if handover does not depend on paths.
    pub(crate) fn margin_km(&self) -> Option<f64> {
        match self {
            Self::ShortestPath { margin } => Some(margin.as_secs_f64() * LIGHT_KM_PER_S),
            _ => None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), OrbitError> {
        match self {
            Self::Hysteresis { margin_deg } if !(0.0..=90.0).contains(margin_deg) => {
                Err(OrbitError::impossible("handover.margin", margin_deg, "degrees from 0 to 90"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the satellite that serves a station. `in_view` holds the usable ones, and `remains` returns how long one stays in
    /// view.
    pub(crate) fn choose(
        &self,
        constellation: &Constellation,
        present: Option<Satellite>,
        in_view: &[Seen],
        mut remains: impl FnMut(Satellite) -> Result<u32, OrbitError>,
    ) -> Result<Option<Satellite>, OrbitError> {
        let highest =
            in_view.iter().copied().reduce(|best, one| if one.sine > best.sine { one } else { best });
        let kept = present.and_then(|present| in_view.iter().find(|seen| seen.satellite == present));
        let Some(highest) = highest else { return Ok(None) };
        let chosen = match (self, kept) {
            (Self::Nearest | Self::ShortestPath { .. }, _) => highest.satellite,
            (Self::Hysteresis { margin_deg }, Some(kept)) => {
                let elevation = |seen: &Seen| libm::asin(seen.sine.clamp(-1.0, 1.0)).to_degrees();
                let better = elevation(&highest) > elevation(kept) + margin_deg;
                if better { highest.satellite } else { kept.satellite }
            }
            (Self::Hysteresis { .. }, None) => highest.satellite,
            (Self::LongestVisible | Self::InPlane, Some(kept)) => kept.satellite,
            (Self::InPlane, None) => {
                let follower = present.and_then(|present| follower(constellation, present));
                let follower = follower.filter(|one| in_view.iter().any(|seen| seen.satellite == *one));
                follower.unwrap_or(highest.satellite)
            }
            (Self::LongestVisible, None) => {
                let mut longest = (0, highest.satellite);
                for seen in in_view {
                    let time = remains(seen.satellite)?;
                    if time > longest.0 {
                        longest = (time, seen.satellite);
                    }
                }
                longest.1
            }
        };
        Ok(Some(chosen))
    }
}

/// Returns the satellite that follows `satellite` in its plane.
fn follower(constellation: &Constellation, satellite: Satellite) -> Option<Satellite> {
    let mut planes = constellation.layout.shells.iter().flat_map(|shell| &shell.members);
    planes.find_map(|plane| {
        let place = plane.iter().position(|member| *member == satellite)?;
        Some(plane[(place + plane.len() - 1) % plane.len()])
    })
}

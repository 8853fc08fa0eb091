//! Part of a report that describes the scenario and not its results.

use bentpipe_scenario::{Scenario, TopologyError};

use crate::metric::Metric;

use super::{Network, Page, Section, links, sky};

/// The pictures of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct World {
    network: Network,
    links: Option<Section>,
    sky: Option<Section>,
    /// Main metric of the scenario.
    pub(super) measures: Metric,
}

impl World {
    /// Draws a scenario.
    ///
    /// # Errors
    /// If its satellites cannot fly until its end.
    pub fn of(scenario: &Scenario) -> Result<Self, TopologyError> {
        let (network, sky) = (Network::of(scenario)?, sky::section(scenario)?);
        let links = links::section(scenario);
        Ok(Self { network, links, sky, measures: Metric::of_scenario(scenario) })
    }

    /// Adds the pictures to a page.
    pub(super) fn shown_on(&self, page: Page) -> Page {
        let sections = page.sections.into_iter().chain(self.links.clone()).chain(self.sky.clone()).collect();
        Page { network: Some(self.network.clone()), sections, ..page }
    }
}

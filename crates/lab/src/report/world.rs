//! What a report shows of a scenario, whatever happened in it.

use bentpipe_scenario::{Scenario, TopologyError};

use crate::metric::Metric;

use super::{Network, Page, Section, links, sky};

/// The pictures of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct World {
    network: Network,
    links: Option<Section>,
    sky: Option<Section>,
    /// What the scenario is run for.
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

    /// Puts the pictures on a page.
    pub(super) fn shown_on(&self, page: Page) -> Page {
        let sections = page.sections.into_iter().chain(self.links.clone()).chain(self.sky.clone()).collect();
        Page { network: Some(self.network.clone()), sections, ..page }
    }
}

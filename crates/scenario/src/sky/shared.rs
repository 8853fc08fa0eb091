//! Plans that several scenarios share. The runs of a comparison have the same constellation, whose motion does not depend on packets.

use std::sync::{Arc, Mutex};

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{LinkConfig, QueueConfig};
use bentpipe_orbit::{OrbitError, Station};

use super::cache::Cache;
use super::{ConstellationGroup, Crossing, SkyPlan};
use crate::model::Scenario;

static PLANS: Cache<Question, SkyPlan> = Cache(Mutex::new(Vec::new()));

/// All inputs of a plan.
#[derive(Clone, PartialEq, Debug)]
struct Question {
    /// The constellation without its links.
    group: ConstellationGroup,
    stations: Vec<Station>,
    /// Names of the satellites that end connections.
    hosts: Vec<String>,
    duration: Duration,
    crossings: Vec<Crossing>,
}

/// Returns the plan for packets on these ways. It is reused if an earlier scenario had the same inputs.
///
/// # Errors
/// If the orbits end before the scenario.
pub fn shared_plan(
    scenario: &Scenario,
    group: &ConstellationGroup,
    crossings: &[Crossing],
) -> Result<Arc<SkyPlan>, OrbitError> {
    let nothing = LinkConfig::new(Rate::ZERO, Duration::ZERO, QueueConfig::default());
    let group =
        ConstellationGroup { up: nothing.clone(), down: nothing.clone(), between: nothing, ..group.clone() };
    let (stations, duration) = (scenario.ground_stations(), scenario.duration);
    let hosts = scenario.satellite_names().map(|(_, satellite)| satellite.to_owned()).collect();
    let question = Question { group, stations, hosts, duration, crossings: crossings.to_vec() };
    PLANS.answer(question, |question| SkyPlan::new(scenario, &question.group, crossings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Topology, builtin};

    #[test]
    fn a_sky_is_planned_once_for_all_rates_and_anew_for_another_mask() {
        let mut scenario = builtin("leo-iridium").unwrap();
        let original = scenario.clone();
        let mut topology = Topology::new(&original).unwrap();
        let crossings = [(0, 1), (1, 0)].map(|(from, to)| topology.crossing(from, to).unwrap());
        let plan =
            |scenario: &Scenario| shared_plan(scenario, &scenario.constellations[0], &crossings).unwrap();
        let first = plan(&scenario);
        scenario.seed = 7;
        scenario.constellations[0].up.rate = bentpipe_net::Schedule::Constant(Rate::from_mbps(3));
        assert!(Arc::ptr_eq(&first, &plan(&scenario)));
        scenario.constellations[0].elevation_mask_deg = 20.0;
        let other = plan(&scenario);
        assert!(!Arc::ptr_eq(&first, &other) && *first != *other);
        assert_eq!(*other, SkyPlan::new(&scenario, &scenario.constellations[0], &crossings).unwrap());
    }
}

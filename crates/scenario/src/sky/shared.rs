//! Cache of constellations and plans. The runs of a comparison have the same constellation, whose motion does not depend on packets.

use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{LinkConfig, QueueConfig};
use bentpipe_orbit::{OrbitError, Station};

use super::{ConstellationGroup, Crossing, SkyPlan};
use crate::model::Scenario;

/// Number of latest answers kept: a comparison that varies the constellation has few of them.
const KEPT: usize = 8;

static PLANS: Cache<Question, SkyPlan> = Cache(Mutex::new(Vec::new()));

/// Latest answers to questions of a kind.
pub(super) struct Cache<Q, A>(pub Mutex<Vec<(Q, Arc<A>)>>);

impl<Q: PartialEq, A> Cache<Q, A> {
    /// Returns the answer to a question, made anew if it is not known.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn answer(
        &self,
        question: Q,
        make: impl FnOnce(&Q) -> Result<A, OrbitError>,
    ) -> Result<Arc<A>, OrbitError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = known().iter().find(|(known, _)| *known == question) {
            return Ok(answer.clone());
        }
        // Made without the lock, so that other questions need not wait.
        let answer = Arc::new(make(&question)?);
        let mut known = known();
        known.truncate(KEPT - 1);
        known.insert(0, (question, answer.clone()));
        Ok(answer)
    }
}

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

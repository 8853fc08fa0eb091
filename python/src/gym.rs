//! Simulated worlds that wait for an external decision: the environment for learners.
//!
//! A world is an ordinary run with its own stack (a coroutine). When its controlled sender needs an action, the coroutine is
//! suspended; it is resumed with the action. The simulator's code is thus reused unchanged, whatever its internal order of work.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use bentpipe_cc::{Algorithm, CongestionControl, Custom, Start};
use bentpipe_lab::{RunRequest, check, check_memory, simulate, unless_stopped};
use bentpipe_outcome::Outcome;
use bentpipe_scenario::{Scenario, bring_algorithms};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::fault;
use crate::pilot::{Action, Every, OBSERVATIONS, Observation, Pilot};
use crate::policy::every;
use crate::scenario::PyScenario;

/// Algorithm name of the controlled flow.
const AGENT: &str = "agent";

type Exit = Yielder<Action, Observation>;

/// Pointer to the yielder of a world, once it has been entered.
struct Way {
    exit: AtomicPtr<Exit>,
    every: Every,
}

thread_local! {
    /// World that this thread is executing.
    static INSIDE: RefCell<Option<Arc<Way>>> = const { RefCell::new(None) };
}

fn build(start: &Start) -> Box<dyn CongestionControl> {
    let Some(way) = INSIDE.with_borrow(Clone::clone) else {
        // A world that is only inspected also builds such senders; they never ask for actions.
        let nobody = |_: &Observation| {
            let accepted = "it cannot be used elsewhere";
            resume_unwind(Box::new(format!(
                "the algorithm {AGENT} is that of environments (bentpipe.gym); {accepted}"
            )));
        };
        return Box::new(Pilot::new(start, Every::RoundTrip, Box::new(nobody)));
    };
    let every = way.every;
    let decide = move |observation: &Observation| {
        // SAFETY: the pilot is only called within the world, while the function that owns the yielder is on the stack below.
        let exit = unsafe { &*way.exit.load(Ordering::Relaxed) };
        exit.suspend(*observation)
    };
    Box::new(Pilot::new(start, every, Box::new(decide)))
}

fn bring_agent() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The name is only in use if a policy of this process has it, which then acts.
        let _ = bring_algorithms(&[Custom::new(AGENT, build)]);
    });
}

/// Stack size of a world in bytes; unused pages cost nothing.
const STACK_BYTES: usize = 1 << 20;

/// A run that waits for an action.
struct World {
    /// `None` before the first reset.
    run: Option<Coroutine<Action, Observation, Result<Outcome, String>>>,
    way: Arc<Way>,
    last: Observation,
    result: Option<Outcome>,
}

// SAFETY: one thread at a time enters a world, the one that holds the lock of `PyWorlds`. Its stack only contains data of the
// simulator that belongs to this world: plain data, boxes of `Send` algorithms, no references to the creating thread. `INSIDE` is
// set by each entering thread.
unsafe impl Send for World {}

/// States of a world.
const GOES_ON: u8 = 0;
const TIME_IS_OVER: u8 = 1;
const FLOW_IS_OVER: u8 = 2;

impl World {
    fn new(every: Every) -> Self {
        let way = Arc::new(Way { exit: AtomicPtr::default(), every });
        Self { run: None, way, last: [0.0; OBSERVATIONS.len()], result: None }
    }

    /// Starts a run and advances to its first decision.
    fn begin(&mut self, scenario: Scenario, seed: u64) -> Result<u8, String> {
        let stack = corosensei::stack::DefaultStack::new(STACK_BYTES)
            .map_err(|error| format!("no memory for a world: {error}"))?;
        let way = Arc::clone(&self.way);
        (self.last, self.result) = ([0.0; OBSERVATIONS.len()], None);
        self.run = Some(Coroutine::with_stack(stack, move |exit: &Exit, _: Action| {
            way.exit.store(std::ptr::from_ref(exit).cast_mut(), Ordering::Relaxed);
            let request = RunRequest { seed: Some(seed), ..RunRequest::default() };
            let run = unless_stopped(simulate(&scenario, request))?.ok_or("stopped")?;
            Ok(run.outcome)
        }));
        self.go(Action { window: 1.0, pacing_bps: 0.0 })
    }

    /// Enters the world with an action, and advances to the next decision or the end.
    fn go(&mut self, action: Action) -> Result<u8, String> {
        let Some(run) = &mut self.run else {
            return Err(
                "step: found a world that is over or was never reset, accepted: reset it first".into()
            );
        };
        let before = INSIDE.replace(Some(Arc::clone(&self.way)));
        let left = catch_unwind(AssertUnwindSafe(|| run.resume(action)));
        INSIDE.set(before);
        let done = match left {
            Ok(CoroutineResult::Yield(observation)) => {
                self.last = observation;
                return Ok(GOES_ON);
            }
            Ok(CoroutineResult::Return(done)) => done,
            Err(panic) => Err(fault::panic_text(panic.as_ref())),
        };
        self.run = None;
        let outcome = done?;
        let over = outcome
            .flows
            .iter()
            .any(|flow| flow.cc == AGENT && (flow.completion_s.is_some() || flow.aborted.is_some()));
        self.result = Some(outcome);
        Ok(if over { FLOW_IS_OVER } else { TIME_IS_OVER })
    }
}

/// Several worlds, entered sequentially by one call.
#[pyclass(frozen, name = "Worlds", module = "bentpipe")]
pub struct PyWorlds {
    worlds: Mutex<Vec<World>>,
}

/// Maximum number of worlds; each has a stack.
const MOST_WORLDS: usize = 65_536;

fn bytes<'py>(py: Python<'py>, all: impl Iterator<Item = Observation>) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = all.flatten().flat_map(f64::to_ne_bytes).collect();
    PyBytes::new(py, &bytes)
}

#[pymethods]
impl PyWorlds {
    #[new]
    fn new(count: usize, interval_s: Option<f64>) -> PyResult<Self> {
        if !(1..=MOST_WORLDS).contains(&count) {
            return Err(fault::request(format!("num_envs: found {count}, accepted: 1 to {MOST_WORLDS}")));
        }
        let every = every(interval_s)?;
        bring_agent();
        Ok(Self { worlds: Mutex::new((0..count).map(|_| World::new(every)).collect()) })
    }

    /// Starts a run in the world with this index. Returns its first observation as bytes of float64, and its state.
    fn reset<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        scenario: &PyScenario,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyBytes>, u8)> {
        let mut draft = scenario.draft.clone();
        draft.set_cc(AGENT).map_err(fault::request)?;
        // A world without pacing would ignore the rate of an action.
        let agent = draft.scenario().map_err(fault::request)?.compared_flow().map(|flow| flow.name.clone());
        if let Some(name) = agent {
            draft.set(&format!("flow.{name}.tcp.pacing=algorithm")).map_err(fault::request)?;
        }
        let mut scenario = draft.scenario_for(Some(seed)).map_err(fault::request)?;
        // Data sent by the other end, such as requests, is not controlled by the agent.
        for flow in scenario.flows.iter_mut().filter(|flow| !flow.fixed) {
            Arc::make_mut(&mut flow.receiver).sender.cc =
                Algorithm::from_name("reno").expect("it is registered");
        }
        refuse_others(&scenario)?;
        check_memory(&scenario, 1, None).map_err(fault::request)?;
        check(&scenario, &bentpipe_lab::Place::Senders).map_err(fault::of_run)?;
        let mut worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        let count = worlds.len();
        let wrong = || fault::request(format!("index: found {index}, accepted: less than {count}"));
        let world = worlds.get_mut(index).ok_or_else(wrong)?;
        let state = py.detach(|| world.begin(scenario, seed)).map_err(fault::work)?;
        Ok((bytes(py, [world.last].into_iter()), state))
    }

    /// Enters every world with its action (window in segments and pacing in bit/s, as float64). Worlds whose byte in `idle` is
    /// not zero are skipped. Returns observations and states.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &[u8],
        idle: &[u8],
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let mut worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        if actions.len() != 16 * worlds.len() || idle.len() != worlds.len() {
            let (found, count) = (actions.len(), worlds.len());
            return Err(fault::request(format!(
                "actions: found {found} bytes, accepted: two float64 for each of {count} worlds"
            )));
        }
        let number = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().expect("eight of them"));
        let actions: Vec<Action> = actions
            .chunks_exact(16)
            .map(|pair| Action { window: number(&pair[..8]), pacing_bps: number(&pair[8..]) })
            .collect();
        if let Some(wrong) =
            actions.iter().find(|action| !action.window.is_finite() || !action.pacing_bps.is_finite())
        {
            return Err(fault::request(format!("action: found {wrong:?}, accepted: finite numbers")));
        }
        let mut states = vec![GOES_ON; worlds.len()];
        let guard = &mut *worlds;
        let stepped: Result<(), String> = py.detach(|| {
            for (index, world) in guard.iter_mut().enumerate() {
                if idle[index] == 0 {
                    states[index] = world.go(actions[index])?;
                }
            }
            Ok(())
        });
        stepped.map_err(fault::work)?;
        Ok((bytes(py, worlds.iter().map(|world| world.last)), PyBytes::new(py, &states)))
    }

    /// Returns the document of `bentpipe run --json` of a finished world.
    fn result(&self, index: usize) -> PyResult<Option<String>> {
        let worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = worlds.get(index).and_then(|world| world.result.as_ref());
        outcome.map(|outcome| serde_json::to_string(outcome).map_err(fault::work)).transpose()
    }
}

/// Checks that exactly one flow is controlled; the others are `fixed`.
fn refuse_others(scenario: &Scenario) -> PyResult<()> {
    let under: BTreeMap<&str, u32> = scenario
        .flows
        .iter()
        .filter(|flow| !flow.fixed)
        .map(|flow| (flow.name.as_str(), flow.count))
        .collect();
    if under.values().sum::<u32>() == 1 {
        return Ok(());
    }
    let found: Vec<String> = under.iter().map(|(name, count)| format!("{count} of flow.{name}")).collect();
    Err(fault::request(format!(
        "{}: found {} under control, accepted: one flow; set count = 1 in its group and fixed = true in others",
        scenario.name,
        found.join(" and ")
    )))
}

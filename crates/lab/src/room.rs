//! Worlds that this machine has no memory for are refused before they are built.

use std::fs;

use bentpipe_scenario::Scenario;

use crate::memory::estimate;

/// Refuses `scenario` if `at_once` simultaneous runs need more than `limit` bytes, or than the free memory of this machine.
///
/// # Errors
///
/// Found and accepted values.
pub fn check_memory(scenario: &Scenario, at_once: usize, limit: Option<u64>) -> Result<(), String> {
    let bytes = estimate(scenario).saturating_mul(at_once as u64);
    let (most, whose) = match (limit, available()) {
        (Some(limit), _) => (limit, "--memory"),
        (None, Some(free)) => (free, "what this machine has free"),
        (None, None) => return Ok(()),
    };
    if bytes <= most {
        return Ok(());
    }
    let runs = if at_once > 1 { format!(" for {at_once} runs at a time (--jobs)") } else { String::new() };
    let [found, accepted] = [bytes, most].map(shown);
    Err(format!(
        "{}: found a world of about {found}{runs}, accepted: at most {accepted}, {whose}; fewer flows, nodes, links or points of schedules \
         take less",
        scenario.name
    ))
}

fn shown(bytes: u64) -> String {
    match bytes {
        x if x >= 10_000_000_000 => format!("{} GB", x / 1_000_000_000),
        x => format!("{} MB", x.div_ceil(1_000_000)),
    }
}

/// Memory that a run in a browser may take: half of what WebAssembly can address.
const IN_A_BROWSER: u64 = 2 << 30;

/// Memory that new work may take without pushing out other work; none where the system does not say.
fn available() -> Option<u64> {
    if cfg!(target_family = "wasm") {
        return Some(IN_A_BROWSER);
    }
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::Draft;

    #[test]
    fn a_world_beyond_the_limit_is_refused_with_both_numbers() {
        let mut draft = Draft::load("geo-dumbbell").unwrap();
        draft.set("flow.bulk.count=10000000").unwrap();
        let scenario = draft.scenario().unwrap();
        let why = check_memory(&scenario, 2, Some(1_000_000_000)).unwrap_err().to_string();
        assert!(why.contains("2 runs at a time") && why.contains("1000 MB, --memory"), "{why}");
        assert!(check_memory(&scenario, 1, Some(1_000_000_000_000)).is_ok());
    }
}

//! Dependencies between crates: `house.rs` has the plan, and every `Cargo.toml` must agree.

use toml::{Table, Value};

use super::{Finding, Tree};
use crate::house::{PURE_OUTSIDERS, Room};

const WHY: &str =
    "dependencies point down, so that a crate can be used and tested without the crates above it";

/// Compares every `Cargo.toml` with the plan.
pub fn check(tree: &Tree, rooms: &[Room]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with("/Cargo.toml")) {
        let folder = path.trim_end_matches("/Cargo.toml");
        match rooms.iter().find(|room| room.folder == folder) {
            Some(room) => check_room(room, rooms, (path, text), &mut findings),
            None => findings.push(Finding::new(
                (path, 1),
                format!("`{folder}` is not in the plan"),
                WHY,
                "add it to ROOMS in xtask/src/house.rs, with its allowed dependencies",
            )),
        }
    }
    for (position, room) in rooms.iter().enumerate() {
        let manifest = format!("{}/Cargo.toml", room.folder);
        // The tests of a crate may name the crate itself, to enable its features.
        let higher = |name: &&&str| !rooms[..=position].iter().any(|lower| lower.name == **name);
        if tree.get(&manifest).is_none() {
            let what = format!("`{}` is planned, but {manifest} is not there", room.name);
            let remedy = "remove it, or make the crate";
            findings.push(Finding::new(
                ("xtask/src/house.rs", 1),
                what,
                "the plan describes existing crates",
                remedy,
            ));
        }
        for name in room.leans_on.iter().chain(room.tests_lean_on).filter(higher) {
            let what = format!("`{}` would depend on `{name}`, which is not below it", room.name);
            findings.push(Finding::new(("xtask/src/house.rs", 1), what, WHY, "put the lower room first"));
        }
    }
    findings
}

fn check_room(room: &Room, rooms: &[Room], (path, text): (&str, &str), findings: &mut Vec<Finding>) {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            let what = format!("cannot be read ({})", error.message());
            findings.push(Finding::new((path, 1), what, "Cargo reads it too", "mend it"));
            return;
        }
    };
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    // An example is self-contained, so that a copy of its folder works.
    if lints != Some(&Value::Boolean(true)) && !room.folder.starts_with("examples/") {
        let remedy = "add `[lints]` with `workspace = true`";
        let why = "all crates have the same lints";
        findings.push(Finding::new((path, 1), "has its own lints", why, remedy));
    }
    let is_ours = |name: &str| rooms.iter().any(|room| room.name == name);
    for (section, name) in dependencies(&manifest) {
        let for_tests = section == "dev-dependencies";
        let allowed = room.leans_on.contains(&name) || for_tests && room.tests_lean_on.contains(&name);
        let at = (path, line_of(text, name));
        if is_ours(name) && !allowed {
            let what = format!("`{}` has `{name}` among its {section}", room.name);
            let remedy = "turn the dependency round, or argue for it and change xtask/src/house.rs";
            findings.push(Finding::new(at, what, WHY, remedy));
        }
        if room.pure && !for_tests && !is_ours(name) && !PURE_OUTSIDERS.contains(&name) {
            let what = format!("the pure crate `{}` has `{name}` among its {section}", room.name);
            let why = "dependencies of pure crates must not use a clock, a socket or a file";
            let remedy = "remove it, or review it and add it to PURE_OUTSIDERS in xtask/src/house.rs";
            findings.push(Finding::new(at, what, why, remedy));
        }
    }
}

const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Returns section and name of every dependency, also of those for one target.
fn dependencies(manifest: &Table) -> Vec<(&'static str, &str)> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    tables
        .flat_map(|table| SECTIONS.map(|section| (section, table.get(section))))
        .filter_map(|(section, value)| Some((section, value?.as_table()?)))
        .flat_map(|(section, table)| table.iter().map(move |(key, value)| (section, real_name(key, value))))
        .collect()
}

/// `key = { package = "name" }` renames a dependency.
fn real_name<'a>(key: &'a str, value: &'a Value) -> &'a str {
    value.get("package").and_then(Value::as_str).unwrap_or(key)
}

fn line_of(text: &str, name: &str) -> usize {
    let begins = |line: &str| {
        line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    let renames = |line: &str| line.contains(&format!("\"{name}\""));
    let is_name_of_package = |line: &str| line.trim_start().starts_with("name");
    text.lines()
        .position(|line| begins(line) || renames(line) && !is_name_of_package(line))
        .map_or(1, |i| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Room = Room { folder: "low", name: "low", pure: true, leans_on: &[], tests_lean_on: &[] };
    const HIGH: Room =
        Room { folder: "high", name: "high", pure: false, leans_on: &["low"], tests_lean_on: &[] };

    fn check_pair(low: &str, high: &str) -> Vec<String> {
        let low = format!("[lints]\nworkspace = true\n{low}");
        let high = format!("[lints]\nworkspace = true\n{high}");
        let tree = Tree::of(&[("low/Cargo.toml", &low), ("high/Cargo.toml", &high)]);
        check(&tree, &[LOW, HIGH]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_arrow_down_is_fine() {
        assert!(check_pair("", "[dependencies]\nlow.workspace = true\nserde = '1'").is_empty());
    }

    #[test]
    fn an_arrow_up_is_found_where_it_stands() {
        let found = check_pair("[dependencies]\nhigh = { path = '../high' }", "");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("low/Cargo.toml:4: `low` has `high` among its dependencies:"),
            "{found:?}"
        );
    }

    #[test]
    fn neither_tests_nor_targets_nor_another_name_hide_an_arrow_up() {
        assert_eq!(check_pair("[dev-dependencies]\nhigh.workspace = true", "").len(), 1);
        assert_eq!(check_pair("[target.'cfg(unix)'.dependencies]\nhigh.workspace = true", "").len(), 1);
        assert_eq!(check_pair("[build-dependencies]\nx = { package = 'high' }", "").len(), 1);
    }

    #[test]
    fn tests_may_use_what_is_allowed_to_them_alone() {
        let rooms = [LOW, Room { leans_on: &[], tests_lean_on: &["low"], ..HIGH }];
        let manifest = |section| format!("[lints]\nworkspace = true\n[{section}]\nlow.workspace = true");
        let found = |section| {
            let high = manifest(section);
            let low = "[lints]\nworkspace = true";
            check(&Tree::of(&[("low/Cargo.toml", low), ("high/Cargo.toml", &high)]), &rooms).len()
        };
        assert_eq!((found("dev-dependencies"), found("dependencies")), (0, 1));
    }

    #[test]
    fn a_pure_crate_takes_no_strangers_in() {
        assert_eq!(check_pair("[dependencies]\nmio = '1'", "[dependencies]\nmio = '1'").len(), 1);
        assert!(check_pair("[dependencies]\nlibm = '1'\n[dev-dependencies]\nmio = '1'", "").is_empty());
    }

    #[test]
    fn plan_and_folders_agree() {
        let bare = "[lints]\nworkspace = true";
        let stranger = Tree::of(&[("low/Cargo.toml", bare), ("new/Cargo.toml", bare)]);
        assert_eq!(check(&stranger, &[LOW]).len(), 1);
        assert_eq!(check(&Tree::of(&[]), &[LOW]).len(), 1);
        assert_eq!(
            check(&Tree::of(&[("low/Cargo.toml", ""), ("high/Cargo.toml", bare)]), &[HIGH, LOW]).len(),
            2
        );
    }
}

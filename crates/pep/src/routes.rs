//! Routing tables and rules of policy routing of a proxy.
//!
//! The rules look at the bits of the mark that belong to the proxy, so that they match only its packets. They come right after the rule of the
//! table `local`. Their protocol is `kernel`, because systemd-networkd removes rules of other protocols when it starts.

use std::net::IpAddr;
use std::ops::Range;

use bentpipe_system::{IP, ip};

use crate::engine;
use crate::error::Error;
use crate::marks::{Kind, Marks, OPENERS};
use crate::slot::{SLOTS, Slot};

/// First number of the routing tables (chosen). Each slot has two: in the first one all addresses are local, the second one leads into its TUN device.
const TABLES: u32 = 6270;
const TABLES_OF_SLOT: u32 = 2;
/// First number of the rules (chosen: the smallest ones after that of the table `local`).
const RULES: u32 = 1;
const RULES_OF_SLOT: u32 = 4;

/// IP versions as options of `ip`.
pub(crate) const FAMILIES: [&str; 2] = ["-4", "-6"];

fn tables(slot: Slot) -> [u32; TABLES_OF_SLOT as usize] {
    std::array::from_fn(|at| TABLES + TABLES_OF_SLOT * u32::from(slot.0) + at as u32)
}

fn rules(slot: Slot) -> [u32; RULES_OF_SLOT as usize] {
    std::array::from_fn(|at| RULES + RULES_OF_SLOT * u32::from(slot.0) + at as u32)
}

/// First number of the rules of the engine.
pub(crate) const ENGINE_RULES: usize = (RULES + RULES_OF_SLOT * SLOTS as u32) as usize;

/// Installs them; those that are there already are replaced. `with_v6` is false where there is no IPv6. There are those of the engine for these
/// threads.
pub(crate) fn install(marks: Marks, slot: Slot, with_v6: bool, threads: Range<usize>) -> Result<(), Error> {
    let [local, alive] = tables(slot);
    let [skip, deliver, look, put_back] = rules(slot);
    let is_local = marks.selector(Kind::Local);
    for family in FAMILIES.into_iter().filter(|family| with_v6 || *family == "-4") {
        remove_family(slot, family);
        let mut lines = vec![
            format!("route replace local default dev lo table {local} proto kernel"),
            format!("route replace default dev {} table {alive} proto kernel", slot.device()),
            format!(
                "rule add priority {look} {} lookup {alive} protocol kernel",
                marks.selector(Kind::Alive(slot))
            ),
            // The filter of reverse paths looks for the route to the sender as if from this machine. With `src_valid_mark` it does so with the mark, by
            // which every sender would be local.
            format!("rule add priority {skip} iif lo {is_local} goto {look} protocol kernel"),
            format!("rule add priority {deliver} {is_local} lookup {local} protocol kernel"),
        ];
        for opener in OPENERS {
            let is_put_back = marks.selector(Kind::PutBack(slot, opener));
            lines.push(format!("rule add priority {put_back} {is_put_back} lookup {local} protocol kernel"));
        }
        lines.extend(engine::rules::add_routes(threads.clone(), marks));
        ip(&[family], &lines)?;
    }
    Ok(())
}

/// Removes those of a slot.
pub(crate) fn remove(slot: Slot) {
    FAMILIES.into_iter().for_each(|family| remove_family(slot, family));
}

/// Errors are ignored, because some of them may not exist.
fn remove_family(slot: Slot, family: &str) {
    let [skip, deliver, look, put_back] = rules(slot);
    // Two rules have the last number.
    let rules = [skip, deliver, look, put_back, put_back]
        .map(|number| format!("rule del priority {number} protocol kernel"));
    let tables = tables(slot).map(|table| format!("route flush table {table}"));
    let mut lines: Vec<String> = rules.into_iter().chain(tables).collect();
    lines.extend(engine::rules::remove_routes(engine::range(slot, engine::rules::MOST_THREADS)));
    let _ = ip(&["-force", family], &lines);
}

/// Rules by which packets from one address to another come by the TUN device of a slot, for the filter of reverse paths. It looks for the way back, without
/// the mark or, with `src_valid_mark`, with it. They are removed when this is dropped.
pub(crate) struct Arrival {
    family: &'static str,
    rules: Vec<String>,
}

impl Arrival {
    pub fn new(slot: Slot, marks: Marks, from: IpAddr, to: IpAddr) -> Self {
        let ([_, alive], [.., number]) = (tables(slot), rules(slot));
        let family = FAMILIES[usize::from(from.is_ipv6())];
        let rules: Vec<String> = [marks.selector_of_none(), marks.selector(Kind::Local)]
            .map(|mark| {
                format!("priority {number} from {to} to {from} {mark} lookup {alive} protocol kernel")
            })
            .into();
        // Without them a strict filter drops the packet, which is then told.
        let _ = ip(&[family], &rules.iter().map(|rule| format!("rule add {rule}")).collect::<Vec<_>>());
        Self { family, rules }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let lines: Vec<String> = self.rules.iter().map(|rule| format!("rule del {rule}")).collect();
        let _ = ip(&["-force", self.family], &lines);
    }
}

/// Returns the present ones, as `ip` shows them.
pub(crate) fn state(slot: Slot) -> String {
    let mut text = String::new();
    let engine = engine::range(slot, engine::rules::MOST_THREADS);
    let engine_rules = engine.clone().flat_map(engine::rules::rules).map(|number| number as u32);
    let own: Vec<u32> = rules(slot).into_iter().chain(engine_rules).collect();
    let tables = tables(slot).into_iter().chain(engine.map(|thread| engine::rules::table(thread) as u32));
    let tables: Vec<String> = tables.map(|table| format!("table {table} ")).collect();
    for family in FAMILIES {
        let rules = IP.run(&[family, "rule", "show"], "").unwrap_or_default();
        let is_own = |line: &&str| {
            line.split(':').next().is_some_and(|number| own.iter().any(|own| number == own.to_string()))
        };
        rules.lines().filter(is_own).for_each(|line| text += &format!("{line}\n"));
        let routes = IP.run(&[family, "route", "show", "table", "all"], "").unwrap_or_default();
        let is_own = |line: &&str| tables.iter().any(|table| line.contains(table.as_str()));
        routes.lines().filter(is_own).for_each(|line| text += &format!("{line}\n"));
    }
    text
}

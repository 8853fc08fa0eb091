//! The commands that need libbpf: `load`, `unload`, `status`, `watch`, `use`.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::SystemTime;

use bentpipe_kernel::doctor::has_tcx;
use bentpipe_kernel::watch::{Connection, Watch};
use bentpipe_kernel::{CONTROLS, Control, Loaded, Match, Options, Rule, Unloaded};
use bentpipe_lab::table;
use serde::Serialize;

use crate::failure::Failure;
use crate::kernel_args::{LoadArgs, UnloadArgs, UseArgs, WatchArgs};
use crate::output;

pub fn load(args: &LoadArgs) -> Result<(), Failure> {
    let controls = wanted(args)?;
    let done = bentpipe_kernel::load(
        &controls,
        &Options { rate_bps: args.rate, phase_s: args.phase, interfaces: args.interface.clone() },
    )?;
    for (control, loaded) in controls.iter().zip(done) {
        let words = match loaded {
            Loaded::Now => "loaded",
            Loaded::Before => "was already loaded and is unchanged",
        };
        output::print(&format!("{}: {words}\n", control.kernel_name))?;
        if control.sends_probes() && bentpipe_kernel::places(control).is_empty() {
            output::print(&format!(
                "{}: no interface sends its probes, so it behaves as NewReno; load it again when there is an interface\n",
                control.kernel_name
            ))?;
        }
    }
    Ok(())
}

fn wanted(args: &LoadArgs) -> Result<Vec<&'static Control>, Failure> {
    if args.all {
        let fixed = args.rate.is_some();
        let probes = has_tcx();
        return Ok(CONTROLS
            .iter()
            .filter(|control| fixed || control.name != "scps-tp")
            .filter(|control| probes || !control.sends_probes())
            .collect());
    }
    let names = match &args.file {
        Some(path) => fs::read_to_string(path)
            .map_err(|error| Failure::Request(format!("cannot read {}: {error}", path.display())))?,
        None => args.names.join("\n"),
    };
    let names = names.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut controls = Vec::new();
    for name in names.filter(|name| !name.is_empty()) {
        let control = bentpipe_kernel::find(name)?;
        if !controls.contains(&control) {
            controls.push(control);
        }
    }
    Ok(controls)
}

pub fn unload(args: &UnloadArgs) -> Result<(), Failure> {
    for path in bentpipe_kernel::clear()? {
        output::print(&format!("{}: left by a command that was killed; removed\n", path.display()))?;
    }
    let controls = match args.all {
        true => bentpipe_kernel::loaded()?,
        false => args.names.iter().map(|name| bentpipe_kernel::find(name)).collect::<Result<_, _>>()?,
    };
    for control in controls {
        let words = match bentpipe_kernel::unload(control)? {
            Unloaded::Gone { rules: 0 } => {
                "unloaded; connections that use it keep it until they end".to_owned()
            }
            Unloaded::Gone { rules } => {
                format!(
                    "unloaded, with {rules} of the rules of `use`; connections that use it keep it until they end"
                )
            }
            Unloaded::WasNot => "was not loaded".to_owned(),
        };
        output::print(&format!("{}: {words}\n", control.kernel_name))?;
    }
    Ok(())
}

/// State of the kernel.
#[derive(Serialize)]
struct Status {
    loaded: Vec<&'static str>,
    rules: Vec<Rule>,
    probes: Vec<Sends>,
}

/// An interface through which an algorithm sends probes.
#[derive(Serialize)]
struct Sends {
    control: &'static str,
    /// Number of its network namespace.
    namespace: u32,
    /// Interface number in that namespace.
    interface: u32,
}

pub fn status(json: bool) -> Result<(), Failure> {
    let loaded = bentpipe_kernel::loaded()?.iter().map(|control| control.kernel_name).collect();
    let probes = CONTROLS.iter().flat_map(|control| {
        let sends = |(namespace, interface)| Sends { control: control.kernel_name, namespace, interface };
        bentpipe_kernel::places(control).into_iter().map(sends)
    });
    let status = Status { loaded, rules: bentpipe_kernel::rules()?, probes: probes.collect() };
    if json {
        return output::print_json(&status);
    }
    let loaded = if status.loaded.is_empty() { "nothing".to_owned() } else { status.loaded.join(" ") };
    output::print(&format!("loaded: {loaded}\n"))?;
    for Sends { control, namespace, interface } in &status.probes {
        output::print(&format!(
            "probes of {control}: through interface {interface} of network namespace {namespace}\n"
        ))?;
    }
    if status.rules.is_empty() {
        return output::print(
            "rules: none; connections ask for an algorithm themselves, or get the system's\n",
        );
    }
    let mut rows = vec![["ALGORITHM", "TO", "INTERFACE", "CONTROL GROUP"].map(str::to_owned).to_vec()];
    rows.extend(status.rules.iter().map(|rule| {
        let interface = match &rule.interface {
            Some(name) if rule.is_there => name.clone(),
            Some(name) => format!("{name} (not there)"),
            None => "any".to_owned(),
        };
        vec![rule.control.clone(), rule.to.clone(), interface, rule.group.to_string()]
    }));
    output::print(&table::list(&rows, output::look()))
}

pub fn use_for(args: &UseArgs) -> Result<(), Failure> {
    let control = match args.name.as_str() {
        "none" => None,
        name => Some(bentpipe_kernel::find(name)?),
    };
    if let Some(control) = control
        && !bentpipe_kernel::loaded()?.contains(&control)
    {
        return Err(Failure::Request(format!(
            "{} is not loaded: bentpipe kernel load {}",
            control.kernel_name, control.name
        )));
    }
    let which = Match { to: args.to.clone(), interface: args.interface.clone(), group: args.group.clone() };
    bentpipe_kernel::use_for(control, &which)?;
    let words = match control {
        Some(control) => format!("new connections get {}\n", control.kernel_name),
        None => "the rule is removed\n".to_owned(),
    };
    output::print(&words)
}

/// Prints a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970.
    time_s: f64,
    #[serde(flatten)]
    connection: &'a Connection,
}

pub fn watch(args: &WatchArgs) -> Result<(), Failure> {
    let watch = Watch::new()?;
    let mut left = args.count;
    loop {
        let mut connections = watch.connections()?;
        connections.retain(|connection| args.all || connection.is_ours());
        show(&connections, args)?;
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(());
        }
        thread::sleep(args.interval);
    }
}

fn show(connections: &[Connection], args: &WatchArgs) -> Result<(), Failure> {
    if args.json {
        let time_s =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let mut lines = String::new();
        for connection in connections {
            let line = serde_json::to_string(&Line { time_s, connection });
            lines += &line.expect("numbers and strings are JSON");
            lines.push('\n');
        }
        return output::print(&lines);
    }
    let mut screen = String::new();
    if io::stdout().is_terminal() {
        screen += "\x1b[H\x1b[2J"; // to the corner, and all clear
    }
    screen += &table::list(&rows(connections), output::look());
    if connections.is_empty() {
        screen += "no connection uses a Bentpipe algorithm (--all shows the others)\n";
    }
    output::print(&screen)?;
    io::stdout().flush().map_err(|error| Failure::Work(format!("cannot write: {error}")))
}

fn rows(connections: &[Connection]) -> Vec<Vec<String>> {
    const HEAD: [&str; 10] =
        ["FROM", "TO", "ALGORITHM", "CWND", "SSTHRESH", "PACING", "RTT", "LEAST", "RECOVERY", "STATE"];
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(connections.iter().map(|connection| {
        let state = connection.state.iter().map(|(name, value)| format!("{name} {}", short(*value)));
        vec![
            connection.local.to_string(),
            connection.remote.to_string(),
            connection.control.clone(),
            connection.cwnd.to_string(),
            connection.ssthresh.map_or("-".into(), |ssthresh| ssthresh.to_string()),
            connection.pacing_bps.map_or("-".into(), |rate| format!("{:.2} Mbit/s", rate as f64 / 1e6)),
            format!("{:.1} ms", connection.srtt_ms),
            connection.min_rtt_ms.map_or("-".into(), |rtt| format!("{rtt:.1} ms")),
            connection.recovery.to_owned(),
            state.collect::<Vec<_>>().join(", "),
        ]
    }));
    rows
}

/// Rounds to a few digits.
fn short(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

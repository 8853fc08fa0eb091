//! `bentpipe emulate`.

mod status;

use std::net::{SocketAddr, TcpListener};

use bentpipe_emu::{
    At, EmulationConfig, Hop, LEAST_MTU_OF_IPV6, LinkState, Outcome, Override, Path, Remote, run,
};
use bentpipe_net::{LinkConfig, Schedule};
use bentpipe_scenario::{Draft, Scenario};
use rustix::process;
use status::Status;

use crate::args::{EmulateArgs, Place};
use crate::failure::Failure;
use crate::output::{self, Kind, Target};

/// Time for which schedules and orbits are computed, unless `--set duration` says otherwise. An emulation lasts until
/// its command ends.
const DURATION: &str = "duration=1 h";

/// Runs the emulation, which ends with the exit code of its command.
pub fn emulate(args: &EmulateArgs) -> Result<u8, Failure> {
    output::refuse_twice(&[args.pcap.as_ref(), args.summary.as_ref()])?;
    if args.with_parent {
        let end = Some(process::Signal::TERM);
        process::set_parent_process_death_signal(end)
            .map_err(|error| Failure::Work(format!("the signal at the parent's end: {error}")))?;
    }
    if let Some(emulation) = args.join {
        match bentpipe_emu::join(emulation, &args.command)? {}
    }
    let (draft, change) = draft(args)?;
    let scenario = draft.scenario()?;
    let at = match args.at {
        Place::Receiver => At::Receiver,
        Place::Sender => At::Sender,
    };
    // Other flows are not emulated.
    let links = Scenario { flows: Vec::new(), ..scenario.clone() };
    bentpipe_lab::check_memory(&links, 1, args.memory).map_err(Failure::Request)?;
    let mut path = Path::of(&scenario, at).map_err(bentpipe_emu::Error::from)?;
    path.seed = args.seed.unwrap_or(path.seed);
    if let Some((part, change)) = &change {
        path.change(part, change);
    }
    for note in scenario.notes_on_satellites() {
        eprintln!("bentpipe: {note}");
    }
    if !path.left_out.is_empty() {
        eprintln!("bentpipe: not emulated, packets pass it unchanged: {}", path.left_out.join(", "));
    }
    if !args.quiet {
        tell_what_programs_decide(&draft, &scenario, &path);
        eprintln!("bentpipe: emulating {}: down {}; up {}", scenario.name, said(&path.down), said(&path.up));
    }
    let (pcap, summary) = (
        output::open(args.pcap.as_ref(), Kind::Packets)?,
        output::open(args.summary.as_ref(), Kind::Summary)?,
    );
    let capture =
        pcap.as_ref().map(|target| Ok::<_, Failure>(Box::new(target.writer()?) as _)).transpose()?;
    let remote = args.http.map(|address| listen(address, Knobs { draft, at, change })).transpose()?;
    let config = EmulationConfig {
        path,
        command: args.command.clone(),
        servers: args.listen.clone(),
        capture,
        remote,
    };
    let mut status = Status::new(args.status, args.quiet);
    let ended = run(config, |snapshot| status.show(snapshot))?;
    status.clear();
    pcap.map_or(Ok(()), Target::finish)?;
    if let Some(summary) = summary {
        let text = serde_json::to_string_pretty(&ended.snapshot)
            .map_err(|error| Failure::Work(error.to_string()))?;
        summary.write((text + "\n").as_bytes())?;
    }
    if !args.quiet {
        eprint!("{}", summary_of(&ended));
    }
    Ok(ended.code)
}

/// Warns of TCP settings that have no effect on real programs, and of packets too small for IPv6.
fn tell_what_programs_decide(draft: &Draft, scenario: &Scenario, path: &Path) {
    let flow = scenario.compared_flow().map_or("", |flow| &flow.name);
    // The MTU follows from these two.
    let emulated = |key: &str| key.ends_with(".mss") || key.ends_with(".header");
    let ignored: Vec<String> = draft.tcp_settings(flow).into_iter().filter(|key| !emulated(key)).collect();
    if !ignored.is_empty() {
        eprintln!(
            "bentpipe: without effect, because programs use the TCP of this machine: {}",
            ignored.join(", ")
        );
    }
    if path.mtu < LEAST_MTU_OF_IPV6 {
        eprintln!(
            "bentpipe: the MTU is {} bytes; IPv6 needs {LEAST_MTU_OF_IPV6}: the path carries IPv4 only",
            path.mtu
        );
    }
}

/// Describes the hops of one direction, from first to last.
fn said(hops: &[Hop]) -> String {
    let one = |hop: &Hop| {
        let LinkConfig { rate, delay_one_way, outages, opportunities, .. } = &hop.config;
        let recorded = if opportunities.is_some() { "recorded deliveries of " } else { "" };
        let mut text = format!("{} {recorded}{}, {}", hop.link, told(rate), told(delay_one_way));
        if hop.config.jitter.is_some() {
            text += ", jitter";
        }
        if !hop.config.loss.is_off() {
            text += ", losses";
        }
        if !outages.intervals.is_empty() {
            text += ", outages";
        }
        text
    };
    hops.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// Returns a value, or the range in which it varies.
fn told<T: std::fmt::Display + Ord + Copy>(schedule: &Schedule<T>) -> String {
    match schedule {
        Schedule::Constant(value) => format!("{value:.2}"),
        Schedule::Sine { mean, amplitude, .. } => format!("{mean:.2} ± {amplitude:.2}"),
        Schedule::Table { points, .. } => {
            let values = || points.iter().map(|point| point.1);
            match (values().min(), values().max()) {
                (Some(least), Some(most)) if least < most => format!("{least:.2} to {most:.2}"),
                (Some(only), _) => format!("{only:.2}"),
                _ => "nothing".to_owned(),
            }
        }
    }
}

/// Makes the server that can change the scenario during the emulation.
fn listen(address: SocketAddr, knobs: Knobs) -> Result<Remote, Failure> {
    let listener = TcpListener::bind(address);
    let listener =
        listener.map_err(|error| Failure::Request(format!("cannot listen at {address}: {error}")))?;
    let Knobs { draft, at, change } = knobs;
    Ok(Remote { listener, draft, at, change })
}

/// Content that the server can change.
struct Knobs {
    draft: Draft,
    at: At,
    change: Option<Change>,
}

/// Overrides from the short options, with their part of the scenario.
type Change = (String, Override);

/// The scenario with all changes that it has keys for.
fn draft(args: &EmulateArgs) -> Result<(Draft, Option<Change>), Failure> {
    let scenario = args.scenario.as_ref().expect("clap requires it without --join");
    let mut draft = Draft::load(scenario)?;
    let change = shorten(&mut draft, args)?;
    draft.set(DURATION)?;
    for setting in &args.set {
        draft.set(&setting.to_string())?;
    }
    Ok((draft, change))
}

/// Refuses a scenario or a loss probability that cannot be emulated.
pub fn check(scenario: &str, losses: &[&str]) -> Result<(), Failure> {
    Draft::load(scenario)?.scenario()?;
    for loss in losses {
        let mut plain = Draft::load(PLAIN)?;
        plain.set(&format!("link.{SATELLITE}.loss={}", spelled_out(loss)))?;
        plain.scenario()?;
    }
    Ok(())
}

/// Applies the short options to the scenario where possible. A link with a modem or through a constellation has no
/// own rate or delay.
fn shorten(draft: &mut Draft, args: &EmulateArgs) -> Result<Option<Change>, Failure> {
    let shorthands = shorthands(args);
    if shorthands.is_empty() {
        return Ok(None);
    }
    let path = Path::of(&draft.scenario()?, At::Receiver).map_err(bentpipe_emu::Error::from)?;
    let part = path.bottleneck().to_owned();
    if part != SATELLITE && path.groups().len() > 1 {
        eprintln!("bentpipe: --rate, --delay-one-way, --loss and --queue change `{part}`");
    }
    let mut plain = Draft::load(PLAIN)?;
    let mut change = Override::default();
    for (key, value) in shorthands {
        // Refuses a value that no link accepts.
        plain.set(&format!("link.{SATELLITE}.{key}={value}"))?;
        let link = plain.scenario()?.links.remove(0).forward;
        let mut changed = draft.clone();
        let taken = changed.set(&format!("link.{part}.{key}={value}"));
        if taken.is_ok() && changed.scenario().is_ok() {
            *draft = changed;
            continue;
        }
        match key {
            "rate" => change.rate = Some(link.rate),
            "delay-one-way" => change.delay_one_way = Some(link.delay_one_way),
            "loss" => change.loss = Some(link.loss),
            _ => change.queue = Some(link.queue),
        }
    }
    if args.delay_one_way.is_some() {
        tell_other_delays(&draft.scenario()?, &part)?;
    }
    Ok((change != Override::default()).then_some((part, change)))
}

/// Names the delays of the path that do not belong to `part`, because the way back can use other links.
fn tell_other_delays(scenario: &Scenario, part: &str) -> Result<(), Failure> {
    let path = Path::of(scenario, At::Receiver).map_err(bentpipe_emu::Error::from)?;
    let mut others: Vec<String> = Vec::new();
    for hop in path.up.iter().chain(&path.down).filter(|hop| hop.group != part) {
        if let Schedule::Constant(delay) = &hop.config.delay_one_way
            && !delay.is_zero()
        {
            others.push(format!("{delay} of `{}`, {}", hop.group, hop.direction));
        }
    }
    if !others.is_empty() {
        eprintln!("bentpipe: --delay-one-way is that of `{part}`; the path keeps {}", others.join("; "));
    }
    Ok(())
}

/// Link that the short options change if it exists, and a scenario whose link accepts all of them.
const SATELLITE: &str = "satellite";
const PLAIN: &str = "geo-single";

/// Keys below the link, with values as in a scenario.
fn shorthands(args: &EmulateArgs) -> Vec<(&'static str, String)> {
    let given = [
        ("rate", &args.rate),
        ("delay-one-way", &args.delay_one_way),
        ("loss", &args.loss),
        ("queue", &args.queue),
    ];
    given.into_iter().filter_map(|(key, value)| Some((key, spelled_out(value.as_ref()?)))).collect()
}

/// Converts values in the form of Linux's `tc`: `10mbit` is `10 Mbit/s`, `275ms` is `275 ms`, `50p` is `50 packets`.
/// Returns other values unchanged.
fn spelled_out(value: &str) -> String {
    let units =
        [("kbit", "kbit/s"), ("mbit", "Mbit/s"), ("gbit", "Gbit/s"), ("bit", "bit/s"), ("p", "packets")];
    if value.trim().parse::<f64>().is_ok() {
        return value.to_owned();
    }
    let split = value.find(|c: char| c.is_ascii_alphabetic()).filter(|split| *split > 0);
    let Some((number, unit)) = split.map(|split| value.split_at(split)) else { return value.to_owned() };
    if number.trim().parse::<f64>().is_err() {
        return value.to_owned();
    }
    let unit =
        units.iter().find(|(short, _)| unit.eq_ignore_ascii_case(short)).map_or(unit, |(_, long)| long);
    format!("{} {unit}", number.trim())
}

fn summary_of(ended: &Outcome) -> String {
    let snapshot = &ended.snapshot;
    let mut text = format!("bentpipe: {:.1} s emulated\n", snapshot.at_s);
    let line = |link: &LinkState| {
        let (name, direction, stats) = (&link.name, link.direction, &link.stats);
        let (packets, kilobytes) = (stats.delivered_packets, stats.delivered_bytes / 1000);
        let corrupted = match stats.corrupted_packets {
            0 => String::new(),
            packets => format!(", {packets} of them corrupted"),
        };
        let drops = status::drops(stats);
        format!("  {name} {direction}: {packets} packets, {kilobytes} kB passed{corrupted}; {drops}\n")
    };
    text.extend(snapshot.up.iter().chain(&snapshot.down).map(line));
    if ended.missed_by_capture > 0 {
        text += &format!(
            "  {} packets are missing in the capture: the disk was too slow\n",
            ended.missed_by_capture
        );
    }
    if let Some(fidelity) = &snapshot.fidelity {
        let [half, most, nearly_all, worst] = fidelity.late_us;
        text += &format!(
            "  scheduling error of {} packets: 50 % left up to {half:.0} us late, 99 % up to {most:.0} us, 99.9 % up to {nearly_all:.0} us, all up to {worst:.0} us; accepted are {:.0} us for 99 %\n  lost by the emulator itself: {}\n  fidelity: {}\n",
            fidelity.packets,
            bentpipe_emu::TOLERANCE.as_millis_f64() * 1e3,
            fidelity.lost,
            fidelity.verdict
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_told_with_its_bounds() {
        use bentpipe_base::Rate;
        let mut draft = Draft::load("leo-recorded").unwrap();
        let rate = |draft: &Draft| draft.scenario().unwrap().links[0].forward.rate.clone();
        assert_eq!(told(&rate(&draft)), "38.1 Mbit/s to 265.8 Mbit/s");
        draft.set("link.satellite.rate={ deliveries = '12mbit.trace' }").unwrap();
        assert_eq!(told(&rate(&draft)), "12 Mbit/s");
        assert_eq!(told(&Schedule::Constant(Rate::from_mbps(5))), "5 Mbit/s");
    }

    #[test]
    fn short_units_are_spelled_out() {
        let pairs = [
            ("10mbit", "10 Mbit/s"),
            ("1.5Gbit", "1.5 Gbit/s"),
            ("275ms", "275 ms"),
            ("50p", "50 packets"),
            ("64KiB", "64 KiB"),
            ("1e-3", "1e-3"),
            ("10 Mbit/s", "10 Mbit/s"),
            ("codel", "codel"),
        ];
        for (short, long) in pairs {
            assert_eq!(spelled_out(short), long);
        }
    }
}

//! `bentpipe pep status` and `bentpipe pep stop`: the proxy that runs.

use bentpipe_pep::{Running, UdpCount, UdpReport};
use indicatif::DecimalBytes;
use serde_json::Value;

use crate::failure::Failure;
use crate::pep_args::{PepStatusArgs, PepStopArgs};
use crate::pep_top;

/// Shows the proxies of this network namespace, and the health of the one that takes new connections.
pub fn status(args: &PepStatusArgs) -> Result<(), Failure> {
    let running = bentpipe_pep::running();
    let health = pep_top::ask(args.from, "/health").ok();
    let health: Option<Value> = health.and_then(|text| serde_json::from_str(&text).ok());
    // An older proxy has no such page.
    let udp = health.as_ref().and_then(|_| pep_top::fetch_udp(args.from).ok()).unwrap_or_default();
    if args.json {
        let processes: Vec<i32> = running.iter().map(|proxy| proxy.process).collect();
        println!("{}", serde_json::json!({ "processes": processes, "health": health, "udp": udp }));
    } else {
        for proxy in &running {
            println!("runs: process {}, rules in the table inet {}", proxy.process, proxy.table());
        }
        match &health {
            Some(health) => print!("{}", in_words(health)),
            None if running.is_empty() => {}
            None => println!("not watched at {}: --from says where it is ([watch] listen)", args.from),
        }
        udp.iter().for_each(|class| println!("{}", udp_in_words(class)));
    }
    if running.is_empty() { Err(nobody()) } else { Ok(()) }
}

fn nobody() -> Failure {
    Failure::Work("no proxy runs in this network namespace".to_owned())
}

/// A line for each entry of the health.
fn in_words(health: &Value) -> String {
    let entries = health.as_object().into_iter().flatten();
    let line = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (value != "null").then(|| format!("{}: {value}\n", key.replace('_', " ")))
    };
    entries.filter_map(line).collect()
}

/// A line for the UDP of a class.
fn udp_in_words(class: &UdpReport) -> String {
    let UdpReport { class, to_satellite, to_clients, refused_packets } = class;
    let count = |count: &UdpCount| format!("{} packets, {}", count.packets, DecimalBytes(count.bytes));
    format!(
        "UDP of class {class}: to the satellite {}; to the clients {}; QUIC refused {refused_packets} packets",
        count(to_satellite),
        count(to_clients)
    )
}

/// Stops all proxies of this network namespace, and waits until they have ended.
pub fn stop(args: &PepStopArgs) -> Result<(), Failure> {
    let running = bentpipe_pep::running();
    if running.is_empty() {
        return Err(nobody());
    }
    // A proxy that is told twice does not wait for its connections.
    for _ in 0..=u8::from(args.now) {
        running.iter().try_for_each(Running::tell_to_end)?;
        if args.now {
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
    }
    for proxy in &running {
        proxy.wait();
        println!("stopped: process {}", proxy.process);
    }
    Ok(())
}

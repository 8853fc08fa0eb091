//! `bentpipe pep top`: the busiest connections of a running proxy, and the UDP of its classes.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bentpipe_pep::{HalfReport, Report, UdpCount, UdpReport};
use comfy_table::{ContentArrangement, Table};
use console::Term;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::pep_args::PepTopArgs;

const PATIENCE: Duration = Duration::from_secs(5);
/// Columns of the table.
const WIDTH: u16 = 99;

/// Shows a table again and again.
pub fn top(args: &PepTopArgs) -> Result<(), Failure> {
    let every = Duration::from_secs(args.every);
    let (mut before, mut udp_before) = (fetch(args.from)?, fetch_udp(args.from)?);
    let mut asked = Instant::now();
    loop {
        thread::sleep(every);
        let (now, udp) = (fetch(args.from)?, fetch_udp(args.from)?);
        let elapsed_s = asked.elapsed().as_secs_f64();
        asked = Instant::now();
        let table = table(&before, &now, elapsed_s, args.count);
        if !args.once && Term::stdout().is_term() {
            // A terminal that cannot be cleared shows one table below the other.
            let _ = Term::stdout().clear_screen();
        }
        println!("{} connections\n{table}\n{}", now.len(), udp_table(&udp_before, &udp, elapsed_s));
        if args.once {
            return Ok(());
        }
        (before, udp_before) = (now, udp);
    }
}

/// Connections of a proxy that is watched at an address.
fn fetch(from: SocketAddr) -> Result<Vec<Report>, Failure> {
    parsed(from, "/connections")
}

/// UDP of the classes of a proxy that is watched at an address.
pub fn fetch_udp(from: SocketAddr) -> Result<Vec<UdpReport>, Failure> {
    parsed(from, "/udp")
}

fn parsed<T: DeserializeOwned>(from: SocketAddr, path: &str) -> Result<T, Failure> {
    serde_json::from_str(&ask(from, path)?)
        .map_err(|_| Failure::Work(format!("what answers at {from} is no proxy of bentpipe")))
}

/// Asks the proxy (HTTP/1.0, so that the answer ends with the connection).
pub fn ask(from: SocketAddr, path: &str) -> Result<String, Failure> {
    let unreachable = |error: std::io::Error| {
        Failure::Work(format!(
            "no proxy answers at {from}: {error}; --from says where it is watched ([watch] listen)"
        ))
    };
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&from, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer: String = ask().map_err(unreachable)?;
    Ok(answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}

fn table(before: &[Report], now: &[Report], elapsed_s: f64, count: usize) -> Table {
    let earlier: HashMap<u64, &Report> = before.iter().map(|report| (report.id, report)).collect();
    let rate = |report: &Report| {
        let moved = |report: &Report| report.front.sent_bytes + report.back.sent_bytes;
        let since = earlier.get(&report.id).map_or(0, |report| moved(report));
        moved(report).saturating_sub(since) as f64 * 8.0 / elapsed_s
    };
    let mut busiest: Vec<(&Report, f64)> = now.iter().map(|report| (report, rate(report))).collect();
    busiest.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut table = empty_table(&[
        "client\nserver",
        "class\nage",
        "Mbit/s",
        "side",
        "cc",
        "cwnd",
        "RTT ms",
        "resent",
        "kB queued",
    ]);
    for (report, rate) in busiest.into_iter().take(count) {
        let halves: [&HalfReport; 2] = [&report.front, &report.back];
        let both = |of: &dyn Fn(&HalfReport) -> String| halves.map(of).join("\n");
        table.add_row([
            format!("{}\n{}", report.client, report.server),
            format!("{}\n{:.0} s", report.class, report.lasted_s),
            format!("{:.2}", rate / 1e6),
            both(&|half| half.side.clone()),
            both(&|half| half.cc.clone()),
            both(&|half| half.cwnd_segments.to_string()),
            both(&|half| format!("{:.1}", half.srtt_ms)),
            both(&|half| half.retransmitted_segments.to_string()),
            both(&|half| (half.queued_bytes / 1000).to_string()),
        ]);
    }
    table
}

/// Rates of the UDP of each class.
fn udp_table(before: &[UdpReport], now: &[UdpReport], elapsed_s: f64) -> Table {
    let mut table =
        empty_table(&["UDP of class", "Mbit/s to satellite", "Mbit/s to clients", "QUIC refused"]);
    for class in now {
        let earlier = before.iter().find(|earlier| earlier.class == class.class);
        let rate = |of: fn(&UdpReport) -> UdpCount| {
            let since = earlier.map_or(0, |earlier| of(earlier).bytes);
            let bytes = of(class).bytes.saturating_sub(since);
            format!("{:.2}", bytes as f64 * 8e-6 / elapsed_s)
        };
        table.add_row([
            class.class.clone(),
            rate(|class| class.to_satellite),
            rate(|class| class.to_clients),
            class.refused_packets.to_string(),
        ]);
    }
    table
}

fn empty_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_long_addresses_is_narrower_than_a_hundred_columns() {
        let half = |side: &str| HalfReport {
            side: side.into(),
            cc: "bp_westwoodplus".into(),
            cwnd_segments: 10_000,
            srtt_ms: 1234.5,
            retransmitted_segments: 1_000_000,
            queued_bytes: 33_554_432,
            ..HalfReport::default()
        };
        let report = Report {
            id: 1,
            began_unix_s: 0.0,
            lasted_s: 86_400.0,
            class: "a-class-with-a-long-name".into(),
            client: "[2001:db8:1111:2222:3333:4444:5555:6666]:65535".into(),
            server: "[2001:db8:7777:8888:9999:aaaa:bbbb:cccc]:65535".into(),
            state: "open".into(),
            front: half("clients"),
            back: half("satellite"),
        };
        let text = table(&[], &[report], 1.0, 1).to_string();
        assert!(text.lines().all(|line| line.chars().count() < 100), "{text}");
    }

    #[test]
    fn the_udp_of_a_class_is_shown_as_rates() {
        let at = |bytes| UdpReport {
            class: "bulk".into(),
            to_satellite: UdpCount { packets: 1, bytes },
            to_clients: UdpCount { packets: 1, bytes: 10 * bytes },
            refused_packets: 7,
        };
        let text = udp_table(&[at(1_000_000)], &[at(3_000_000)], 2.0).to_string();
        let row = text.lines().find(|line| line.contains("bulk")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["bulk", "8.00", "80.00", "7"], "{text}");
    }
}

//! The event log as JSON lines.

use std::io::{self, Write};

use bentpipe_base::{Flags, Probe, Segment};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Event, Record, Sink};

/// Writes each record as one JSON line: `t_s`, `source`, `event` and the event's values.
#[derive(Debug)]
pub struct JsonLines<W, N> {
    out: W,
    name: N,
    failed: Option<io::Error>,
}

impl<W: Write, N: Fn(u32) -> String> JsonLines<W, N> {
    /// Makes a log to `out`; `name` returns the name of a [`Record::source`].
    pub fn new(out: W, name: N) -> Self {
        Self { out, name, failed: None }
    }

    /// Returns the flushed writer.
    ///
    /// # Errors
    /// The first error of the writer; nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        self.failed.map_or(Ok(()), Err)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let (event, fields) = (record.event.name(), describe(&record.event));
        let source = (self.name)(record.source);
        let line = Line { t_s: record.at.as_secs_f64(), source, event, fields };
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write, N: Fn(u32) -> String> Sink for JsonLines<W, N> {
    fn record(&mut self, record: &Record) {
        if self.failed.is_none() {
            self.failed = self.write(record).err();
        }
    }
}

#[derive(Serialize)]
struct Line {
    t_s: f64,
    source: String,
    event: &'static str,
    #[serde(flatten)]
    fields: Value,
}

/// Returns the values of an event.
fn describe(event: &Event) -> Value {
    match event {
        Event::Sent(segment) | Event::Received(segment) => describe_segment(segment),
        Event::Window(state) => json!(state),
        Event::Rtt { sample_ns, srtt_ns } => {
            let millis = |ns: &u64| *ns as f64 / 1e6;
            json!({ "sample_ms": millis(sample_ns), "srtt_ms": millis(srtt_ns) })
        }
        Event::RecoveryEntered | Event::RecoveryLeft | Event::Undone => json!({}),
        Event::Timeout { consecutive } => json!({ "consecutive": consecutive }),
        Event::Offered { waiting, bytes } => json!({ "waiting": waiting, "bytes": bytes }),
        Event::Dropped { cause, bytes } => json!({ "cause": cause, "bytes": bytes }),
    }
}

/// Returns the segment's basic fields, and its other fields if they differ from the default.
fn describe_segment(segment: &Segment) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.into(), value);
    put("seq", segment.seq.into());
    put("len", segment.len.into());
    put("flags", flag_names(segment.flags).into());
    if segment.flags.contains(Flags::ACK) {
        put("ack", segment.ack.into());
    }
    put("window", segment.window.into());
    if !segment.sack.is_empty() {
        put("sack", segment.sack.as_slice().iter().map(|block| json!([block.start, block.end])).collect());
    }
    match segment.probe {
        Probe::No => None,
        Probe::Probe(tag) => put("probe", tag.0.into()),
        Probe::Reply(tag) => put("probe_reply", tag.0.into()),
    };
    if segment.low_priority {
        put("low_priority", true.into());
    }
    if let Some(ecn) = segment.ecn.name() {
        put("ecn", ecn.into());
    }
    Value::Object(fields)
}

/// Returns the names of the set flags, such as `SYN ACK`.
fn flag_names(flags: Flags) -> String {
    flags.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Instant, SackBlocks, SackRange, WindowState};

    fn lines(events: &[Event]) -> Vec<Value> {
        let mut log = JsonLines::new(Vec::new(), |source| format!("flow.{source}"));
        for (n, event) in events.iter().enumerate() {
            log.record(&Record {
                at: Instant::from_nanos(1_500_000_000 * n as u64),
                source: 2,
                event: *event,
            });
        }
        let text = String::from_utf8(log.finish().unwrap()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn one_line_for_each_record() {
        let mut sack = SackBlocks::EMPTY;
        sack.push(SackRange { start: 3, end: 4 });
        let segment = Segment { ack: 9, flags: Flags::ACK | Flags::FIN, sack, ..Segment::default() };
        let window = WindowState { cwnd: 2.0, ssthresh: f64::INFINITY, pacing_bps: 0, phase: "slow start" };
        let found = lines(&[Event::Sent(segment), Event::Window(window), Event::Undone]);
        let sent = json!({
            "t_s": 0.0, "source": "flow.2", "event": "sent", "seq": 0, "len": 0, "flags": "FIN ACK", "ack": 9,
            "window": 0, "sack": [[3, 4]],
        });
        assert_eq!(found[0], sent);
        assert_eq!(
            (&found[1]["cwnd"], &found[1]["ssthresh"], &found[1]["t_s"]),
            (&json!(2.0), &Value::Null, &json!(1.5))
        );
        assert_eq!(found[2], json!({ "t_s": 3.0, "source": "flow.2", "event": "undone" }));
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end() {
        let mut little_room = [0_u8; 10];
        let mut log = JsonLines::new(&mut little_room[..], |_| String::new());
        log.record(&Record { at: Instant::ZERO, source: 0, event: Event::Undone });
        assert!(log.finish().is_err());
    }
}

//! Table of the events of a run.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, ListBuilder, StringDictionaryBuilder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bentpipe_base::{Flags, Instant, Probe, Segment};
use bentpipe_lab::{File, Names};
use bentpipe_outcome::{LinkEvent, Observer, Passing};
use bentpipe_trace::{DropCause, Event};

use crate::batch::Kind;
use crate::file::Parquet;

/// Maximum number of events of a trace in memory; a trace in a file is unlimited.
pub const MOST_EVENTS: usize = 20_000_000;

/// Rows per batch.
const BATCH: usize = 1 << 16;

/// Error of a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The memory limit of events was exceeded.
    #[error(
        "trace: found more than {MOST_EVENTS} events, accepted: fewer kinds of events, a shorter duration, or a file"
    )]
    TooMany,
    /// The file could not be written.
    #[error("{0}")]
    Unwritten(#[from] io::Error),
}

/// Collects the events of a run in memory or in a Parquet file.
pub struct Trace {
    /// Names of connection ends and links.
    sources: Vec<String>,
    first_link: u32,
    schema: SchemaRef,
    rows: Rows,
    count: usize,
    batches: Vec<RecordBatch>,
    file: Option<Parquet<File>>,
    failed: Option<TraceError>,
}

impl Trace {
    /// Makes a trace in memory for a world with these names.
    pub fn in_memory(names: &Names) -> Self {
        let first_link = 2 * names.flows.len() as u32;
        let sources = 0..first_link + names.links.len() as u32;
        Self {
            sources: sources.map(|source| names.source(source)).collect(),
            first_link,
            schema: trace_schema(),
            rows: Rows::default(),
            count: 0,
            batches: Vec::new(),
            file: None,
            failed: None,
        }
    }

    /// Makes a trace in a Parquet file.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn in_file(names: &Names, out: File) -> io::Result<Self> {
        let mut trace = Self::in_memory(names);
        trace.file = Some(Parquet::new(out, trace.schema.clone())?);
        Ok(trace)
    }

    /// Returns the events in memory. For a file it returns none, and completes the file.
    ///
    /// # Errors
    /// If there were too many events, or the first error of the file.
    pub fn finish(mut self) -> Result<(SchemaRef, Vec<RecordBatch>), TraceError> {
        self.flush();
        self.failed.map_or(Ok(()), Err)?;
        if let Some(file) = self.file {
            file.finish()?.flush()?;
        }
        Ok((self.schema, self.batches))
    }

    fn record(&mut self, at: Instant, source: u32, event: &Event) {
        if self.failed.is_some() {
            return;
        }
        self.rows.source.append_option(self.sources.get(source as usize));
        self.rows.event.append_value(event.name());
        self.rows.t_s.append_value(at.as_secs_f64());
        self.rows.put(event);
        self.count += 1;
        if self.count.is_multiple_of(BATCH) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if ArrayBuilder::is_empty(&self.rows.t_s) {
            return;
        }
        let batch = self.rows.take(&self.schema);
        match &mut self.file {
            Some(file) => self.failed = file.write(&batch).err().map(TraceError::from),
            None if self.count > MOST_EVENTS => self.failed = Some(TraceError::TooMany),
            None => self.batches.push(batch),
        }
    }
}

impl Observer for Trace {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        if let Some(event) = event.traced(passing.bytes) {
            self.record(at, self.first_link + passing.link, &event);
        }
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        self.record(at, end, event);
    }
}

type Names32 = StringDictionaryBuilder<Int32Type>;

/// Columns of rows that are not yet a batch.
#[derive(Default)]
struct Rows {
    t_s: Float64Builder,
    source: Names32,
    event: Names32,
    seq: UInt64Builder,
    len: UInt32Builder,
    flags: Names32,
    ack: UInt64Builder,
    window: UInt64Builder,
    sack: ListBuilder<UInt64Builder>,
    probe: UInt32Builder,
    probe_reply: UInt32Builder,
    low_priority: BooleanBuilder,
    ecn: Names32,
    cwnd: Float64Builder,
    ssthresh: Float64Builder,
    pacing_bps: UInt64Builder,
    phase: Names32,
    sample_ms: Float64Builder,
    srtt_ms: Float64Builder,
    consecutive: UInt32Builder,
    waiting: UInt32Builder,
    bytes: UInt32Builder,
    cause: Names32,
}

fn names() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Returns the schema of a trace. The metadata of a column hold its `meaning`, and its `unit` if it has one.
pub fn trace_schema() -> SchemaRef {
    let list = DataType::List(Arc::new(Field::new("item", DataType::UInt64, true)));
    let columns: [(&str, DataType, &str, &str); 23] = [
        ("t_s", DataType::Float64, "s", "time since the start of the run, or of the connection"),
        ("source", names(), "", "end of a flow, or direction of a link"),
        ("event", names(), "", "name of the event"),
        ("seq", DataType::UInt64, "byte", "offset of the first payload byte in the stream; the SYN is 0"),
        ("len", DataType::UInt32, "byte", "payload"),
        ("flags", names(), "", "flags of the TCP header"),
        ("ack", DataType::UInt64, "byte", "cumulative acknowledgement"),
        ("window", DataType::UInt64, "byte", "advertised window"),
        ("sack", list, "byte", "begin and end of each SACK block"),
        ("probe", DataType::UInt32, "", "number of a low-priority probe"),
        ("probe_reply", DataType::UInt32, "", "number of the probe that is answered"),
        ("low_priority", DataType::Boolean, "", "true for low priority"),
        ("ecn", names(), "", "ECN field of the IP header: `capable` (ECT(0)), `l4s` (ECT(1)) or `congested`"),
        ("cwnd", DataType::Float64, "segment", "congestion window"),
        ("ssthresh", DataType::Float64, "segment", "slow-start threshold; none while it is infinite"),
        ("pacing_bps", DataType::UInt64, "bit/s", "pacing rate; 0 for none"),
        ("phase", names(), "", "phase of the algorithm, as its paper calls it"),
        ("sample_ms", DataType::Float64, "ms", "RTT sample"),
        ("srtt_ms", DataType::Float64, "ms", "smoothed RTT after the sample"),
        ("consecutive", DataType::UInt32, "", "number of the timeout in its episode, from 1"),
        ("waiting", DataType::UInt32, "packet", "packets in the queue, with this one"),
        ("bytes", DataType::UInt32, "byte", "size of the packet on the wire"),
        ("cause", names(), "", "reason of a drop: `queue`, `low-priority`, `error`, `outage` or `access`"),
    ];
    let fields: Vec<_> = columns
        .into_iter()
        .map(|(name, kind, unit, meaning)| {
            let metadata =
                [("unit", unit), ("meaning", meaning)].into_iter().filter(|(_, text)| !text.is_empty());
            let metadata = metadata.map(|(key, text)| (key.to_owned(), text.to_owned()));
            Field::new(name, kind, true).with_metadata(HashMap::from_iter(metadata))
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, Kind::Trace.metadata()))
}

impl Rows {
    /// Appends the columns of an event except time, source and name.
    fn put(&mut self, event: &Event) {
        let segment = match event {
            Event::Sent(segment) | Event::Received(segment) => Some(segment),
            _ => None,
        };
        self.put_segment(segment);
        let window = if let Event::Window(state) = event { Some(state) } else { None };
        self.cwnd.append_option(window.map(|state| state.cwnd));
        self.ssthresh
            .append_option(window.map(|state| state.ssthresh).filter(|ssthresh| ssthresh.is_finite()));
        self.pacing_bps.append_option(window.map(|state| state.pacing_bps));
        self.phase.append_option(window.map(|state| state.phase));
        let rtt =
            if let Event::Rtt { sample_ns, srtt_ns } = event { Some((sample_ns, srtt_ns)) } else { None };
        self.sample_ms.append_option(rtt.map(|(sample, _)| *sample as f64 / 1e6));
        self.srtt_ms.append_option(rtt.map(|(_, srtt)| *srtt as f64 / 1e6));
        self.consecutive.append_option(if let Event::Timeout { consecutive } = event {
            Some(*consecutive)
        } else {
            None
        });
        let (waiting, bytes, cause) = match event {
            Event::Offered { waiting, bytes } => (Some(*waiting), Some(*bytes), None),
            Event::Dropped { cause, bytes } => (None, Some(*bytes), Some(cause_name(*cause))),
            _ => (None, None, None),
        };
        self.waiting.append_option(waiting);
        self.bytes.append_option(bytes);
        self.cause.append_option(cause);
    }

    fn put_segment(&mut self, segment: Option<&Segment>) {
        self.seq.append_option(segment.map(|segment| segment.seq));
        self.len.append_option(segment.map(|segment| segment.len));
        let flags = |segment: &Segment| {
            segment.flags.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        self.flags.append_option(segment.map(flags));
        let acks = segment.filter(|segment| segment.flags.contains(Flags::ACK));
        self.ack.append_option(acks.map(|segment| segment.ack));
        self.window.append_option(segment.map(|segment| u64::from(segment.window)));
        match segment.filter(|segment| !segment.sack.as_slice().is_empty()) {
            Some(segment) => {
                self.sack
                    .append_value(segment.sack.as_slice().iter().flat_map(|b| [Some(b.start), Some(b.end)]));
            }
            None => self.sack.append_null(),
        }
        let (probe, reply) = match segment.map(|segment| segment.probe) {
            Some(Probe::Probe(tag)) => (Some(tag.0.into()), None),
            Some(Probe::Reply(tag)) => (None, Some(tag.0.into())),
            _ => (None, None),
        };
        self.probe.append_option(probe);
        self.probe_reply.append_option(reply);
        self.low_priority.append_option(segment.map(|segment| segment.low_priority));
        self.ecn.append_option(segment.and_then(|segment| segment.ecn.name()));
    }

    fn take(&mut self, schema: &SchemaRef) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.t_s.finish()),
            Arc::new(self.source.finish()),
            Arc::new(self.event.finish()),
            Arc::new(self.seq.finish()),
            Arc::new(self.len.finish()),
            Arc::new(self.flags.finish()),
            Arc::new(self.ack.finish()),
            Arc::new(self.window.finish()),
            Arc::new(self.sack.finish()),
            Arc::new(self.probe.finish()),
            Arc::new(self.probe_reply.finish()),
            Arc::new(self.low_priority.finish()),
            Arc::new(self.ecn.finish()),
            Arc::new(self.cwnd.finish()),
            Arc::new(self.ssthresh.finish()),
            Arc::new(self.pacing_bps.finish()),
            Arc::new(self.phase.finish()),
            Arc::new(self.sample_ms.finish()),
            Arc::new(self.srtt_ms.finish()),
            Arc::new(self.consecutive.finish()),
            Arc::new(self.waiting.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.cause.finish()),
        ];
        RecordBatch::try_new(Arc::clone(schema), columns)
            .expect("every line has all columns, in the order of the schema")
    }
}

const fn cause_name(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Queue => "queue",
        DropCause::LowPriority => "low-priority",
        DropCause::Error => "error",
        DropCause::Outage => "outage",
        DropCause::Access => "access",
    }
}

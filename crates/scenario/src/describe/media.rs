//! Tables of video and voice traffic.

use std::path::Path;

use bentpipe_base::{Duration, Rate};
use bentpipe_traffic::adaptive::{self, Logic};
use bentpipe_traffic::frames::Recording;
use bentpipe_traffic::mpeg::{self, FrameType};
use bentpipe_traffic::voice::Codec as Speech;

use crate::error::Place;
use crate::file::read_text;
use crate::form::{Form, Reading, Shorthand};
use crate::model::{Streaming, Traffic};
use crate::tree::{Node, Value};
use crate::unit::{
    Codec, FACTOR, FLAG, FRAME_RATE, OrWord, PROBABILITY, RATE, Refused, TEXT, TIME, TIME_ABOVE_ZERO, Words,
};

/// Speech codecs, keyed by name.
pub(super) const CODECS: Words<Speech> = Words(&[("g711", Speech::G711), ("g729", Speech::G729)]);

/// Returns a call with default values.
pub(super) fn voice() -> Traffic {
    let jitter_buffer = Duration::from_millis(60);
    Traffic::Voice { codec: Speech::G711, suppress_silence: true, jitter_buffer }
}

/// Returns a recording before its file is known.
pub(super) fn no_frames() -> Traffic {
    Traffic::Frames {
        file: String::new(),
        recording: Recording::default(),
        frames_per_s: 25.0,
        repeat: true,
        stream: Streaming::default(),
    }
}

/// Keys of live video from a stochastic model.
pub(super) fn video(form: &mut Form<'_>, video: &mut mpeg::Config) {
    form.field("group", &mut video.group, &Group);
    form.field("frame-rate", &mut video.frames_per_s, &FRAME_RATE);
    form.field("rate-factor", &mut video.rate_factor, &FACTOR);
}

/// Keys for sending and evaluating live video.
pub(super) fn streaming(form: &mut Form<'_>, stream: &mut Streaming) {
    form.field("playout-delay", &mut stream.playout_delay, &TIME);
    form.field("threshold", &mut stream.threshold, &TIME_ABOVE_ZERO);
    form.field("coalesce", &mut stream.coalesce, &FLAG);
}

/// Keys of live video from recorded frame sizes.
pub(super) fn frames(form: &mut Form<'_>, traffic: &mut Traffic) {
    let Traffic::Frames { file, recording, frames_per_s, repeat, stream } = traffic else { return };
    form.required("sizes", file, &TEXT);
    if let Form::Read(reading) = form {
        read_recording(reading, file, recording);
    }
    form.field("frame-rate", frames_per_s, &FRAME_RATE);
    form.field("repeat", repeat, &FLAG);
    streaming(form, stream);
}

/// Reads the file. Its path is relative to the scenario file, or to the working directory for the command line.
fn read_recording(reading: &mut Reading<'_>, file: &str, recording: &mut Recording) {
    let Some(node) = reading.get("sizes").filter(|_| !file.is_empty()) else { return };
    let folder = match &node.place {
        Place::File { file, .. } => Path::new(&**file).parent().unwrap_or(Path::new("")),
        _ => Path::new(""),
    };
    let text = read_text(&folder.join(file)).map_err(|error| error.to_string());
    match text.and_then(|text| Recording::parse(&text).map_err(|error| error.to_string())) {
        Ok(read) => *recording = read,
        Err(error) => {
            let accepted = format!("a file with one frame size in bytes on each line ({error})");
            reading.refuse("sizes", node, accepted, None);
        }
    }
}

/// Keys of an adaptive-video player and its video.
pub(super) fn adaptive(form: &mut Form<'_>, config: &mut adaptive::Config) {
    form.field("ladder", &mut config.ladder, &Ladder);
    form.field("segment", &mut config.segment, &TIME_ABOVE_ZERO);
    form.field("buffer", &mut config.buffer, &TIME_ABOVE_ZERO);
    form.field("startup", &mut config.startup, &TIME_ABOVE_ZERO);
    form.field("length", &mut config.length, &OrWord("endless", TIME_ABOVE_ZERO));
    form.table("player", Shorthand::KIND, |form| player(form, &mut config.logic));
}

fn player(form: &mut Form<'_>, logic: &mut Logic) {
    let name = |logic: &Logic| match logic {
        Logic::Buffer { .. } => "buffer",
        Logic::Throughput { .. } => "throughput",
    };
    form.variant(logic, name, vec![Logic::BUFFER, Logic::THROUGHPUT], |form, logic| match logic {
        Logic::Buffer { reservoir, cushion } => {
            form.field("reservoir", reservoir, &PROBABILITY);
            form.field("cushion", cushion, &PROBABILITY);
        }
        Logic::Throughput { safety } => form.field("safety", safety, &FACTOR),
    });
}

/// Codec of a group of pictures: one letter per frame.
struct Group;

impl Codec<Vec<FrameType>> for Group {
    fn read(&self, value: &Value) -> Result<Vec<FrameType>, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        let frame = |letter: char| match letter {
            'I' => Some(FrameType::I),
            'P' => Some(FrameType::P),
            'B' => Some(FrameType::B),
            _ => None,
        };
        let group = text.chars().map(frame).collect::<Option<Vec<_>>>();
        group.filter(|group| !group.is_empty()).ok_or_else(Refused::default)
    }
    fn show(&self, typed: &Vec<FrameType>) -> Value {
        let letter = |frame: &FrameType| match frame {
            FrameType::I => 'I',
            FrameType::P => 'P',
            FrameType::B => 'B',
        };
        Value::Text(typed.iter().map(letter).collect())
    }
    fn accepted(&self) -> String {
        "a group of pictures, one letter I, P or B for each frame, such as \"IBBPBBPBBPBB\"".to_owned()
    }
}

/// Codec of rates in ascending order.
struct Ladder;

impl Codec<Vec<Rate>> for Ladder {
    fn read(&self, value: &Value) -> Result<Vec<Rate>, Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        let rates = items.iter().map(|item| RATE.read(&item.value)).collect::<Result<Vec<Rate>, _>>()?;
        let ascending = rates.windows(2).all(|pair| pair[0] < pair[1]);
        if ascending && !rates.is_empty() { Ok(rates) } else { Err(Refused::default()) }
    }
    fn show(&self, typed: &Vec<Rate>) -> Value {
        Value::List(typed.iter().map(|rate| Node::computed(RATE.show(rate))).collect())
    }
    fn accepted(&self) -> String {
        "rates above 0 in ascending order, such as [\"300 kbit/s\", \"1 Mbit/s\"]".to_owned()
    }
}

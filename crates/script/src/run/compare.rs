//! Sequence numbers of a conversation, and comparison of a packet with the script's expectation.

use std::fmt::Write;

use bentpipe_base::{Duration, Flags, Instant};

use super::packet::{Seen, flag_letters, option_words, pattern};
use crate::script::{EcnSpec, TcpOption, TcpSpec};

/// Kinds of experimental options (RFC 6994), ignored unless a script names them.
const EXPERIMENTS: [u8; 2] = [253, 254];

/// Offsets between the numbers in the script and on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// Offset added to this end's sequence numbers in the script.
    own: Option<u32>,
    /// Sequence number of this end's SYN on the wire.
    own_syn: u32,
    /// Sequence number of the peer's last SYN.
    pub peer_syn: Option<u32>,
    /// True if this end's next SYN may set new offsets.
    pub fresh: bool,
    /// Offset added to this end's timestamps in the script.
    clock: Option<u32>,
}

impl Numbers {
    /// Converts this end's sequence number from the script to the wire.
    pub fn own(&self, seq: u32) -> u32 {
        self.own.unwrap_or_default().wrapping_add(seq)
    }

    /// Converts this end's sequence number from the wire to the script.
    fn in_script(&self, seq: u32) -> u32 {
        seq.wrapping_sub(self.own.unwrap_or_default())
    }

    /// Converts this end's timestamp that the peer echoes.
    pub fn echo(&self, echo: u32) -> u32 {
        if echo == 0 { 0 } else { echo.wrapping_add(self.clock.unwrap_or_default()) }
    }

    /// Learns the offsets from this end's SYN.
    pub fn learn(&mut self, spec: &TcpSpec, seen: &Seen) {
        if seen.tcp.syn && (self.own.is_none() || self.fresh) {
            let seq = seen.tcp.sequence_number;
            *self = Self {
                own: Some(seq.wrapping_sub(spec.seq)),
                own_syn: seq,
                fresh: false,
                clock: None,
                ..*self
            };
        }
    }
}

/// Formats a packet in script notation.
pub fn shown(seen: &Seen, numbers: &Numbers, since: Instant) -> String {
    let seq = numbers.in_script(seen.tcp.sequence_number);
    let len = seen.payload.len() as u32;
    let mut text = format!("{:.6} > ", seen.at.since(since).as_secs_f64());
    let ecn = ["", "[ect1] ", "[ect0] ", "[ce] "][usize::from(seen.ecn & 3)];
    let flags = flag_letters(seen.flags());
    write!(text, "{ecn}{flags} {seq}:{}({len})", seq.wrapping_add(len)).expect("a string takes all");
    if seen.tcp.ack {
        write!(text, " ack {}", seen.tcp.acknowledgment_number).expect("a string takes all");
    }
    write!(text, " win {}", seen.tcp.window_size).expect("a string takes all");
    let options: Vec<TcpOption> = seen
        .options
        .iter()
        .map(|option| match option {
            TcpOption::Timestamps(Some(value), echo) => {
                TcpOption::Timestamps(Some(value.wrapping_sub(numbers.clock.unwrap_or_default())), *echo)
            }
            option => option.clone(),
        })
        .collect();
    if !options.is_empty() {
        write!(text, " <{}>", option_words(&options)).expect("a string takes all");
    }
    text
}

/// Compares a packet with the script's expectation; returns the difference.
pub fn compare(
    spec: &TcpSpec,
    seen: &Seen,
    numbers: &mut Numbers,
    tolerance: Duration,
) -> Result<(), String> {
    numbers.learn(spec, seen);
    if let Some(flags) = spec.flags
        && flags != seen.flags()
    {
        return Err(format!("flags {} instead of {}", flag_letters(seen.flags()), flag_letters(flags)));
    }
    let seq = numbers.in_script(seen.tcp.sequence_number);
    // The reset for a segment without acknowledgement has sequence number zero (RFC 9293, 3.10.7.1).
    let is_zero = seen.tcp.rst && seen.tcp.sequence_number == 0 && spec.seq == 0;
    if seq != spec.seq && !is_zero {
        return Err(format!("sequence number {seq} instead of {}", spec.seq));
    }
    let len = seen.payload.len() as u32;
    if len != spec.len {
        return Err(format!("{len} bytes instead of {}", spec.len));
    }
    let ack = seen.tcp.ack.then_some(seen.tcp.acknowledgment_number);
    if ack != spec.ack && spec.flags.is_some() {
        let show = |ack: Option<u32>| ack.map_or("no acknowledgement".to_owned(), |ack| format!("ack {ack}"));
        return Err(format!("{} instead of {}", show(ack), show(spec.ack)));
    }
    if let Some(window) = spec.window.filter(|window| *window != seen.tcp.window_size) {
        return Err(format!("window {} instead of {window}", seen.tcp.window_size));
    }
    if spec.urgent != seen.tcp.urgent_pointer {
        return Err(format!("urgent pointer {} instead of {}", seen.tcp.urgent_pointer, spec.urgent));
    }
    compare_ecn(spec.ecn, seen.ecn)?;
    compare_payload(seen, numbers)?;
    compare_options(spec, seen, numbers, tolerance)
}

fn compare_ecn(wanted: Option<EcnSpec>, ecn: u8) -> Result<(), String> {
    let fits = match wanted {
        None => true,
        Some(EcnSpec::None) => ecn == 0,
        Some(EcnSpec::Ect1) => ecn == 1,
        Some(EcnSpec::Ect0) => ecn == 2,
        Some(EcnSpec::EctAny) => ecn == 1 || ecn == 2,
        Some(EcnSpec::Ce) => ecn == 3,
    };
    if fits { Ok(()) } else { Err(format!("ECN field {ecn} instead of {wanted:?}")) }
}

/// Checks that the payload is the data written by the application.
fn compare_payload(seen: &Seen, numbers: &Numbers) -> Result<(), String> {
    let first = seen.tcp.sequence_number.wrapping_sub(numbers.own_syn).wrapping_add(u32::from(seen.tcp.syn));
    let is_wrong = |(at, byte): (u32, &u8)| pattern(first.wrapping_add(at)) != *byte;
    match (0..).zip(&seen.payload).find(|pair| is_wrong(*pair)) {
        None => Ok(()),
        Some((at, _)) => Err(format!("byte {at} of the payload is not what was written there")),
    }
}

/// Compares options, without order and padding, which have no meaning (RFC 9293, 3.1).
fn compare_options(
    spec: &TcpSpec,
    seen: &Seen,
    numbers: &mut Numbers,
    tolerance: Duration,
) -> Result<(), String> {
    let Some(wanted) = &spec.options else { return Ok(()) };
    let matters = |option: &&TcpOption| !matches!(option, TcpOption::Nop | TcpOption::Eol);
    let is_experiment =
        |option: &TcpOption| matches!(option, TcpOption::Other(kind, _) if EXPERIMENTS.contains(kind));
    let wants_experiments = wanted.iter().any(is_experiment);
    let wanted: Vec<&TcpOption> = wanted.iter().filter(matters).collect();
    let mut found: Vec<&TcpOption> = seen
        .options
        .iter()
        .filter(matters)
        .filter(|option| wants_experiments || !is_experiment(option))
        .collect();
    for option in &wanted {
        let at = found.iter().position(|found| fits(option, found, numbers, tolerance));
        let Some(at) = at else {
            return Err(format!(
                "options <{}> instead of <{}>",
                words(&found, numbers),
                words(&wanted, &Numbers::default())
            ));
        };
        found.remove(at);
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(format!("the options <{}> beside those wanted", words(&found, numbers))),
    }
}

fn words(options: &[&TcpOption], numbers: &Numbers) -> String {
    let shift = numbers.clock.unwrap_or_default();
    let options: Vec<TcpOption> = options
        .iter()
        .map(|option| match option {
            TcpOption::Timestamps(Some(value), echo) => {
                TcpOption::Timestamps(Some(value.wrapping_sub(shift)), *echo)
            }
            option => (*option).clone(),
        })
        .collect();
    option_words(&options)
}

fn fits(wanted: &TcpOption, found: &TcpOption, numbers: &mut Numbers, tolerance: Duration) -> bool {
    match (wanted, found) {
        (TcpOption::Mss(None), TcpOption::Mss(_))
        | (TcpOption::WindowScale(None), TcpOption::WindowScale(_)) => true,
        (TcpOption::Timestamps(value, echo), TcpOption::Timestamps(Some(found_value), Some(found_echo))) => {
            if echo.is_some_and(|echo| echo != *found_echo) {
                return false;
            }
            let Some(value) = value else { return true };
            // The first timestamp sets the clock offset; later ones must advance with the time.
            let clock = *numbers.clock.get_or_insert(found_value.wrapping_sub(*value));
            let off = found_value.wrapping_sub(clock).wrapping_sub(*value) as i32;
            off.unsigned_abs() as f64 <= tolerance.as_millis_f64().ceil()
        }
        (wanted, found) => wanted == found,
    }
}

/// True if `spec` may match several consecutive segments, of which `seen` is the first.
pub fn may_continue(spec: &TcpSpec, seen: &Seen) -> bool {
    let flags = spec.flags.unwrap_or_default() - Flags::PSH - Flags::FIN;
    !seen.payload.is_empty() && (seen.payload.len() as u32) < spec.len && flags == seen.flags()
}

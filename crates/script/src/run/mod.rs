//! Execution of a script: a stack with a manually advanced clock.

mod assertion;
mod calls;
mod compare;
mod packet;
mod socket;

use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::{Duration, Flags, Instant};
use bentpipe_host::{Id, Stack};
use bentpipe_tcp::Events;
use bentpipe_wire::Offload;
use etherparse::TcpHeader;

use crate::script::{Action, EcnSpec, Event, IcmpSpec, PacketSpec, Script, TcpSpec, When};
use crate::setup::Setup;
use crate::{Failure, Mistake};
use compare::Numbers;
use packet::Seen;
use socket::Socket;

/// Names allowed in assertions.
const NAMES: &str = "tcpi_state, tcpi_snd_cwnd, tcpi_snd_ssthresh, tcpi_rtt, tcpi_total_retrans, tcpi_bytes_acked \
                     or a state such as TCP_ESTABLISHED";

/// Clock at the start of a script: a host that has run for a while.
const BEGIN: Duration = Duration::from_secs(1000);

/// Maximum number of clock steps, after which the stack counts as looping.
const MOST_STEPS: u32 = 1_000_000;

/// Reason why a script stopped.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stopped {
    /// The script has an error.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// The stack does not behave as the script requires.
    #[error(transparent)]
    Failure(#[from] Failure),
}

/// Runs a script against a new stack.
///
/// # Errors
/// If the script has an invalid setting, or the stack does not behave as it requires.
pub fn run(script: &Script) -> Result<(), Stopped> {
    let setup = Setup::new(&script.file, &script.settings)?;
    let mut runner = Runner::new(setup);
    for event in &script.events {
        runner.perform(event).map_err(|what| {
            let line = event.line;
            let what = format!("{what}\n    wanted: {}", script.line(line));
            Failure { file: script.file.clone(), line, what }
        })?;
    }
    runner.finish().map_err(|what| {
        let line = script.events.last().map_or(1, |event| event.line);
        Failure { file: script.file.clone(), line, what }
    })?;
    Ok(())
}

/// A call that waits for its result.
struct Pending {
    call: crate::Call,
    returns: Instant,
}

/// Both ports of a conversation, this end's first.
type Ports = (u16, u16);

/// State of a running script.
struct Runner {
    setup: Setup,
    stack: Stack,
    begin: Instant,
    now: Instant,
    /// Scheduled time of the last event.
    cursor: Instant,
    /// Sent packets not yet compared.
    seen: VecDeque<Seen>,
    conversations: BTreeMap<Ports, Numbers>,
    /// Conversation of packets without ports.
    ports: Ports,
    sockets: BTreeMap<i64, Socket>,
    /// Events of connections.
    happened: BTreeMap<Id, Events>,
    /// Connection that assertions refer to.
    latest: Option<Id>,
    pending: Vec<Pending>,
    steps: u32,
}

impl Runner {
    fn new(setup: Setup) -> Self {
        let begin = Instant::ZERO + BEGIN;
        Self {
            stack: Stack::new(setup.stack_config()),
            begin,
            now: begin,
            cursor: begin,
            seen: VecDeque::new(),
            conversations: BTreeMap::new(),
            ports: (8080, setup.remote_port),
            sockets: BTreeMap::new(),
            happened: BTreeMap::new(),
            latest: None,
            pending: Vec::new(),
            steps: 0,
            setup,
        }
    }

    /// Returns the earliest and latest allowed time of an event; `None` for any time.
    fn time(&self, when: When) -> Option<(Instant, Instant)> {
        match when {
            When::Absolute(from, to) => Some((self.begin + from, self.begin + to)),
            When::Relative(from, to) => Some((self.cursor + from, self.cursor + to)),
            When::Any => None,
        }
    }

    fn perform(&mut self, event: &Event) -> Result<(), String> {
        let time = self.time(event.when);
        if let Action::Expect(PacketSpec::Tcp(spec)) = &event.action {
            let at = self.expect(spec, time)?;
            self.cursor = time.map_or(at, |(_, to)| to);
            return Ok(());
        }
        let base = self.cursor;
        if let Some((from, _)) = time {
            if from < self.cursor {
                return Err("this is earlier than the event before".to_owned());
            }
            self.advance(from)?;
            self.cursor = from;
        }
        match &event.action {
            Action::Inject(PacketSpec::Tcp(spec)) => self.inject(spec),
            Action::Inject(PacketSpec::Icmp(spec)) => self.inject_icmp(spec),
            Action::Expect(_) => Err("found an ICMP packet that is to leave, accepted: TCP".to_owned()),
            Action::Command(command) => self.setup.command(command),
            Action::Assert(code) => assertion::check(code, |name| self.value(name)),
            Action::Call(call) => {
                let base = if matches!(event.when, When::Absolute(..)) { self.begin } else { base };
                match call.returns {
                    Some(returns) => {
                        self.pending.push(Pending { call: call.clone(), returns: base + returns });
                        self.retry_pending()?;
                    }
                    None => self.call_now(call)?,
                }
                self.drain()
            }
        }
    }

    /// Lets the stack send its packets.
    fn drain(&mut self) -> Result<(), String> {
        let mut out = Vec::new();
        while self.stack.poll_packet(self.now, &mut out) {
            let seen = Seen::read(self.now, &out).map_err(|error| format!("a packet left with {error}"))?;
            self.seen.push_back(seen);
            out.clear();
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err("the stack sends without end".to_owned());
            }
        }
        while let Some((id, events)) = self.stack.poll_event() {
            *self.happened.entry(id).or_insert(Events::empty()) |= events;
        }
        Ok(())
    }

    /// Executes one deadline of the stack, if it is due by `until`.
    fn step(&mut self, until: Instant) -> Result<bool, String> {
        self.drain()?;
        let next = self.stack.next_timeout();
        if next > until {
            return Ok(false);
        }
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err("the stack's deadlines come without end".to_owned());
        }
        self.now = self.now.max(next);
        self.stack.handle_timeouts(self.now);
        self.drain()?;
        self.retry_pending()?;
        Ok(true)
    }

    fn advance(&mut self, to: Instant) -> Result<(), String> {
        while self.step(to)? {}
        self.now = self.now.max(to);
        let tolerance = self.setup.tolerance;
        match self.pending.iter().find(|pending| pending.returns + tolerance < self.now) {
            Some(pending) => Err(format!("{} still waits", pending.call.name)),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        if let Some(pending) = self.pending.first() {
            return Err(format!("{} still waits at the end of the script", pending.call.name));
        }
        let Some(first) = self.seen.front().filter(|_| !self.setup.ignores_rest) else { return Ok(()) };
        let numbers = self.numbers_of(first);
        Err(format!(
            "{} more packets left than wanted, first {}",
            self.seen.len(),
            compare::shown(first, &numbers, self.begin)
        ))
    }

    fn numbers_of(&self, seen: &Seen) -> Numbers {
        let ports = (seen.source.port(), seen.destination.port());
        self.conversations.get(&ports).copied().unwrap_or_default()
    }

    /// Waits for the next packet and compares it. Returns its send time.
    fn expect(&mut self, spec: &TcpSpec, time: Option<(Instant, Instant)>) -> Result<Instant, String> {
        let tolerance = self.setup.tolerance;
        let until = time.map_or(Instant::FAR_FUTURE, |(_, to)| to + tolerance);
        let mut first = self.next_seen(until)?;
        let ports = (first.source.port(), first.destination.port());
        let numbers = self.conversations.entry(ports).or_default();
        numbers.learn(spec, &first);
        let text = compare::shown(&first, numbers, self.begin);
        let fail = |what: String| format!("{what}\n     found: {text}");
        let wanted_ports = spec.ports.unwrap_or(self.ports);
        if ports != wanted_ports {
            return Err(fail(format!("ports {ports:?} instead of {wanted_ports:?}")));
        }
        let at = first.at;
        if let Some((from, to)) = time {
            let early = at + tolerance < from;
            if early || at > to + tolerance {
                let off = if early { from.since(at) } else { at.since(to) };
                let word = if early { "early" } else { "late" };
                return Err(fail(format!("{:.6} s too {word}", off.as_secs_f64())));
            }
        }
        // One line may match several segments.
        while compare::may_continue(spec, &first) {
            let next = self.next_seen(until).map_err(&fail)?;
            let follows = first.tcp.sequence_number.wrapping_add(first.payload.len() as u32);
            if next.tcp.sequence_number != follows || next.payload.is_empty() {
                return Err(fail("the segment after it is not the next one".to_owned()));
            }
            first.payload.extend_from_slice(&next.payload);
            (first.tcp.psh, first.tcp.fin) = (next.tcp.psh, next.tcp.fin);
        }
        let numbers = self.conversations.entry(ports).or_default();
        compare::compare(spec, &first, numbers, tolerance).map_err(fail)?;
        Ok(at)
    }

    fn next_seen(&mut self, until: Instant) -> Result<Seen, String> {
        self.drain()?;
        while self.seen.is_empty() && self.step(until)? {}
        self.seen.pop_front().ok_or_else(|| {
            if until == Instant::FAR_FUTURE {
                "nothing leaves any more".to_owned()
            } else {
                format!("nothing left until {:.6}", until.since(self.begin).as_secs_f64())
            }
        })
    }

    fn inject(&mut self, spec: &TcpSpec) -> Result<(), String> {
        // Arriving packets name their source port first.
        let ports = spec.ports.map_or(self.ports, |(theirs, ours)| (ours, theirs));
        let numbers = self.conversations.entry(ports).or_default();
        let flags = spec.flags.unwrap_or_default();
        if flags.contains(Flags::SYN) {
            numbers.fresh |= numbers.peer_syn != Some(spec.seq);
            numbers.peer_syn = Some(spec.seq);
        }
        let options: Vec<_> =
            spec.options.iter().flatten().cloned().map(|option| sent(option, numbers)).collect();
        let mut header = TcpHeader::new(ports.1, ports.0, spec.seq, spec.window.unwrap_or_default());
        header.acknowledgment_number = spec.ack.map_or(0, |ack| numbers.own(ack));
        header.urgent_pointer = spec.urgent;
        let set = |flag| flags.contains(flag);
        (header.fin, header.syn, header.rst, header.psh) =
            (set(Flags::FIN), set(Flags::SYN), set(Flags::RST), set(Flags::PSH));
        (header.ack, header.urg, header.ece, header.cwr) =
            (set(Flags::ACK), set(Flags::URG), set(Flags::ECE), set(Flags::CWR));
        header.ns = set(Flags::AE);
        header.set_options_raw(&packet::option_bytes(&options)?).map_err(|error| error.to_string())?;
        let first = spec.seq.wrapping_add(u32::from(header.syn));
        let ecn = match spec.ecn {
            None | Some(EcnSpec::None) => 0,
            Some(EcnSpec::Ect1) => 1,
            Some(EcnSpec::Ect0 | EcnSpec::EctAny) => 2,
            Some(EcnSpec::Ce) => 3,
        };
        let addresses = (self.setup.remote(), self.setup.local());
        let bytes = packet::tcp(addresses, ecn, header, &packet::stream(first, spec.len))?;
        self.arrive(&bytes)
    }

    fn inject_icmp(&mut self, spec: &IcmpSpec) -> Result<(), String> {
        let ports = spec.ports.unwrap_or(self.ports);
        let numbers = self.conversations.get(&ports).copied().unwrap_or_default();
        let header = TcpHeader::new(ports.0, ports.1, numbers.own(spec.echoed.seq), 0);
        let addresses = (self.setup.local(), self.setup.remote());
        let quoted = packet::tcp(addresses, 0, header, &vec![0; spec.echoed.len as usize])?;
        // Header plus eight bytes (RFC 792); with IPv6 as much as fits (RFC 4443).
        let most = if self.setup.is_v6 { 1232 } else { 28 };
        let quoted = &quoted[..quoted.len().min(most)];
        let bytes = packet::icmp((self.setup.remote(), self.setup.local()), &spec.kind, quoted)?;
        self.arrive(&bytes)
    }

    fn arrive(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stack.handle_packet(self.now, &Offload::default(), bytes);
        self.drain()?;
        self.retry_pending()
    }

    /// Returns the value of a name in an assertion.
    fn value(&self, name: &str) -> Option<f64> {
        if let Some(state) = socket::state_number(name) {
            return Some(state);
        }
        let connection = self.latest.and_then(|id| self.stack.connection(id));
        let window = connection.map(|connection| connection.window_state());
        Some(match name {
            "tcpi_state" => {
                connection.map_or(socket::CLOSED, |connection| socket::number_of(connection.state()))
            }
            "tcpi_snd_cwnd" => window?.cwnd.floor(),
            "tcpi_snd_ssthresh" => window?.ssthresh.min(f64::from(i32::MAX)).floor(),
            "tcpi_rtt" => connection?.srtt()?.as_nanos() as f64 / 1e3,
            "tcpi_total_retrans" => connection?.stats().retransmitted_segments as f64,
            "tcpi_bytes_acked" => connection?.acknowledged_bytes() as f64,
            _ => return None,
        })
    }
}

/// Converts an arriving option: this end's numbers in it become wire numbers.
fn sent(option: crate::TcpOption, numbers: &Numbers) -> crate::TcpOption {
    use crate::TcpOption::{Sack, Timestamps};
    match option {
        Sack(blocks) => {
            Sack(blocks.iter().map(|(from, to)| (numbers.own(*from), numbers.own(*to))).collect())
        }
        Timestamps(value, echo) => Timestamps(value, echo.map(|echo| numbers.echo(echo))),
        other => other,
    }
}

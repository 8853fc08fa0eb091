//! Execution of application calls.

use std::net::SocketAddr;

use bentpipe_host::Unopened;
use bentpipe_tcp::{Events, State};

use super::Runner;
use super::packet::stream;
use super::socket::{Kind, Socket, Stream};
use crate::script::{Call, Outcome, Value};

/// Result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Number(i64),
    Error(&'static str),
    /// The call waits for an event.
    Waits,
}

const ACCEPTED: &str = "socket, bind, listen, accept, connect, read, recv, write, send, close, shutdown, setsockopt, getsockopt or fcntl";

/// Maximum number of bytes read or written per call.
const MOST_BYTES: i64 = 64 << 20;

impl Runner {
    /// Executes a call that must return at once.
    pub(super) fn call_now(&mut self, call: &Call) -> Result<(), String> {
        let answer = match self.answer(call)? {
            Answer::Waits if self.is_nonblocking(call) => Answer::Error("EAGAIN"),
            answer => answer,
        };
        judge(call, answer)
    }

    /// Retries the waiting calls.
    pub(super) fn retry_pending(&mut self) -> Result<(), String> {
        for pending in std::mem::take(&mut self.pending) {
            let answer = self.answer(&pending.call)?;
            if answer == Answer::Waits {
                self.pending.push(pending);
                continue;
            }
            let tolerance = self.setup.tolerance;
            let name = &pending.call.name;
            if self.now + tolerance < pending.returns || self.now > pending.returns + tolerance {
                let at = self.now.since(self.begin).as_secs_f64();
                return Err(format!("{name} returned {answer:?} at {at:.6}"));
            }
            judge(&pending.call, answer)?;
            self.drain()?;
        }
        Ok(())
    }

    fn is_nonblocking(&self, call: &Call) -> bool {
        let socket = argument(call, 0).ok().and_then(|fd| self.sockets.get(&fd));
        socket.is_none_or(|socket| socket.is_nonblocking)
    }

    fn answer(&mut self, call: &Call) -> Result<Answer, String> {
        match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" => self.bind(call),
            "listen" => self.listen(call),
            "accept" | "accept4" => self.accept(call),
            "connect" => self.connect(call),
            "read" | "recv" | "recvfrom" => self.read(call),
            "write" | "send" | "sendto" => self.write(call),
            "close" => self.close(call),
            "shutdown" => self.shut(call),
            "setsockopt" => self.set_option(call),
            "getsockopt" => self.get_option(call),
            "fcntl" => self.control(call),
            name => Err(format!("found the call {name}, accepted: {ACCEPTED}")),
        }
    }

    fn find(&mut self, call: &Call) -> Result<&mut Socket, String> {
        let fd = argument(call, 0)?;
        self.sockets
            .get_mut(&fd)
            .ok_or_else(|| format!("found the descriptor {fd}, accepted: one that is open"))
    }

    fn find_stream(&mut self, call: &Call) -> Result<Option<Stream>, String> {
        Ok(match self.find(call)?.kind {
            Kind::Stream(stream) => Some(stream),
            _ => None,
        })
    }

    fn keep(&mut self, call: &Call, stream: Stream) -> Result<(), String> {
        self.find(call)?.kind = Kind::Stream(stream);
        Ok(())
    }

    fn socket(&mut self, call: &Call) -> Result<Answer, String> {
        let Outcome::Number(fd) = call.outcome else {
            return Err("found no number, accepted: a descriptor".into());
        };
        if self.sockets.contains_key(&fd) {
            return Err(format!("found the descriptor {fd} again, accepted: one that is not open"));
        }
        let kind = Kind::New(None);
        self.sockets.insert(fd, Socket { is_nonblocking: false, resets: false, changes: Vec::new(), kind });
        Ok(Answer::Number(fd))
    }

    fn bind(&mut self, call: &Call) -> Result<Answer, String> {
        let port = port_in(call.arguments.get(1)).unwrap_or(self.ports.0);
        let socket = self.find(call)?;
        match &mut socket.kind {
            Kind::New(bound) => *bound = Some(port),
            _ => return Ok(Answer::Error("EINVAL")),
        }
        self.ports.0 = port;
        Ok(Answer::Number(0))
    }

    /// Returns the configuration of a socket: the script's, with the changes made on the
    /// socket.
    fn config(&mut self, call: &Call) -> Result<bentpipe_tcp::Config, String> {
        let changes = self.find(call)?.changes.clone();
        let mut setup = self.setup.clone();
        changes.iter().try_for_each(|change| setup.change(change))?;
        setup.config()
    }

    fn listen(&mut self, call: &Call) -> Result<Answer, String> {
        let config = self.config(call)?;
        let port = match self.find(call)?.kind {
            Kind::New(port) => port.unwrap_or(8080),
            _ => return Ok(Answer::Error("EINVAL")),
        };
        self.find(call)?.kind = Kind::Listener(port);
        self.stack.listen(port, config.into());
        Ok(Answer::Number(0))
    }

    fn accept(&mut self, call: &Call) -> Result<Answer, String> {
        let Kind::Listener(port) = self.find(call)?.kind else { return Ok(Answer::Error("EINVAL")) };
        let Some(id) = self.stack.accept(port) else { return Ok(Answer::Waits) };
        let Outcome::Number(fd) = call.outcome else { return Ok(Answer::Number(-1)) };
        self.sockets.insert(fd, Socket::stream(id, false));
        self.latest = Some(id);
        Ok(Answer::Number(fd))
    }

    fn connect(&mut self, call: &Call) -> Result<Answer, String> {
        if let Some(stream) = self.find_stream(call)? {
            return Ok(self.connected(stream));
        }
        let config = self.config(call)?;
        let port = port_in(call.arguments.get(1)).unwrap_or(self.setup.remote_port);
        let remote = SocketAddr::new(self.setup.remote(), port);
        let id = match self.stack.connect(self.now, remote, config) {
            Ok(id) => id,
            Err(Unopened::NoPort | Unopened::Full) => return Ok(Answer::Error("EADDRNOTAVAIL")),
            Err(_) => return Ok(Answer::Error("ENETUNREACH")),
        };
        let is_nonblocking = self.find(call)?.is_nonblocking;
        let fd = argument(call, 0)?;
        self.sockets.insert(fd, Socket::stream(id, is_nonblocking));
        self.latest = Some(id);
        let ends = self.stack.ends(id).expect("it was just opened");
        self.ports = (ends.local.port(), ends.remote.port());
        self.conversations.entry(self.ports).or_default().fresh = true;
        Ok(if is_nonblocking { Answer::Error("EINPROGRESS") } else { Answer::Waits })
    }

    fn connected(&self, stream: Stream) -> Answer {
        match self.error(stream) {
            Some("ECONNRESET") => Answer::Error("ECONNREFUSED"),
            Some(error) => Answer::Error(error),
            None => match self.state(stream) {
                State::SynSent | State::SynReceived => Answer::Waits,
                _ => Answer::Number(0),
            },
        }
    }

    fn state(&self, stream: Stream) -> State {
        self.stack.connection(stream.id).map_or(State::Closed, |connection| connection.state())
    }

    /// Returns the error of a connection, if there is one.
    fn error(&self, stream: Stream) -> Option<&'static str> {
        let happened = self.happened.get(&stream.id).copied().unwrap_or(Events::empty());
        if happened.contains(Events::RESET) {
            Some("ECONNRESET")
        } else if happened.contains(Events::TIMED_OUT) {
            Some("ETIMEDOUT")
        } else {
            None
        }
    }

    fn read(&mut self, call: &Call) -> Result<Answer, String> {
        let Some(mut stream) = self.find_stream(call)? else { return Ok(Answer::Error("ENOTCONN")) };
        let len = argument(call, 2)?.clamp(0, MOST_BYTES) as usize;
        let mut bytes = vec![0; len];
        let read = self.stack.read(self.now, stream.id, &mut bytes);
        if read > 0 {
            let ports = self.stack.ends(stream.id).map(|ends| (ends.local.port(), ends.remote.port()));
            let syn = ports.and_then(|ports| self.conversations.get(&ports)?.peer_syn).unwrap_or_default();
            let wanted = self::stream(syn.wrapping_add(1).wrapping_add(stream.read), read as u32);
            if wanted != bytes[..read] {
                return Err(format!("{read} bytes were read that are not those that arrived"));
            }
            stream.read = stream.read.wrapping_add(read as u32);
            self.keep(call, stream)?;
            return Ok(Answer::Number(read as i64));
        }
        if let Some(error) = self.error(stream).filter(|_| !stream.is_told) {
            self.keep(call, Stream { is_told: true, ..stream })?;
            return Ok(Answer::Error(error));
        }
        let over = self.stack.connection(stream.id).is_none_or(|connection| connection.peer_closed());
        let over = over || self.state(stream) == State::Closed;
        Ok(if over || len == 0 { Answer::Number(0) } else { Answer::Waits })
    }

    fn write(&mut self, call: &Call) -> Result<Answer, String> {
        let Some(mut stream) = self.find_stream(call)? else { return Ok(Answer::Error("ENOTCONN")) };
        if let Some(error) = self.error(stream).filter(|_| !stream.is_told) {
            self.keep(call, Stream { is_told: true, ..stream })?;
            return Ok(Answer::Error(error));
        }
        match self.state(stream) {
            State::Closed => return Ok(Answer::Error("EPIPE")),
            _ if stream.is_shut => return Ok(Answer::Error("EPIPE")),
            State::SynSent | State::SynReceived => return Ok(Answer::Waits),
            _ => {}
        }
        let len = argument(call, 2)?.clamp(0, MOST_BYTES) as u32;
        let bytes = self::stream(stream.written.wrapping_add(1), len);
        let taken = self.stack.write(self.now, stream.id, &bytes);
        stream.written = stream.written.wrapping_add(taken as u32);
        self.keep(call, stream)?;
        Ok(if taken == 0 && len > 0 { Answer::Waits } else { Answer::Number(taken as i64) })
    }

    fn close(&mut self, call: &Call) -> Result<Answer, String> {
        let fd = argument(call, 0)?;
        let socket = self.find(call)?.clone();
        match socket.kind {
            Kind::Stream(stream) => {
                if socket.resets {
                    self.stack.abort(self.now, stream.id);
                } else {
                    self.stack.close(self.now, stream.id);
                }
                self.stack.release(stream.id);
            }
            Kind::Listener(_) => {
                return Err("found a socket that listens, accepted: one that does not".to_owned());
            }
            Kind::New(_) => {}
        }
        self.sockets.remove(&fd);
        Ok(Answer::Number(0))
    }

    fn shut(&mut self, call: &Call) -> Result<Answer, String> {
        let Some(stream) = self.find_stream(call)? else { return Ok(Answer::Error("ENOTCONN")) };
        match word(call, 1)?.as_str() {
            "SHUT_WR" | "SHUT_RDWR" => {}
            other => return Err(format!("found {other}, accepted: SHUT_WR or SHUT_RDWR")),
        }
        self.stack.close(self.now, stream.id);
        self.keep(call, Stream { is_shut: true, ..stream })?;
        Ok(Answer::Number(0))
    }

    fn set_option(&mut self, call: &Call) -> Result<Answer, String> {
        let name = word(call, 2)?;
        let value = call.arguments.get(3).map(first_number).unwrap_or_default();
        let socket = self.find(call)?;
        let change = match name.as_str() {
            "SO_REUSEADDR" | "SO_REUSEPORT" => return Ok(Answer::Number(0)),
            "SO_LINGER" => {
                socket.resets = matches!(call.arguments.get(3), Some(Value::List(list)) if lingers_not(list));
                return Ok(Answer::Number(0));
            }
            "TCP_NODELAY" => format!("tcp.nagle={}", value == 0),
            "TCP_MAXSEG" => format!("tcp.mss={value} B"),
            "SO_RCVBUF" => format!("tcp.receive-window={value} B"),
            "SO_SNDBUF" => format!("tcp.send-buffer={value} B"),
            "TCP_USER_TIMEOUT" => format!("tcp.user-timeout={value} ms"),
            "SO_KEEPALIVE" if value == 1 => "tcp.keep-alive=on".to_owned(),
            "TCP_KEEPIDLE" => format!("tcp.keep-alive.idle={value} s"),
            "TCP_KEEPINTVL" => format!("tcp.keep-alive.interval={value} s"),
            "TCP_KEEPCNT" => format!("tcp.keep-alive.probes={value}"),
            "TCP_CONGESTION" => match call.arguments.get(3) {
                Some(Value::Text(name)) => {
                    self.setup.change_algorithm(name)?;
                    return Ok(Answer::Number(0));
                }
                _ => return Err("found no text, accepted: the name of an algorithm".to_owned()),
            },
            other => {
                return Err(format!(
                    "found {other}, accepted: SO_REUSEADDR, SO_LINGER, SO_KEEPALIVE, SO_RCVBUF, SO_SNDBUF, TCP_NODELAY, TCP_MAXSEG, \
                     TCP_USER_TIMEOUT, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT or TCP_CONGESTION"
                ));
            }
        };
        if !matches!(socket.kind, Kind::New(_)) {
            let mut setup = self.setup.clone();
            let before = setup.config()?;
            setup.change(&change)?;
            return match setup.config()? == before {
                true => Ok(Answer::Number(0)),
                false => {
                    Err(format!("found {name} on a socket in use, accepted: before it listens or connects"))
                }
            };
        }
        socket.changes.push(change);
        Ok(Answer::Number(0))
    }

    fn get_option(&mut self, call: &Call) -> Result<Answer, String> {
        let name = word(call, 2)?;
        if name != "SO_ERROR" {
            return Err(format!("found {name}, accepted: SO_ERROR"));
        }
        let error = match self.find_stream(call)? {
            Some(stream) if !stream.is_told => {
                let error = match self.connected(stream) {
                    Answer::Error(error) => Some(error),
                    _ => None,
                };
                self.keep(call, Stream { is_told: error.is_some(), ..stream })?;
                error
            }
            _ => None,
        };
        let wanted = match call.arguments.get(3) {
            Some(Value::List(list)) => match list.first() {
                Some(Value::Words(words)) => Some(words.concat()),
                _ => None,
            },
            _ => None,
        };
        if error.map(str::to_owned) != wanted {
            return Err(format!("SO_ERROR is {}", error.unwrap_or("0")));
        }
        Ok(Answer::Number(0))
    }

    fn control(&mut self, call: &Call) -> Result<Answer, String> {
        let command = word(call, 1)?;
        match command.as_str() {
            "F_GETFL" => match call.outcome {
                Outcome::Number(flags) => Ok(Answer::Number(flags)),
                _ => Ok(Answer::Number(2)),
            },
            "F_SETFL" => {
                let flags = match call.arguments.get(2) {
                    Some(Value::Words(words)) => words.clone(),
                    _ => Vec::new(),
                };
                self.find(call)?.is_nonblocking = flags.iter().any(|flag| flag == "O_NONBLOCK");
                Ok(Answer::Number(0))
            }
            other => Err(format!("found {other}, accepted: F_GETFL or F_SETFL")),
        }
    }
}

/// Compares the result of a call with the script's expectation.
fn judge(call: &Call, answer: Answer) -> Result<(), String> {
    let fits = match (&call.outcome, answer) {
        (_, Answer::Waits) => return Err(format!("{} would wait", call.name)),
        (Outcome::Any, _) => true,
        (Outcome::Number(wanted), Answer::Number(number)) => *wanted == number,
        (Outcome::Error(wanted), Answer::Error(error)) => wanted.0 == error,
        _ => false,
    };
    let returned = match answer {
        Answer::Number(number) => number.to_string(),
        Answer::Error(error) => format!("-1 {error}"),
        Answer::Waits => String::new(),
    };
    if fits { Ok(()) } else { Err(format!("{} returned {returned}", call.name)) }
}

fn argument(call: &Call, at: usize) -> Result<i64, String> {
    match call.arguments.get(at) {
        Some(Value::Number(number)) => Ok(*number),
        other => Err(format!("argument {at}: found {other:?}, accepted: a number")),
    }
}

fn word(call: &Call, at: usize) -> Result<String, String> {
    match call.arguments.get(at) {
        Some(Value::Words(words)) if words.len() == 1 => Ok(words[0].clone()),
        other => Err(format!("argument {at}: found {other:?}, accepted: a name")),
    }
}

fn first_number(value: &Value) -> i64 {
    match value {
        Value::Number(number) => *number,
        Value::List(list) => list.first().map(first_number).unwrap_or_default(),
        Value::Named(_, value) => first_number(value),
        _ => 0,
    }
}

/// True for `{onoff=1, linger=0}`.
fn lingers_not(list: &[Value]) -> bool {
    let of = |wanted: &str| {
        list.iter().find_map(|value| match value {
            Value::Named(name, value) if name.trim_start_matches("l_") == wanted => Some(first_number(value)),
            _ => None,
        })
    };
    of("onoff") == Some(1) && of("linger") == Some(0)
}

/// Returns the port in `{sa_family = AF_INET, sin_port = htons(8080), …}`.
fn port_in(value: Option<&Value>) -> Option<u16> {
    let Some(Value::List(list)) = value else { return None };
    list.iter().find_map(|value| match value {
        Value::Named(name, port) if name == "sin_port" || name == "sin6_port" => {
            Some(first_number(port) as u16)
        }
        _ => None,
    })
}

//! Parser from text to a [`Script`].

mod call;
mod packet;

use bentpipe_base::Duration;

use crate::Mistake;
use crate::lexer::{Token, tokens};
use crate::script::{Action, Event, Script, Setting, When};

/// Maximum number of events in a script.
const MOST_EVENTS: usize = 100_000;

/// Tokens of a file, with the parser's position.
pub(crate) struct Parser<'a> {
    file: &'a str,
    tokens: Vec<(u32, Token)>,
    at: usize,
}

impl Script {
    /// Parses a script; `file` is its name in error messages.
    ///
    /// # Errors
    /// If the text is not a script.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        let mut parser = Parser { file, tokens: tokens(file, text)?, at: 0 };
        let mut script =
            Self { file: file.to_owned(), settings: Vec::new(), events: Vec::new(), text: text.to_owned() };
        while let Token::Setting(name, value) = parser.peek().clone() {
            script.settings.push(Setting { line: parser.line(), name, value });
            parser.at += 1;
        }
        while *parser.peek() != Token::End {
            script.events.push(parser.event()?);
            if script.events.len() > MOST_EVENTS {
                return Err(parser.unexpected("at most 100000 events"));
            }
        }
        Ok(script)
    }
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    fn peek_second(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].1
    }

    fn line(&self) -> u32 {
        self.tokens[self.at].0
    }

    /// Consumes the next token; the end is never consumed.
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn mistake(&self, found: impl ToString, accepted: &str) -> Mistake {
        let (file, line) = (self.file.to_owned(), self.line());
        Mistake { file, line, found: found.to_string(), accepted: accepted.to_owned() }
    }

    fn unexpected(&self, accepted: &str) -> Mistake {
        self.mistake(self.peek(), accepted)
    }

    fn eat(&mut self, sign: char) -> bool {
        let found = *self.peek() == Token::Sign(sign);
        if found {
            self.next();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(found) if found == word);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, sign: char) -> Result<(), Mistake> {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(&format!("{sign:?}"))) }
    }

    fn integer(&mut self, most: u64, what: &str) -> Result<u64, Mistake> {
        match *self.peek() {
            Token::Integer(number) if number <= most => {
                self.next();
                Ok(number)
            }
            _ => Err(self.unexpected(&format!("{what} from 0 to {most}"))),
        }
    }

    fn word(&mut self, what: &str) -> Result<String, Mistake> {
        match self.peek().clone() {
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn seconds(&mut self) -> Result<Duration, Mistake> {
        let nanos = match *self.peek() {
            Token::Integer(secs) if secs <= 1_000_000_000 => secs * 1_000_000_000,
            Token::Fraction(nanos) => nanos,
            _ => return Err(self.unexpected("a time in seconds")),
        };
        self.next();
        Ok(Duration::from_nanos(nanos))
    }

    fn when(&mut self) -> Result<When, Mistake> {
        if self.eat('*') {
            return Ok(When::Any);
        }
        if self.eat('+') {
            let from = self.seconds()?;
            let to = if self.eat('~') {
                self.expect('+')?;
                self.seconds()?
            } else {
                from
            };
            return Ok(When::Relative(from, to));
        }
        let from = self.seconds()?;
        let to = if self.eat('~') { self.seconds()? } else { from };
        Ok(When::Absolute(from, to))
    }

    fn event(&mut self) -> Result<Event, Mistake> {
        let line = self.line();
        if let Token::Command(command) = self.peek().clone() {
            self.next();
            let when = When::Relative(Duration::ZERO, Duration::ZERO);
            return Ok(Event { line, when, action: Action::Command(command) });
        }
        let when = self.when()?;
        let line = self.line();
        let action = match self.peek().clone() {
            Token::Sign('<') => {
                self.next();
                Action::Inject(self.packet(true)?)
            }
            Token::Sign('>') => {
                self.next();
                Action::Expect(self.packet(false)?)
            }
            Token::Command(command) => {
                self.next();
                Action::Command(command)
            }
            Token::Code(code) => {
                self.next();
                Action::Assert(code)
            }
            Token::Word(_) | Token::Ellipsis => Action::Call(self.call()?),
            _ => {
                return Err(
                    self.unexpected("\"<\", \">\", a call, a command in backquotes or %{ assertions }%")
                );
            }
        };
        Ok(Event { line, when, action })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Outcome, PacketSpec, TcpOption};
    use bentpipe_base::Flags;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_script_is_read_as_it_stands() {
        let text = "--ecn=true\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                    +.1~+.2 > SE. 0:0(0) ack 1 win 65535 <mss 1460,nop,nop,TS val * ecr 7,wscale *>\n\
                    0.5...0.75 accept(3, ..., ...) = -1 EINVAL (Invalid argument)\n\
                    * < [ce] P. 1:1001(1000) ack 1 win 257 <sack 1:2 3:4>";
        let script = Script::parse("x.pkt", text).unwrap();
        assert_eq!(script.settings[0].name, "ecn");
        let [socket, expect, accept, inject] = &script.events[..] else { panic!("{script:?}") };
        assert!(matches!(&socket.action, Action::Call(call) if call.outcome == Outcome::Number(3)));
        assert_eq!((expect.line, expect.when), (3, When::Relative(millis(100), millis(200))));
        let Action::Expect(PacketSpec::Tcp(syn_ack)) = &expect.action else { panic!("{expect:?}") };
        assert_eq!(syn_ack.flags, Some(Flags::SYN | Flags::ACK | Flags::ECE));
        let options = syn_ack.options.as_ref().unwrap();
        assert_eq!(options[3..], [TcpOption::Timestamps(None, Some(7)), TcpOption::WindowScale(None)]);
        assert!(matches!(&accept.action, Action::Call(call) if call.returns == Some(millis(750))));
        let Action::Inject(PacketSpec::Tcp(data)) = &inject.action else { panic!("{inject:?}") };
        assert_eq!((data.seq, data.len, data.ack, data.window), (1, 1000, Some(1), Some(257)));
        assert_eq!(data.options, Some(vec![TcpOption::Sack(vec![(1, 2), (3, 4)])]));
    }

    #[test]
    fn mistakes_name_place_found_and_accepted() {
        let mistakes = [
            ("+0 < S 0:5(0)", "x.pkt:1: found 0:5(0), accepted: an end that is the begin plus the length"),
            (
                "\n+0 < X 0:0(0)",
                "x.pkt:2: found \"X\", accepted: flags of F, S, R, P, U, E, W, A and \".\", or \"-\"",
            ),
            (
                "+0 < S 0:0(0) <mss 70000>",
                "x.pkt:1: found 70000, accepted: a segment size from 0 to 65535, or *",
            ),
            (
                "+0 = 3",
                "x.pkt:1: found '=', accepted: \"<\", \">\", a call, a command in backquotes or %{ assertions }%",
            ),
            ("hello(3) = 0", "x.pkt:1: found \"hello\", accepted: a time in seconds"),
            (
                "+0 < icmp redirect [1:2(1)]",
                "x.pkt:1: found \"redirect\", accepted: unreachable, packet_too_big, source_quench, time_exceeded or parameter_problem",
            ),
        ];
        for (text, wanted) in mistakes {
            assert_eq!(Script::parse("x.pkt", text).unwrap_err().to_string(), wanted);
        }
    }
}

//! Parser of packets.

use bentpipe_base::Flags;

use super::Parser;
use crate::Mistake;
use crate::lexer::Token;
use crate::script::{Echoed, EcnSpec, IcmpKind, IcmpSpec, PacketSpec, TcpOption, TcpSpec};

/// ICMP types with their numbers in IPv4 and IPv6; 255 if undefined.
const ICMP_TYPES: &[(&str, u8, u8)] = &[
    ("unreachable", 3, 1),
    ("packet_too_big", 3, 2),
    ("source_quench", 4, 255),
    ("time_exceeded", 11, 3),
    ("parameter_problem", 12, 4),
];

/// Codes of "unreachable" in IPv4 and IPv6.
const ICMP_CODES: &[(&str, u8, u8)] = &[
    ("net_unreachable", 0, 0),
    ("network_unreachable", 0, 0),
    ("no_route", 0, 0),
    ("host_unreachable", 1, 3),
    ("address_unreachable", 1, 3),
    ("protocol_unreachable", 2, 4),
    ("port_unreachable", 3, 4),
    ("frag_needed", 4, 0),
    ("source_route_failed", 5, 5),
    ("net_unknown", 6, 0),
    ("host_unknown", 7, 3),
    ("admin_prohibited", 13, 1),
    ("pkt_filtered", 13, 1),
];

impl Parser<'_> {
    pub(super) fn packet(&mut self, arrives: bool) -> Result<PacketSpec, Mistake> {
        let ecn = self.ip_fields()?;
        let ports = self.ports()?;
        if self.eat_word("icmp") {
            return Ok(PacketSpec::Icmp(self.icmp(ports)?));
        }
        if *self.peek() == Token::Sign('[') {
            // The quoted segment of an ICMP message may also precede it.
            let echoed = self.echoed()?;
            if !self.eat_word("icmp") {
                return Err(self.unexpected("icmp"));
            }
            let icmp = self.icmp(ports)?;
            return Ok(PacketSpec::Icmp(IcmpSpec { echoed, ..icmp }));
        }
        self.tcp((ecn, ports), arrives)
    }

    /// Parses `[ect0]` or `(ect0)`.
    fn ip_fields(&mut self) -> Result<Option<EcnSpec>, Mistake> {
        let close = match self.peek() {
            Token::Sign('[') if matches!(self.peek_second(), Token::Word(_)) => ']',
            Token::Sign('(') => ')',
            _ => return Ok(None),
        };
        self.next();
        let ecn = match self.peek().clone() {
            Token::Word(word) => match word.as_str() {
                "noecn" => Some(EcnSpec::None),
                "ect0" => Some(EcnSpec::Ect0),
                "ect1" => Some(EcnSpec::Ect1),
                "ect01" => Some(EcnSpec::EctAny),
                "ce" => Some(EcnSpec::Ce),
                _ => None,
            },
            _ => None,
        };
        if ecn.is_none() {
            return Err(self.unexpected("noecn, ect0, ect1, ect01 or ce"));
        }
        self.next();
        self.expect(close)?;
        Ok(ecn)
    }

    /// Parses `1234 > 8080`.
    fn ports(&mut self) -> Result<Option<(u16, u16)>, Mistake> {
        if !matches!(self.peek(), Token::Integer(_)) || *self.peek_second() != Token::Sign('>') {
            return Ok(None);
        }
        let from = self.integer(65_535, "a port")? as u16;
        self.expect('>')?;
        Ok(Some((from, self.integer(65_535, "a port")? as u16)))
    }

    fn tcp(
        &mut self,
        (ecn, ports): (Option<EcnSpec>, Option<(u16, u16)>),
        arrives: bool,
    ) -> Result<PacketSpec, Mistake> {
        let flags = self.flags(arrives)?;
        let (seq, len) = self.range()?;
        let number = u64::from(u32::MAX);
        let ack = if self.eat_word("ack") {
            Some(self.integer(number, "an acknowledgement number")? as u32)
        } else {
            None
        };
        let window = if self.eat_word("win") {
            if self.eat('*') { None } else { Some(self.integer(65_535, "a window")? as u16) }
        } else {
            None
        };
        let urgent = if self.eat_word("urg") { self.integer(65_535, "an urgent pointer")? as u16 } else { 0 };
        let options = self.options(arrives)?;
        Ok(PacketSpec::Tcp(TcpSpec { ecn, ports, flags, seq, len, ack, window, urgent, options }))
    }

    fn flags(&mut self, arrives: bool) -> Result<Option<Flags>, Mistake> {
        const ACCEPTED: &str = "flags of F, S, R, P, U, E, W, A and \".\", or \"-\"";
        if !arrives && self.eat('*') {
            return Ok(None);
        }
        if self.eat('-') {
            return Ok(Some(Flags::empty()));
        }
        let mut flags = Flags::empty();
        let mut found = false;
        if let Token::Word(word) = self.peek().clone() {
            for letter in word.chars() {
                flags |= match letter {
                    'F' => Flags::FIN,
                    'S' => Flags::SYN,
                    'R' => Flags::RST,
                    'P' => Flags::PSH,
                    'U' => Flags::URG,
                    'E' => Flags::ECE,
                    'W' | 'C' => Flags::CWR,
                    'A' => Flags::AE,
                    _ => return Err(self.unexpected(ACCEPTED)),
                };
            }
            found = true;
            self.next();
        }
        if self.eat('.') {
            flags |= Flags::ACK;
            found = true;
        }
        if found { Ok(Some(flags)) } else { Err(self.unexpected(ACCEPTED)) }
    }

    /// Parses a range of sequence numbers such as `1:1001(1000)`.
    fn range(&mut self) -> Result<(u32, u32), Mistake> {
        let number = u64::from(u32::MAX);
        let seq = self.integer(number, "a sequence number")? as u32;
        self.expect(':')?;
        let end = self.integer(number, "a sequence number")? as u32;
        self.expect('(')?;
        let len = self.integer(65_535, "a length")? as u32;
        if seq.wrapping_add(len) != end {
            let found = format!("{seq}:{end}({len})");
            return Err(self.mistake(found, "an end that is the begin plus the length"));
        }
        self.expect(')')?;
        Ok((seq, len))
    }

    fn options(&mut self, arrives: bool) -> Result<Option<Vec<TcpOption>>, Mistake> {
        if *self.peek() != Token::Sign('<') {
            return Ok(Some(Vec::new()));
        }
        self.next();
        if *self.peek() == Token::Ellipsis && !arrives {
            self.next();
            self.expect('>')?;
            return Ok(None);
        }
        let mut options = vec![self.option()?];
        while self.eat(',') {
            options.push(self.option()?);
        }
        self.expect('>')?;
        Ok(Some(options))
    }

    fn any_or(&mut self, most: u64, what: &str) -> Result<Option<u64>, Mistake> {
        match *self.peek() {
            Token::Sign('*') => {
                self.next();
                Ok(None)
            }
            Token::Integer(number) if number <= most => {
                self.next();
                Ok(Some(number))
            }
            _ => Err(self.unexpected(&format!("{what} from 0 to {most}, or *"))),
        }
    }

    fn option(&mut self) -> Result<TcpOption, Mistake> {
        const ACCEPTED: &str = "mss, wscale, sackOK, sack, TS, nop, eol or option";
        let Token::Word(word) = self.peek().clone() else { return Err(self.unexpected(ACCEPTED)) };
        let number = u64::from(u32::MAX);
        self.at += 1;
        Ok(match word.as_str() {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::Eol,
            "mss" => TcpOption::Mss(self.any_or(65_535, "a segment size")?.map(|n| n as u16)),
            "wscale" => TcpOption::WindowScale(self.any_or(255, "a shift")?.map(|n| n as u8)),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => TcpOption::Sack(self.sack_blocks()?),
            "TS" => {
                if !self.eat_word("val") {
                    return Err(self.unexpected("val"));
                }
                let value = self.any_or(number, "a timestamp")?.map(|n| n as u32);
                if !self.eat_word("ecr") {
                    return Err(self.unexpected("ecr"));
                }
                TcpOption::Timestamps(value, self.any_or(number, "a timestamp")?.map(|n| n as u32))
            }
            "option" => {
                let kind = self.integer(255, "an option kind")? as u8;
                let mut bytes = Vec::new();
                while matches!(self.peek(), Token::Integer(_)) {
                    bytes.push(self.integer(255, "a byte")? as u8);
                }
                TcpOption::Other(kind, bytes)
            }
            _ => {
                self.at -= 1;
                return Err(self.unexpected(ACCEPTED));
            }
        })
    }

    fn sack_blocks(&mut self) -> Result<Vec<(u32, u32)>, Mistake> {
        let number = u64::from(u32::MAX);
        let mut blocks = Vec::new();
        while matches!(self.peek(), Token::Integer(_)) {
            let from = self.integer(number, "a sequence number")? as u32;
            self.expect(':')?;
            blocks.push((from, self.integer(number, "a sequence number")? as u32));
        }
        if blocks.is_empty() { Err(self.unexpected("a block such as 1001:2001")) } else { Ok(blocks) }
    }

    fn echoed(&mut self) -> Result<Echoed, Mistake> {
        self.expect('[')?;
        let (seq, len) = self.range()?;
        self.expect(']')?;
        Ok(Echoed { seq, len })
    }

    fn icmp(&mut self, ports: Option<(u16, u16)>) -> Result<IcmpSpec, Mistake> {
        let word = match self.peek().clone() {
            Token::Word(word) => word,
            _ => String::new(),
        };
        let Some((_, type_v4, type_v6)) = ICMP_TYPES.iter().find(|(name, ..)| *name == word) else {
            let (last, names) = ICMP_TYPES.split_last().expect("there are several");
            let names: Vec<_> = names.iter().map(|(name, ..)| *name).collect();
            return Err(self.unexpected(&format!("{} or {}", names.join(", "), last.0)));
        };
        self.next();
        let mut kind = IcmpKind { v4: (*type_v4, 0), v6: (*type_v6, 0), mtu: 0 };
        if word == "packet_too_big" {
            kind.v4.1 = 4;
        }
        if let Token::Word(code) = self.peek().clone()
            && code != "mtu"
        {
            let found = ICMP_CODES.iter().find(|(name, ..)| *name == code);
            let Some((_, v4, v6)) = found.filter(|_| word == "unreachable") else {
                let names: Vec<_> = ICMP_CODES.iter().map(|(name, ..)| *name).collect();
                return Err(self.unexpected(&format!("mtu, or after unreachable {}", names.join(", "))));
            };
            (kind.v4.1, kind.v6.1) = (*v4, *v6);
            if code == "frag_needed" {
                kind.v6 = (2, 0);
            }
            self.next();
        }
        if self.eat_word("mtu") {
            kind.mtu = self.integer(u64::from(u32::MAX), "an MTU")? as u32;
        }
        let echoed = if *self.peek() == Token::Sign('[') { self.echoed()? } else { Echoed::default() };
        Ok(IcmpSpec { ports, kind, echoed })
    }
}

//! Codecs of ports, networks, interfaces, addresses and marks.

use std::net::{IpAddr, SocketAddr};

use super::model::{PortRange, Prefix};
use crate::split::ClientPrefix;
use crate::tree::{Node, Value};
use crate::unit::{Codec, Refused};

/// Maximum length of an interface name in Linux.
const INTERFACE_NAME: usize = 15;

/// Reads the parts of a text with commas, or of a list of texts and numbers.
fn parts<T>(value: &Value, one: impl Fn(&Value) -> Result<T, Refused>) -> Result<Vec<T>, Refused> {
    let of_text = |value: &Value| match value {
        Value::Text(text) => text.split(',').map(|part| one(&Value::Text(part.trim().to_owned()))).collect(),
        value => Ok(vec![one(value)?]),
    };
    match value {
        Value::List(items) if !items.is_empty() => {
            let lists = items.iter().map(|item| of_text(&item.value)).collect::<Result<Vec<Vec<T>>, _>>()?;
            Ok(lists.into_iter().flatten().collect())
        }
        Value::List(_) => Err(Refused::default()),
        value => of_text(value),
    }
}

/// `22`, `"80, 443, 8000-8100"`, `[22, "80-90"]`.
pub(super) struct Ports;

impl Codec<Vec<PortRange>> for Ports {
    fn read(&self, value: &Value) -> Result<Vec<PortRange>, Refused> {
        let one = |value: &Value| {
            let range = match value {
                Value::Text(text) => {
                    let (first, last) = text.split_once('-').unwrap_or((text, text));
                    PortRange { first: first.trim().parse().ok()?, last: last.trim().parse().ok()? }
                }
                Value::Whole(port) => {
                    let port = u16::try_from(*port).ok()?;
                    PortRange { first: port, last: port }
                }
                _ => return None,
            };
            (range.first >= 1 && range.first <= range.last).then_some(range)
        };
        parts(value, |value| one(value).ok_or_else(Refused::default))
    }
    fn show(&self, typed: &Vec<PortRange>) -> Value {
        Value::Text(joined(typed))
    }
    fn accepted(&self) -> String {
        "ports from 1 to 65535 and ranges of them such as 22, \"80, 443, 8000-8100\" or [22, \"8000-8100\"]"
            .to_owned()
    }
}

/// `"10.0.0.0/8"`, `"192.0.2.1, fd00::/8"`, `["192.0.2.1", "fd00::/8"]`.
pub(super) struct Networks;

impl Codec<Vec<Prefix>> for Networks {
    fn read(&self, value: &Value) -> Result<Vec<Prefix>, Refused> {
        parts(value, |value| match value {
            Value::Text(text) => prefix(text),
            _ => Err(Refused::default()),
        })
    }
    fn show(&self, typed: &Vec<Prefix>) -> Value {
        Value::Text(joined(typed))
    }
    fn accepted(&self) -> String {
        "addresses and networks such as \"10.0.0.0/8\", \"192.0.2.1, fd00::/8\" or [\"192.0.2.1\", \"fd00::/8\"]; host bits must be 0"
            .to_owned()
    }
}

/// Reads a network. If some host bits are not 0, the refusal suggests the network without them.
fn prefix(text: &str) -> Result<Prefix, Refused> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().map_err(|_| Refused::default())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), str::parse::<u8>).map_err(|_| Refused::default())?;
    if length > most {
        return Err(Refused::default());
    }
    let network = ClientPrefix { v4: length.min(32), v6: length }.of(address);
    let prefix = Prefix { address: network, length };
    if network == address { Ok(prefix) } else { Err(Refused::meant(Some(prefix))) }
}

fn joined(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `"eth0"`, `["eth0", "ppp*"]`.
pub(super) struct InterfaceNames;

impl Codec<Vec<String>> for InterfaceNames {
    fn read(&self, value: &Value) -> Result<Vec<String>, Refused> {
        let fits = |written: &String| {
            let name = written.strip_suffix('*').unwrap_or(written);
            (1..=INTERFACE_NAME).contains(&name.len())
                && !matches!(name, "." | "..")
                && name.bytes().all(|byte| byte.is_ascii_graphic() && !br#"/:"\*"#.contains(&byte))
        };
        let name = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()).filter(fits),
            _ => None,
        };
        match value {
            Value::List(items) if !items.is_empty() => items.iter().map(|item| name(&item.value)).collect(),
            value => name(value).map(|name| vec![name]),
        }
        .ok_or_else(Refused::default)
    }
    fn show(&self, typed: &Vec<String>) -> Value {
        match typed.as_slice() {
            [one] => Value::Text(one.clone()),
            several => {
                Value::List(several.iter().map(|name| Node::computed(Value::Text(name.clone()))).collect())
            }
        }
    }
    fn accepted(&self) -> String {
        "the name of a network interface such as \"eth0\", the beginning of names such as \"ppp*\", or a list of them".to_owned()
    }
}

/// `"127.0.0.1:9464"`.
pub(super) struct Socket;

impl Codec<SocketAddr> for Socket {
    fn read(&self, value: &Value) -> Result<SocketAddr, Refused> {
        match value {
            Value::Text(text) => text.parse().map_err(|_| Refused::default()),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &SocketAddr) -> Value {
        Value::Text(typed.to_string())
    }
    fn accepted(&self) -> String {
        "an address and a port such as \"127.0.0.1:9464\" or \"[::1]:9464\"".to_owned()
    }
}

/// `"0x3f000000"`.
pub(super) struct Marks;

impl Codec<u32> for Marks {
    fn read(&self, value: &Value) -> Result<u32, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        let bits = text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let six_in_a_row = |bits: &u32| *bits != 0 && bits >> bits.trailing_zeros() == 0x3f;
        bits.filter(six_in_a_row).ok_or_else(Refused::default)
    }
    fn show(&self, typed: &u32) -> Value {
        Value::Text(format!("{typed:#x}"))
    }
    fn accepted(&self) -> String {
        "six bits in a row of the packet mark such as \"0x3f000000\"".to_owned()
    }
}

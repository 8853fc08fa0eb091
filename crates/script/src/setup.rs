//! Settings from the head of a script and its `sysctl` commands.

use std::net::IpAddr;

use bentpipe_base::Duration;
use bentpipe_host::{Limits, StackConfig};
use bentpipe_scenario::{changed_config, connection_config};
use bentpipe_tcp::Config;

use crate::Mistake;
use crate::script::Setting;

/// Algorithm of scripts without the setting `cc`.
const USUAL: &str = "cubic";

/// Settings of a script's run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub is_v6: bool,
    /// Tolerance of event times.
    pub tolerance: Duration,
    pub mtu: u16,
    /// Port of the peer, for connections in both directions.
    pub remote_port: u16,
    pub limits: Limits,
    /// True if packets after the last event are ignored.
    pub ignores_rest: bool,
    cc: String,
    changes: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            is_v6: false,
            tolerance: Duration::from_millis(4),
            mtu: 1500,
            remote_port: 41_000,
            limits: Limits::default(),
            ignores_rest: false,
            cc: USUAL.to_owned(),
            changes: Vec::new(),
        }
    }
}

/// Settings of packetdrill and limits of the stack; all others are keys of a scenario's `tcp` table.
const OWN: &str = "ip_version, tolerance_usecs, mtu, remote_port, rest, cc, cc.KEY, connections, half-open, bytes, or a key of the \
                   tcp table of a scenario";

impl Setup {
    /// Reads the head of a script.
    pub fn new(file: &str, settings: &[Setting]) -> Result<Self, Mistake> {
        let mut setup = Self::default();
        for setting in settings {
            setup.set(&setting.name, &setting.value).map_err(|accepted| Mistake {
                file: file.to_owned(),
                line: setting.line,
                found: format!("--{}={}", setting.name, setting.value),
                accepted,
            })?;
        }
        Ok(setup)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = |most: u64| -> Result<u64, String> {
            let number = value.parse().ok().filter(|number| *number <= most);
            number.ok_or_else(|| format!("a number from 0 to {most}"))
        };
        match name {
            "ip_version" => {
                self.is_v6 = match value {
                    "ipv4" => false,
                    "ipv6" => true,
                    _ => return Err("ipv4 or ipv6".to_owned()),
                };
            }
            "tolerance_usecs" => self.tolerance = Duration::from_micros(number(10_000_000)?),
            "mtu" => self.mtu = number(65_535)?.max(68) as u16,
            "remote_port" => self.remote_port = number(65_535)? as u16,
            "rest" => {
                self.ignores_rest = match value {
                    "ignored" => true,
                    "none" => false,
                    _ => return Err("none (nothing may leave unexpected) or ignored".to_owned()),
                };
            }
            "connections" => self.limits.connections = number(1 << 20)? as usize,
            "half-open" => self.limits.half_open = number(1 << 20)? as usize,
            "bytes" => self.limits.bytes = number(1 << 40)? as usize,
            "cc" => {
                connection_config(value, []).map_err(|error| error.to_string())?;
                self.cc = value.to_owned();
            }
            _ => {
                let key = if name.starts_with("cc.") { name.to_owned() } else { format!("tcp.{name}") };
                self.change(&format!("{key}={value}")).map_err(|error| format!("{OWN} ({error})"))?;
            }
        }
        Ok(())
    }

    /// Applies a change such as `tcp.ecn=true`.
    pub fn change(&mut self, change: &str) -> Result<(), String> {
        self.changes.push(change.to_owned());
        let config = self.config().map(|_| ());
        if config.is_err() {
            self.changes.pop();
        }
        config
    }

    /// Returns the configuration of connections from now on.
    pub fn config(&self) -> Result<Config, String> {
        let base = connection_config(&self.cc, []).map_err(|error| error.to_string())?;
        // Probe replies are off: no RFC defines them, and their option would be in each SYN.
        let base = base.with(|config| config.receiver.probe_replies = false);
        changed_config(base, &self.cc, self.changes.iter().map(String::as_str))
            .map_err(|error| error.to_string())
    }

    /// Sets the congestion control of connections from now on.
    pub fn change_algorithm(&mut self, name: &str) -> Result<(), String> {
        self.set("cc", name)
    }

    /// Returns the address of this end.
    pub fn local(&self) -> IpAddr {
        if self.is_v6 { [0x2001, 0xdb8, 0, 1, 0, 0, 0, 1].into() } else { [192, 0, 2, 1].into() }
    }

    /// Returns the address of the peer.
    pub fn remote(&self) -> IpAddr {
        if self.is_v6 { [0x2001, 0xdb8, 0, 2, 0, 0, 0, 2].into() } else { [198, 51, 100, 2].into() }
    }

    /// Returns the configuration of the stack.
    pub fn stack_config(&self) -> StackConfig {
        StackConfig {
            addresses: vec![self.local()],
            mtu: self.mtu,
            offload: false,
            key: 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210,
            limits: self.limits,
            transparent: false,
        }
    }

    /// Executes a command in backquotes, if it is a supported `sysctl`.
    pub fn command(&mut self, command: &str) -> Result<(), String> {
        let mut words = command.split_whitespace();
        if words.next() != Some("sysctl") {
            return Err(format!("found `{command}`, accepted: sysctl -q net.ipv4.NAME=VALUE"));
        }
        let rest = command.trim_start_matches("sysctl").trim();
        let rest = rest.trim_start_matches("-q").trim().trim_start_matches("-w").trim();
        // Values may contain blanks, names may not.
        for assignment in rest.split("net.").filter(|part| !part.is_empty()) {
            let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
            let value = value.trim().trim_matches('"').trim();
            self.sysctl(name.trim_start_matches("ipv4.").trim(), value)?;
        }
        Ok(())
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let flag = || match value {
            "0" => Ok("false"),
            "1" => Ok("true"),
            _ => Err(format!("found {name}={value}, accepted: 0 or 1")),
        };
        let last = value.split_whitespace().next_back().unwrap_or_default();
        let change = match name {
            "tcp_timestamps" => format!("tcp.timestamps={}", flag()?),
            "tcp_window_scaling" => format!("tcp.window-scaling={}", flag()?),
            "tcp_ecn" => format!("tcp.ecn={}", flag()?),
            "tcp_dsack" => format!("tcp.dsack={}", flag()?),
            "tcp_sack" => format!("tcp.recovery={}", if flag()? == "true" { "rack" } else { "newreno" }),
            "tcp_frto" => format!("tcp.spurious-timeout={}", if value == "0" { "off" } else { "f-rto" }),
            "tcp_slow_start_after_idle" => {
                format!("tcp.window-validation={}", if flag()? == "true" { "restart" } else { "off" })
            }
            "tcp_syn_retries" | "tcp_synack_retries" => format!("tcp.syn-retries={value}"),
            "tcp_retries2" => format!("tcp.retries={value}"),
            "tcp_wmem" => format!("tcp.send-buffer={last} B"),
            "tcp_congestion_control" => return self.set("cc", value),
            _ => {
                return Err(format!(
                    "found {name}, accepted: tcp_timestamps, tcp_window_scaling, tcp_ecn, tcp_dsack, tcp_sack, tcp_frto, \
                     tcp_slow_start_after_idle, tcp_syn_retries, tcp_synack_retries, tcp_retries2, tcp_wmem, \
                     tcp_congestion_control"
                ));
            }
        };
        self.change(&change)
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_tcp::EcnMode;

    use super::*;

    #[test]
    fn sysctls_are_settings() {
        let mut setup = Setup::default();
        setup.command("sysctl -q net.ipv4.tcp_ecn=1 net.ipv4.tcp_wmem=\"4096 16384 50000\"").unwrap();
        let config = setup.config().unwrap();
        assert_eq!(config.ecn, EcnMode::Classic);
        assert_eq!(config.sender.send_buffer, 50_000);
        assert!(setup.command("tc qdisc show").is_err());
        assert!(setup.command("sysctl -q net.ipv4.tcp_pixie_dust=1").is_err());
    }

    #[test]
    fn a_wrong_setting_names_its_line() {
        let setting = Setting { line: 4, name: "sacks".into(), value: "true".into() };
        let mistake = Setup::new("x.pkt", &[setting]).unwrap_err();
        assert_eq!((mistake.line, mistake.found.as_str()), (4, "--sacks=true"));
    }
}

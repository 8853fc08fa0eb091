//! The connection from the emulated path to the network of this machine, and how the settings that it needs are restored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use bentpipe_system::nft;
use nix::fcntl::{Flock, FlockArg};

use crate::error::Error;

/// File with the settings as they were before the first of the emulations that run now, and with the processes that need them changed.
const SETTINGS_FILE: &str = "/run/bentpipe-host-settings";

/// An end of the emulated path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// The side of the command.
    Command,
    /// The side of the servers.
    Beyond,
}

/// Addresses of one emulation.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// Number of the emulation on this machine.
    pub number: u8,
}

impl Addresses {
    /// Name of the device on the side of the host.
    pub fn device(&self) -> String {
        format!("bentpipe{}", self.number)
    }

    /// The host beyond the path, in the range for measurements of networks (RFC 2544, RFC 6890).
    pub fn host_v4(&self) -> String {
        format!("198.18.{}.1", self.number)
    }

    /// The command, in IPv4.
    pub fn command_v4(&self) -> String {
        format!("198.18.{}.2", self.number)
    }

    /// The host beyond the path, in a range for local use (RFC 4193).
    pub fn host_v6(&self) -> String {
        format!("fd62:656e:7470:{:x}::1", self.number)
    }

    /// The command, in IPv6.
    pub fn command_v6(&self) -> String {
        format!("fd62:656e:7470:{:x}::2", self.number)
    }

    /// Networks for TCP stacks in user space that programs at `place` bring along, in the form that `bentpipe send --address` takes. They are
    /// parts of the networks of the path, so that no further route leads to them.
    pub fn stacks(&self, place: Place) -> String {
        let [v4, v6] = self.stack(place);
        format!("{v4}/30,{v6}/126")
    }

    /// The IPv4 and the IPv6 address of such a stack.
    pub fn stack(&self, place: Place) -> [String; 2] {
        let (v4, v6) = match place {
            Place::Command => (66, 1),
            Place::Beyond => (130, 2),
        };
        [format!("198.18.{}.{v4}", self.number), format!("fd62:656e:7470:{:x}:{v6}::2", self.number)]
    }

    /// The IPv4 and the IPv6 network of all such stacks at `place`, each of which has a smaller network in it.
    pub fn stack_networks(&self, place: Place) -> [String; 2] {
        let (v4, v6) = match place {
            Place::Command => (64, 1),
            Place::Beyond => (128, 2),
        };
        [format!("198.18.{}.{v4}/26", self.number), format!("fd62:656e:7470:{:x}:{v6}::/80", self.number)]
    }

    /// The IPv4 network of one emulation.
    pub fn network_v4(&self) -> String {
        format!("198.18.{}.0/24", self.number)
    }

    /// The IPv6 network of one emulation.
    pub fn network_v6(&self) -> String {
        format!("fd62:656e:7470:{:x}::/64", self.number)
    }

    fn table(&self) -> String {
        format!("bentpipe{}", self.number)
    }
}

/// Lets packets from the path out to where this machine is connected, and answers back in. If it fails, it leaves nothing to undo.
pub(crate) fn open(addresses: &Addresses) -> Result<(), Error> {
    let (table, device) = (addresses.table(), addresses.device());
    let (v4, v6) = (addresses.network_v4(), addresses.network_v6());
    // A table that a crash of an earlier emulation has left behind is replaced.
    nft(&format!(
        "table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n\
         chain postrouting {{\ntype nat hook postrouting priority srcnat; policy accept;\n\
         oifname != \"{device}\" ip saddr {v4} masquerade\n\
         oifname != \"{device}\" ip6 saddr {v6} masquerade\n}}\n}}\n"
    ))?;
    let forwarding = SavedSettings::open().and_then(SavedSettings::begin);
    if forwarding.is_err() {
        delete_table(addresses);
    }
    forwarding.map_err(Error::at("cannot switch on forwarding"))
}

/// Undoes what [`open`] did, except for what other emulations need.
pub(crate) fn close(addresses: &Addresses) {
    delete_table(addresses);
    if let Err(error) = SavedSettings::open().and_then(SavedSettings::end) {
        eprintln!("bentpipe: forwarding could not be switched off: {error}; see {SETTINGS_FILE}");
    }
}

fn delete_table(addresses: &Addresses) {
    let table = addresses.table();
    if let Err(error) = nft(&format!("delete table inet {table}\n")) {
        eprintln!("bentpipe: the table inet {table} could not be deleted: {error}");
    }
}

/// The settings of the host in [`SETTINGS_FILE`], which is locked while this exists.
struct SavedSettings {
    file: Flock<File>,
    /// Files under `/proc/sys` and what they contained.
    settings: Vec<(String, String)>,
    /// Processes that need them changed.
    users: Vec<u32>,
}

impl SavedSettings {
    fn open() -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(SETTINGS_FILE)?;
        let mut file = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut saved = Self { file, settings: Vec::new(), users: Vec::new() };
        for line in text.lines() {
            match line.split_once('=') {
                Some(("user", number)) => saved.users.extend(number.parse::<u32>()),
                Some((path, value)) => saved.settings.push((path.to_owned(), value.to_owned())),
                None => {}
            }
        }
        // Processes that have died do not need the settings any more.
        saved.users.retain(|user| Path::new(&format!("/proc/{user}")).exists());
        Ok(saved)
    }

    /// Adds this process, and switches forwarding on if it is off; all or nothing.
    fn begin(mut self) -> io::Result<()> {
        if self.users.is_empty() {
            self.restore();
        }
        let wanted = forwarding_to_switch_on()?;
        self.users.push(std::process::id());
        self.settings.extend(wanted.iter().cloned());
        let switched =
            self.save().and_then(|()| wanted.iter().try_for_each(|(path, _)| fs::write(path, "1")));
        if switched.is_err() {
            // Why it could not be switched on is worth more than why something of it remains.
            let _ = self.end();
        }
        switched
    }

    /// Removes this process; the last one restores the settings.
    fn end(mut self) -> io::Result<()> {
        let me = std::process::id();
        self.users.retain(|user| *user != me);
        if !self.users.is_empty() {
            return self.save();
        }
        self.restore();
        fs::remove_file(SETTINGS_FILE)
    }

    /// Restores the settings in the order in which they were noted: that of all devices before those of each device. Devices that are gone need
    /// nothing.
    fn restore(&mut self) {
        for (path, value) in self.settings.drain(..) {
            let _ = fs::write(path, value);
        }
    }

    fn save(&mut self) -> io::Result<()> {
        let settings = self.settings.iter().map(|(path, value)| format!("{path}={value}\n"));
        let users = self.users.iter().map(|user| format!("user={user}\n"));
        let text: String = settings.chain(users).collect();
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

/// The settings to which 1 is to be written, with their present values, in the order in which to write them.
///
/// In IPv4, forwarding is switched on for each device, because the setting for all devices overwrites that of each. IPv6 needs the setting for
/// all devices as well, which also deletes routes that routers have advertised; if there are any, IPv6 packets are not forwarded by this
/// machine.
fn forwarding_to_switch_on() -> io::Result<Vec<(String, String)>> {
    let value = |path: &String| fs::read_to_string(path).map(|value| value.trim().to_owned());
    let of_each = |family: &str| -> io::Result<Vec<(String, String)>> {
        let folder = format!("/proc/sys/net/{family}/conf");
        let names = fs::read_dir(&folder)?.flatten().map(|entry| entry.file_name());
        let paths =
            names.filter(|name| name != "all").map(|name| format!("{folder}/{}/forwarding", name.display()));
        Ok(paths.filter_map(|path| value(&path).ok().map(|value| (path, value))).collect())
    };
    let mut changes = of_each("ipv4")?;
    changes.retain(|(path, value)| value == "0" && !path.contains("/lo/") && !path.contains("/default/"));
    let all = "/proc/sys/net/ipv6/conf/all/forwarding".to_owned();
    if value(&all).is_ok_and(|value| value == "0") && !routes_are_advertised() {
        changes.push((all, "0".to_owned()));
        changes.extend(of_each("ipv6")?);
    }
    Ok(changes)
}

/// True if the kernel has learnt routes from routers: flag RTF_ADDRCONF (0x40000) or RTF_DEFAULT (0x10000).
fn routes_are_advertised() -> bool {
    let Ok(routes) = fs::read_to_string("/proc/net/ipv6_route") else { return true };
    let flags = routes.lines().filter_map(|line| line.split_whitespace().nth(8));
    flags.filter_map(|flags| u32::from_str_radix(flags, 16).ok()).any(|flags| flags & 0x5_0000 != 0)
}

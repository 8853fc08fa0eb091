//! Connection of the emulated path to this machine's network, and restoration of the settings that it changes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use bentpipe_system::nft;
use nix::fcntl::{Flock, FlockArg};

use crate::error::Error;

/// File with the settings before the first of the running emulations, and with the processes that need the changed
/// ones.
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

    /// Address of the far host, in the range for network benchmarks (RFC 2544, RFC 6890).
    pub fn host_v4(&self) -> String {
        format!("198.18.{}.1", self.number)
    }

    /// IPv4 address of the command.
    pub fn command_v4(&self) -> String {
        format!("198.18.{}.2", self.number)
    }

    /// Address of the far host, in the range for local use (RFC 4193).
    pub fn host_v6(&self) -> String {
        format!("fd62:656e:7470:{:x}::1", self.number)
    }

    /// IPv6 address of the command.
    pub fn command_v6(&self) -> String {
        format!("fd62:656e:7470:{:x}::2", self.number)
    }

    /// Returns the networks for user-space TCP stacks of programs at `place`, in the form of `bentpipe send
    /// --address`. They are parts of the path's networks, so they need no further route.
    pub fn stacks(&self, place: Place) -> String {
        let [v4, v6] = self.stack(place);
        format!("{v4}/30,{v6}/126")
    }

    /// Returns the IPv4 and IPv6 address of this stack.
    pub fn stack(&self, place: Place) -> [String; 2] {
        let (v4, v6) = match place {
            Place::Command => (66, 1),
            Place::Beyond => (130, 2),
        };
        [format!("198.18.{}.{v4}", self.number), format!("fd62:656e:7470:{:x}:{v6}::2", self.number)]
    }

    /// Returns the IPv4 and IPv6 network of all these stacks at `place`. Each stack has a smaller network inside.
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

/// Forwards packets from the path to this machine's network, and answers back. If it fails, it leaves nothing to
/// undo.
pub(crate) fn open(addresses: &Addresses) -> Result<(), Error> {
    let (table, device) = (addresses.table(), addresses.device());
    let (v4, v6) = (addresses.network_v4(), addresses.network_v6());
    // Replaces a table that a crash of an earlier emulation has left.
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

/// Undoes [`open`], except for settings that other emulations need.
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

/// Settings of the host in [`SETTINGS_FILE`], which is locked while this exists.
struct SavedSettings {
    file: Flock<File>,
    /// Files under `/proc/sys` with their previous contents.
    settings: Vec<(String, String)>,
    /// Processes that need the changed settings.
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
        // A dead process does not need the settings.
        saved.users.retain(|user| Path::new(&format!("/proc/{user}")).exists());
        Ok(saved)
    }

    /// Adds this process, and enables forwarding if necessary; all or nothing.
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
            // The error of enabling is reported, not that of restoring.
            let _ = self.end();
        }
        switched
    }

    /// Removes this process. The last one restores the settings.
    fn end(mut self) -> io::Result<()> {
        let me = std::process::id();
        self.users.retain(|user| *user != me);
        if !self.users.is_empty() {
            return self.save();
        }
        self.restore();
        fs::remove_file(SETTINGS_FILE)
    }

    /// Restores the settings in the order of their changes: the one for all devices before those of each device.
    /// Removed devices need nothing.
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

/// Returns the settings to set to 1, with their present values, in the order to write them.
///
/// In IPv4, forwarding is enabled for each device, because the setting for all devices overwrites them. IPv6 also
/// needs the setting for all devices, which deletes routes from router advertisements. If there are any, this machine
/// forwards no IPv6 packets.
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

/// True if the kernel has routes from router advertisements: flag RTF_ADDRCONF (0x40000) or RTF_DEFAULT (0x10000).
fn routes_are_advertised() -> bool {
    let Ok(routes) = fs::read_to_string("/proc/net/ipv6_route") else { return true };
    let flags = routes.lines().filter_map(|line| line.split_whitespace().nth(8));
    flags.filter_map(|flags| u32::from_str_radix(flags, 16).ok()).any(|flags| flags & 0x5_0000 != 0)
}

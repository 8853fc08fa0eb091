//! Selects controls for connections by destination, outgoing interface, and control group.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;

use crate::catalogue::Control;
use crate::error::Error;
use crate::interface::{INTERFACE_NAME, Interface, own_cookie};
use crate::leftovers::Turn;
use crate::objects;
use crate::pins::{FOLDER, RULES_LINK, RULES_OF};

/// Connections of a rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Match {
    /// Destinations as address and prefix length; empty for all.
    pub to: Vec<(IpAddr, u8)>,
    /// Name of the outgoing interface; any if absent.
    pub interface: Option<String>,
    /// Folder of the control group of their processes; all processes if absent.
    pub group: Option<PathBuf>,
}

/// An active rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rule {
    /// Name of the control in the kernel.
    pub control: String,
    /// Destinations.
    pub to: String,
    /// Name of the interface in its network namespace; `None` for any.
    pub interface: Option<String>,
    /// False if the interface of this network namespace is missing. The rule applies again when it returns.
    pub is_there: bool,
    /// Control group, by the inode number of its folder.
    pub group: u64,
}

const RULES: &str = "rules";
/// Bits of a key before the address: cookie of the network namespace and interface name.
const PLACE_BITS: u32 = 64 + 8 * INTERFACE_NAME as u32;
/// Bytes of a key before these bits, and offsets of interface name and address.
const NAMESPACE_AT: usize = 4;
const INTERFACE_AT: usize = 12;
const ADDRESS_AT: usize = INTERFACE_AT + INTERFACE_NAME;
/// Bits of an IPv6 address before a mapped IPv4 address.
const MAPPED_BITS: u32 = 96;

/// Selects this control for new connections; without a control, the system's default.
///
/// # Errors
/// [`Error::Request`] for a missing interface or group, otherwise as for loading.
pub fn use_for(control: Option<&Control>, which: &Match) -> Result<(), Error> {
    let place = which.interface.as_deref().map(Place::find).transpose()?.unwrap_or_default();
    let folder = match &which.group {
        Some(group) => group.clone(),
        None => control_groups()?,
    };
    let group = File::open(&folder)
        .and_then(|file| Ok((file.metadata()?, file)))
        .map_err(|error| Error::Request(format!("no control group {}: {error}", folder.display())))?;
    if !folder.join("cgroup.procs").exists() {
        return Err(Error::Request(format!("{} is no control group (version 2)", folder.display())));
    }
    let pins = Path::new(FOLDER).join(format!("{RULES_OF}{}", group.0.ino()));
    if control.is_none() && !pins.exists() {
        return Err(Error::Request("no rule of this control group is there to be taken back".into()));
    }
    let _turn = Turn::with_folder()?;
    attach(&pins, &group.1)?;
    let rules = MapHandle::from_pinned_path(pins.join(RULES)).map_err(|error| broken(&error))?;
    let done = keys(which, place).into_iter().try_for_each(|key| match control {
        Some(control) => rules.update(&key, &value(control), MapFlags::ANY).map_err(|error| broken(&error)),
        None => rules.delete(&key).map_err(|_| Error::Request(format!("no such rule: {}", written(&key)))),
    });
    // Also applies if an earlier command died before it made the folder.
    if rules.keys().next().is_none() {
        detach(&pins)?;
    }
    done
}

/// Removes all rules of a control that will be unloaded, and returns their number. The caller must hold the
/// [`Turn`](crate::leftovers::Turn).
pub(crate) fn take_back(control: &Control) -> Result<usize, Error> {
    let mut taken = 0;
    for Table { pins, rules, .. } in tables()? {
        for key in rules.keys() {
            let value =
                rules.lookup(&key, MapFlags::ANY).map_err(|error| broken(&error))?.unwrap_or_default();
            if named(&value) == control.kernel_name {
                rules.delete(&key).map_err(|error| broken(&error))?;
                taken += 1;
            }
        }
        if rules.keys().next().is_none() {
            detach(&pins)?;
        }
    }
    Ok(taken)
}

/// The rules of a control group.
struct Table {
    /// Control group, by the inode number of its folder.
    group: u64,
    pins: PathBuf,
    rules: MapHandle,
}

/// The rules of all control groups.
fn tables() -> Result<Vec<Table>, Error> {
    let mut tables = Vec::new();
    for folder in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let (name, pins) = (folder.file_name(), folder.path());
        let group = name.to_str().and_then(|name| name.strip_prefix(RULES_OF)?.parse().ok());
        // Without a link the rules are incomplete or left by a dead command, so they do not apply.
        if let Some(group) = group.filter(|_| pins.join(RULES_LINK).exists()) {
            let rules = MapHandle::from_pinned_path(pins.join(RULES)).map_err(|error| broken(&error))?;
            tables.push(Table { group, pins, rules });
        }
    }
    Ok(tables)
}

/// Returns all active rules.
///
/// # Errors
/// [`Error::Work`] if they cannot be read.
pub fn rules() -> Result<Vec<Rule>, Error> {
    let mut all = Vec::new();
    for Table { group, rules, .. } in tables()? {
        for key in rules.keys() {
            let value =
                rules.lookup(&key, MapFlags::ANY).map_err(|error| broken(&error))?.unwrap_or_default();
            let place = Place::of_key(&key);
            all.push(Rule {
                control: named(&value),
                to: written(&key),
                interface: place.name(),
                is_there: place.is_there(),
                group,
            });
        }
    }
    all.sort_by(|a, b| (a.group, &a.to, &a.interface).cmp(&(b.group, &b.to, &b.interface)));
    Ok(all)
}

fn broken(error: &libbpf_rs::Error) -> Error {
    Error::Work(format!("the rules cannot be read or changed: {error}"))
}

/// The program stays attached to the group with its rules until the last rule is removed.
fn attach(pins: &Path, group: &File) -> Result<(), Error> {
    if pins.join(RULES_LINK).exists() {
        return Ok(());
    }
    let mut object = objects::give("use", objects::open("use")?)?;
    fs::create_dir_all(pins).map_err(|error| Error::file(pins, &error))?;
    let done = (|| {
        let program = object.progs_mut().next().expect("the object has one program");
        let mut link =
            program.attach_cgroup(group.as_raw_fd()).map_err(|error| objects::explain("use", &error))?;
        let mut rules = object.maps_mut().next().expect("the object has one map");
        rules.pin(pins.join(RULES)).map_err(|error| broken(&error))?;
        link.pin(pins.join(RULES_LINK)).map_err(|error| broken(&error))
    })();
    if done.is_err() {
        let _ = detach(pins);
    }
    done
}

fn detach(pins: &Path) -> Result<(), Error> {
    for pin in [RULES_LINK, RULES] {
        match fs::remove_file(pins.join(pin)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::file(pins, &error));
            }
            _ => {}
        }
    }
    fs::remove_dir(pins).map_err(|error| Error::file(pins, &error))?;
    // Loaded controls or rules of other groups keep the folder.
    let _ = fs::remove_dir(FOLDER);
    Ok(())
}

/// Returns the mount point of control groups, version 2.
fn control_groups() -> Result<PathBuf, Error> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = fields.find(|fields| fields.get(2) == Some(&"cgroup2"));
    found.map(|fields| PathBuf::from(fields[1])).ok_or_else(|| {
        Error::Missing(
            "control groups of version 2 are not mounted: mount -t cgroup2 none /sys/fs/cgroup".into(),
        )
    })
}

/// Interface of a rule in a network namespace; zeros for any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Place {
    /// Cookie of the network namespace, unique until the next boot.
    namespace: u64,
    interface: [u8; INTERFACE_NAME],
}

impl Place {
    /// Returns the interface with this name in the present network namespace.
    fn find(name: &str) -> Result<Self, Error> {
        Interface::find(name)?;
        let mut interface = [0; INTERFACE_NAME];
        interface[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Self { namespace: own_cookie()?, interface })
    }

    fn of_key(key: &[u8]) -> Self {
        let namespace = key[NAMESPACE_AT..INTERFACE_AT].try_into().expect("eight bytes");
        let interface = key[INTERFACE_AT..ADDRESS_AT].try_into().expect("sixteen bytes");
        Self { namespace: u64::from_ne_bytes(namespace), interface }
    }

    fn name(&self) -> Option<String> {
        Some(text(&self.interface)).filter(|name| !name.is_empty())
    }

    fn is_there(&self) -> bool {
        let is_own = own_cookie().is_ok_and(|own| own == self.namespace);
        !is_own || self.name().is_none_or(|name| Interface::find(&name).is_ok())
    }
}

/// Returns a `struct bp_key` for each destination.
fn keys(which: &Match, place: Place) -> Vec<Vec<u8>> {
    let key = |address: Ipv6Addr, bits: u32| {
        let length = (PLACE_BITS + bits).to_ne_bytes();
        [&length[..], &place.namespace.to_ne_bytes(), &place.interface, &address.octets()].concat()
    };
    if which.to.is_empty() {
        return vec![key(Ipv6Addr::UNSPECIFIED, 0)];
    }
    let one = |(address, length): &(IpAddr, u8)| match address {
        IpAddr::V4(v4) => key(v4.to_ipv6_mapped(), MAPPED_BITS + u32::from(*length)),
        IpAddr::V6(v6) => key(*v6, u32::from(*length)),
    };
    which.to.iter().map(one).collect()
}

/// Returns a `struct bp_choice`.
fn value(control: &Control) -> Vec<u8> {
    let mut name = [0; 16];
    name[..control.kernel_name.len()].copy_from_slice(control.kernel_name.as_bytes());
    let ecn = u32::from(control.name == "jersey");
    [&name[..], &ecn.to_ne_bytes()].concat()
}

/// Returns the control of a `struct bp_choice`.
fn named(value: &[u8]) -> String {
    text(&value[..16])
}

/// Returns the text before the first zero byte.
fn text(bytes: &[u8]) -> String {
    bytes.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
}

/// Returns the destination of a key.
fn written(key: &[u8]) -> String {
    let bits = u32::from_ne_bytes(key[..4].try_into().expect("four bytes")).saturating_sub(PLACE_BITS);
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(&key[ADDRESS_AT..]).expect("sixteen bytes"));
    match (address.to_ipv4_mapped(), bits) {
        (_, 0) => "everywhere".into(),
        (Some(v4), MAPPED_BITS..) => format!("{v4}/{}", bits - MAPPED_BITS),
        _ => format!("{address}/{bits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_survives_being_a_key() {
        let to = vec![
            ("10.0.0.0".parse().expect("an address"), 8),
            ("2001:db8::".parse().expect("an address"), 32),
            ("0.0.0.0".parse().expect("an address"), 0),
        ];
        let mut place = Place { namespace: 7 << 40, ..Place::default() };
        place.interface[..4].copy_from_slice(b"sat0");
        let written: Vec<String> =
            keys(&Match { to, ..Match::default() }, place).iter().map(|key| written(key)).collect();
        assert_eq!(written, ["10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0"]);
        let of_key = Place::of_key(&keys(&Match::default(), place)[0]);
        assert_eq!((of_key, of_key.name().as_deref()), (place, Some("sat0")));
        assert_eq!(
            keys(&Match::default(), Place::default())
                .iter()
                .map(|key| super::written(key))
                .collect::<Vec<_>>(),
            ["everywhere"]
        );
    }
}

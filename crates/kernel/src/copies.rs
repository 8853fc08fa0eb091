//! Programs at the egress of interfaces that send low-priority copies of data: the probes of Peach and Swift.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, bpf_link_create, bpf_obj_pin};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, Object, Program};

use crate::catalogue::Control;
use crate::error::Error;
use crate::interface::Interface;
use crate::pins::{self, copies_of};

/// Name of the program's pin in the folder of its control.
const PROGRAM: &str = "program";
/// Name of the program in the objects of its controls.
const COPY: &str = "bp_copy";

/// Pins the program of a newly loaded control, without attaching it to an interface.
pub(crate) fn pin(control: &Control, object: &mut Object) -> Result<(), Error> {
    let folder = copies_of(control);
    fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, &error))?;
    let mut program =
        object.progs_mut().find(|program| program.name() == COPY).expect("a control with probes has one");
    program
        .pin(folder.join(PROGRAM))
        .map_err(|error| Error::Work(format!("cannot pin {}: {error}", folder.display())))
}

/// Attaches the program of a loaded control to these interfaces, or to all of this network namespace. Existing
/// attachments stay.
pub(crate) fn attach(control: &Control, names: &[String]) -> Result<(), Error> {
    let interfaces = match names {
        [] => Interface::all()?,
        names => names.iter().map(|name| Interface::find(name)).collect::<Result<_, _>>()?,
    };
    let folder = copies_of(control);
    forget_what_is_gone(control, &folder)?;
    let there = pins::places(control);
    let program = Program::fd_from_pinned_path(folder.join(PROGRAM))
        .map_err(|error| Error::Work(format!("cannot open {}: {error}", folder.join(PROGRAM).display())))?;
    for Interface { namespace, number } in interfaces {
        if !there.contains(&(namespace, number)) {
            attach_one(&program, number, &folder.join(format!("{namespace}-{number}")))?;
        }
    }
    Ok(())
}

/// A link survives its interface, and the kernel reuses both numbers.
fn forget_what_is_gone(control: &Control, folder: &Path) -> Result<(), Error> {
    for (namespace, number) in pins::places(control) {
        let pin = folder.join(format!("{namespace}-{number}"));
        let link = Link::open(&pin).and_then(|link| link.info());
        let stands =
            link.is_ok_and(|link| matches!(link.info, LinkTypeInfo::Tcx(place) if place.ifindex != 0));
        if !stands {
            remove(&pin)?;
        }
    }
    Ok(())
}

fn attach_one(program: &OwnedFd, interface: u32, pin: &Path) -> Result<(), Error> {
    let failed = |what: &str| {
        Error::Work(format!("cannot {what} interface {interface}: {}", std::io::Error::last_os_error()))
    };
    // SAFETY: the call takes only numbers, without options.
    let link =
        unsafe { bpf_link_create(program.as_raw_fd(), interface as i32, BPF_TCX_EGRESS, std::ptr::null()) };
    if link < 0 {
        return Err(failed("stand at"));
    }
    // SAFETY: the kernel has just returned this descriptor.
    let link = unsafe { OwnedFd::from_raw_fd(link) };
    let path = CString::new(pin.to_string_lossy().into_owned()).expect("our paths have no zeros");
    // SAFETY: both descriptors stay open during the call.
    match unsafe { bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(failed("pin what stands at")),
    }
}

/// Detaches the program of a control from all interfaces of all network namespaces.
pub(crate) fn detach(control: &Control) -> Result<(), Error> {
    let folder = copies_of(control);
    for pin in fs::read_dir(&folder).into_iter().flatten().flatten() {
        remove(&pin.path())?;
    }
    match fs::remove_dir(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(&folder, &error)),
        _ => Ok(()),
    }
}

/// Another command may have removed it.
fn remove(pin: &Path) -> Result<(), Error> {
    match fs::remove_file(pin) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(pin, &error)),
        _ => Ok(()),
    }
}

//! Unloads controls from the kernel.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use libbpf_rs::{MapCore, MapHandle, MapType};

use crate::catalogue::Control;
use crate::error::Error;
use crate::leftovers::Turn;
use crate::namespaces::user_of_default;
use crate::pins::{AVAILABLE, FOLDER, pin_of};
use crate::{choose, copies};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// True if the kernel offers a control with this name, loaded by any program.
pub(crate) fn is_offered(kernel_name: &str) -> bool {
    fs::read_to_string(AVAILABLE)
        .is_ok_and(|names| names.split_ascii_whitespace().any(|name| name == kernel_name))
}

/// Result of unloading a control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unloaded {
    /// The control is unloaded for new connections. Connections that use it keep it until they end.
    Gone {
        /// Number of removed rules that selected it.
        rules: usize,
    },
    /// It was not loaded.
    WasNot,
}

/// Unloads a control.
///
/// # Errors
/// [`Error::Request`] if it is the default of a network namespace, [`Error::Missing`] without the privilege.
pub fn unload(control: &Control) -> Result<Unloaded, Error> {
    let default = fs::read_to_string(DEFAULT).unwrap_or_default();
    if default.trim() == control.kernel_name {
        return Err(Error::Request(format!(
            "{} is the default of this network namespace; first: sysctl net.ipv4.tcp_congestion_control=cubic",
            control.kernel_name
        )));
    }
    if let Some(namespace) = user_of_default(control.kernel_name) {
        return Err(Error::Request(format!(
            "{} is the default of the network namespace {namespace}, whose new connections would keep it; first, there: sysctl \
             net.ipv4.tcp_congestion_control=cubic",
            control.kernel_name
        )));
    }
    let folder = Path::new(FOLDER);
    if !folder.try_exists().map_err(|error| Error::file(folder, &error))? {
        return Ok(Unloaded::WasNot);
    }
    let turn = Turn::take()?;
    turn.clear()?;
    let done = take_out(control);
    // The last control also removes the folder, unless rules remain.
    let _ = fs::remove_dir(folder);
    done
}

/// Removes the rules that select the control, then its pin. If the command dies after that, the rest counts as
/// leftovers (`leftovers.rs`). The caller must hold the turn.
pub(crate) fn take_out(control: &Control) -> Result<Unloaded, Error> {
    let rules = choose::take_back(control)?;
    let pin = pin_of(control);
    // Before kernel 6.4 the map is pinned, and its entry holds the control. A link looks like a map of another type.
    if let Ok(map) = MapHandle::from_pinned_path(&pin)
        && map.map_type() == MapType::StructOps
        && is_offered(control.kernel_name)
    {
        map.delete(&0_u32.to_ne_bytes())
            .map_err(|error| Error::Work(format!("the kernel keeps {}: {error}", control.kernel_name)))?;
    }
    let gone = match fs::remove_file(&pin) {
        Ok(()) => {
            wait_until_gone(control)?;
            Unloaded::Gone { rules }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Unloaded::WasNot,
        Err(error) => return Err(Error::file(&pin, &error)),
    };
    copies::detach(control)?;
    Ok(gone)
}

/// The kernel unloads a control shortly after its pin was removed.
fn wait_until_gone(control: &Control) -> Result<(), Error> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let begin = Instant::now();
    while is_offered(control.kernel_name) {
        if begin.elapsed() > PATIENCE {
            return Err(Error::Work(format!(
                "{} is still in the kernel: another object than the pin holds it (bpftool struct_ops list)",
                control.kernel_name
            )));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

//! Loads controls into the kernel and pins them.

use std::fs;

use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType};
use libbpf_rs::{MapCore, OpenObject};
use nix::time::{ClockId, clock_gettime};

use crate::catalogue::Control;
use crate::copies;
use crate::doctor::has_tcx;
use crate::error::Error;
use crate::leftovers::Turn;
use crate::objects;
use crate::pins::{AVAILABLE, FOLDER, pin_of};
use crate::unload::{is_offered, take_out};

/// Options of a control at load time.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Options {
    /// Fixed rate of `scps-tp` in bits per second of payload.
    pub rate_bps: Option<u64>,
    /// A handover of `satcp`, in seconds of the UTC minute; others follow every 15 s. If absent, second 12.
    pub phase_s: Option<f64>,
    /// Interfaces that send the probes of `peach` and `swift`; if empty, all of this network namespace except the
    /// loopback.
    pub interfaces: Vec<String>,
}

/// Result of loading a control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loaded {
    /// New connections can use it.
    Now,
    /// It was already loaded.
    Before,
}

/// Loads these controls. If one fails, those loaded by this call are unloaded.
///
/// # Errors
/// [`Error::Missing`] if the machine lacks something, [`Error::Request`] for unsuitable options, [`Error::Work`] if
/// the kernel refuses.
pub fn load(controls: &[&'static Control], options: &Options) -> Result<Vec<Loaded>, Error> {
    check(controls, options)?;
    let _turn = Turn::with_folder()?;
    let mut done = Vec::with_capacity(controls.len());
    for control in controls {
        match load_one(control, options) {
            Ok(loaded) => done.push(loaded),
            Err(error) => {
                for (control, _) in controls.iter().zip(&done).filter(|(_, loaded)| **loaded == Loaded::Now) {
                    // The first error is reported, not that of the removal.
                    let _ = take_out(control);
                }
                let _ = fs::remove_dir(FOLDER);
                return Err(error);
            }
        }
    }
    Ok(done)
}

fn check(controls: &[&'static Control], options: &Options) -> Result<(), Error> {
    let fixed = controls.iter().any(|control| control.name == "scps-tp");
    match options.rate_bps {
        None if fixed => Err(Error::Request("scps-tp sends at a fixed rate: set it by --rate 8mbit".into())),
        Some(_) if !fixed => Err(Error::Request("only scps-tp has a fixed rate".into())),
        _ if options.phase_s.is_some() && !controls.iter().any(|control| control.name == "satcp") => {
            Err(Error::Request("only satcp has handovers at a fixed second".into()))
        }
        _ if !options.interfaces.is_empty() && !controls.iter().any(|control| control.sends_probes()) => {
            Err(Error::Request("only peach and swift send probes, through interfaces".into()))
        }
        // Above this rate the arithmetic of the programs saturates.
        Some(rate) if !(1_000..=100_000_000_000).contains(&rate) => {
            Err(Error::Request(format!("{rate} bit/s is no rate between 1 kbit/s and 100 Gbit/s")))
        }
        _ => Ok(()),
    }
}

/// Object that keeps a control in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    /// A link; the kernel unloads the control when its last pin is removed (kernel 6.4).
    ByLink,
    /// The control's map, until its entry is deleted.
    ByMap,
}

/// The flag of a map that is registered by a link (`BPF_F_LINK`).
const FLAG_LINK: u32 = 1 << 13;

impl Held {
    fn in_this_kernel(kernel: &Btf<'_>) -> Self {
        match kernel.type_by_name::<Func<'_>>("bpf_struct_ops_link_create") {
            Some(_) => Self::ByLink,
            None => Self::ByMap,
        }
    }
}

fn load_one(control: &'static Control, options: &Options) -> Result<Loaded, Error> {
    if control.sends_probes() && !has_tcx() {
        return Err(Error::Missing(format!(
            "{} needs programs at interfaces (tcx), which came with kernel 6.6",
            control.name
        )));
    }
    if pin_of(control).exists() {
        if control.sends_probes() {
            copies::attach(control, &options.interfaces)?;
        }
        return Ok(Loaded::Before);
    }
    if is_offered(control.kernel_name) {
        return Err(Error::Work(format!(
            "{} is already in the kernel ({AVAILABLE}) without a pin in {FOLDER}: the program that loaded it must unload it",
            control.kernel_name
        )));
    }
    let kernel = Btf::from_vmlinux().map_err(|error| objects::explain("the types of the kernel", &error))?;
    let done = load_held(control, options, &kernel, Held::in_this_kernel(&kernel));
    if done.is_err() {
        // The first error is reported, not that of the removal.
        let _ = take_out(control);
    }
    done
}

/// The control's own pin is set last. If the command dies before, the control counts as a leftover (`leftovers.rs`).
fn load_held(
    control: &'static Control,
    options: &Options,
    kernel: &Btf<'_>,
    held: Held,
) -> Result<Loaded, Error> {
    let mut open = objects::open(control.name)?;
    set_constants(control, options, kernel, &mut open)?;
    let refused = |error| objects::explain(control.name, &error);
    if held == Held::ByMap {
        let mut operations = open.maps_mut().find(|map| map.name() == OPERATIONS).expect(HAS_OPERATIONS);
        let flags = operations.map_flags() & !FLAG_LINK;
        operations.set_map_flags(flags).map_err(refused)?;
    }
    let mut object = objects::give(control.name, open)?;
    if control.sends_probes() {
        copies::pin(control, &mut object)?;
        copies::attach(control, &options.interfaces)?;
    }
    let pin = pin_of(control);
    let cannot_pin = |error| Error::Work(format!("cannot pin {}: {error}", pin.display()));
    let mut operations = object.maps_mut().find(|map| map.name() == OPERATIONS).expect(HAS_OPERATIONS);
    match held {
        // If the process dies before the pin, the kernel removes the link and the control.
        Held::ByLink => {
            let mut link = operations.attach_struct_ops().map_err(refused)?;
            link.pin(&pin).map_err(cannot_pin)?;
        }
        // A registered map survives the process, so it must be pinned before.
        Held::ByMap => {
            operations.pin(&pin).map_err(cannot_pin)?;
            // Otherwise the control would be removed when this value is dropped.
            operations.attach_struct_ops().map_err(refused)?.disconnect();
        }
    }
    Ok(Loaded::Now)
}

/// Name of the operations structure in every control's program.
const OPERATIONS: &str = "bp_ops";
const HAS_OPERATIONS: &str = "every control has its operations under this name";

/// Read-only data that the verifier treats as constants.
fn set_constants(
    control: &Control,
    options: &Options,
    kernel: &Btf<'_>,
    open: &mut OpenObject,
) -> Result<(), Error> {
    let arguments = cong_control_arguments(kernel)?;
    let mut data = open
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata"))
        .expect("every control has constants");
    let places = Places::of(control.name)?;
    let bytes = data.initial_value_mut().expect("constants have values");
    bytes[places.find("bp_cong_control_arguments")?] = arguments;
    if control.name == "scps-tp" {
        let at = places.find("bp_scps_rate")?;
        bytes[at..at + 8].copy_from_slice(&(options.rate_bps.unwrap_or_default() / 8).to_ne_bytes());
    }
    if control.name == "satcp" {
        let at = places.find("bp_satcp_phase")?;
        let (utc_us, kernel_us) = (clock_us(ClockId::CLOCK_REALTIME)?, clock_us(ClockId::CLOCK_MONOTONIC)?);
        let phase_us = kernel_phase_us(options.phase_s.unwrap_or(UTC_PHASE_S), utc_us, kernel_us);
        bytes[at..at + 8].copy_from_slice(&phase_us.to_ne_bytes());
    }
    Ok(())
}

/// Period of Starlink's handovers, and the first second of each UTC minute at which one begins.
const HANDOVER_PERIOD_US: u64 = 15_000_000;
const UTC_PHASE_S: f64 = 12.0;

/// Returns the phase of handovers in the clock of `tcp_mstamp`, from that in UTC and the present time of both clocks.
fn kernel_phase_us(utc_phase_s: f64, utc_us: u64, kernel_us: u64) -> u64 {
    let phase_us = (utc_phase_s * 1e6) as u64 % HANDOVER_PERIOD_US;
    let since_handover_us = (utc_us + HANDOVER_PERIOD_US - phase_us) % HANDOVER_PERIOD_US;
    (kernel_us + HANDOVER_PERIOD_US - since_handover_us) % HANDOVER_PERIOD_US
}

fn clock_us(clock: ClockId) -> Result<u64, Error> {
    let time =
        clock_gettime(clock).map_err(|error| Error::Work(format!("cannot read the clock: {error}")))?;
    Ok(time.tv_sec() as u64 * 1_000_000 + time.tv_nsec() as u64 / 1000)
}

/// Returns the read-only data of a program.
struct Places {
    places: Vec<(String, usize)>,
}

impl Places {
    fn of(name: &str) -> Result<Self, Error> {
        let unreadable = || Error::Work(format!("the program {name} of this build has no type information"));
        let btf = Btf::from_raw(name, objects::object(name)).ok().flatten().ok_or_else(unreadable)?;
        let section: libbpf_rs::btf::types::DataSec<'_> =
            btf.type_by_name(".rodata").ok_or_else(unreadable)?;
        let places = section.iter().filter_map(|variable| {
            let of: libbpf_rs::btf::types::Var<'_> = btf.type_by_id(variable.ty)?;
            Some((of.name()?.to_string_lossy().into_owned(), variable.offset as usize))
        });
        Ok(Self { places: places.collect() })
    }

    fn find(&self, constant: &str) -> Result<usize, Error> {
        let place = self.places.iter().find(|(name, _)| name == constant);
        place
            .map(|(_, at)| *at)
            .ok_or_else(|| Error::Work(format!("a program lacks the constant {constant}")))
    }
}

/// Returns the number of arguments of `cong_control` in this kernel: two before 6.10, four since.
fn cong_control_arguments(kernel: &Btf<'_>) -> Result<u8, Error> {
    let missing = || {
        Error::Missing(
            "this kernel's TCP has no congestion control with `cong_control` (kernel 4.9 and later have)"
                .into(),
        )
    };
    let operations: Struct<'_> = kernel.type_by_name("tcp_congestion_ops").ok_or_else(missing)?;
    let member = operations
        .iter()
        .find(|member| member.name.is_some_and(|name| name == "cong_control"))
        .ok_or_else(missing)?;
    let pointer: Ptr<'_> = kernel.type_by_id(member.ty).ok_or_else(missing)?;
    let function = FuncProto::try_from(pointer.referenced_type()).map_err(|_| missing())?;
    Ok(function.len() as u8)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::unload::Unloaded;

    #[test]
    fn handovers_keep_their_second_of_the_utc_minute() {
        // 1970-01-01 00:01:10.25 UTC: the last handover was at second 57 and the next is at second 12, in 1.75 s.
        let phase_us = kernel_phase_us(12.0, 70_250_000, 5_000_000);
        assert_eq!(phase_us, 6_750_000);
        assert_eq!(kernel_phase_us(27.0, 70_250_000, 5_000_000), phase_us, "every 15 s");
    }

    /// Kernels before 6.4 have no links for controls; this kernel still supports the older way.
    #[test]
    fn a_control_held_by_its_map_goes_without_a_trace() {
        let Ok(kernel) = Btf::from_vmlinux() else { return eprintln!("skipped: no type information (BTF)") };
        let control = crate::find("scalable").expect("listed");
        if Path::new(FOLDER).exists() || is_offered(control.kernel_name) {
            return eprintln!("skipped: algorithms are loaded on this machine already");
        }
        let _turn = match Turn::with_folder() {
            Ok(turn) => turn,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        match load_held(control, &Options::default(), &kernel, Held::ByMap) {
            Err(Error::Missing(words)) => eprintln!("skipped: {words}"),
            done => {
                assert_eq!(done.expect("the kernel takes it"), Loaded::Now);
                assert!(is_offered(control.kernel_name));
                assert_eq!(take_out(control).expect("it goes"), Unloaded::Gone { rules: 0 });
                assert!(!is_offered(control.kernel_name));
            }
        }
        let _ = fs::remove_dir(FOLDER);
    }
}

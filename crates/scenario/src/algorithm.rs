//! Names of algorithms as users type them: a window law, with or without a loss recovery.

use std::sync::{PoisonError, RwLock};

use bentpipe_cc::{Algorithm, Custom, REGISTRY};
use bentpipe_tcp::Recovery;

use crate::describe::RECOVERIES;
use crate::error::Error;
use crate::suggest::did_you_mean;

/// Names of Reno's window law with the recovery of the same name, as in the literature.
const RENO_WITH_RECOVERY: &[&str] = &["reno", "newreno", "sack"];

/// Algorithms registered by the embedding program.
static OWN: RwLock<Vec<Custom>> = RwLock::new(Vec::new());

/// Registers the program's own algorithms under their names, for scenarios and command lines. Scenarios read earlier do not know
/// them.
///
/// # Errors
/// [`Error::TakenAlgorithm`] for a name in use; then none is registered.
pub fn bring_algorithms(own: &[Custom]) -> Result<(), Error> {
    let taken = |(index, custom): (usize, &Custom)| {
        let registered = algorithm_names().iter().any(|name| name == custom.name);
        registered || own[..index].iter().any(|other| other.name == custom.name) || custom.name.contains('+')
    };
    match own.iter().enumerate().find(|&of| taken(of)) {
        Some((_, custom)) => Err(Error::TakenAlgorithm { name: custom.name.to_owned() }),
        None => {
            OWN.write().unwrap_or_else(PoisonError::into_inner).extend_from_slice(own);
            Ok(())
        }
    }
}

/// Returns the algorithms registered by the program.
pub fn own_algorithms() -> Vec<Custom> {
    OWN.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns the algorithm `name` with default parameters.
fn known(name: &str) -> Option<Algorithm> {
    let own = own_algorithms();
    let own = own.iter().find(|custom| custom.name == name);
    own.cloned().map(Algorithm::Custom).or_else(|| Algorithm::from_name(name))
}

/// Algorithms whose standard defines its own loss recovery.
const WITH_RECOVERY: &[(&str, Recovery)] = &[("scps-tp", Recovery::Snack)];

/// Returns the algorithm called `name`, and the recovery if the name includes one.
///
/// `reno`, `newreno` and `sack` are Reno's window with that recovery. All other algorithms use the configured recovery, unless
/// the name ends in one: `hybla+sack`, `cubic+newreno`. `scps-tp` includes SNACK.
///
/// # Errors
/// [`Error::UnknownAlgorithm`] with the known names.
pub fn resolve_cc(name: &str) -> Result<(Algorithm, Option<Recovery>), Error> {
    let (law, suffix) = match name.split_once('+') {
        Some((law, recovery)) => (law, Some(recovery)),
        None => (name, None),
    };
    let own = RENO_WITH_RECOVERY.contains(&law).then_some(law);
    let algorithm = known(if own.is_some() { "reno" } else { law });
    let algorithm = algorithm
        .ok_or_else(|| Error::UnknownAlgorithm { name: law.to_owned(), known: algorithm_names() })?;
    let recovery = suffix.or(own).map(|recovery| recovery_named(recovery, name)).transpose()?;
    let usual = WITH_RECOVERY.iter().find(|(known, _)| *known == law).map(|(_, recovery)| *recovery);
    Ok((algorithm, recovery.or(usual)))
}

fn recovery_named(recovery: &str, name: &str) -> Result<Recovery, Error> {
    let found = RECOVERIES.iter().find(|(known, _)| *known == recovery);
    found
        .map(|(_, recovery)| *recovery)
        .ok_or_else(|| Error::UnknownAlgorithm { name: name.to_owned(), known: with_recoveries(name) })
}

/// Returns `law+recovery` for every recovery.
fn with_recoveries(name: &str) -> Vec<String> {
    let law = name.split('+').next().unwrap_or_default();
    RECOVERIES.iter().map(|(recovery, _)| format!("{law}+{recovery}")).collect()
}

/// Congestion controls of the QUIC stack, for flows over `quic`.
const OF_QUIC: &[(&str, StackControl)] =
    &[("quic:cubic", StackControl::Cubic), ("quic:newreno", StackControl::NewReno)];

/// A congestion control of the QUIC stack itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackControl {
    /// CUBIC (RFC 9438).
    Cubic,
    /// NewReno (RFC 9002).
    NewReno,
}

/// Returns the congestion control of the QUIC stack with this name.
pub fn stack_control(name: &str) -> Option<StackControl> {
    OF_QUIC.iter().find(|(known, _)| *known == name).map(|(_, control)| *control)
}

/// Returns the names of the congestion controls of the QUIC stack.
pub fn stack_controls() -> impl Iterator<Item = &'static str> {
    OF_QUIC.iter().map(|(name, _)| *name)
}

/// Checks the name of a flow's congestion control.
///
/// # Errors
/// [`Error::UnknownAlgorithm`] with the known names.
pub(crate) fn check_flow_cc(name: &str) -> Result<(), Error> {
    match resolve_cc(name) {
        Err(Error::UnknownAlgorithm { name, known }) if stack_control(&name).is_none() => {
            let stack = stack_controls().map(str::to_owned);
            Err(Error::UnknownAlgorithm { name, known: known.into_iter().chain(stack).collect() })
        }
        _ => Ok(()),
    }
}

/// Returns every name that [`resolve_cc`] accepts, without recoveries.
pub fn algorithm_names() -> Vec<String> {
    let registered = REGISTRY.iter().map(|entry| entry.name);
    let others = RENO_WITH_RECOVERY.iter().copied().filter(|name| *name != "reno");
    let brought = own_algorithms();
    let brought = brought.iter().map(|custom| custom.name);
    registered.chain(others).chain(brought).map(str::to_owned).collect()
}

/// Returns the names of the registered algorithms in the order of the registry.
pub fn registered_algorithms() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|entry| entry.name)
}

/// Returns the name that the user probably meant.
pub(crate) fn meant(name: &str) -> Option<String> {
    match resolve_cc(name) {
        Err(Error::UnknownAlgorithm { name, known }) => did_you_mean(&name, &known).map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(name: &str) -> (&'static str, Option<Recovery>) {
        let (algorithm, recovery) = resolve_cc(name).unwrap();
        (algorithm.name(), recovery)
    }

    #[test]
    fn names_bundle_a_law_with_a_recovery() {
        assert_eq!(resolved("reno"), ("reno", Some(Recovery::Reno)));
        assert_eq!(resolved("newreno"), ("reno", Some(Recovery::NewReno)));
        assert_eq!(resolved("sack"), ("reno", Some(Recovery::Sack)));
        assert_eq!(resolved("cubic"), ("cubic", None));
        assert_eq!(resolved("cubic+newreno"), ("cubic", Some(Recovery::NewReno)));
        assert_eq!(resolved("scps-tp"), ("scps-tp", Some(Recovery::Snack)));
        assert_eq!(resolved("scps-tp+rack"), ("scps-tp", Some(Recovery::Rack)));
        assert_eq!(resolved("reno+rack"), ("reno", Some(Recovery::Rack)));
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        let message = resolve_cc("cubik").unwrap_err().to_string();
        assert!(message.starts_with("found algorithm \"cubik\", accepted: reno, "), "{message}");
        assert!(message.ends_with("; did you mean \"cubic\"?"), "{message}");
        assert_eq!(
            resolve_cc("cubic+newrno").unwrap_err().to_string(),
            "found algorithm \"cubic+newrno\", accepted: cubic+reno, cubic+newreno, cubic+sack, cubic+rack, \
             cubic+snack; did you mean \"cubic+newreno\"?"
        );
    }
}

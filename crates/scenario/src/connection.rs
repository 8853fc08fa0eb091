//! Configuration of a single connection end from the command line, without a scenario.

use bentpipe_tcp::Config;

use crate::describe::connection_end;
use crate::draft::Draft;
use crate::error::Error;

/// Returns the configuration of an end with the algorithm `cc`. Changes such as `tcp.ecn=true` and `cc.max-probes=8` use the keys
/// and units of a scenario.
///
/// # Errors
/// [`Error::UnknownAlgorithm`], or [`Error::Mistakes`] with every mistake in `settings`.
pub fn connection_config<'a>(cc: &str, settings: impl IntoIterator<Item = &'a str>) -> Result<Config, Error> {
    let (algorithm, recovery) = crate::resolve_cc(cc)?;
    let usual = Config::default();
    let recovery = recovery.unwrap_or(usual.sender.recovery);
    changed_config(
        usual.with(|config| {
            config.sender.cc = algorithm;
            config.sender.recovery = recovery;
        }),
        cc,
        settings,
    )
}

/// Returns `base` with changes as in [`connection_config`]; `cc` is the name of its algorithm.
///
/// # Errors
/// [`Error::Mistakes`] with every mistake in `settings`.
pub fn changed_config<'a>(
    base: Config,
    cc: &str,
    settings: impl IntoIterator<Item = &'a str>,
) -> Result<Config, Error> {
    let mut draft = Draft::parse("", "")?;
    settings.into_iter().try_for_each(|setting| draft.set(setting))?;
    let (mut config, mut name) = (base, cc.to_owned());
    draft.read(|form| connection_end(form, &mut name, &mut config))?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;
    use bentpipe_tcp::{EcnMode, Recovery};

    #[test]
    fn settings_are_those_of_a_scenario() {
        let settings = ["tcp.ecn=true", "tcp.user-timeout=20 s", "tcp.receive-window=64 segments"];
        let config = connection_config("newreno", settings).unwrap();
        assert_eq!((config.sender.cc.name(), config.sender.recovery), ("reno", Recovery::NewReno));
        assert_eq!(config.ecn, EcnMode::Classic);
        assert_eq!(config.lifetime.user_timeout, Some(Duration::from_secs(20)));
        assert_eq!(config.receiver.receive_window.limit(), 64 * 1448);
        let with_parameter = connection_config("peach", ["cc.mode=safe"]).unwrap();
        assert_ne!(
            with_parameter.sender.cc,
            connection_config("peach", ["cc.mode=paper"]).unwrap().sender.cc
        );
    }

    #[test]
    fn mistakes_name_what_is_accepted() {
        let mistake = |setting| connection_config("cubic", [setting]).unwrap_err().to_string();
        assert!(mistake("tcp.enc=true").contains("did you mean `ecn`?"), "{}", mistake("tcp.enc=true"));
        assert!(mistake("tcp.ecn=perhaps").contains("perhaps"));
        assert!(mistake("link.satellite.rate=1 Mbit/s").contains("link"));
        assert!(mistake("ecn").contains("KEY=VALUE"));
        assert!(connection_config("cubik", []).unwrap_err().to_string().contains("did you mean \"cubic\"?"));
    }
}

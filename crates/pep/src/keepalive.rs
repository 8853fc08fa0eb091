//! Keep-alive probes of a half to a silent peer.

use std::time::Duration;

use bentpipe_scenario::deployment::Side;

/// Longest time between two questions, the default of Linux. After an answered question Linux also waits for this time.
const INTERVAL: Duration = Duration::from_secs(75);
/// Time after which a silent peer counts as gone: with the defaults of Linux, two hours and nine unanswered probes. So an idle
/// connection survives nearly as long an outage of the satellite.
const GONE_AFTER: Duration = Duration::from_secs(7200 + 9 * 75);
/// Fewest questions that are left unanswered before that, and the most that Linux accepts (`MAX_TCP_KEEPCNT`).
const QUESTIONS: (u32, u32) = (9, 127);

/// Keep-alive of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Keepalive {
    /// Silence before the first question.
    pub idle: Duration,
    /// Time between two unanswered probes.
    pub interval: Duration,
    /// Number of unanswered probes after which the peer counts as gone.
    pub questions: u32,
}

impl Keepalive {
    /// As the configuration of a half says; `None` if it never asks.
    pub fn of(side: &Side) -> Option<Self> {
        // The kernel counts seconds.
        let idle = Duration::from_secs(side.keepalive?.as_nanos().div_ceil(1_000_000_000));
        let interval = idle.min(INTERVAL);
        let rest = GONE_AFTER.saturating_sub(idle).as_secs().div_ceil(interval.as_secs());
        Some(Self { idle, interval, questions: (rest as u32).clamp(QUESTIONS.0, QUESTIONS.1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_question_does_not_shorten_the_life_of_a_connection() {
        let of = |seconds| {
            let keepalive = Some(bentpipe_base::Duration::from_secs(seconds));
            Keepalive::of(&Side { keepalive, ..Side::default() }).expect("it asks")
        };
        for seconds in [62, 180, 7200, 32_767] {
            let Keepalive { idle, interval, questions } = of(seconds);
            assert_eq!(idle.as_secs(), seconds);
            assert!(interval <= idle, "an answered question would be followed by a longer silence");
            assert!(idle + interval * questions >= GONE_AFTER, "{seconds}");
            assert!((9..=127).contains(&questions), "{questions}");
        }
        let Keepalive { interval, questions, .. } = of(3);
        assert_eq!((interval.as_secs(), questions), (3, 127));
        assert_eq!(Keepalive::of(&Side::default()).expect("the default asks").idle.as_secs(), 180);
        assert_eq!(Keepalive::of(&Side { keepalive: None, ..Side::default() }), None);
    }
}

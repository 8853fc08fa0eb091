//! Congestion window validation: lifetime of an unused window (RFC 5681 section 4.1, RFC 7661).

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Accounting, ConnectionEvent};

use super::{Limit, Sender};
use crate::{Config, WindowValidation};

/// Non-validated period after which an unused window is reduced (RFC 7661 section 4.4.3).
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);

impl Sender {
    /// Measures `pipeACK`, and reduces a window that was unused for five minutes.
    #[inline]
    pub(super) fn validate_window(&mut self, now: Instant, config: &Config) {
        if config.sender.window_validation == WindowValidation::Rfc7661 {
            self.measure_use(now, config);
        }
    }

    fn measure_use(&mut self, now: Instant, config: &Config) {
        let validation = self.validation.get_or_insert_default();
        let round = self.rtt.srtt.max(Duration::from_millis(1));
        validation.measure(now, self.delivered, round);
        // RFC 7661 section 4.3: the window is validated while more than half of it is used.
        let window = self.algorithm.window();
        if validation.pipe_ack(self.mss) >= window / 2.0 || self.limit != Limit::Application {
            validation.note_used();
        } else if validation.is_unused_for(now, NON_VALIDATED_PERIOD) {
            let floor = f64::from(config.sender.initial_window.segments(self.mss));
            let path = self.path(now);
            self.algorithm.cc.on_event(ConnectionEvent::Unvalidated { floor }, &path);
        }
    }

    /// Returns `pipeACK` in segments if validation is on, for the reduction after a loss (RFC 7661 section
    /// 4.4.1).
    pub(super) fn validated(&self, config: &Config) -> Option<f64> {
        let on = config.sender.window_validation == WindowValidation::Rfc7661;
        let unused = self.validation.as_ref().filter(|validation| on && validation.is_unused());
        unused.map(|validation| validation.pipe_ack(self.mss))
    }

    /// Handles the first transmission after a pause: restart window (RFC 5681 section 4.1).
    pub(super) fn restart_after_idle(&mut self, now: Instant, config: &Config) {
        let idle = self.board.is_empty()
            && self.last_sent != Instant::ZERO
            && now.since(self.last_sent) > self.rtt.rto(&config.sender.rto);
        // An algorithm that paces by its own model is informed of each pause, because its rate does not
        // depend on the window.
        let by_rate =
            self.algorithm.accounting == Accounting::Own && self.algorithm.cc.spacing().rate().is_some();
        if !idle || !by_rate && config.sender.window_validation != WindowValidation::Restart {
            return;
        }
        let restart = f64::from(config.sender.initial_window.segments(self.mss));
        self.last_sent = now;
        let path = self.path(now);
        self.algorithm.cc.on_event(ConnectionEvent::Idle { restart }, &path);
    }
}

//! Interface of a connection's congestion control for programs that drive `noq-proto` themselves.

use std::any::Any;
use std::time;

use bentpipe_base::Instant;
use bentpipe_cc::Wake;
use noq_proto::congestion::{Bbr3, Cubic, NewReno};
use noq_proto::{Connection, PathId};

use crate::clock::{from_stack, to_stack};
use crate::config::Control;
use crate::control::{Factory, lock};

/// Names of the stack's own congestion controls.
const OF_STACK: [(&str, Control); 3] = [
    ("quic:cubic", Control::StackCubic),
    ("quic:newreno", Control::StackNewReno),
    ("quic:bbr3", Control::StackBbr3),
];

impl Control {
    /// Returns the stack's own congestion control with this name.
    pub fn of_stack(name: &str) -> Option<Self> {
        OF_STACK.into_iter().find(|(known, _)| *known == name).map(|(_, control)| control)
    }

    /// Returns the names of the stack's own congestion controls.
    pub fn stack_names() -> impl Iterator<Item = &'static str> {
        OF_STACK.into_iter().map(|(name, _)| name)
    }

    /// Returns the name of the congestion control that `connection` runs. `None` if the connection runs none of this type.
    pub fn running(&self, connection: &Connection) -> Option<&'static str> {
        if let Self::Own(factory) = self {
            return factory.running();
        }
        let controller = connection.congestion_state(PathId::ZERO)?.clone_box().into_any();
        of_stack(&*controller)
    }

    /// Returns the time of the algorithm's next timer event; `None` for none. To be read after every call of the stack.
    pub fn timeout(&self) -> Option<time::Instant> {
        if let Self::Own(factory) = self { factory.timeout() } else { None }
    }

    /// Handles the algorithm's timer event if it is due, before that of `connection`.
    pub fn handle_timeout(&self, now: time::Instant, connection: &mut Connection) {
        if let Self::Own(factory) = self
            && factory.handle_timeout(now)
        {
            connection.ping();
        }
    }

    /// Handles the end of the connection: the algorithm stores what it learnt.
    pub fn close(&self, now: time::Instant) {
        if let Self::Own(factory) = self {
            factory.close(now);
        }
    }
}

/// Returns the name of a controller of the stack.
fn of_stack(controller: &dyn Any) -> Option<&'static str> {
    if controller.is::<Cubic>() {
        Some("quic:cubic")
    } else if controller.is::<NewReno>() {
        Some("quic:newreno")
    } else if controller.is::<Bbr3>() {
        Some("quic:bbr3")
    } else {
        None
    }
}

impl Factory {
    /// Returns the name of the algorithm on the newest path; `None` before a path exists.
    pub fn running(&self) -> Option<&'static str> {
        self.newest().map(|algorithm| lock(&algorithm).name())
    }

    /// Returns the time of the algorithm's next timer event; `None` for none. To be read after every call of the stack.
    pub fn timeout(&self) -> Option<time::Instant> {
        let timeout = self.newest().map(|algorithm| lock(&algorithm).timeout());
        timeout.filter(|timeout| *timeout != Instant::FAR_FUTURE).map(to_stack)
    }

    /// Handles the algorithm's timer event if it is due. Returns true if the algorithm requests a packet that the peer acknowledges,
    /// such as a PING.
    pub fn handle_timeout(&self, now: time::Instant) -> bool {
        let Some(algorithm) = self.newest() else { return false };
        let (mut algorithm, now) = (lock(&algorithm), from_stack(now));
        algorithm.timeout() <= now && algorithm.on_timeout(now) == Wake::AskForAck
    }

    /// Handles the end of the connection. The algorithm stores what it learnt in the memory of the settings.
    pub fn close(&self, now: time::Instant) {
        if let Some(algorithm) = self.newest() {
            lock(&algorithm).close(from_stack(now));
        }
    }
}

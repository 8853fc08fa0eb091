//! What is known of algorithms. The list of them stands in `lib.rs`: adding one means a file, its paper note and one line there.

use alloc::boxed::Box;
use alloc::sync::Arc;

use serde::Serialize;

use crate::{CongestionControl, Reflector, Start};

/// Builds the sender of one connection.
type Build = dyn Fn(&Start) -> Box<dyn CongestionControl> + Send + Sync;

/// An algorithm from outside: a name and a function that builds one sender. Clones share what the function knows.
#[derive(Clone)]
pub struct Custom {
    /// Name in tables and results.
    pub name: &'static str,
    /// Builds the sender of one connection.
    pub(crate) build: Arc<Build>,
}

impl Custom {
    /// An algorithm of this name. `build` is a function, or a closure that carries parameters, tables or whatever else its senders share.
    pub fn new(
        name: &'static str,
        build: impl Fn(&Start) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self { name, build: Arc::new(build) }
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl core::fmt::Debug for Custom {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

/// The receiver half that a sender asks for in the handshake.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverHalf {
    /// [`Feedback::receiver`](crate::Feedback::receiver) of the senders that it serves.
    pub number: u8,
    /// Builds the receiver half of one connection.
    pub build: fn() -> Box<dyn Reflector>,
}

/// By what an algorithm finds its window or its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Family {
    /// Losses alone.
    #[serde(rename = "window by loss")]
    Loss,
    /// A bandwidth measured by the ACKs.
    #[serde(rename = "bandwidth estimation")]
    Bandwidth,
    /// Delay.
    #[serde(rename = "delay")]
    Delay,
    /// A model of the path.
    #[serde(rename = "model of the path")]
    Model,
    /// Probes of low priority.
    #[serde(rename = "low-priority probes")]
    Probes,
    /// What the receiver measures.
    #[serde(rename = "measured by the receiver")]
    Receiver,
    /// What routers or links say.
    #[serde(rename = "told by the network")]
    Network,
    /// What other connections have learnt.
    #[serde(rename = "memory")]
    Memory,
}

/// What `bentpipe list cc` says of an algorithm.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    /// Name in scenarios and on the command line.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// Citation.
    pub paper: &'static str,
    /// Year of the publication.
    pub year: u16,
    /// How it works, in a word.
    pub family: Family,
    /// When to use it, and when not; completes "`name`: ...".
    pub advice: &'static str,
    /// Wants something of receivers.
    pub needs_receiver: bool,
    /// The receiver half, if it is more than a reply to probes.
    #[serde(skip)]
    pub receiver: Option<ReceiverHalf>,
    /// Wants something of routers.
    pub needs_routers: bool,
    /// Learns from other connections to the same destination: drivers hand it a [`PathMemory`](crate::PathMemory).
    pub remembers: bool,
    /// What remains is still useful with an unmodified receiver.
    pub works_with_plain_receiver: bool,
    /// Runs in the simulator.
    pub in_simulation: bool,
    /// Runs over real sockets.
    pub on_the_wire: bool,
    /// Runs in the Linux kernel.
    pub in_kernel: bool,
}

macro_rules! registry {
    ($($variant:ident, $module:ident;)*) => {
        $(pub mod $module;)*

        /// Every algorithm with its parameters.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Algorithm {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $variant($module::Config),)*
            /// A user's own.
            Custom(Custom),
        }

        /// All registered algorithms in the order of `bentpipe list cc`.
        pub static REGISTRY: &[Entry] = &[$($module::ENTRY),*];

        impl Algorithm {
            /// The algorithm `name` with the parameters that `parameters` deserialises to (a table; what is absent keeps its default).
            ///
            /// # Errors
            /// `Ok(None)` if there is no such algorithm; the deserialiser's error for an unknown or unfit parameter.
            pub fn from_parameters<'de, D: serde::Deserializer<'de>>(name: &str, parameters: D) -> Result<Option<Self>, D::Error> {
                $(if name == $module::ENTRY.name {
                    return <$module::Config as serde::Deserialize>::deserialize(parameters).map(|config| Some(Self::$variant(config)));
                })*
                Ok(None)
            }

            /// The algorithm `name` with default parameters.
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name == $module::ENTRY.name {
                    return Some(Self::$variant($module::Config::default()));
                })*
                None
            }

            /// Registry name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $module::ENTRY.name,)*
                    Self::Custom(custom) => custom.name,
                }
            }

            /// Learns from other connections to the same destination; a user's own may.
            pub fn remembers(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $module::ENTRY.remembers,)*
                    Self::Custom(_) => true,
                }
            }

            /// The parameters, for display: a table of scalars.
            ///
            /// # Errors
            /// Only those of the serialiser.
            pub fn parameters<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(config) => serde::Serialize::serialize(config, serializer),)*
                    Self::Custom(_) => serializer.serialize_unit(),
                }
            }

            /// What its senders ask of the engine.
            pub fn wants(&self) -> Wants {
                let start = Start { mss: 1000, initial_window: 10.0, initial_ssthresh: f64::INFINITY, paced: false, seed: 0, memory: None };
                self.build(&start).wants()
            }

            /// A sender of one connection.
            pub fn build(&self, start: &Start) -> alloc::boxed::Box<dyn CongestionControl> {
                match self {
                    $(Self::$variant(config) => config.build(start),)*
                    Self::Custom(custom) => (custom.build)(start),
                }
            }
        }
    };
}

/// An entry without a name, of an algorithm that needs nothing of receivers and routers, remembers nothing, and runs wherever our engine does;
/// the others override its fields.
pub const SENDER_ONLY: Entry = Entry {
    name: "",
    title: "",
    paper: "",
    year: 0,
    family: Family::Loss,
    advice: "",
    needs_receiver: false,
    receiver: None,
    needs_routers: false,
    remembers: false,
    works_with_plain_receiver: true,
    in_simulation: true,
    on_the_wire: true,
    in_kernel: false,
};

//! Registry of algorithms. The list is in `lib.rs`: a new algorithm needs a file in the folder
//! of its family, a paper note and one line there.

use alloc::boxed::Box;
use alloc::sync::Arc;

use serde::Serialize;

use crate::{CongestionControl, Reflector, Start};

/// Function that builds the sender of one connection.
type Build = dyn Fn(&Start) -> Box<dyn CongestionControl> + Send + Sync;

/// An algorithm defined outside this crate: a name and a function that builds one sender. Clones share the function's data.
#[derive(Clone)]
pub struct Custom {
    /// Name in tables and results.
    pub name: &'static str,
    /// Function that builds the sender of one connection.
    pub(crate) build: Arc<Build>,
}

impl Custom {
    /// Makes an algorithm with this name. `build` is a function, or a closure with parameters, tables or other data shared by its
    /// senders.
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

/// The receiver half that a sender requests in the handshake.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverHalf {
    /// [`Feedback::receiver`](crate::Feedback::receiver) of the senders that it serves.
    pub number: u8,
    /// Function that builds the receiver half of one connection.
    pub build: fn() -> Box<dyn Reflector>,
}

/// Signal that an algorithm uses to set its window or rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Family {
    /// The window is set by losses only.
    #[serde(rename = "window by loss")]
    Loss,
    /// Bandwidth measured from ACKs.
    #[serde(rename = "bandwidth estimation")]
    Bandwidth,
    /// The window is set by queueing delay.
    #[serde(rename = "delay")]
    Delay,
    /// A model of the path.
    #[serde(rename = "model of the path")]
    Model,
    /// Probes of low priority.
    #[serde(rename = "low-priority probes")]
    Probes,
    /// Measurements by the receiver.
    #[serde(rename = "measured by the receiver")]
    Receiver,
    /// Reports of routers or links.
    #[serde(rename = "told by the network")]
    Network,
    /// State learnt by other connections.
    #[serde(rename = "memory")]
    Memory,
}

/// Entry of an algorithm in `bentpipe list cc`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    /// Name in scenarios and on the command line.
    pub name: &'static str,
    /// Title in one line.
    pub title: &'static str,
    /// Citation of the publication.
    pub paper: &'static str,
    /// Year of the publication.
    pub year: u16,
    /// Signal that it uses.
    pub family: Family,
    /// Advice on when to use the algorithm and when not; completes "`name`: ...".
    pub advice: &'static str,
    /// True if the algorithm needs support by receivers.
    pub needs_receiver: bool,
    /// The receiver half, if it does more than reply to probes.
    #[serde(skip)]
    pub receiver: Option<ReceiverHalf>,
    /// True if the algorithm needs support by routers.
    pub needs_routers: bool,
    /// True if it learns from other connections to the same destination: drivers pass it a [`PathMemory`](crate::PathMemory).
    pub remembers: bool,
    /// True if it is still useful with an unmodified receiver.
    pub works_with_plain_receiver: bool,
    /// True if it runs in the simulator.
    pub in_simulation: bool,
    /// True if it runs over real sockets.
    pub on_the_wire: bool,
    /// True if it runs in the Linux kernel.
    pub in_kernel: bool,
}

macro_rules! registry {
    ($($variant:ident, $family:ident::$module:ident;)*) => {
        $(pub use algorithms::$family::$module;)*

        /// Every algorithm with its parameters.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Algorithm {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $variant($module::Config),)*
            /// A user's own algorithm.
            Custom(Custom),
        }

        /// All registered algorithms in the order of `bentpipe list cc`.
        pub static REGISTRY: &[Entry] = &[$($module::ENTRY),*];

        #[cfg(test)]
        #[test]
        fn each_algorithm_is_in_the_folder_of_its_family() {
            $(assert_eq!(format!("{:?}", $module::ENTRY.family).to_lowercase(), stringify!($family), "{}", $module::ENTRY.name);)*
        }

        impl Algorithm {
            /// Returns the algorithm `name` with the parameters from `parameters` (a table; absent keys keep their defaults).
            ///
            /// # Errors
            /// `Ok(None)` if there is no such algorithm; the deserialiser's error for an unknown or unfit parameter.
            pub fn from_parameters<'de, D: serde::Deserializer<'de>>(name: &str, parameters: D) -> Result<Option<Self>, D::Error> {
                $(if name == $module::ENTRY.name {
                    return <$module::Config as serde::Deserialize>::deserialize(parameters).map(|config| Some(Self::$variant(config)));
                })*
                Ok(None)
            }

            /// Returns the algorithm `name` with default parameters.
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name == $module::ENTRY.name {
                    return Some(Self::$variant($module::Config::default()));
                })*
                None
            }

            /// Returns the algorithm's name in the registry.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $module::ENTRY.name,)*
                    Self::Custom(custom) => custom.name,
                }
            }

            /// True if it learns from other connections to the same destination; a user's own algorithm may.
            pub fn remembers(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $module::ENTRY.remembers,)*
                    Self::Custom(_) => true,
                }
            }

            /// Writes the parameters for display, as a table of scalars.
            ///
            /// # Errors
            /// Only those of the serialiser.
            pub fn parameters<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(config) => serde::Serialize::serialize(config, serializer),)*
                    Self::Custom(_) => serializer.serialize_unit(),
                }
            }

            /// Returns the engine services that its senders need.
            pub fn requirements(&self) -> Requirements {
                let start = Start { mss: 1000, initial_window: 10.0, initial_ssthresh: f64::INFINITY, paced: false, seed: 0, memory: None };
                self.build(&start).requirements()
            }

            /// Builds the sender of one connection.
            pub fn build(&self, start: &Start) -> alloc::boxed::Box<dyn CongestionControl> {
                match self {
                    $(Self::$variant(config) => config.build(start),)*
                    Self::Custom(custom) => (custom.build)(start),
                }
            }
        }
    };
}

/// A nameless entry that other entries override. The algorithm needs no receiver or router support, keeps no memory, and runs in
/// every environment of this engine.
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

//! The list of all algorithms. Adding one means a file, its paper note and one entry here.

use alloc::boxed::Box;
use alloc::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{CongestionControl, Reflector, Start};

/// An algorithm from outside: a name and a function that builds one sender. Clones share what the function knows.
#[derive(Clone)]
pub struct Custom {
    /// Name in tables and results.
    pub name: &'static str,
    /// Builds the sender of one connection.
    build: Arc<dyn Fn(&Start) -> Box<dyn CongestionControl> + Send + Sync>,
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
    /// [`Wants::feedback`](crate::Wants::feedback) of the senders that it serves.
    pub number: u8,
    /// Builds the receiver half of one connection.
    pub build: fn() -> Box<dyn Reflector>,
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
    ($($variant:ident, $module:ident, $entry:expr;)*) => {
        /// Every algorithm with its parameters.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Algorithm {
            $(#[doc = concat!("See [`crate::", stringify!($module), "`].")] $variant(crate::$module::Config),)*
            /// A user's own.
            Custom(Custom),
        }

        /// All registered algorithms in the order of `bentpipe list cc`.
        pub static REGISTRY: &[Entry] = &[$($entry),*];

        impl Algorithm {
            /// The algorithm `name` with the parameters that `parameters` deserialises to (a table; what is absent keeps its default).
            ///
            /// # Errors
            /// `Ok(None)` if there is no such algorithm; the deserialiser's error for an unknown or unfit parameter.
            pub fn from_parameters<'de, D: Deserializer<'de>>(name: &str, parameters: D) -> Result<Option<Self>, D::Error> {
                $(if name == $entry.name {
                    return crate::$module::Config::deserialize(parameters).map(|config| Some(Self::$variant(config)));
                })*
                Ok(None)
            }

            /// The algorithm `name` with default parameters.
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name == $entry.name {
                    return Some(Self::$variant(crate::$module::Config::default()));
                })*
                None
            }

            /// Registry name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $entry.name,)*
                    Self::Custom(custom) => custom.name,
                }
            }

            /// Learns from other connections to the same destination; a user's own may.
            pub fn remembers(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $entry.remembers,)*
                    Self::Custom(_) => true,
                }
            }

            /// The parameters, for display: a table of scalars.
            ///
            /// # Errors
            /// Only those of the serialiser.
            pub fn parameters<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(config) => config.serialize(serializer),)*
                    Self::Custom(_) => serializer.serialize_unit(),
                }
            }

            /// A sender of one connection.
            pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
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
    needs_receiver: false,
    receiver: None,
    needs_routers: false,
    remembers: false,
    works_with_plain_receiver: true,
    in_simulation: true,
    on_the_wire: true,
    in_kernel: false,
};

registry! {
    Reno, reno, Entry {
        name: "reno",
        title: "Reno's window law: slow start, congestion avoidance, half on loss",
        paper: "RFC 5681 (Allman, Paxson, Blanton)",
        year: 2009,
        ..SENDER_ONLY
    };
    Cubic, cubic, Entry {
        name: "cubic",
        title: "the window is a cubic function of the time since the last loss",
        paper: "RFC 9438 (Xu, Ha, Rhee, Goel, Eggert)",
        year: 2023,
        ..SENDER_ONLY
    };
    Bbr, bbr, Entry {
        name: "bbr",
        title: "models the path by its delivery rate and round-trip time, and paces by the model (version 1)",
        paper: "draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., ACM Queue 14(5)",
        year: 2017,
        ..SENDER_ONLY
    };
    Bbr3, bbr3, Entry {
        name: "bbr3",
        title: "BBR's model of the path with bounds that losses teach it (version 3)",
        paper: "draft-ietf-ccwg-bbr-05 (Cardwell, Swett, Beshay)",
        year: 2026,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Copa, copa, Entry {
        name: "copa",
        title: "steers the window to a rate that is the inverse of the queueing delay, and competes where it must",
        paper: "Arun, Balakrishnan, USENIX NSDI 2018",
        year: 2018,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Zenith, zenith, Entry {
        name: "zenith",
        title: "aims at the same small queueing delay for every flow of a rate, and takes only losses with a queue for congestion",
        paper: "our own (papers/zenith.md)",
        year: 2026,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Real, real, Entry {
        name: "real",
        title: "the receiver measures the rate of each wave; a falling rate backs off early, a steady one calls losses errors",
        paper: "Zhang, Tsaoussidis, Computer Networks 40(4)",
        year: 2002,
        needs_receiver: true,
        receiver: Some(crate::real::RECEIVER),
        ..SENDER_ONLY
    };
    Tfrc, tfrc, Entry {
        name: "tfrc",
        title: "the rate that TCP would get at the loss-event rate that the receiver measures",
        paper: "RFC 5348 (Floyd, Handley, Padhye, Widmer)",
        year: 2008,
        needs_receiver: true,
        receiver: Some(crate::tfrc::RECEIVER),
        ..SENDER_ONLY
    };
    Probing, probing, Entry {
        name: "probing",
        title: "after a loss two header-only probes ask the path: a fade costs no window, congestion half of it",
        paper: "Tsaoussidis, Badr, IEEE ICNP 2000",
        year: 2000,
        needs_receiver: true,
        ..SENDER_ONLY
    };
    Hybla, hybla, Entry {
        name: "hybla",
        title: "grows as a connection of 25 ms would, whatever the round-trip time, and spaces its segments",
        paper: "Caini, Firrincieli, International Journal of Satellite Communications and Networking 22(5)",
        year: 2004,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Gaimd, gaimd, Entry {
        name: "gaimd",
        title: "Reno's law with smaller steps: a third of a segment up per round trip, an eighth down at a loss",
        paper: "Yang, Lam, IEEE ICNP",
        year: 2000,
        ..SENDER_ONLY
    };
    HighSpeed, highspeed, Entry {
        name: "highspeed",
        title: "the larger the window, the faster it grows and the less a loss costs",
        paper: "RFC 3649 (Floyd)",
        year: 2003,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Scalable, scalable, Entry {
        name: "scalable",
        title: "growth and reduction in proportion to the window: recovery in 13 round trips at every speed",
        paper: "Kelly, ACM SIGCOMM Computer Communication Review 33(2)",
        year: 2003,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Veno, veno, Entry {
        name: "veno",
        title: "Reno that asks the queue whether a loss was congestion or noise",
        paper: "Fu, Liew, IEEE Journal on Selected Areas in Communications 21(2)",
        year: 2003,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Westwood, westwood, Entry {
        name: "westwood",
        title: "after a loss, the window that the stream of ACKs was measured to fill",
        paper: "Casetti, Gerla, Mascolo, Sanadidi, Wang, ACM MobiCom",
        year: 2001,
        ..SENDER_ONLY
    };
    WestwoodPlus, westwood_plus, Entry {
        name: "westwood-plus",
        title: "Westwood with one bandwidth sample per round trip, which clustered ACKs do not inflate",
        paper: "Grieco, Mascolo, ACM SIGCOMM Computer Communication Review 34(2)",
        year: 2004,
        in_kernel: true,
        ..SENDER_ONLY
    };
    WestwoodBr, westwood_br, Entry {
        name: "westwood-br",
        title: "tells noise from congestion; noise keeps the window, the timer, and repeats everything at once",
        paper: "Yang, Wang, Sanadidi, Gerla, IEEE ICC",
        year: 2003,
        ..SENDER_ONLY
    };
    TcpJ, tcp_j, Entry {
        name: "tcp-j",
        title: "after a loss, the window that the available bandwidth fills, estimated ACK by ACK",
        paper: "Sato, Kunishi, Teraoka, Journal of IPSJ 43(12)",
        year: 2002,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Jersey, jersey, Entry {
        name: "jersey",
        title: "routers warn of congestion, so a loss without a warning is noise",
        paper: "Xu, Tian, Ansari, IEEE Journal on Selected Areas in Communications 22(4)",
        year: 2004,
        needs_routers: true,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Star, star, Entry {
        name: "star",
        title: "measured bandwidth lifts the window and sets it after a loss; a probe asks the peer before a timeout is believed",
        paper: "Obata, Ishida, Takeuchi, Hanasaki, IEICE Transactions on Communications E89-B(6)",
        year: 2006,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Astart, astart, Entry {
        name: "astart",
        title: "while starting, the threshold rises to the window that the sender is measured to be eligible to",
        paper: "Wang, Pau, Yamada, Sanadidi, Gerla, IEEE INFOCOM",
        year: 2004,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Vegas, vegas, Entry {
        name: "vegas",
        title: "keeps between one and three segments in the queue, by the difference of expected and actual rate",
        paper: "Brakmo, Peterson, IEEE Journal on Selected Areas in Communications 13(8)",
        year: 1995,
        in_kernel: true,
        ..SENDER_ONLY
    };
    NewVegas, new_vegas, Entry {
        name: "new-vegas",
        title: "Vegas for long round trips: spaced pairs of segments and rapid window convergence",
        paper: "Sing, Soh, IEEE NCA 2005 and ISCC 2006",
        year: 2005,
        in_kernel: true,
        ..SENDER_ONLY
    };
    DVegas, dvegas, Entry {
        name: "dvegas",
        title: "the queue in front of the satellite link tells the sender beside it what to do; Vegas without",
        paper: "Wu, Peng, Leung, IEEE PIMRC 2004; IJSCN 24",
        year: 2004,
        needs_receiver: true,
        receiver: Some(crate::dvegas::RECEIVER),
        needs_routers: true,
        ..SENDER_ONLY
    };
    Peach, peach, Entry {
        name: "peach",
        title: "Sudden Start and Rapid Recovery: low-priority dummy segments ask for spare capacity",
        paper: "Akyildiz, Morabito, Palazzo, IEEE/ACM Transactions on Networking 9(3)",
        year: 2001,
        needs_receiver: true,
        needs_routers: true,
        in_kernel: true,
        ..SENDER_ONLY
    };
    PeachPlus, peach_plus, Entry {
        name: "peach-plus",
        title: "Jump Start and Quick Recovery: low-priority NIL segments ask for spare capacity, and repair",
        paper: "Akyildiz, Zhang, Fang, IEEE Communications Letters 6(7)",
        year: 2002,
        needs_receiver: true,
        needs_routers: true,
        ..SENDER_ONLY
    };
    Swift, swift, Entry {
        name: "swift",
        title: "Speedy Start and Speedy Recovery: low-priority copies of outstanding segments ask, and repair",
        paper: "Leung, Yeung, IEEE ISCC",
        year: 2004,
        needs_receiver: true,
        needs_routers: true,
        in_kernel: true,
        ..SENDER_ONLY
    };
    Xcp, xcp, Entry {
        name: "xcp",
        title: "routers tell each sender how much faster or slower to send",
        paper: "Katabi, Handley, Rohrs, ACM SIGCOMM",
        year: 2002,
        needs_receiver: true,
        receiver: Some(crate::xcp::RECEIVER),
        needs_routers: true,
        ..SENDER_ONLY
    };
    PXcp, p_xcp, Entry {
        name: "p-xcp",
        title: "XCP that keeps its rate over losses, and says when it could not use more",
        paper: "Zhou, Yeung, Li, IEEE GLOBECOM",
        year: 2004,
        needs_receiver: true,
        receiver: Some(crate::xcp::RECEIVER),
        needs_routers: true,
        ..SENDER_ONLY
    };
    Rcs, rcs, Entry {
        name: "rcs",
        title: "a rate that a loss halves and low-priority dummy packets restore, for real-time sources",
        paper: "Tang, Morabito, Akyildiz, Johnson, IEEE INFOCOM",
        year: 2001,
        needs_receiver: true,
        needs_routers: true,
        ..SENDER_ONLY
    };
    Pbs, pbs, Entry {
        name: "pbs",
        title: "Accelerative Start, Expeditious Recovery, and a link that says which losses are errors",
        paper: "Xu, Wu, IEEE ICCCAS",
        year: 2005,
        needs_receiver: true,
        receiver: Some(crate::pbs::RECEIVER),
        needs_routers: true,
        ..SENDER_ONLY
    };
    Sharing, sharing, Entry {
        name: "sharing",
        title: "Reno that starts from what other connections to the same destination know",
        paper: "RFC 9040 (Touch, Welzl, Islam)",
        year: 2021,
        remembers: true,
        ..SENDER_ONLY
    };
    FastStart, fast_start, Entry {
        name: "fast-start",
        title: "begins with the window of the last transfer, in low priority",
        paper: "Padmanabhan, Katz, IEEE GLOBECOM Internet Mini-Conference",
        year: 1998,
        needs_routers: true,
        remembers: true,
        ..SENDER_ONLY
    };
    BaTcp, ba_tcp, Entry {
        name: "ba-tcp",
        title: "routers report delay and free bandwidth, the receiver makes a window of them",
        paper: "Gerla, Weng, Lo Cigno, IEEE ICCCN",
        year: 1999,
        needs_receiver: true,
        receiver: Some(crate::ba_tcp::RECEIVER),
        needs_routers: true,
        ..SENDER_ONLY
    };
    ScpsTp, scps_tp, Entry {
        name: "scps-tp",
        title: "Vegas, Van Jacobson or a rate, where only congestion slows down: the link says what is corruption or outage",
        paper: "CCSDS 714.0-B-2",
        year: 2006,
        needs_receiver: true,
        receiver: Some(crate::scps_tp::RECEIVER),
        in_kernel: true,
        ..SENDER_ONLY
    };
}

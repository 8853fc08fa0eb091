//! Fuzzing: made-up packets for the stack and the packet readers, made-up text for the readers of scenarios, studies, settings and packet
//! scripts.
//!
//! A [`Target`] takes any bytes and must neither panic nor use more than it may. Three things feed it: the corpus and a few thousand
//! inputs in `cargo test`; the program of this crate, which makes inputs up by the million from a seed; and libFuzzer, which looks for
//! inputs that reach new code (`scripts/fuzz`).

mod generate;
mod readers;
mod stack;

pub use generate::Generator;

/// What is fed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The readers of IP, TCP, options and ICMP.
    Wire,
    /// A stack of many connections: packets, calls of applications and time.
    Stack,
    /// The reader of scenarios.
    Scenario,
    /// The reader of studies.
    Study,
    /// The reader of `KEY=VALUE`: what `--set` and the emulator's HTTP take.
    Setting,
    /// The reader of packet scripts.
    Script,
}

/// What an input did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Packets that were handed to a stack.
    pub packets: u64,
}

impl Target {
    /// All of them, with their names.
    pub const ALL: &[(&str, Self)] = &[
        ("wire", Self::Wire),
        ("stack", Self::Stack),
        ("scenario", Self::Scenario),
        ("study", Self::Study),
        ("setting", Self::Setting),
        ("script", Self::Script),
    ];

    /// The target of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(found, _)| *found == name).map(|(_, target)| *target)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, target)| *target == self).map_or("", |(name, _)| name)
    }

    /// Feeds it. Whatever must not happen panics.
    pub fn run(self, bytes: &[u8]) -> Done {
        match self {
            Self::Wire => readers::wire(bytes),
            Self::Stack => return stack::run(bytes),
            Self::Scenario => readers::scenario(bytes),
            Self::Study => readers::study(bytes),
            Self::Setting => readers::setting(bytes),
            Self::Script => readers::script(bytes),
        }
        Done::default()
    }
}

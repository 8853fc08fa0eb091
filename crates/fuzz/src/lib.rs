//! Fuzzing: random packets for the stack and the packet parsers, and random text for the parsers of scenarios, studies, settings
//! and packet scripts.
//!
//! A [`Target`] accepts any bytes. It must neither panic nor exceed its limits of memory. There are three sources of inputs.
//! `cargo test` uses the corpus and a few thousand random inputs. The program of this crate makes millions of random inputs from
//! a seed. libFuzzer searches for inputs that reach new code (`scripts/fuzz`).

mod generate;
mod readers;
mod stack;

pub use generate::Generator;

/// The code under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The parsers of IP, TCP, options and ICMP.
    Wire,
    /// A stack with many connections: packets, calls of applications, and passing time.
    Stack,
    /// The parser of scenarios.
    Scenario,
    /// The parser of studies.
    Study,
    /// The parser of `KEY=VALUE` settings, used by `--set` and the emulator's HTTP interface.
    Setting,
    /// The parser of packet scripts.
    Script,
}

/// Statistics of an executed input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Number of packets that the stack handled.
    pub packets: u64,
}

impl Target {
    /// All targets with their names.
    pub const ALL: &[(&str, Self)] = &[
        ("wire", Self::Wire),
        ("stack", Self::Stack),
        ("scenario", Self::Scenario),
        ("study", Self::Study),
        ("setting", Self::Setting),
        ("script", Self::Script),
    ];

    /// Returns the target of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(found, _)| *found == name).map(|(_, target)| *target)
    }

    /// Returns the target's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, target)| *target == self).map_or("", |(name, _)| name)
    }

    /// Executes an input. Forbidden behaviour panics.
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

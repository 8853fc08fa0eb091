//! The plan of the crates: their dependencies, and the words that no file may contain.
//!
//! A new crate changes only this list.

/// A crate of this repository.
pub struct Room {
    /// Folder, relative to the root.
    pub folder: &'static str,
    /// Name in its `Cargo.toml`.
    pub name: &'static str,
    /// True for a crate without clock, socket, file, thread and environment: the same code runs in the simulator and
    /// on real wires.
    pub pure: bool,
    /// Crates of this repository that it may depend on.
    pub leans_on: &'static [&'static str],
    /// Further crates that its tests may use.
    pub tests_lean_on: &'static [&'static str],
}

/// Folders of the simulator, bottom up: files of each import from those before it only, so that a part can be tested without the simulation.
pub const SIMULATOR: (&str, &[&str]) = (
    "crates/sim",
    &["scheduler", "packet", "network", "host", "app", "parallel", "observe", "world", "simulation"],
);

/// All crates, bottom up: each depends only on crates above it in this list.
pub const ROOMS: &[Room] = &[
    Room { folder: "crates/base", name: "bentpipe-base", pure: true, leans_on: &[], tests_lean_on: &[] },
    Room {
        folder: "crates/wire",
        name: "bentpipe-wire",
        pure: true,
        leans_on: &["bentpipe-base"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/trace",
        name: "bentpipe-trace",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-wire"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/cc",
        name: "bentpipe-cc",
        pure: true,
        leans_on: &["bentpipe-base"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/ffi",
        name: "bentpipe-ffi",
        pure: false,
        leans_on: &["bentpipe-base", "bentpipe-cc"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/net",
        name: "bentpipe-net",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-trace"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/mac",
        name: "bentpipe-mac",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-trace", "bentpipe-net"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/middlebox",
        name: "bentpipe-middlebox",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-cc"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/weather",
        name: "bentpipe-weather",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-net"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/tcp",
        name: "bentpipe-tcp",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-trace", "bentpipe-cc"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/traffic",
        name: "bentpipe-traffic",
        pure: true,
        leans_on: &["bentpipe-base"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/check",
        name: "bentpipe-check",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-trace", "bentpipe-net"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/outcome",
        name: "bentpipe-outcome",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-trace", "bentpipe-traffic"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/orbit",
        name: "bentpipe-orbit",
        pure: true,
        leans_on: &["bentpipe-base"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/host",
        name: "bentpipe-host",
        pure: false,
        leans_on: &["bentpipe-base", "bentpipe-wire", "bentpipe-trace", "bentpipe-cc", "bentpipe-tcp"],
        tests_lean_on: &["bentpipe-net"],
    },
    Room { folder: "crates/system", name: "bentpipe-system", pure: false, leans_on: &[], tests_lean_on: &[] },
    Room { folder: "crates/laws", name: "bentpipe-laws", pure: false, leans_on: &[], tests_lean_on: &[] },
    Room {
        folder: "crates/kernel",
        name: "bentpipe-kernel",
        pure: false,
        leans_on: &[],
        tests_lean_on: &["bentpipe-base", "bentpipe-cc", "bentpipe-laws"],
    },
    Room {
        folder: "crates/transports",
        name: "bentpipe-transports",
        pure: true,
        leans_on: &["bentpipe-base", "bentpipe-cc", "bentpipe-tcp"],
        tests_lean_on: &[],
    },
    // Not pure: the time of its stack has no origin without a clock.
    Room {
        folder: "crates/quic",
        name: "bentpipe-quic",
        pure: false,
        leans_on: &["bentpipe-base", "bentpipe-cc", "bentpipe-transports"],
        // With its feature `quinn`, which nothing else enables.
        tests_lean_on: &["bentpipe-quic"],
    },
    Room {
        folder: "crates/scenario",
        name: "bentpipe-scenario",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-cc",
            "bentpipe-mac",
            "bentpipe-weather",
            "bentpipe-middlebox",
            "bentpipe-net",
            "bentpipe-orbit",
            "bentpipe-tcp",
            "bentpipe-traffic",
            "bentpipe-transports",
        ],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/script",
        name: "bentpipe-script",
        pure: false,
        leans_on: &["bentpipe-base", "bentpipe-wire", "bentpipe-tcp", "bentpipe-host", "bentpipe-scenario"],
        tests_lean_on: &[],
    },
    Room { folder: "crates/team", name: "bentpipe-team", pure: false, leans_on: &[], tests_lean_on: &[] },
    Room {
        folder: "crates/sim",
        name: "bentpipe-sim",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-trace",
            "bentpipe-cc",
            "bentpipe-net",
            "bentpipe-mac",
            "bentpipe-middlebox",
            "bentpipe-tcp",
            "bentpipe-traffic",
            "bentpipe-outcome",
            "bentpipe-check",
            "bentpipe-transports",
            "bentpipe-quic",
            "bentpipe-scenario",
            "bentpipe-team",
        ],
        tests_lean_on: &["bentpipe-orbit", "bentpipe-weather"],
    },
    Room {
        folder: "crates/lab",
        name: "bentpipe-lab",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-trace",
            "bentpipe-net",
            "bentpipe-outcome",
            "bentpipe-orbit",
            "bentpipe-scenario",
            "bentpipe-sim",
        ],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/emu",
        name: "bentpipe-emu",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-wire",
            "bentpipe-trace",
            "bentpipe-net",
            "bentpipe-mac",
            "bentpipe-system",
            "bentpipe-scenario",
        ],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/pep",
        name: "bentpipe-pep",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-wire",
            "bentpipe-tcp",
            "bentpipe-host",
            "bentpipe-system",
            "bentpipe-scenario",
        ],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/table",
        name: "bentpipe-table",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-trace",
            "bentpipe-outcome",
            "bentpipe-scenario",
            "bentpipe-lab",
        ],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/study",
        name: "bentpipe-study",
        pure: false,
        leans_on: &["bentpipe-outcome", "bentpipe-scenario", "bentpipe-lab", "bentpipe-table"],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/web",
        name: "bentpipe-web",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-cc",
            "bentpipe-lab",
            "bentpipe-net",
            "bentpipe-orbit",
            "bentpipe-outcome",
            "bentpipe-scenario",
            "bentpipe-sim",
            "bentpipe-trace",
        ],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/fuzz",
        name: "bentpipe-fuzz",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-wire",
            "bentpipe-tcp",
            "bentpipe-host",
            "bentpipe-scenario",
            "bentpipe-script",
            "bentpipe-study",
        ],
        tests_lean_on: &[],
    },
    Room {
        folder: "crates/cli",
        name: "bentpipe",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-trace",
            "bentpipe-cc",
            "bentpipe-net",
            "bentpipe-tcp",
            "bentpipe-host",
            "bentpipe-kernel",
            "bentpipe-quic",
            "bentpipe-scenario",
            "bentpipe-lab",
            "bentpipe-table",
            "bentpipe-emu",
            "bentpipe-pep",
            "bentpipe-study",
        ],
        // The tests of the proxy forge packets that no socket sends, such as a late copy of a SYN.
        tests_lean_on: &["bentpipe-wire"],
    },
    Room {
        folder: "examples/own-algorithm",
        name: "own-algorithm",
        pure: false,
        leans_on: &["bentpipe"],
        tests_lean_on: &[],
    },
    Room {
        folder: "python",
        name: "bentpipe-python",
        pure: false,
        leans_on: &[
            "bentpipe-base",
            "bentpipe-cc",
            "bentpipe-outcome",
            "bentpipe-scenario",
            "bentpipe-lab",
            "bentpipe-table",
            "bentpipe-study",
            "bentpipe",
        ],
        tests_lean_on: &[],
    },
    Room { folder: "xtask", name: "xtask", pure: false, leans_on: &[], tests_lean_on: &[] },
];

/// External crates for pure crates: none of them uses a clock, a socket or a file.
pub const PURE_OUTSIDERS: &[&str] = &[
    "bitflags",
    "csv",
    "derive_more",
    "libm",
    "rand_core",
    "rand_xoshiro",
    "roxmltree",
    "serde",
    "serde_json",
    "sgp4",
    "spin",
    "thiserror",
];

/// Modules of `std` that a pure crate must not use.
pub const IMPURE_MODULES: &[&str] = &["env", "fs", "net", "os", "process", "thread", "time"];

/// Attribute of a pure crate that denies the disallowed methods and types of `clippy.toml`.
pub const PURE_ATTRIBUTE: &str =
    "#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]";

/// Arguments of a function, its receiver and the members of tuples included; as `too-many-arguments-threshold` in clippy.toml.
pub const FUNCTION_ARGUMENTS: usize = 5;
/// Maximum lines between the braces of a function.
pub const FUNCTION_LINES: usize = 70;

/// Lines of a file from which the check prints a hint. The hint is not a failure.
pub const FILE_LINES: usize = 700;

/// Documents that the check of words skips, by the beginning of their path. This list may only shrink.
pub const UNREVISED_DOCUMENTS: &[&str] = &[];

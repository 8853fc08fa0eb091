//! Algorithms for the kernel.

use serde::Serialize;

use crate::Error;

/// An algorithm as a congestion control of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Control {
    /// Name in Bentpipe.
    pub name: &'static str,
    /// Name in the kernel: `bp_` and the name, with underscores; at most 15 bytes.
    pub kernel_name: &'static str,
    /// Differences from the simulator that the kernel's interface requires.
    pub differs: &'static str,
}

impl Control {
    /// True if it probes the path with copies, which a program at the interfaces sends.
    pub fn sends_probes(&self) -> bool {
        matches!(self.name, "peach" | "swift")
    }
}

/// All kernel algorithms.
pub const CONTROLS: &[Control] = &[
    Control {
        name: "hybla",
        kernel_name: "bp_hybla",
        differs: "paced, with a threshold measured at the start, as in the paper; the kernel's own hybla has neither",
    },
    Control { name: "westwood-plus", kernel_name: "bp_westwoodplus", differs: "-" },
    Control {
        name: "vegas",
        kernel_name: "bp_vegas",
        differs: "decisions of Linux's module; no fine-grained timeout, because a control cannot request a retransmission",
    },
    Control { name: "veno", kernel_name: "bp_veno", differs: "-" },
    Control {
        name: "highspeed",
        kernel_name: "bp_highspeed",
        differs: "the table of RFC 3649 appendix B instead of its formula",
    },
    Control { name: "scalable", kernel_name: "bp_scalable", differs: "-" },
    Control {
        name: "satcp",
        kernel_name: "bp_satcp",
        differs: "exact reports at a fixed second of the UTC clock, set when loading; HyStart++ without a limit of the growth per ACK",
    },
    Control {
        name: "star",
        kernel_name: "bp_star",
        differs: "no probe at a timeout; the kernel's F-RTO undoes spurious timeouts",
    },
    Control { name: "tcp-j", kernel_name: "bp_tcp_j", differs: "-" },
    Control {
        name: "jersey",
        kernel_name: "bp_jersey",
        differs: "requests ECN in the handshake; after a mark the window shrinks over a round trip",
    },
    Control { name: "astart", kernel_name: "bp_astart", differs: "-" },
    Control {
        name: "new-vegas",
        kernel_name: "bp_new_vegas",
        differs: "paced segment by segment, not in pairs; no fine-grained timeout; round trips below 2 ms count as an empty queue",
    },
    Control {
        name: "scps-tp",
        kernel_name: "bp_scps_tp",
        differs: "only the fixed rate, set when loading; no SNACK, no notices of outages",
    },
    Control {
        name: "copa",
        kernel_name: "bp_copa",
        differs: "round trips below 2 ms count as an empty queue",
    },
    Control {
        name: "bbr3",
        kernel_name: "bp_bbr3",
        differs: "in-flight data and losses at the departure of a segment are known with a resolution of 1/16 window",
    },
    Control {
        name: "peach",
        kernel_name: "bp_peach",
        differs: "probes leave with data, up to two per segment, from the initial window on; replies are counted without their probes",
    },
    Control {
        name: "swift",
        kernel_name: "bp_swift",
        differs: "as peach; a probe copies the departing segment, not any outstanding one",
    },
    Control {
        name: "zenith",
        kernel_name: "bp_zenith",
        differs: "the window doubles from the start, because the kernel does not pace the first flight; no proportional rate reduction",
    },
];

/// Returns the control with this name of Bentpipe or the kernel.
///
/// # Errors
/// [`Error::Request`] with the known names.
pub fn find(name: &str) -> Result<&'static Control, Error> {
    let control = CONTROLS.iter().find(|control| control.name == name || control.kernel_name == name);
    control.ok_or_else(|| {
        let names: Vec<&str> = CONTROLS.iter().map(|control| control.name).collect();
        Error::Request(format!("no algorithm {name:?} for the kernel; there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_every_name() {
        for control in CONTROLS {
            assert!(control.kernel_name.len() <= 15, "{}", control.kernel_name);
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            assert!(control.kernel_name.bytes().all(fits), "{}", control.kernel_name);
            assert_eq!(find(control.name).expect("listed").kernel_name, control.kernel_name);
            assert_eq!(find(control.kernel_name).expect("listed").name, control.name);
        }
        assert!(find("cubic").is_err());
    }

    #[test]
    fn every_control_has_its_program_and_its_law() {
        let bpf = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
        for control in CONTROLS {
            let program =
                std::fs::read_to_string(bpf.join(format!("{}.bpf.c", control.name))).expect("a program");
            assert!(
                program.contains(&format!("#define BP_NAME \"{}\"", control.kernel_name)),
                "{}",
                control.name
            );
            assert!(program.contains(&format!("law/{}.h", control.name)));
            assert_eq!(program.contains("copies.h"), control.sends_probes(), "{}", control.name);
        }
    }
}

//! IPv4 headers of packets without TCP.

use bentpipe_wire::Sum;

use crate::frame::Endpoint;

/// Protocol of a packet without TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// A transport without a number of its own, with its name.
    Other(&'static str),
}

/// Protocol number for experiments (RFC 3692).
const EXPERIMENT: u8 = 253;
const IP_HEADER: usize = 20;

impl Protocol {
    const fn number(self) -> u8 {
        match self {
            Self::Udp => 17,
            Self::Sctp => 132,
            Self::Other(_) => EXPERIMENT,
        }
    }

    /// Returns a comment on the packets; empty if analysers know the protocol.
    pub(crate) const fn comment(self) -> &'static str {
        match self {
            Self::Udp | Self::Sctp => "",
            Self::Other(name) => name,
        }
    }

    /// Appends the headers of a packet of `bytes` bytes to `out`. The payload is not written.
    pub(crate) fn headers(self, [from, to]: [Endpoint; 2], (number, bytes): (u16, u32), out: &mut Vec<u8>) {
        let total = bytes.clamp(IP_HEADER as u32, 65_535) as u16;
        out.extend([0x45, 0]);
        out.extend(total.to_be_bytes());
        out.extend(number.to_be_bytes());
        // Not fragmented, 64 hops, and the checksum to come.
        out.extend([0x40, 0, 64, self.number(), 0, 0]);
        out.extend(from.address);
        out.extend(to.address);
        let checksum = Sum::default().bytes(&out[..IP_HEADER]).checksum();
        out[10..12].copy_from_slice(&checksum.to_be_bytes());
        let ports = [from.port.to_be_bytes(), to.port.to_be_bytes()].concat();
        match self {
            Self::Udp => {
                out.extend(ports);
                // The checksum of UDP over IPv4 may be left out.
                out.extend((total - IP_HEADER as u16).to_be_bytes());
                out.extend([0, 0]);
            }
            Self::Sctp => {
                out.extend(ports);
                out.extend([0; 8]);
            }
            Self::Other(_) => {}
        }
        out.truncate(usize::from(total));
    }
}

//! Marks of packets: the proxy uses six adjacent bits, and changes no others.

use bentpipe_scenario::deployment::{Deployment, Opener};

use crate::slot::Slot;

/// On which side of the proxy connections are opened.
pub(crate) const OPENERS: [Opener; 2] = [Opener::Clients, Opener::Satellite];

/// The bits of a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks(u32);

/// Meaning of a mark. The highest of the six bits is set in all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// For a socket of a proxy, although the address is not local.
    Local,
    /// A socket of a proxy sends it towards the end that opened the connection.
    Ours,
    /// Only for looking up a route: it exists while the proxy of this slot runs.
    Alive(Slot),
    /// For a listening socket: a SYN of a connection that this side opens.
    PutBack(Slot, Opener),
    /// For this thread of the engine, or sent by it.
    Engine(usize),
}

impl Kind {
    fn number(self) -> u32 {
        match self {
            Self::Local => 0x21,
            Self::Ours => 0x22,
            Self::Alive(slot) => 0x24 + u32::from(slot.0),
            Self::PutBack(slot, opener) => {
                0x28 + 2 * u32::from(slot.0) + u32::from(opener == Opener::Satellite)
            }
            Self::Engine(thread) => 0x30 + thread as u32,
        }
    }
}

impl Marks {
    pub fn of(deployment: &Deployment) -> Self {
        Self(deployment.workings.marks)
    }

    /// All six bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The mark with these bits, and with no other.
    pub fn value(self, kind: Kind) -> u32 {
        kind.number() << self.0.trailing_zeros()
    }

    /// For a rule of policy routing.
    pub fn selector(self, kind: Kind) -> String {
        format!("fwmark {:#x}/{:#x}", self.value(kind), self.0)
    }

    /// The condition for packets without any of the six bits.
    pub fn selector_of_none(self) -> String {
        format!("fwmark 0/{:#x}", self.0)
    }

    /// A condition for the packet filter.
    pub fn is(self, kind: Kind) -> String {
        format!("meta mark & {:#x} == {:#x}", self.0, self.value(kind))
    }

    /// A condition for the packet filter: none of the six bits is set.
    pub fn is_none(self) -> String {
        format!("meta mark & {:#x} == 0", self.0)
    }

    /// A condition for the packet filter: the packet is of a proxy.
    pub fn is_any(self) -> String {
        let highest = 0x20 << self.0.trailing_zeros();
        format!("meta mark & {highest:#x} == {highest:#x}")
    }

    /// A statement for the packet filter.
    pub fn set(self, kind: Kind) -> String {
        format!("meta mark set meta mark & {:#x} | {:#x}", !self.0, self.value(kind))
    }

    /// A statement for the packet filter that unsets the six bits.
    pub fn unset(self) -> String {
        format!("meta mark set meta mark & {:#x}", !self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_have_the_same_mark_and_all_are_within_the_six_bits() {
        let marks = Marks(0x3f00);
        let mut kinds = vec![Kind::Local, Kind::Ours];
        for slot in Slot::all() {
            let put_back = [Opener::Clients, Opener::Satellite].map(|opener| Kind::PutBack(slot, opener));
            kinds.extend(put_back.into_iter().chain([Kind::Alive(slot)]));
        }
        kinds.extend((0..16).map(Kind::Engine));
        let mut values: Vec<u32> = kinds.iter().map(|kind| marks.value(*kind)).collect();
        assert!(values.iter().all(|value| value & !0x3f00 == 0 && value & 0x2000 != 0));
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), kinds.len());
    }
}

/// Numbers that have arrived, as a bit mask below the highest. Older numbers count as copies.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Seen {
    highest: u64,
    bits: u128,
}

impl Seen {
    /// Records a number; returns true for its first arrival.
    pub fn is_new(&mut self, number: u64) -> bool {
        if number > self.highest {
            let ahead = (number - self.highest).min(128) as u32;
            self.bits = self.bits.checked_shl(ahead).unwrap_or(0);
            self.highest = number;
        }
        let bit = u32::try_from(self.highest - number).ok().and_then(|behind| 1_u128.checked_shl(behind));
        let is_new = bit.is_some_and(|bit| self.bits & bit == 0);
        self.bits |= bit.unwrap_or(0);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_once_in_any_order() {
        let mut seen = Seen::default();
        let new = [0, 5, 3, 5, 3, 4, 0, 200, 100, 5].map(|number| seen.is_new(number));
        assert_eq!(new, [true, true, true, false, false, true, false, true, true, false]);
    }
}

//! Conversion between wrapping 32-bit sequence numbers and 64-bit positions.

/// Returns the low 32 bits of `position` in a stream that begins at `initial`.
pub const fn wrapped(initial: u32, position: u64) -> u32 {
    initial.wrapping_add(position as u32)
}

/// Returns the position nearest to `near` with the wire number `number`, in a stream that begins at `initial`.
///
/// If that position is before the beginning, the next one with the same number is returned, far outside any window.
pub const fn unwrapped(initial: u32, number: u32, near: u64) -> u64 {
    let ahead = number.wrapping_sub(wrapped(initial, near)) as i32;
    match near.checked_add_signed(ahead as i64) {
        Some(position) => position,
        None => near.wrapping_add_signed(ahead as i64 + (1 << 32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_lies_before_the_beginning_is_far_ahead() {
        assert_eq!(unwrapped(1000, 999, 0), u64::from(u32::MAX));
        assert_eq!(unwrapped(1000, 999, 5), u64::from(u32::MAX));
        assert_eq!(unwrapped(1000, 1003, 5), 3);
    }

    proptest! {
        #[test]
        fn positions_within_half_the_space_come_back(
            initial: u32,
            near in 0..1_u64 << 62,
            ahead in -(1_i64 << 31)..1 << 31,
        ) {
            let position = near.saturating_add_signed(ahead);
            prop_assert_eq!(unwrapped(initial, wrapped(initial, position), near), position);
        }

        #[test]
        fn any_number_has_a_position_that_looks_like_it(initial: u32, number: u32, near in 0..1_u64 << 62) {
            prop_assert_eq!(wrapped(initial, unwrapped(initial, number, near)), number);
        }
    }
}

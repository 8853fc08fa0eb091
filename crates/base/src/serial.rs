//! Order of 32-bit numbers that wrap.

/// True if `a` comes before `b` modulo 2^32: by less than half of the range (RFC 1982 section 3.2, RFC 7323 section 5.2).
#[inline]
pub const fn precedes(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_across_the_end_of_their_range() {
        for (a, b) in [(1, 2), (u32::MAX, 0), (u32::MAX - 9, 9), (0, (1 << 31) - 1)] {
            assert!(precedes(a, b) && !precedes(b, a), "{a} {b}");
        }
        assert!(!precedes(7, 7));
    }
}

//! Members of groups, which differ only in their number.

use std::fmt;

/// Index of a node.
pub type NodeId = u32;
/// Index of one direction of a link: forward directions are even, and each reverse one follows.
pub type LinkId = u32;

/// Name of a group's member; the group's own name if it has one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name<'a> {
    group: &'a str,
    index: Option<u32>,
}

impl<'a> Name<'a> {
    /// Makes the name of member `index` of a group of `count`.
    pub fn of_member(group: &'a str, index: u32, count: u32) -> Self {
        Self { group, index: (count != 1).then_some(index) }
    }

    /// Makes the name of a single thing.
    pub fn alone(name: &'a str) -> Self {
        Self { group: name, index: None }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.group)?;
        self.index.map_or(Ok(()), |index| write!(f, ".{index}"))
    }
}

/// Members of a group. All things of a kind have consecutive numbers.
#[derive(Debug)]
pub(crate) struct Members<'a, G> {
    pub first: u32,
    pub count: u32,
    pub group: &'a G,
}

impl<G> Members<'_, G> {
    /// Returns the group of a number, and the index within it; `None` outside all groups. `all` is in ascending order.
    pub fn find(all: &[Self], number: u32) -> Option<(&Self, u32)> {
        let members = all[..all.partition_point(|members| members.first <= number)].last()?;
        let index = number - members.first;
        (index < members.count).then_some((members, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_member_has_the_name_of_its_group() {
        let names = [Name::of_member("left", 0, 1), Name::of_member("left", 7, 20), Name::alone("a.b")];
        assert_eq!(names.map(|name| name.to_string()), ["left", "left.7", "a.b"]);
    }

    #[test]
    fn members_are_found_by_their_number() {
        let groups = ["few", "many", "one"];
        let all = [(0, 2), (2, 10), (12, 1)].into_iter().zip(&groups);
        let all: Vec<_> = all.map(|((first, count), group)| Members { first, count, group }).collect();
        let found = |number| Members::find(&all, number).map(|(members, index)| (*members.group, index));
        assert_eq!([found(0), found(1), found(2)], [Some(("few", 0)), Some(("few", 1)), Some(("many", 0))]);
        assert_eq!([found(11), found(12), found(13)], [Some(("many", 9)), Some(("one", 0)), None]);
    }
}

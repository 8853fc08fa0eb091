//! Members of groups, which differ in number only.

use std::fmt;

/// Index of a node.
pub type NodeId = u32;
/// Index of one direction of a link: forward directions are even, their reverse follows.
pub type LinkId = u32;

/// The name of a member of a group: the group's own if there is only one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name<'a> {
    group: &'a str,
    index: Option<u32>,
}

impl<'a> Name<'a> {
    /// Of member `index` of a group of `count`.
    pub fn of_member(group: &'a str, index: u32, count: u32) -> Self {
        Self { group, index: (count != 1).then_some(index) }
    }

    /// Of something that stands alone.
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

/// The members of a group among all things of their kind, which have consecutive numbers.
#[derive(Debug)]
pub(crate) struct Members<'a, G> {
    pub first: u32,
    pub count: u32,
    pub group: &'a G,
}

impl<G> Members<'_, G> {
    /// The group that something belongs to, by its number, and its index there; nothing if it belongs to none of these, which ascend.
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

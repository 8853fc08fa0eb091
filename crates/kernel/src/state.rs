//! Private state of a connection's algorithm, decoded by the type information of its program.

use libbpf_rs::btf::types::{Composite, Int, MemberAttr};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, TypeId};

use crate::catalogue::Control;
use crate::objects;

/// Encoding of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    Plain,
    /// A fixed-point number with this number of fractional bits.
    Fixed(u32),
}

/// A member of a law's state.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    offset: usize,
    size: usize,
    reading: Reading,
}

/// The members of the state of one algorithm.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    members: Vec<Member>,
}

impl Layout {
    /// Reads nothing if the type information is incomplete.
    pub fn of(control: &Control) -> Self {
        let btf = Btf::from_raw(control.name, objects::object(control.name)).ok().flatten();
        let mut members = Vec::new();
        if let Some(btf) = &btf
            && let Some(private) = btf.type_by_name::<Composite<'_>>("bp_private")
            && let Some(law) = private.iter().find(|member| member.name.is_some_and(|name| name == "law"))
            && let MemberAttr::Normal { offset } = law.attr
        {
            collect(btf, law.ty, "", offset as usize / 8, &mut members);
        }
        Self { members }
    }

    /// Returns name and value of each member.
    pub fn read(&self, state: &[u8]) -> Vec<(String, f64)> {
        let value = |member: &Member| {
            let mut bytes = [0; 8];
            bytes[..member.size].copy_from_slice(state.get(member.offset..member.offset + member.size)?);
            let whole = u64::from_le_bytes(bytes) as f64;
            Some(match member.reading {
                Reading::Plain => whole,
                Reading::Fixed(bits) => whole / 2_f64.powi(bits as i32),
            })
        };
        self.members.iter().filter_map(|member| Some((member.name.clone(), value(member)?))).collect()
    }
}

/// Present windows have their own columns, and those for undo are not shown.
const LEFT_OUT: &[&str] = &["now", "before", "since"];

fn collect(btf: &Btf<'_>, ty: TypeId, prefix: &str, base: usize, members: &mut Vec<Member>) {
    let Some(composite) = resolve(btf, ty).and_then(|ty| Composite::try_from(ty).ok()) else { return };
    for member in composite.iter() {
        let (Some(name), MemberAttr::Normal { offset }) = (member.name, member.attr) else { continue };
        let name = name.to_string_lossy();
        if LEFT_OUT.contains(&&*name) || name.ends_with("_before") {
            continue;
        }
        let offset = base + offset as usize / 8;
        let name = if prefix.is_empty() { name.into_owned() } else { format!("{prefix}.{name}") };
        let Some(of) = resolve(btf, member.ty) else { continue };
        if let Ok(int) = Int::try_from(of) {
            let reading = reading(btf, member.ty, &name);
            members.push(Member { name, offset, size: usize::from(int.bits / 8).min(8), reading });
        } else {
            collect(btf, member.ty, &name, offset, members);
        }
    }
}

/// Returns the type behind typedefs and qualifiers.
fn resolve<'btf>(btf: &'btf Btf<'_>, ty: TypeId) -> Option<BtfType<'btf>> {
    Some(btf.type_by_id::<BtfType<'_>>(ty)?.skip_mods_and_typedefs())
}

/// Type names in `bpf/law/law.h` define the encoding of numbers.
fn reading(btf: &Btf<'_>, ty: TypeId, name: &str) -> Reading {
    let of = btf.type_by_id::<BtfType<'_>>(ty).filter(|ty| ty.kind() == BtfKind::Typedef);
    match of.and_then(|ty| ty.name()).and_then(|name| name.to_str()) {
        Some("bp_window") => Reading::Fixed(24),
        Some("bp_fine_rate") => Reading::Fixed(8),
        _ if name == "rho" => Reading::Fixed(16),
        _ => Reading::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_name_and_read_in_their_units() {
        let layout = Layout::of(crate::find("hybla").expect("listed"));
        let place = |name: &str| {
            layout.members.iter().find(|member| member.name == name).expect("a member of the law").offset
        };
        let mut state = [0; 104];
        state[place("rho")..][..4].copy_from_slice(&(22_u32 << 16).to_le_bytes());
        state[place("step")..][..8].copy_from_slice(&(3_u64 << 24).to_le_bytes());
        let values = layout.read(&state);
        assert!(
            values.contains(&("rho".into(), 22.0)) && values.contains(&("step".into(), 3.0)),
            "{values:?}"
        );
        assert!(!values.iter().any(|(name, _)| name.contains("before")), "{values:?}");
    }

    #[test]
    fn every_law_that_lives_in_the_private_state_is_described() {
        for control in crate::CONTROLS {
            let stored =
                ["astart", "bbr3", "copa", "peach", "satcp", "swift", "zenith"].contains(&control.name);
            // These algorithms have no state except their windows.
            let bare = ["scalable", "highspeed", "scps-tp"].contains(&control.name);
            assert_eq!(Layout::of(control).members.is_empty(), stored || bare, "{}", control.name);
        }
    }
}

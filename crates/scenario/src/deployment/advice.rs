//! Warnings about a configuration that is valid but probably not intended.

use super::model::{Class, Deployment, Match, Opener, PortRange, Prefix, Quic};

impl Deployment {
    /// Returns warnings for the author of the file, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.unreached();
        for class in self.classes.iter().filter(|class| mixes_versions(&class.matches)) {
            let name = &class.name;
            warnings.push(format!(
                "class \"{name}\" matches nothing: its networks `from` and `to` have no IP version in common"
            ));
        }
        let refuses_in_vain =
            |class: &&Class| class.quic == Quic::Refuse && !(class.proxy && has_quic(&class.matches));
        for class in self.classes.iter().filter(refuses_in_vain) {
            let name = &class.name;
            warnings.push(match class.proxy {
                false => format!(
                    "class \"{name}\" refuses QUIC, but with proxy = false TCP is not split: clients lose QUIC and gain nothing"
                ),
                true => format!("class \"{name}\" refuses no QUIC: its `ports` do not contain 443"),
            });
        }
        if !self.classes.iter().any(|class| class.proxy) {
            warnings.push("no class splits connections: all have proxy = false".to_owned());
        }
        warnings
    }

    /// Returns a sentence about the side whose connections are split.
    pub fn scope(&self) -> &'static str {
        let splits = |opener| self.classes.iter().any(|class| class.proxy && class.matches.opener == opener);
        match (splits(Opener::Clients), splits(Opener::Satellite)) {
            (true, true) => "splits connections that clients open, and those from beyond the satellite",
            (true, false) => {
                "splits connections that clients open, as at a terminal; those from beyond the satellite, which subscribers open at a hub, need \
                 a class with opened-by = \"satellite\""
            }
            (false, true) => {
                "splits connections from beyond the satellite, as at a hub; those that clients open, as at a terminal, need a class with \
                 opened-by = \"clients\""
            }
            (false, false) => "splits no connections",
        }
    }

    /// Warns of classes whose connections all belong to an earlier class.
    fn unreached(&self) -> Vec<String> {
        let earlier = |(number, class): (usize, &Class)| {
            let first = self.classes[..number].iter().find(|other| other.matches.covers(&class.matches))?;
            Some(format!(
                "class \"{}\" is never reached: class \"{}\" before it matches all of its connections",
                class.name, first.name
            ))
        };
        self.classes.iter().enumerate().filter_map(earlier).collect()
    }
}

fn mixes_versions(matches: &Match) -> bool {
    let has = |networks: &[Prefix], v4: bool| {
        networks.is_empty() || networks.iter().any(|network| network.address.is_ipv4() == v4)
    };
    ![true, false].into_iter().any(|v4| has(&matches.from, v4) && has(&matches.to, v4))
}

/// True if UDP port 443 is among the ports.
fn has_quic(matches: &Match) -> bool {
    matches.ports.is_empty() || matches.ports.iter().any(|range| (range.first..=range.last).contains(&443))
}

impl Match {
    /// True if every connection of `other` also belongs here.
    fn covers(&self, other: &Self) -> bool {
        self.opener == other.opener
            && ports_cover(&self.ports, &other.ports)
            && networks_cover(&self.from, &other.from)
            && networks_cover(&self.to, &other.to)
    }
}

fn ports_cover(ports: &[PortRange], others: &[PortRange]) -> bool {
    let any = [PortRange { first: 1, last: u16::MAX }];
    let mut sorted = if ports.is_empty() { any.to_vec() } else { ports.to_vec() };
    sorted.sort_unstable_by_key(|range| range.first);
    let others = if others.is_empty() { &any[..] } else { others };
    others.iter().all(|other| {
        let mut next = u32::from(other.first);
        for range in &sorted {
            if u32::from(range.first) <= next {
                next = next.max(u32::from(range.last) + 1);
            }
        }
        next > u32::from(other.last)
    })
}

fn networks_cover(networks: &[Prefix], others: &[Prefix]) -> bool {
    if networks.is_empty() || others.is_empty() {
        return networks.is_empty();
    }
    let sorted = Prefix::minimal(networks);
    others.iter().all(|other| {
        let next = sorted.partition_point(|network| network.order() <= other.order());
        next.checked_sub(1).is_some_and(|last| sorted[last].contains(other.address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(classes: &str) -> Deployment {
        let text = format!("[interfaces]\nclients = \"eth0\"\nsatellite = \"sat0\"\n{classes}");
        Deployment::parse("pep.toml", &text).expect("a right file")
    }

    fn warnings(classes: &str) -> Vec<String> {
        deployment(classes).warnings()
    }

    fn unreached(first: &str, second: &str) -> bool {
        let classes = format!(
            "[[class]]\nname = \"a\"\nmatch = {{ {first} }}\n[[class]]\nname = \"b\"\nmatch = {{ {second} }}\n"
        );
        let warnings = warnings(&classes);
        assert!(warnings.len() <= 1, "{warnings:?}");
        warnings.iter().any(|warning| warning.contains("class \"b\" is never reached: class \"a\""))
    }

    #[test]
    fn a_class_that_an_earlier_one_covers_is_never_reached() {
        for (first, second) in [
            ("", "ports = 22"),
            ("ports = \"1-65535\"", "from = \"10.0.0.0/8\""),
            ("ports = \"1-100, 101-200\"", "ports = \"50-150\""),
            ("from = \"10.0.0.0/8, fd00::/8\"", "from = [\"10.1.2.0/24\", \"fd01::1\"], ports = 80"),
            ("to = \"10.0.0.0/9, 10.128.0.0/9\"", "to = \"10.200.0.1\""),
        ] {
            assert!(unreached(first, second), "{first} before {second}");
        }
        for (first, second) in [
            ("ports = 22", ""),
            ("ports = \"1-100, 102-200\"", "ports = \"50-150\""),
            ("from = \"10.0.0.0/8\"", "from = \"10.1.0.0/16, 11.0.0.0/8\""),
            ("from = \"10.0.0.0/8\"", "to = \"10.0.0.0/8\""),
            ("opened-by = \"satellite\"", "ports = 80"),
        ] {
            assert!(!unreached(first, second), "{first} before {second}");
        }
    }

    #[test]
    fn a_class_that_refuses_quic_without_a_use_is_named() {
        let of = |keys: &str| {
            let class =
                format!("[[class]]\nname = \"x\"\nquic = \"refuse\"\n{keys}\n[[class]]\nname = \"y\"\n");
            warnings(&class).into_iter().find(|warning| warning.contains("QUIC"))
        };
        assert!(of("match = 80").unwrap().contains("class \"x\" refuses no QUIC"));
        assert!(of("match = { from = \"10.0.0.0/8\" }\nproxy = false").unwrap().contains("gain nothing"));
        assert_eq!(of("match = \"80, 400-500\""), None);
        assert_eq!(of("match = { from = \"10.0.0.0/8\" }"), None);
    }

    #[test]
    fn a_side_whose_connections_are_all_forwarded_is_named() {
        let scope = |classes: &str| deployment(classes).scope();
        assert!(scope("[[class]]\n").contains("at a hub, need a class with opened-by = \"satellite\""));
        assert!(
            scope("[[class]]\nmatch = { opened-by = \"satellite\" }\n").contains("as at a terminal, need")
        );
        assert!(warnings("[[class]]\nproxy = false\n")[0].contains("no class splits"));
        let mixed = "[[class]]\nname = \"x\"\nmatch = { from = \"10.0.0.0/8\", to = \"fd00::/8\" }\n";
        assert!(warnings(mixed)[0].contains("class \"x\" matches nothing"));
    }
}

//! Rules of the administrator whose effect changes for a split connection.
//!
//! The hook `forward` sees only the SYN of such a connection, and connection tracking has two entries for the connection. So some rules do not mean
//! what they meant. This module finds such rules in the packet filter of this machine, in the output of `nft -j`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use bentpipe_system::NFT;
use serde_json::Value;

use crate::error::Error;

/// A kind of rules.
struct Kind {
    /// Hooks whose chains are looked at; all if empty.
    hooks: &'static [&'static str],
    /// Words of which a rule has at least one.
    words: &'static [&'static str],
    /// Words that a rule must not have.
    without: &'static [&'static str],
    /// Effect on a split connection.
    result: &'static str,
}

/// Words of rules that read the arrival interface of a packet.
const BY_ARRIVAL: &[&str] = &["meta iif", "meta iifname", "meta iifgroup"];

const KINDS: [Kind; 7] = [
    Kind {
        hooks: &["prerouting"],
        words: &["dnat", "redirect", "xt DNAT", "xt REDIRECT", "xt NETMAP"],
        without: &[],
        result: "connections whose destination these rules translate are forwarded untouched",
    },
    Kind {
        hooks: &[],
        words: &["ct helper", "xt CT"],
        without: &[],
        result: "connections that a helper of connection tracking reads are forwarded untouched",
    },
    Kind {
        hooks: &["forward"],
        words: &["tcp option maxseg", "xt TCPMSS"],
        without: &[],
        result: "the segment size is clamped in the connection towards the server only: the proxy's answer to a client passes `output`, not `forward`",
    },
    Kind {
        hooks: &[],
        words: &["ct mark", "xt CONNMARK", "xt connmark"],
        without: &[],
        result: "a split connection has two entries of connection tracking: the one towards the server begins with the mark of the packet that opens it, the other with none",
    },
    Kind {
        hooks: &["forward"],
        words: &[
            "ct bytes",
            "ct packets",
            "ct avgpkt",
            "ct count",
            "limit",
            "quota",
            "xt connbytes",
            "xt connlimit",
            "xt hashlimit",
            "xt limit",
            "xt quota",
        ],
        // Limits of messages.
        without: &["log", "xt LOG", "xt NFLOG"],
        result: "these rules see the SYN of a split connection and no other packet, so they neither count nor limit its data",
    },
    Kind {
        hooks: &["forward"],
        words: &["flow", "queue", "xt NFQUEUE", "xt FLOWOFFLOAD", "xt string", "xt ndpi", "dup", "xt TEE"],
        without: &[],
        result: "these rules see the SYN of a split connection and no other packet, so they neither inspect, copy nor offload its data",
    },
    Kind {
        hooks: &["postrouting"],
        words: BY_ARRIVAL,
        without: &[],
        result: "packets of the proxy have not come over an interface, so that these rules do not match them; write them with addresses (ip saddr)",
    },
];

/// Family, table and name of a chain.
type Chain = [String; 3];

/// Returns one sentence for each kind of rule on this machine whose effect changes: the chains with such rules, and the effect.
///
/// # Errors
/// [`Error`] if the rules cannot be read.
pub(crate) fn on_this_machine() -> Result<Vec<String>, Error> {
    let mut found = Ruleset::of_this_machine()?.sentences();
    let legacy: Vec<String> = ["ip_tables_names", "ip6_tables_names"]
        .iter()
        .flat_map(|name| fs::read_to_string(format!("/proc/thread-self/net/{name}")))
        .flat_map(|names| names.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    if !legacy.is_empty() {
        found.push(format!(
            "tables of iptables-legacy ({}): their rules are not read here",
            legacy.join(", ")
        ));
    }
    Ok(found)
}

/// The chain of a rule that translates source addresses by the interface over which packets have come, if there is one.
///
/// # Errors
/// [`Error`] if the rules cannot be read.
pub(crate) fn translating_by_arrival() -> Result<Option<String>, Error> {
    Ok(Ruleset::of_this_machine()?.translating_by_arrival())
}

/// Words of each rule, by chain. A router may have ten thousand rules.
type Rules = BTreeMap<Chain, Vec<BTreeSet<String>>>;

/// Rules by their chains, and hooks from which chains are reached.
struct Ruleset {
    rules: Rules,
    hooks: BTreeMap<Chain, BTreeSet<String>>,
}

impl Ruleset {
    fn of_this_machine() -> Result<Self, Error> {
        Ok(Self::read(&NFT.run(&["-j", "list", "ruleset"], "")?))
    }

    /// Reads rules as `nft -j list ruleset` writes them, without those of the proxy.
    fn read(text: &str) -> Self {
        // Before the JSON, nft may write that it does not know some rules of iptables.
        let json = text.find('{').map_or("", |at| &text[at..]);
        let ruleset: Value = serde_json::from_str(json).unwrap_or_default();
        let entries = ruleset["nftables"].as_array().map_or(&[][..], Vec::as_slice);
        let mut rules = Rules::new();
        for rule in entries.iter().filter_map(|entry| entry.get("rule")) {
            let chain = chain_of(rule, "chain");
            if may_be_tcp(&rule["expr"]) && !chain[1].starts_with("bentpipe-") {
                rules.entry(chain).or_default().push(words(&rule["expr"]));
            }
        }
        let hooks = hooks(entries, &rules);
        Self { rules, hooks }
    }

    fn is_reached(&self, chain: &Chain, hook: &str) -> bool {
        self.hooks.get(chain).is_some_and(|hooks| hooks.contains(hook))
    }

    /// A sentence for each kind of rules that is there.
    fn sentences(&self) -> Vec<String> {
        let sentence = |kind: &Kind| {
            let is_there = |chain: &Chain| {
                kind.hooks.is_empty() || kind.hooks.iter().any(|hook| self.is_reached(chain, hook))
            };
            let chains: BTreeSet<String> = self
                .rules
                .iter()
                .filter(|(chain, rules)| {
                    let is_one =
                        |words: &BTreeSet<String>| has(words, kind.words) && !has(words, kind.without);
                    is_there(chain) && rules.iter().any(is_one)
                })
                .map(|(chain, _)| chain.join(" "))
                .collect();
            let chains = Vec::from_iter(chains).join(", ");
            (!chains.is_empty()).then(|| format!("chain {chains}: {}", kind.result))
        };
        KINDS.iter().filter_map(sentence).collect()
    }

    fn translating_by_arrival(&self) -> Option<String> {
        let by_arrival = |(chain, rules): &(&Chain, &Vec<BTreeSet<String>>)| {
            let is_one = |words: &BTreeSet<String>| has(words, BY_ARRIVAL) && self.translates(chain, words);
            self.is_reached(chain, "postrouting") && rules.iter().any(is_one)
        };
        self.rules.iter().find(by_arrival).map(|(chain, _)| chain.join(" "))
    }

    /// True if a rule translates source addresses, itself or in a chain to which it leads. Chains do not lead back.
    fn translates(&self, [family, table, _]: &Chain, words: &BTreeSet<String>) -> bool {
        has(words, &["masquerade", "snat", "xt MASQUERADE", "xt SNAT"])
            || targets(words).any(|target| {
                let next = [family.clone(), table.clone(), target.to_owned()];
                self.rules
                    .get(&next)
                    .is_some_and(|rules| rules.iter().any(|words| self.translates(&next, words)))
            })
    }
}

fn has(words: &BTreeSet<String>, any: &[&str]) -> bool {
    any.iter().any(|word| words.contains(*word))
}

/// Chains to which a rule leads.
fn targets(words: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    words.iter().filter_map(|word| word.strip_prefix("jump ").or(word.strip_prefix("goto ")))
}

/// False if a rule looks for another protocol than TCP.
fn may_be_tcp(expr: &Value) -> bool {
    let is_of_other = |statement: &Value| {
        let [left, right] = ["left", "right"].map(|side| &statement["match"][side]);
        let payload = &left["payload"];
        match right.as_str() {
            Some(name) if left["meta"]["key"] == "l4proto" || payload["field"] == "protocol" => name != "tcp",
            _ => payload["protocol"] == "udp",
        }
    };
    !expr.as_array().is_some_and(|statements| statements.iter().any(is_of_other))
}

fn chain_of(entry: &Value, name: &str) -> Chain {
    ["family", "table", name].map(|key| entry[key].as_str().unwrap_or_default().to_owned())
}

/// Returns the words of a rule: names of its statements and expressions, and their keys.
fn words(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        if let Value::Array(items) = value {
            rest.extend(items);
        }
        for (key, inner) in value.as_object().into_iter().flatten() {
            let name = match key.as_str() {
                "ct" | "meta" => &inner["key"],
                "xt" | "tcp option" => &inner["name"],
                "jump" | "goto" => &inner["target"],
                _ => &Value::Null,
            };
            found.insert(name.as_str().map_or_else(|| key.clone(), |name| format!("{key} {name}")));
            rest.push(inner);
        }
    }
    found
}

/// Hooks from which chains are reached.
fn hooks(entries: &[Value], rules: &Rules) -> BTreeMap<Chain, BTreeSet<String>> {
    let mut hooks: BTreeMap<Chain, BTreeSet<String>> = BTreeMap::new();
    let mut reached: Vec<(Chain, String)> = entries
        .iter()
        .filter_map(|entry| entry.get("chain"))
        .filter_map(|chain| Some((chain_of(chain, "name"), chain["hook"].as_str()?.to_owned())))
        .collect();
    while let Some((chain, hook)) = reached.pop() {
        for words in rules.get(&chain).into_iter().flatten() {
            for target in targets(words) {
                let [family, table, _] = &chain;
                let next = [family.clone(), table.clone(), target.to_owned()];
                if !hooks.get(&next).is_some_and(|known| known.contains(&hook)) {
                    reached.push((next, hook.clone()));
                }
            }
        }
        hooks.entry(chain).or_default().insert(hook);
    }
    hooks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn in_ruleset(text: &str) -> Vec<String> {
        Ruleset::read(text).sentences()
    }

    fn ruleset(chain: &str, hook: &str, expr: &Value) -> String {
        let rule = |chain: &str, expr: &Value| json!({ "rule": { "family": "inet", "table": "t", "chain": chain, "expr": expr } });
        let base = json!({ "chain": { "family": "inet", "table": "t", "name": "base", "hook": hook } });
        let jump = rule("base", &json!([{ "jump": { "target": "sub" } }]));
        let translates = rule("translates", &json!([{ "masquerade": null }]));
        let rules = json!({ "nftables": [{ "metainfo": {} }, base, jump, translates, rule(chain, expr)] });
        format!("# unknown\n{rules}")
    }

    fn found(chain: &str, hook: &str, expr: Value) -> Vec<String> {
        in_ruleset(&ruleset(chain, hook, &expr))
    }

    #[test]
    fn a_translation_by_the_interface_of_arrival_is_found_itself_and_behind_a_jump() {
        let chain = |hook: &str, words: Value| {
            let expr =
                json!([{ "match": { "left": { "meta": { "key": "iifname" } }, "right": "eth0" } }, words]);
            Ruleset::read(&ruleset("base", hook, &expr)).translating_by_arrival()
        };
        for words in [json!({ "masquerade": null }), json!({ "jump": { "target": "translates" } })] {
            assert_eq!(chain("postrouting", words.clone()), Some("inet t base".to_owned()));
            assert_eq!(chain("forward", words), None);
        }
        assert_eq!(chain("postrouting", json!({ "jump": { "target": "sub" } })), None);
        assert_eq!(chain("postrouting", json!({ "accept": null })), None);
        let by_address = ruleset("base", "postrouting", &json!([{ "masquerade": null }]));
        assert_eq!(Ruleset::read(&by_address).translating_by_arrival(), None);
    }

    #[test]
    fn each_kind_of_rule_is_found_in_its_hook_and_behind_a_jump() {
        let compare =
            |left: Value| json!([{ "match": { "op": "==", "left": left, "right": 1 } }, { "accept": null }]);
        for (hook, other, expr, word) in [
            ("prerouting", "output", json!([{ "dnat": { "addr": "10.0.0.1" } }]), "destination"),
            (
                "prerouting",
                "output",
                json!([{ "xt": { "type": "target", "name": "REDIRECT" } }]),
                "destination",
            ),
            (
                "forward",
                "output",
                json!([{ "mangle": { "key": { "tcp option": { "name": "maxseg" } }, "value": 1 } }]),
                "clamped",
            ),
            ("forward", "input", compare(json!({ "ct": { "key": "bytes" } })), "neither count"),
            ("forward", "input", json!([{ "limit": { "rate": 5 } }, { "accept": null }]), "neither count"),
            ("forward", "input", json!([{ "queue": { "num": 1 } }]), "inspect"),
            ("postrouting", "forward", compare(json!({ "meta": { "key": "iifname" } })), "have not come"),
        ] {
            for chain in ["base", "sub"] {
                let found = found(chain, hook, expr.clone());
                assert!(
                    matches!(found.as_slice(), [one] if one.contains(word) && one.contains(&format!("chain inet t {chain}:"))),
                    "{found:?}"
                );
            }
            assert_eq!(self::found("base", other, expr.clone()), [""; 0]);
            assert_eq!(self::found("unreached", hook, expr), [""; 0]);
        }
        let marks = json!([{ "mangle": { "key": { "meta": { "key": "mark" } }, "value": { "ct": { "key": "mark" } } } }]);
        assert!(found("base", "input", marks)[0].contains("two entries"));
        assert!(found("base", "input", json!([{ "ct helper": "f" }]))[0].contains("helper"));
        let of_udp = json!([{ "match": { "op": "==", "left": { "meta": { "key": "l4proto" } }, "right": "udp" } }, { "ct helper": "f" }]);
        assert_eq!(found("base", "input", of_udp), [""; 0]);
        let of_messages = json!([{ "limit": { "rate": 5 } }, { "log": null }]);
        assert_eq!(found("base", "forward", of_messages), [""; 0]);
    }

    #[test]
    fn rules_of_the_proxy_itself_and_an_empty_packet_filter_are_nothing() {
        assert_eq!(in_ruleset(""), [""; 0]);
        let rule = json!({ "rule": { "family": "inet", "table": "bentpipe-pep", "chain": "c", "expr": [{ "ct helper": "f" }] } });
        assert_eq!(in_ruleset(&json!({ "nftables": [rule] }).to_string()), [""; 0]);
    }
}

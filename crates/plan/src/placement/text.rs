//! The text form of policies, places and requests. Printed values parse to the same values.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::{
    ClientPolicy, IdSet, InstancePlacement, MemoryPolicy, NodePlace, PlacementRequest, Policy,
};

/// Prefix of the client placement.
const CLIENT_WORD: &str = "client=";
/// Prefix of a client placement by nodes.
const NODES_WORD: &str = "nodes=";
/// All nodes with memory.
const ALL: &str = "all";
const POLICY_FORMS: &str = "`none`, `interleave`, `spread`, `node=K`, `cores=LIST`, \
    `cores-per-instance=N`, `cores-per-instance=N,smt` or `custom=CPUS@MEMORY/CPUS@MEMORY`";
const CLIENT_FORMS: &str = "`none`, `same`, `other`, a list of CPUs such as `8-15`, \
    `CPUS@MEMORY/CPUS@MEMORY`, or on client hosts `nodes=NODES` or `nodes=!NODES`, also with `@MEMORY`";
const MEMORY_FORMS: &str =
    "`default`, `local`, `bind:NODES`, `interleave:NODES`, `interleave:all` or `prefer:NODE`";
const PLACE_FORMS: &str = "a list of CPUs such as `0-3`, or `any`";
const REQUEST_FORMS: &str = "a policy, then a space, `client=` and the placement of the clients";

/// A text is not a valid policy, client placement or list of places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {what}: expected {expected}")]
pub struct PolicyError {
    pub text: String,
    /// Expected kind of text.
    pub what: &'static str,
    /// Description of the valid forms.
    pub expected: &'static str,
}

impl PlacementRequest {
    /// Parses a policy, optionally followed by a space and `client=` with the client placement,
    /// such as `spread client=other`. The default placement is [`Policy::default_client`].
    ///
    /// # Errors
    /// [`PolicyError`] if the text has another form.
    pub fn parse(text: &str, instances: u32) -> Result<PlacementRequest, PolicyError> {
        let mut words = text.split_whitespace();
        let policy: Policy = words.next().unwrap_or_default().parse()?;
        let client = match (words.next(), words.next()) {
            (None, _) => policy.default_client(),
            (Some(word), None) => match word.strip_prefix(CLIENT_WORD) {
                Some(client) => client.parse()?,
                None => return Err(syntax(text, "placement", REQUEST_FORMS)),
            },
            (Some(_), Some(_)) => return Err(syntax(text, "placement", REQUEST_FORMS)),
        };
        Ok(PlacementRequest { instances, policy, client })
    }
}

/// Whether the text of a request contains a client placement.
pub fn names_clients(text: &str) -> bool {
    text.split_whitespace().skip(1).any(|word| word.starts_with(CLIENT_WORD))
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        let bad = || syntax(text, "placement policy", POLICY_FORMS);
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        match (name, value) {
            ("none", None) => Ok(Policy::None),
            ("interleave", None) => Ok(Policy::Interleave),
            ("spread", None) => Ok(Policy::Spread),
            ("node", Some(node)) => Ok(Policy::Node(single(node).ok_or_else(bad)?)),
            ("cores", Some(list)) => Ok(Policy::Cores(filled(list).ok_or_else(bad)?)),
            ("cores-per-instance", Some(value)) => {
                let (cores, siblings) = match value.strip_suffix(",smt") {
                    Some(cores) => (cores, true),
                    None => (value, false),
                };
                let cores = single(cores).and_then(NonZeroU32::new).ok_or_else(bad)?;
                Ok(Policy::CoresPerInstance { cores, siblings })
            }
            ("custom", Some(places)) => places_from(places).map(Policy::Custom),
            _ => Err(bad()),
        }
    }
}

impl FromStr for ClientPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<ClientPolicy, PolicyError> {
        match text {
            "none" => Ok(ClientPolicy::Unpinned),
            "same" => Ok(ClientPolicy::Same),
            "other" => Ok(ClientPolicy::Other),
            _ if text.starts_with(NODES_WORD) => text.parse().map(ClientPolicy::Nodes),
            _ if text.contains(['@', '/']) => places_from(text).map(ClientPolicy::Custom),
            _ => match filled(text) {
                Some(list) => Ok(ClientPolicy::Cores(list)),
                None => Err(syntax(text, "client placement", CLIENT_FORMS)),
            },
        }
    }
}

/// Splits a place into its CPUs or nodes and its memory policy, the default without an `@`.
fn with_memory(text: &str) -> Result<(&str, MemoryPolicy), PolicyError> {
    match text.split_once('@') {
        Some((place, memory)) => Ok((place, memory.parse()?)),
        None => Ok((text, MemoryPolicy::Default)),
    }
}

impl FromStr for NodePlace {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<NodePlace, PolicyError> {
        let (nodes, memory) = with_memory(text)?;
        let nodes = nodes.strip_prefix(NODES_WORD).unwrap_or_default();
        let negated = nodes.strip_prefix('!');
        let list = filled(negated.unwrap_or(nodes));
        Ok(NodePlace {
            nodes: list.ok_or_else(|| syntax(text, "client placement", CLIENT_FORMS))?,
            is_negated: negated.is_some(),
            memory,
        })
    }
}

impl FromStr for InstancePlacement {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<InstancePlacement, PolicyError> {
        let (cpus, memory) = with_memory(text)?;
        let cpus = match cpus {
            "any" => None,
            list => Some(filled(list).ok_or_else(|| syntax(text, "placement", PLACE_FORMS))?),
        };
        Ok(InstancePlacement { cpus, memory })
    }
}

impl FromStr for MemoryPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<MemoryPolicy, PolicyError> {
        let bad = || syntax(text, "memory policy", MEMORY_FORMS);
        match text.split_once(':') {
            None if text == "default" => Ok(MemoryPolicy::Default),
            None if text == "local" => Ok(MemoryPolicy::Local),
            Some(("bind", list)) => filled(list).map(MemoryPolicy::Bind).ok_or_else(bad),
            Some(("interleave", ALL)) => Ok(MemoryPolicy::InterleaveAll),
            Some(("interleave", list)) => {
                filled(list).map(MemoryPolicy::Interleave).ok_or_else(bad)
            }
            Some(("prefer", node)) => single(node).map(MemoryPolicy::Preferred).ok_or_else(bad),
            _ => Err(bad()),
        }
    }
}

fn places_from(text: &str) -> Result<Vec<InstancePlacement>, PolicyError> {
    text.split('/').map(str::parse).collect()
}

fn filled(text: &str) -> Option<IdSet> {
    text.parse().ok().filter(|set: &IdSet| !set.is_empty())
}

fn single(text: &str) -> Option<u32> {
    let set = filled(text).filter(|set| set.len() == 1)?;
    set.first()
}

fn syntax(text: &str, what: &'static str, expected: &'static str) -> PolicyError {
    PolicyError { text: text.to_owned(), what, expected }
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::None => formatter.write_str("none"),
            Policy::Interleave => formatter.write_str("interleave"),
            Policy::Spread => formatter.write_str("spread"),
            Policy::Node(node) => write!(formatter, "node={node}"),
            Policy::Cores(list) => write!(formatter, "cores={list}"),
            Policy::CoresPerInstance { cores, siblings } => {
                let suffix = if *siblings { ",smt" } else { "" };
                write!(formatter, "cores-per-instance={cores}{suffix}")
            }
            Policy::Custom(places) => write!(formatter, "custom={}", joined(places)),
        }
    }
}

impl fmt::Display for ClientPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientPolicy::Unpinned => formatter.write_str("none"),
            ClientPolicy::Same => formatter.write_str("same"),
            ClientPolicy::Other => formatter.write_str("other"),
            ClientPolicy::Cores(list) => write!(formatter, "{list}"),
            ClientPolicy::Nodes(place) => write!(formatter, "{place}"),
            ClientPolicy::Custom(places) => formatter.write_str(&joined(places)),
        }
    }
}

impl fmt::Display for PlacementRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} client={}", self.policy, self.client)
    }
}

impl fmt::Display for NodePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let negation = if self.is_negated { "!" } else { "" };
        write!(formatter, "{NODES_WORD}{negation}{}", self.nodes)?;
        match &self.memory {
            MemoryPolicy::Default => Ok(()),
            memory => write!(formatter, "@{memory}"),
        }
    }
}

impl fmt::Display for InstancePlacement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cpus {
            Some(cpus) => write!(formatter, "{cpus}@{}", self.memory),
            None => write!(formatter, "any@{}", self.memory),
        }
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryPolicy::Default => formatter.write_str("default"),
            MemoryPolicy::Local => formatter.write_str("local"),
            MemoryPolicy::Bind(nodes) => write!(formatter, "bind:{nodes}"),
            MemoryPolicy::Interleave(nodes) => write!(formatter, "interleave:{nodes}"),
            MemoryPolicy::InterleaveAll => write!(formatter, "interleave:{ALL}"),
            MemoryPolicy::Preferred(node) => write!(formatter, "prefer:{node}"),
        }
    }
}

fn joined(places: &[InstancePlacement]) -> String {
    let places: Vec<_> = places.iter().map(ToString::to_string).collect();
    places.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_prints_as_it_was_read() {
        for text in [
            "none client=none",
            "interleave client=4-7",
            "spread client=other",
            "node=1 client=same",
            "cores=0-7,64-71 client=8-15",
            "cores-per-instance=4 client=same",
            "cores-per-instance=4,smt client=none",
            "none client=nodes=0-1",
            "none client=nodes=!0@local",
            "spread client=nodes=1@bind:0",
            "custom=any@interleave:all client=any@interleave:all",
            "custom=0-3@bind:0/any@interleave:0-1/8@prefer:1/9@local client=10@local/11@default/any@default",
        ] {
            let request = PlacementRequest::parse(text, 3).unwrap();
            assert_eq!(request.to_string(), text);
        }
    }

    #[test]
    fn clients_follow_the_policy_by_default() {
        let client = |text| PlacementRequest::parse(text, 1).unwrap().client;
        assert_eq!(client("none"), ClientPolicy::Unpinned);
        assert_eq!(client("interleave"), ClientPolicy::Unpinned);
        assert_eq!(client("spread"), ClientPolicy::Same);
        assert_eq!(client("cores=0-3"), ClientPolicy::Same);
        assert!(!names_clients("spread") && !names_clients("client=none"));
        assert!(names_clients("spread client=none") && names_clients(" none\tclient=1"));
    }

    #[test]
    fn missing_memory_policy_is_the_default() {
        let place: InstancePlacement = "0-3".parse().unwrap();
        assert_eq!(place.memory, MemoryPolicy::Default);
    }

    #[test]
    fn malformed_placements_are_refused_with_the_valid_forms() {
        for text in [
            "",
            "Spread",
            "spread=1",
            "node",
            "node=0-1",
            "cores=",
            "cores=x",
            "cores-per-instance=0",
            "cores-per-instance=2,ht",
            "custom=0-3@bind",
            "custom=@local",
            "spread other",
            "spread client=",
            "spread client=nodes=",
            "spread client=nodes=!",
            "spread client=nodes=x@bind:0",
            "spread client=nodes=0@bind",
            "spread client=same more",
        ] {
            let error = PlacementRequest::parse(text, 1).unwrap_err();
            assert!(error.to_string().contains(error.expected), "{text}: {error}");
        }
    }

    #[test]
    fn policies_are_serialized_as_their_text() {
        let request = PlacementRequest::parse("cores-per-instance=2,smt", 2).unwrap();
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, r#"{"instances":2,"policy":"cores-per-instance=2,smt","client":"same"}"#);
        assert_eq!(serde_json::from_str::<PlacementRequest>(&text).unwrap(), request);
    }
}

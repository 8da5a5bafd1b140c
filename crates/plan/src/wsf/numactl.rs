//! Converts options of `numactl` to a placement policy where possible.
//!
//! One line of options applies to all servers in the original. A policy gives each process its own
//! place, so a list of CPUs is divided instead of shared.

use crate::placement::is_list;

/// The options of `numactl`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Options {
    /// `--physcpubind`, unless it means all.
    cpus: Option<String>,
    /// `--cpunodebind`, unless it means all.
    nodes: Option<String>,
    /// The memory policy of a place, absent for the default.
    memory: Option<String>,
}

/// A policy, and a note about its difference from the options.
pub(super) type Policy = Result<(String, Option<String>), String>;

/// Hints with the equivalent placement options.
pub(super) const SERVER_HINT: &str = "write the policy with `--placement`, such as `spread`, `node=0` or `custom=0-3@bind:0/4-7@bind:0`; docs/placement.md lists all forms";
pub(super) const CLIENT_HINT: &str =
    "place the clients with `--placement 'POLICY client=8-15'`; docs/placement.md lists all forms";
pub(super) const HOST_CLIENT_HINT: &str = "write one place for all clients of a host with `--placement`, such as `POLICY client=8-15@bind:1`, or name their CPUs with `YCSB_CORES=LIST`; docs/placement.md lists all forms";

impl Options {
    /// Parses a command line with or without `numactl` at its start.
    ///
    /// # Errors
    /// Options that are unknown or that a policy cannot express.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut options = Options::default();
        let mut words = text.split_whitespace().peekable();
        words.next_if(|word| *word == "numactl" || word.ends_with("/numactl"));
        while let Some(word) = words.next() {
            let (name, attached) = split(word)?;
            if matches!(name, "localalloc" | "l") {
                options.remember(Some("local".into()))?;
                continue;
            }
            let mut value = || {
                let value = attached.or_else(|| words.next());
                value.ok_or_else(|| format!("`{word}` has no value"))
            };
            match name {
                "physcpubind" | "C" => options.cpus = list(value()?)?,
                "cpunodebind" | "N" | "cpubind" | "c" => options.nodes = nodes(value()?)?,
                // The workload's manual uses `-M`, which means something else in `numactl`.
                "membind" | "m" | "M" => {
                    let nodes = list(value()?)?;
                    options.remember(nodes.map(|nodes| format!("bind:{nodes}")))?;
                }
                "interleave" | "i" => {
                    let nodes = list(value()?)?.unwrap_or_else(|| ALL.into());
                    options.remember(Some(format!("interleave:{nodes}")))?;
                }
                "preferred" | "p" => {
                    let node = list(value()?)?.unwrap_or_default();
                    if !is_one(&node) {
                        return Err(format!("only one node can be preferred, not `{node}`"));
                    }
                    options.remember(Some(format!("prefer:{node}")))?;
                }
                _ => return Err(format!("a placement cannot express `{word}`")),
            }
        }
        Ok(options)
    }

    fn remember(&mut self, memory: Option<String>) -> Result<(), String> {
        if self.memory.is_some() {
            return Err("it has two memory policies".into());
        }
        self.memory = memory;
        Ok(())
    }

    /// Whether the memory is near the CPUs without being bound.
    fn is_near(&self) -> bool {
        matches!(self.memory.as_deref(), None | Some("local"))
    }

    /// The nodes to which the memory is bound.
    fn bound(&self) -> Option<&str> {
        self.memory.as_deref()?.strip_prefix("bind:")
    }

    /// The policy of servers.
    pub(super) fn server(&self, pairs: u32) -> Policy {
        let memory = self.memory.as_deref();
        match (&self.cpus, &self.nodes) {
            (None, None) => match memory {
                None => exact("none"),
                Some("interleave:all") => exact("interleave"),
                Some(memory) => exact(&format!("custom={}", everywhere(memory, pairs))),
            },
            (None, Some(node)) if is_one(node) => self.on_node(node),
            (None, Some(_)) => Err("one placement cannot give every server several nodes".into()),
            (Some(cpus), None) if pairs == 1 => {
                exact(&format!("custom={cpus}@{}", memory.unwrap_or("default")))
            }
            (Some(cpus), None) if self.is_near() || self.bound().is_some() => Ok((
                format!("cores={cpus}"),
                Some(format!(
                    "CPUs `{cpus}` are divided among the {pairs} servers, with the memory of their nodes"
                )),
            )),
            (Some(_), None) => {
                Err("CPUs for several servers need the memory of their own nodes".into())
            }
            (Some(_), Some(_)) => Err("a policy takes CPUs or nodes, not both".into()),
        }
    }

    fn on_node(&self, node: &str) -> Policy {
        let policy = format!("node={node}");
        if self.bound() == Some(node) {
            exact(&policy)
        } else if self.is_near() {
            Ok((policy, Some(format!("memory is bound to node {node}, not just preferred"))))
        } else {
            Err("CPUs of one node cannot be combined with memory of another".into())
        }
    }

    /// The placement of clients on the servers' machine, for this server policy.
    pub(super) fn client(&self, server: &str, pairs: u32) -> Policy {
        match (&self.cpus, &self.nodes, &self.memory) {
            (None, None, None) => exact("none"),
            (None, None, Some(memory)) => exact(&everywhere(memory, pairs)),
            (Some(cpus), None, _) if self.is_near() => exact(cpus),
            (Some(cpus), None, Some(memory)) if pairs == 1 => exact(&format!("{cpus}@{memory}")),
            (Some(_), None, _) => Err("CPUs for several clients need local memory".into()),
            (None, Some(nodes), _) => self.client_on(nodes, server),
            (Some(_), Some(_), _) => Err(NOT_BOTH.into()),
        }
    }

    /// The placement of clients on their own hosts: one place for all clients of a host, with nodes
    /// by number.
    pub(super) fn client_on_hosts(&self) -> Policy {
        let cpus = match (&self.cpus, &self.nodes) {
            (None, None) => None,
            (Some(cpus), None) => Some(cpus.clone()),
            (None, Some(nodes)) => Some(format!("nodes={nodes}")),
            (Some(_), Some(_)) => return Err(NOT_BOTH.into()),
        };
        let cpus = cpus.as_deref();
        match &self.memory {
            None => exact(cpus.unwrap_or("none")),
            Some(memory) => exact(&format!("{}@{memory}", cpus.unwrap_or("any"))),
        }
    }

    /// Clients on nodes, which only a place relative to the servers' node can express.
    fn client_on(&self, nodes: &str, server: &str) -> Policy {
        let own = self.is_near() || self.bound() == Some(nodes);
        let node = server.strip_prefix("node=").filter(|_| own);
        match (node, nodes.strip_prefix('!')) {
            (Some(node), None) if node == nodes => exact("same"),
            (Some(_), None) if is_one(nodes) => Ok((
                "other".into(),
                Some(format!(
                    "clients are on a node other than the servers' node, which is node {nodes} on \
                        a machine with two"
                )),
            )),
            (Some(node), Some(not)) if node == not => exact("other"),
            _ => Err("a node for the clients needs servers that are all on one node".into()),
        }
    }
}

/// All CPUs or nodes, for `numactl` and for placements.
const ALL: &str = "all";
const NOT_BOTH: &str = "a client's place is CPUs or nodes, not both";

fn exact(policy: &str) -> Policy {
    Ok((policy.to_owned(), None))
}

/// The same memory for each process, on any CPU.
fn everywhere(memory: &str, processes: u32) -> String {
    vec![format!("any@{memory}"); processes as usize].join("/")
}

fn is_one(list: &str) -> bool {
    !list.is_empty() && list.bytes().all(|byte| byte.is_ascii_digit())
}

/// Name and attached value of an option: `--name=VALUE`, `--name`, `-n`, `-nVALUE`.
fn split(word: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(long) = word.strip_prefix("--") {
        return Ok(match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        });
    }
    let short = word.strip_prefix('-').filter(|short| short.is_ascii());
    match short.filter(|short| !short.is_empty()) {
        Some(short) => {
            let (name, value) = short.split_at(1);
            let value = value.strip_prefix('=').unwrap_or(value);
            Ok((name, Some(value).filter(|value| !value.is_empty())))
        }
        None => Err(format!("`{word}` is not an option of `numactl`")),
    }
}

/// A list, or `None` for all.
fn list(value: &str) -> Result<Option<String>, String> {
    match value {
        ALL => Ok(None),
        list if is_list(list) => Ok(Some(list.to_owned())),
        _ => Err(format!("`{value}` is not a list of numbers such as `0-3,8`")),
    }
}

/// A list of nodes, or all nodes except these.
fn nodes(value: &str) -> Result<Option<String>, String> {
    match value.strip_prefix('!') {
        Some(rest) if is_list(rest) => Ok(Some(value.to_owned())),
        _ => list(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str, pairs: u32) -> Policy {
        Options::parse(text)?.server(pairs)
    }

    fn client(text: &str, server: &str, pairs: u32) -> Policy {
        Options::parse(text)?.client(server, pairs)
    }

    #[test]
    fn options_of_servers_become_policies() {
        for (text, pairs, policy) in [
            ("", 2, "none"),
            ("numactl --interleave=all", 3, "interleave"),
            ("-i all", 1, "interleave"),
            ("/usr/bin/numactl -N 1 -m 1", 4, "node=1"),
            ("-N 0 -M 0", 4, "node=0"),
            ("--cpunodebind=0 --membind 0", 1, "node=0"),
            ("-C 0-3 -m 1", 1, "custom=0-3@bind:1"),
            ("-C0-3,8 -l", 1, "custom=0-3,8@local"),
            ("-C 0-3 -i all", 1, "custom=0-3@interleave:all"),
            ("--physcpubind=0-3", 1, "custom=0-3@default"),
            ("--physcpubind=all --preferred=1", 2, "custom=any@prefer:1/any@prefer:1"),
            ("--interleave=0-1", 2, "custom=any@interleave:0-1/any@interleave:0-1"),
        ] {
            assert_eq!(server(text, pairs), Ok((policy.into(), None)), "{text}");
        }
    }

    #[test]
    fn differences_between_option_and_policy_are_reported() {
        for (text, pairs, policy, word) in [
            ("-C 0-7 -m 0", 2, "cores=0-7", "divided"),
            ("-C 0-7 --localalloc", 2, "cores=0-7", "divided"),
            ("-N 1", 2, "node=1", "bound"),
            ("-N 1 -l", 1, "node=1", "bound"),
        ] {
            let (found, difference) = server(text, pairs).expect(text);
            assert_eq!(found, policy);
            assert!(difference.is_some_and(|text| text.contains(word)), "{text}");
        }
    }

    #[test]
    fn options_without_a_policy_are_refused_by_name() {
        for (text, part) in [
            ("-N 0,1 -m 0,1", "several nodes"),
            ("-N !1", "several nodes"),
            ("-N 0 -m 1", "of another"),
            ("-N 0 -C 1", "not both"),
            ("-C +0", "`+0`"),
            ("-C 3-1", "`3-1`"),
            ("-C", "`-C`"),
            ("-m 0 -i 1", "memory policies"),
            ("--preferred-many=0", "`--preferred-many=0`"),
            ("-p 0-1", "one node"),
            ("--touch", "`--touch`"),
            ("taskset -c 0", "`taskset`"),
            ("-", "`-`"),
        ] {
            let error = server(text, 1).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(server("-C 0-3 -i 0-1", 2).is_err());
    }

    #[test]
    fn options_of_clients_on_hosts_become_one_place_for_all() {
        let client = |text: &str| Options::parse(text)?.client_on_hosts();
        for (text, place) in [
            ("", "none"),
            ("numactl -l", "any@local"),
            ("-C 8-15", "8-15"),
            ("-C 8-15 --localalloc", "8-15@local"),
            ("-C 0-3 -m 0", "0-3@bind:0"),
            ("-N 1", "nodes=1"),
            ("-N 0 -m 0", "nodes=0@bind:0"),
            ("-N 0,1 -i all", "nodes=0,1@interleave:all"),
            ("-N !0 -l", "nodes=!0@local"),
            ("-m 0", "any@bind:0"),
            ("-i all", "any@interleave:all"),
            ("-i 0-1", "any@interleave:0-1"),
            ("-p 1", "any@prefer:1"),
        ] {
            assert_eq!(client(text), Ok((place.into(), None)), "{text}");
            let policy = place.parse::<crate::placement::ClientPolicy>();
            assert!(policy.is_ok(), "{text}: {policy:?}");
        }
        for (text, part) in [
            ("-C 0 -N 0", "not both"),
            ("-p 0-1", "one node"),
            ("-p all", "one node"),
            ("-N +0", "`+0`"),
            ("--weighted-interleave=0-1", "`--weighted-interleave=0-1`"),
        ] {
            let error = client(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn options_of_clients_become_places() {
        for (text, policy, pairs, place) in [
            ("", "node=0", 2, "none"),
            ("numactl -C 8-15 --localalloc", "spread", 2, "8-15"),
            ("-C 8-15 -m 1", "none", 1, "8-15@bind:1"),
            ("-l", "none", 2, "any@local/any@local"),
            ("-i all", "none", 2, "any@interleave:all/any@interleave:all"),
            ("-N 0 -M 0", "node=0", 2, "same"),
            ("-N !0 -l", "node=0", 2, "other"),
        ] {
            assert_eq!(client(text, policy, pairs), Ok((place.into(), None)), "{text}");
        }
        let (place, difference) = client("-N 1 -M 1", "node=0", 2).expect("there is another node");
        assert_eq!(place, "other");
        assert!(difference.is_some_and(|text| text.contains("node 1")));
        for (text, policy) in [
            ("-N 1", "spread"),
            ("-N !1", "node=0"),
            ("-N 1 -i 0", "node=0"),
            ("-C 0 -N 1", "node=0"),
            ("-C 0-3 -m 0", "node=0"),
        ] {
            assert!(client(text, policy, 2).is_err(), "{text}");
        }
    }
}

//! The Ansible inventory as printed by `ansible-inventory --list`: hosts of groups, and their addresses. Ansible reads it from a
//! file or a cloud.

use serde_json::Value;
use std::collections::BTreeSet;

/// Reason why hosts cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    /// The text is not the output of `ansible-inventory --list`.
    #[error("cannot understand the inventory: {0}")]
    Form(String),
    /// The name is neither a group nor a host.
    #[error("the inventory has no group and no host `{0}`")]
    Unknown(String),
    /// The group has no hosts.
    #[error("the group `{0}` of the inventory has no hosts")]
    Empty(String),
}

/// Variables with a host's address. Each may be an expression or a secret that only Ansible can evaluate.
const ADDRESSES: [&str; 4] =
    ["dyno_address", "ansible_host", "ansible_ssh_host", "ansible_connection"];

/// Groups and hosts.
#[derive(Clone, Debug)]
pub struct Inventory(Value);

impl Inventory {
    /// Parses the output of `ansible-inventory --list`.
    ///
    /// # Errors
    /// [`InventoryError::Form`] for any other text.
    pub fn parse(text: &str) -> Result<Self, InventoryError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| InventoryError::Form(error.to_string()))?;
        if !value.is_object() {
            return Err(InventoryError::Form("it is not a JSON object".into()));
        }
        Ok(Inventory(value))
    }

    /// Hosts with an address that Ansible must evaluate.
    pub(crate) fn unevaluated(&self) -> Vec<&str> {
        let hosts = self.0["_meta"]["hostvars"].as_object();
        let is_open = |value: &Value| match value {
            Value::String(text) => text.contains("{{") || text.contains("{%"),
            value => value.get("__ansible_vault").is_some(),
        };
        hosts
            .into_iter()
            .flatten()
            .filter(|(_, variables)| ADDRESSES.iter().any(|name| is_open(&variables[*name])))
            .map(|(host, _)| host.as_str())
            .collect()
    }

    /// Arguments for Ansible's module `debug`.
    pub(crate) fn question() -> String {
        let values = ADDRESSES.map(|name| format!("{name}|default('')"));
        format!("msg={{{{[{}]}}}}", values.join(","))
    }

    /// Applies Ansible's answers: `HOST | SUCCESS => {…}` for each host.
    pub(crate) fn take_answers(&mut self, text: &str) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some((host, start)) = line.split_once(" | SUCCESS => ") else {
                continue;
            };
            let rest = lines.by_ref().take_while(|line| *line != "}");
            let object: String = std::iter::once(start).chain(rest).collect();
            let answer = serde_json::from_str::<Value>(&format!("{object}}}"));
            let values = answer.map(|answer| answer["msg"].clone());
            let Some(values) = values.ok().filter(Value::is_array) else {
                continue;
            };
            let variables = &mut self.0["_meta"]["hostvars"][host];
            for (index, name) in ADDRESSES.iter().enumerate() {
                if !variables[*name].is_null() {
                    variables[*name] = values[index].clone();
                }
            }
        }
    }

    /// Hosts of these groups and hosts, each once and in inventory order.
    ///
    /// # Errors
    /// An unknown name, or a group without hosts.
    pub fn hosts(&self, names: &[String]) -> Result<Vec<String>, InventoryError> {
        let mut hosts: Vec<String> = Vec::new();
        for name in names {
            let mut found = Vec::new();
            if self.0.get(name).is_some_and(Value::is_object) {
                self.collect(name, &mut found, &mut BTreeSet::new());
                if found.is_empty() {
                    return Err(InventoryError::Empty(name.clone()));
                }
            } else if self.is_host(name) {
                found.push(name.clone());
            } else {
                return Err(InventoryError::Unknown(name.clone()));
            }
            for host in found {
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
        }
        Ok(hosts)
    }

    /// Address of a host: `dyno_address` for a separate data network, otherwise `ansible_host`, otherwise its name.
    pub fn address<'a>(&'a self, host: &'a str) -> &'a str {
        let variables = &self.0["_meta"]["hostvars"][host];
        let text = |key: &str| variables[key].as_str();
        text("dyno_address")
            .or_else(|| text("ansible_host"))
            .or_else(|| text("ansible_ssh_host"))
            .unwrap_or(host)
    }

    /// All names and addresses of a host: its own, `ansible_host`, `dyno_address`, and `localhost` if Ansible reaches it without a
    /// network.
    pub fn names<'a>(&'a self, host: &'a str) -> Vec<&'a str> {
        let variables = &self.0["_meta"]["hostvars"][host];
        let texts = ["ansible_host", "ansible_ssh_host", "dyno_address"];
        let texts = texts.map(|key| variables[key].as_str());
        let is_here = variables["ansible_connection"] == "local";
        std::iter::once(host)
            .chain(texts.into_iter().chain([is_here.then_some("localhost")]).flatten())
            .collect()
    }

    /// Collects a group's hosts. `seen` guards against groups that contain each other.
    fn collect(&self, group: &str, hosts: &mut Vec<String>, seen: &mut BTreeSet<String>) {
        if !seen.insert(group.to_owned()) {
            return;
        }
        let texts = |key: &str| {
            self.0[group][key]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        hosts.extend(texts("hosts"));
        for child in texts("children") {
            self.collect(&child, hosts, seen);
        }
    }

    fn is_host(&self, name: &str) -> bool {
        let mut lists = self
            .0
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, group)| group["hosts"].as_array());
        lists.any(|hosts| hosts.iter().any(|host| host == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{
        "_meta": {"hostvars": {"c1": {"ansible_host": "10.0.0.1"}, "c2": {"ansible_host": "10.0.0.2", "dyno_address": "192.168.0.2"}}},
        "all": {"children": ["ungrouped", "clients", "servers"]},
        "clients": {"children": ["near"], "hosts": ["c1"]},
        "near": {"hosts": ["c2", "c1"], "children": ["clients"]},
        "servers": {"hosts": []}
    }"#;

    fn hosts(names: &[&str]) -> Result<Vec<String>, InventoryError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Inventory::parse(LIST).expect("valid").hosts(&names)
    }

    #[test]
    fn groups_and_hosts_become_hosts_once() {
        assert_eq!(hosts(&["clients"]).expect("there"), ["c1", "c2"]);
        assert_eq!(hosts(&["c2", "near"]).expect("there"), ["c2", "c1"]);
    }

    #[test]
    fn missing_and_empty_groups_are_named() {
        assert_eq!(hosts(&["client"]), Err(InventoryError::Unknown("client".into())));
        assert_eq!(hosts(&["servers"]), Err(InventoryError::Empty("servers".into())));
        assert!(Inventory::parse("[]").is_err());
    }

    #[test]
    fn addresses_that_ansible_evaluates_are_taken_over() {
        let list = r#"{"_meta": {"hostvars": {
            "a": {"ansible_host": "{{ net }}.1", "dyno_address": "{{ ansible_host }}"},
            "b": {"ansible_host": {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256"}},
            "c": {"ansible_ssh_host": "10.0.0.3"}
        }}, "all": {"hosts": ["a", "b", "c"]}}"#;
        let mut inventory = Inventory::parse(list).expect("valid");
        assert_eq!(inventory.unevaluated(), ["a", "b"]);
        let answers = "b | SUCCESS => {\n    \"changed\": false,\n    \"msg\": [\"\", \"10.0.0.2\", \"\", \"ssh\"]\n}\n\
                       a | SUCCESS => {\n    \"msg\": [\n        \"10.0.0.1\",\n        \"10.0.0.1\", \"\", \"\"\n    ]\n}\n";
        inventory.take_answers(answers);
        assert_eq!(inventory.unevaluated(), Vec::<&str>::new());
        let address = |host| inventory.address(host);
        assert_eq!(["a", "b", "c"].map(address), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    }

    #[test]
    fn data_network_address_takes_precedence() {
        let inventory = Inventory::parse(LIST).expect("valid");
        assert_eq!(inventory.address("c2"), "192.168.0.2");
        assert_eq!(inventory.address("c1"), "10.0.0.1");
        assert_eq!(inventory.address("c9"), "c9");
    }
}

//! Validates replica set configurations. Pure functions.

use bson::{Bson, Document, doc};

/// A member in the reply of `replSetGetStatus`.
pub(super) fn described(host: &str, state: i32, message: &str) -> Document {
    let name = match state {
        0 => "STARTUP",
        1 => "PRIMARY",
        2 => "SECONDARY",
        5 => "STARTUP2",
        7 => "ARBITER",
        8 => "(not reachable/healthy)",
        _ => "UNKNOWN",
    };
    doc! { "name": host, "state": state, "stateStr": name, "lastHeartbeatMessage": message }
}

/// A member of a configuration, with the defaults.
pub(super) struct SetMember {
    id: i64,
    pub(super) host: String,
    pub(super) arbiter: bool,
    pub(super) priority: f64,
    votes: i64,
}

/// The members of a configuration.
pub(super) fn members(configuration: &Document) -> Vec<SetMember> {
    let number = |value: Option<&Bson>, default: f64| match value {
        Some(Bson::Int32(value)) => f64::from(*value),
        Some(Bson::Int64(value)) => *value as f64,
        Some(Bson::Double(value)) => *value,
        _ => default,
    };
    let list = configuration.get_array("members").map(Vec::as_slice);
    list.unwrap_or_default()
        .iter()
        .filter_map(Bson::as_document)
        .map(|member| {
            let arbiter = member.get_bool("arbiterOnly").unwrap_or(false);
            let default = if arbiter { 0.0 } else { 1.0 };
            SetMember {
                id: number(member.get("_id"), -1.0) as i64,
                host: member.get_str("host").unwrap_or_default().to_owned(),
                arbiter,
                priority: number(member.get("priority"), default),
                votes: number(member.get("votes"), 1.0) as i64,
            }
        })
        .collect()
}

/// Rules for a new configuration. Source: MongoDB manual, "Replica Set Configuration".
pub(super) fn check_configuration(
    configuration: &Document,
    set: &str,
    config_servers: bool,
    own: &str,
) -> Result<(), String> {
    let members = members(configuration);
    let count = |wanted: fn(&SetMember) -> bool| members.iter().filter(|one| wanted(one)).count();
    let distinct = |mut keys: Vec<String>| {
        let all = keys.len();
        keys.sort();
        keys.dedup();
        keys.len() == all
    };
    let rules = [
        (
            configuration.get_str("_id").is_ok_and(|name| name == set),
            "the name is that of --replSet",
        ),
        (
            configuration.get_bool("configsvr").unwrap_or(false) == config_servers,
            "configsvr is set for config servers alone",
        ),
        ((1..=50).contains(&members.len()), "there are 1 to 50 members"),
        ((1..=7).contains(&count(|one| one.votes == 1)), "there are 1 to 7 voting members"),
        (count(|one| one.priority > 0.0) > 0, "a member has a priority above 0"),
        (members.iter().all(|one| matches!(one.votes, 0 | 1)), "votes are 0 or 1"),
        (
            members.iter().all(|one| (0.0..=1000.0).contains(&one.priority)),
            "priorities are 0 to 1000",
        ),
        (
            members.iter().all(|one| one.votes == 1 || one.priority == 0.0),
            "members without a vote have priority 0",
        ),
        (!config_servers || count(|one| one.arbiter) == 0, "config servers have no arbiters"),
        (distinct(members.iter().map(|one| one.host.clone()).collect()), "hosts are unique"),
        (
            distinct(members.iter().map(|one| one.id.to_string()).collect()),
            "identifiers are unique",
        ),
        (members.iter().all(|one| (0..=255).contains(&one.id)), "identifiers are 0 to 255"),
        (members.iter().any(|one| one.host == own), "this node is a member"),
    ];
    match rules.iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, rule)) => Err(format!("broken rule: {rule}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_that_break_a_rule_are_refused_with_the_rule() {
        let wrong = |configuration: Document| {
            check_configuration(&configuration, "rs", false, "h:1").err().unwrap_or_default()
        };
        let with = |extra: Document| {
            let mut member = doc! { "_id": 0, "host": "h:1" };
            member.extend(extra);
            doc! { "_id": "rs", "members": [member, { "_id": 1, "host": "h:2" }] }
        };
        assert_eq!(wrong(with(doc! {})), "");
        assert!(wrong(with(doc! { "votes": 0 })).contains("a vote"));
        assert!(wrong(with(doc! { "priority": 1001 })).contains("0 to 1000"));
        let repeated = wrong(with(doc! { "_id": 1 }));
        assert!(repeated.contains("identifiers") && repeated.contains("unique"));
        assert!(wrong(with(doc! { "host": "h:2" })).contains("hosts"));
        assert!(wrong(with(doc! { "host": "h:3" })).contains("this node"));
        let mut named = with(doc! {});
        named.insert("configsvr", true);
        assert!(wrong(named).contains("configsvr"));
        assert!(wrong(doc! { "_id": "x", "members": [] }).contains("--replSet"));
    }
}

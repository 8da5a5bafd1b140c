//! Documents of a replica set: the configuration to send, and the status that it returns. Pure
//! functions.

use bson::{Bson, Document, doc};

use super::layout::ElectionSettings;

/// Member states. Source: MongoDB manual, "Replica Set Member States".
const PRIMARY: i64 = 1;
const SECONDARY: i64 = 2;
const ARBITER: i64 = 7;

/// Planned member of a replica set.
#[derive(Clone, Debug)]
pub(super) struct PlannedMember<'a> {
    /// Name within the deployment.
    pub(super) name: &'a str,
    /// Host and port for clients and the other members.
    pub(super) host: String,
    /// Its election settings.
    pub(super) election: ElectionSettings,
}

/// The argument of `replSetInitiate`.
pub(super) fn configuration(
    set: &str,
    members: &[PlannedMember<'_>],
    config_servers: bool,
) -> Document {
    let list: Vec<Document> = (0..)
        .zip(members)
        .map(|(id, member): (i32, _)| {
            let mut document = doc! { "_id": id, "host": &member.host };
            if member.election.arbiter {
                document.insert("arbiterOnly", true);
            } else if member.election.priority != 1 {
                document.insert("priority", f64::from(member.election.priority));
            }
            if !member.election.votes {
                document.insert("votes", 0);
            }
            document
        })
        .collect();
    let mut configuration = doc! { "_id": set };
    if config_servers {
        configuration.insert("configsvr", true);
    }
    configuration.insert("members", list);
    configuration
}

/// Judges a reply to `replSetGetStatus`. A set is ready when one of the members with the highest
/// priority is the primary, because another one would be replaced in mid-run, and all others hold
/// the data or arbitrate.
pub(super) fn progress(status: &Document, members: &[PlannedMember<'_>]) -> Result<usize, String> {
    let states = status.get_array("members").map(Vec::as_slice);
    let states = states.unwrap_or_default();
    let highest = members.iter().map(|one| one.election.priority).max();
    let mut primary = None;
    let mut waiting = Vec::new();
    for (position, member) in members.iter().enumerate() {
        let state = states
            .iter()
            .filter_map(Bson::as_document)
            .find(|state| state.get_str("name").is_ok_and(|name| name == member.host));
        match state.and_then(|state| number(state.get("state"))) {
            Some(PRIMARY) if Some(member.election.priority) == highest => primary = Some(position),
            Some(SECONDARY) if !member.election.arbiter => {}
            Some(ARBITER) if member.election.arbiter => {}
            _ => waiting.push(format!("`{}` is {}", member.name, described(state))),
        }
    }
    match (waiting.is_empty(), primary) {
        (true, Some(primary)) => Ok(primary),
        (true, None) => Err("no member is the primary".to_owned()),
        (false, _) => Err(waiting.join(", ")),
    }
}

/// The address of a data member that has not yet applied all operations of its primary, from a
/// reply to `replSetGetStatus`.
pub(super) fn behind(status: &Document) -> Option<&str> {
    let members = status.get_array("members").into_iter().flatten();
    let members = members.filter_map(Bson::as_document);
    let has_state = |member: &&Document, state| number(member.get("state")) == Some(state);
    let primary = members.clone().find(|one| has_state(one, PRIMARY));
    let done = |member: &Document| member.get("optime").cloned();
    let mut secondaries = members.filter(|one| has_state(one, SECONDARY));
    let late = secondaries.find(|one| done(one) != primary.and_then(done));
    late.map(|member| member.get_str("name").unwrap_or("a member"))
}

fn described(state: Option<&Document>) -> String {
    let Some(state) = state else {
        return "not in the status".to_owned();
    };
    let name = state.get_str("stateStr").unwrap_or("in an unknown state");
    match state.get_str("lastHeartbeatMessage") {
        Ok(message) if !message.is_empty() => format!("{name} ({message})"),
        _ => name.to_owned(),
    }
}

/// A BSON number of any type as a whole number.
pub(crate) fn number(value: Option<&Bson>) -> Option<i64> {
    match value? {
        Bson::Int32(value) => Some(i64::from(*value)),
        Bson::Int64(value) => Some(*value),
        Bson::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(*value as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::Timestamp;

    fn member(
        name: &'static str,
        port: u16,
        priority: u16,
        arbiter: bool,
    ) -> PlannedMember<'static> {
        PlannedMember {
            name,
            host: format!("127.0.0.1:{port}"),
            election: ElectionSettings { arbiter, priority, votes: true },
        }
    }

    fn status(states: &[(u16, i32)]) -> Document {
        let members: Vec<_> = states
            .iter()
            .map(|(port, state)| {
                doc! { "name": format!("127.0.0.1:{port}"), "state": state, "stateStr": format!("S{state}") }
            })
            .collect();
        doc! { "members": members }
    }

    #[test]
    fn configuration_has_what_differs_from_the_default() {
        let members = [member("a", 1, 5, false), member("b", 2, 1, false), member("c", 3, 0, true)];
        assert_eq!(
            configuration("rs", &members, false),
            doc! { "_id": "rs", "members": [
                { "_id": 0, "host": "127.0.0.1:1", "priority": 5.0 },
                { "_id": 1, "host": "127.0.0.1:2" },
                { "_id": 2, "host": "127.0.0.1:3", "arbiterOnly": true },
            ] }
        );
        let mut quiet = member("a", 1, 0, false);
        quiet.election.votes = false;
        assert_eq!(
            configuration("c", &[quiet], true),
            doc! { "_id": "c", "configsvr": true, "members": [
                { "_id": 0, "host": "127.0.0.1:1", "priority": 0.0, "votes": 0 },
            ] }
        );
    }

    #[test]
    fn set_is_ready_when_all_are_and_the_right_one_leads() {
        let members = [member("a", 1, 2, false), member("b", 2, 1, false), member("c", 3, 0, true)];
        let judge = |states: &[_]| progress(&status(states), &members);
        assert_eq!(judge(&[(1, 1), (2, 2), (3, 7)]), Ok(0));
        for (states, reason) in [
            (vec![(1, 2), (2, 2), (3, 7)], "no member is the primary"),
            (vec![(1, 2), (2, 1), (3, 7)], "`b` is S1"),
            (vec![(1, 1), (2, 5), (3, 7)], "`b` is S5"),
            (vec![(1, 1), (2, 2), (3, 8)], "`c` is S8"),
            (vec![(1, 1), (3, 7)], "`b` is not in the status"),
        ] {
            assert_eq!(judge(&states), Err(reason.to_owned()));
        }
    }

    #[test]
    fn member_is_behind_until_it_catches_up_with_its_primary() {
        let at = |optimes: [u32; 3]| {
            let members = [(1, "a"), (2, "b"), (7, "c")].iter().zip(optimes);
            let members: Vec<_> = members
                .map(|((state, name), time)| {
                    let ts = Timestamp { time, increment: 1 };
                    doc! { "name": *name, "state": *state, "optime": { "ts": ts, "t": 1_i64 } }
                })
                .collect();
            doc! { "members": members }
        };
        assert_eq!(behind(&at([5, 5, 0])), None);
        assert_eq!(behind(&at([5, 4, 5])), Some("b"));
        // Replies without these times do not show it.
        assert_eq!(behind(&status(&[(1, 1), (2, 2)])), None);
    }

    #[test]
    fn numbers_of_every_type_are_read() {
        for value in [Bson::Int32(7), Bson::Int64(7), Bson::Double(7.0)] {
            assert_eq!(number(Some(&value)), Some(7));
        }
        assert_eq!(number(Some(&Bson::Double(7.5))), None);
        assert_eq!(number(Some(&Bson::String("7".into()))), None);
    }
}

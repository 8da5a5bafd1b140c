//! Discovers the kind of deployment that the seeds belong to, and the servers for the operations.

use super::endpoint::Endpoint;
use super::error::ConnectError;
use dyno_plan::uri::{Host, TargetOptions};
use dyno_wire::handshake::{Hello, Role};
use std::collections::VecDeque;

/// Kind of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    Standalone,
    ReplicaSet {
        name: String,
    },
    /// A sharded cluster behind routers.
    Sharded,
}

impl TopologyKind {
    /// The name in files and reports.
    pub fn as_str(&self) -> &'static str {
        match self {
            TopologyKind::Standalone => "standalone",
            TopologyKind::ReplicaSet { .. } => "replica_set",
            TopologyKind::Sharded => "sharded",
        }
    }
}

/// A discovered deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub kind: TopologyKind,
    /// Servers for the operations, at least one: the server, the primary, or the routers (used in turn).
    pub endpoints: Vec<Endpoint>,
}

/// Maximum number of members of a replica set (MongoDB's limit): further members that servers name are ignored.
const MOST_MEMBERS: usize = 50;

/// Answer of a server.
pub(super) struct Probe {
    pub(super) host: Host,
    pub(super) answer: Result<(Endpoint, Hello), ConnectError>,
}

/// Asks servers in parallel.
pub(super) type Ask<'a> = dyn Fn(Vec<Host>) -> Vec<Probe> + 'a;

/// Discovers the deployment of `seeds`.
pub(super) fn discover(
    seeds: &[Host],
    options: &TargetOptions,
    ask: &Ask<'_>,
) -> Result<Topology, ConnectError> {
    let mut probes = ask(seeds.to_vec());
    if options.direct_connection == Some(true) {
        return direct(probes, options);
    }
    if probes.iter().all(|probe| probe.answer.is_err()) {
        let first = probes.swap_remove(0);
        return Err(match first.answer {
            Err(error) => error,
            Ok(_) => unreachable!("all answers are failures"),
        });
    }
    let routers = endpoints_with(&probes, Role::Mongos);
    if !routers.is_empty() {
        let kind = TopologyKind::Sharded;
        let endpoints = routers;
        return Ok(Topology { kind, endpoints });
    }
    if let ([probe], None) = (&probes[..], &options.replica_set)
        && let Ok((endpoint, hello)) = &probe.answer
        && hello.role() == Role::Standalone
    {
        let kind = TopologyKind::Standalone;
        let endpoints = vec![endpoint.clone()];
        return Ok(Topology { kind, endpoints });
    }
    replica_set(probes, options, ask)
}

/// The single given server, whatever its role.
fn direct(mut probes: Vec<Probe>, options: &TargetOptions) -> Result<Topology, ConnectError> {
    let (endpoint, hello) = probes.swap_remove(0).answer?;
    check_name(&endpoint, &hello, options)?;
    let kind = match (hello.role(), hello.set_name) {
        (Role::Mongos, _) => TopologyKind::Sharded,
        (_, Some(name)) => TopologyKind::ReplicaSet { name },
        (_, None) => TopologyKind::Standalone,
    };
    let endpoints = vec![endpoint];
    Ok(Topology { kind, endpoints })
}

fn endpoints_with(probes: &[Probe], role: Role) -> Vec<Endpoint> {
    let answers = probes.iter().filter_map(|probe| probe.answer.as_ref().ok());
    answers
        .filter(|(_, hello)| hello.role() == role)
        .map(|(endpoint, _)| endpoint.clone())
        .collect()
}

fn check_name(
    endpoint: &Endpoint,
    hello: &Hello,
    options: &TargetOptions,
) -> Result<(), ConnectError> {
    match &options.replica_set {
        Some(expected) if hello.set_name.as_ref() != Some(expected) => {
            Err(ConnectError::ReplicaSetName {
                endpoint: endpoint.host().clone(),
                expected: expected.clone(),
                found: hello.set_name.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// Follows the members' lists until a primary is found.
fn replica_set(
    mut probes: Vec<Probe>,
    options: &TargetOptions,
    ask: &Ask<'_>,
) -> Result<Topology, ConnectError> {
    let mut asked: Vec<Host> = probes.iter().map(|probe| probe.host.clone()).collect();
    let mut members = Vec::new();
    let mut wrong_name = None;
    while !probes.is_empty() {
        let mut found = VecDeque::new();
        for probe in probes {
            let state = match probe.answer {
                Err(error) => error.to_string(),
                Ok((endpoint, hello)) => match check_name(&endpoint, &hello, options) {
                    Err(error) => {
                        let state = "is not a member".to_owned();
                        wrong_name.get_or_insert(error);
                        state
                    }
                    Ok(()) => match (hello.role(), hello.set_name.clone()) {
                        (Role::Primary, Some(name)) => {
                            let kind = TopologyKind::ReplicaSet { name };
                            let endpoints = vec![endpoint];
                            return Ok(Topology { kind, endpoints });
                        }
                        _ => {
                            collect_members(&hello, &mut found);
                            describe(&hello).to_owned()
                        }
                    },
                },
            };
            members.push((probe.host, state));
        }
        let mut unasked: Vec<Host> = Vec::new();
        for host in found {
            if asked.len() < MOST_MEMBERS && !asked.contains(&host) {
                asked.push(host.clone());
                unasked.push(host);
            }
        }
        probes = if unasked.is_empty() { Vec::new() } else { ask(unasked) };
    }
    // If no server had the right set name, the wrong name explains the missing primary.
    Err(wrong_name.unwrap_or(ConnectError::NoPrimary { members }))
}

/// Adds the members that a member knows, the primary first.
fn collect_members(hello: &Hello, found: &mut VecDeque<Host>) {
    if let Some(host) = hello.primary.as_deref().and_then(parse_member) {
        found.push_front(host);
    }
    found.extend(hello.hosts.iter().filter_map(|host| parse_member(host)));
}

/// Role of a server in its deployment, as the end of a sentence that starts with its address.
pub(super) fn describe(hello: &Hello) -> &'static str {
    match hello.role() {
        Role::Standalone => "is in no replica set",
        Role::Mongos => "is a router",
        Role::Primary => "is the primary",
        Role::Secondary => "is a secondary",
        Role::Other if hello.is_uninitiated_member => {
            "has no replica set configuration: the set was not initiated, or the member was removed"
        }
        Role::Other if hello.is_arbiter => "is an arbiter, which holds no data",
        Role::Other => "is starting, recovering or rolling back",
    }
}

/// `host:port` as servers write it.
fn parse_member(text: &str) -> Option<Host> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(Host::Tcp { host: host.to_ascii_lowercase(), port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashMap;

    fn host(port: u16) -> Host {
        Host::Tcp { host: "127.0.0.1".into(), port }
    }

    fn member(role: Role, primary: Option<u16>, ports: &[u16]) -> Hello {
        Hello {
            max_wire_version: 21,
            set_name: (role != Role::Standalone && role != Role::Mongos).then(|| "rs0".into()),
            is_writable_primary: matches!(role, Role::Primary | Role::Standalone | Role::Mongos),
            secondary: role == Role::Secondary,
            is_mongos: role == Role::Mongos,
            hosts: ports.iter().map(|port| format!("127.0.0.1:{port}")).collect(),
            primary: primary.map(|port| format!("127.0.0.1:{port}")),
            ..Hello::default()
        }
    }

    struct Deployment {
        servers: HashMap<u16, Hello>,
        asked: RefCell<Vec<u16>>,
    }

    impl Deployment {
        fn new(servers: impl IntoIterator<Item = (u16, Hello)>) -> Self {
            Deployment { servers: servers.into_iter().collect(), asked: RefCell::default() }
        }

        fn find(&self, seeds: &[u16], options: &TargetOptions) -> Result<Topology, ConnectError> {
            let seeds: Vec<Host> = seeds.iter().map(|&port| host(port)).collect();
            discover(&seeds, options, &|hosts| {
                hosts.into_iter().map(|host| self.answer(host)).collect()
            })
        }

        fn answer(&self, host: Host) -> Probe {
            let Host::Tcp { port, .. } = &host else { unreachable!("only TCP in these tests") };
            self.asked.borrow_mut().push(*port);
            let answer = match self.servers.get(port) {
                Some(hello) => Ok((Endpoint::resolve(&host).unwrap(), hello.clone())),
                None => Err(ConnectError::Refused {
                    endpoint: host.clone(),
                    source: std::io::ErrorKind::ConnectionRefused.into(),
                }),
            };
            Probe { host, answer }
        }
    }

    fn ports(topology: &Topology) -> Vec<u16> {
        topology
            .endpoints
            .iter()
            .flat_map(Endpoint::addresses)
            .map(|address| address.port())
            .collect()
    }

    fn options(replica_set: Option<&str>, direct: Option<bool>) -> TargetOptions {
        TargetOptions {
            replica_set: replica_set.map(str::to_owned),
            direct_connection: direct,
            ..TargetOptions::default()
        }
    }

    #[test]
    fn a_single_server_is_standalone() {
        let deployment = Deployment::new([(1, member(Role::Standalone, None, &[]))]);
        let topology = deployment.find(&[1], &options(None, None)).unwrap();
        assert_eq!(topology.kind, TopologyKind::Standalone);
        assert_eq!(ports(&topology), [1]);
    }

    #[test]
    fn the_primary_is_found_through_a_secondary() {
        let deployment = Deployment::new([
            (1, member(Role::Secondary, Some(3), &[1, 2, 3])),
            (3, member(Role::Primary, Some(3), &[1, 2, 3])),
        ]);
        let topology = deployment.find(&[1], &options(Some("rs0"), None)).unwrap();
        let name = "rs0".into();
        assert_eq!(topology.kind, TopologyKind::ReplicaSet { name });
        assert_eq!(ports(&topology), [3]);
        assert_eq!(*deployment.asked.borrow(), [1, 3, 2], "each member once");
    }

    #[test]
    fn a_direct_connection_takes_a_secondary_as_it_is() {
        let deployment = Deployment::new([(1, member(Role::Secondary, Some(2), &[1, 2]))]);
        let topology = deployment.find(&[1], &options(None, Some(true))).unwrap();
        assert_eq!(ports(&topology), [1]);
        assert_eq!(*deployment.asked.borrow(), [1]);
    }

    #[test]
    fn only_live_routers_are_used() {
        let router = || member(Role::Mongos, None, &[]);
        let deployment = Deployment::new([(1, router()), (3, router())]);
        let topology = deployment.find(&[1, 2, 3], &options(None, None)).unwrap();
        assert_eq!(topology.kind, TopologyKind::Sharded);
        assert_eq!(ports(&topology), [1, 3]);
    }

    #[test]
    fn a_set_without_a_primary_is_described() {
        let deployment = Deployment::new([(1, member(Role::Secondary, None, &[1, 2]))]);
        let error = deployment.find(&[1], &options(None, None)).unwrap_err();
        let ConnectError::NoPrimary { members } = &error else { panic!("{error:?}") };
        for (host, part) in [("127.0.0.1:1", "secondary"), ("127.0.0.1:2", "refuses")] {
            let state = members.iter().find(|(member, _)| member.to_string() == host);
            assert!(state.is_some_and(|(_, state)| state.contains(part)), "{error}");
        }
    }

    #[test]
    fn unusable_members_are_described() {
        let state = |change: fn(&mut Hello)| {
            let mut hello = member(Role::Other, None, &[]);
            change(&mut hello);
            describe(&hello)
        };
        assert!(state(|_| ()).contains("recovering"));
        assert!(state(|hello| hello.is_arbiter = true).contains("arbiter"));
        assert!(state(|hello| hello.is_uninitiated_member = true).contains("not initiated"));
    }

    #[test]
    fn an_endless_list_of_members_is_not_followed() {
        let servers = (1..200).map(|port| (port, member(Role::Secondary, None, &[port + 1])));
        let chain = Deployment::new(servers);
        chain.find(&[1], &options(Some("rs0"), None)).unwrap_err();
        assert_eq!(chain.asked.borrow().len(), MOST_MEMBERS);
        let many: Vec<u16> = (2..20_000).collect();
        let crowd = Deployment::new([(1, member(Role::Secondary, None, &many))]);
        crowd.find(&[1], &options(Some("rs0"), None)).unwrap_err();
        assert_eq!(crowd.asked.borrow().len(), MOST_MEMBERS);
    }

    #[test]
    fn another_replica_set_is_refused_by_name() {
        let deployment = Deployment::new([
            (1, member(Role::Primary, Some(1), &[1])),
            (2, member(Role::Standalone, None, &[])),
        ]);
        for direct in [None, Some(true)] {
            for (port, expected) in [(1, Some("rs0".to_owned())), (2, None)] {
                let found = deployment.find(&[port], &options(Some("other"), direct));
                let Err(ConnectError::ReplicaSetName { found, .. }) = found else {
                    panic!("{found:?}")
                };
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn the_first_failure_is_shown_when_no_seed_answers() {
        let error = Deployment::new([]).find(&[4, 5], &options(None, None));
        let Err(ConnectError::Refused { endpoint, .. }) = error else { panic!("{error:?}") };
        assert_eq!(endpoint, host(4));
    }
}

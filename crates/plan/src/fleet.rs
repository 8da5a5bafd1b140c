//! `[fleet]` in a plan: client hosts and server hosts, their mapping, and the time limits of a
//! run's steps. The crate `fleet` derives the work of each host from it; other commands ignore the
//! table.

use crate::names::with_defaults;
use crate::units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most agents of a fleet.
pub const MOST_AGENTS: u32 = 4096;

/// Assignment of client hosts to servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// All clients load one deployment together: its data set is loaded in parts, one per client.
    #[default]
    Deployment,
    /// The servers are independent. If the number of clients is a multiple of the number of
    /// servers, client i loads server i modulo the number of servers; otherwise it loads every
    /// server with a number that equals i modulo the number of clients.
    Pairs,
    /// The servers are independent, and each client loads all of them, with a part of its
    /// connections for each.
    AllToAll,
    /// The servers are independent, and `fleet.table` lists the servers of each client.
    Table,
}

/// Scope of the plan's number of clients, rate and number of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Amounts {
    /// The whole fleet: the amounts are divided among the agents, without a remainder.
    #[default]
    InAll,
    /// Each agent.
    PerAgent,
    /// Each independent server: the agents that load it divide the amounts.
    PerServer,
}

with_defaults! {
    /// Many client hosts and many servers, measured as one.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct FleetPlan {
        /// Hosts, or groups of the Ansible inventory, that generate the load.
        pub clients: Vec<String>,
        /// Number of these hosts that take part, counted from the first; all when absent.
        #[schemars(range(min = 1, max = 4096))]
        pub client_hosts: Option<u32>,
        /// Hosts or groups on which servers are started. With `server.uri` the servers are already
        /// running there, and agents only read these machines; machines that are not named are not
        /// read.
        pub servers: Vec<String>,
        /// Agents per client host, 1 to 64.
        #[schemars(range(min = 1, max = 64))]
        pub agents_per_host: u32 = 1,
        /// Which client host loads which servers.
        pub mapping: Mapping = Mapping::Deployment,
        /// Numbers of the servers that each agent loads, from 0: one list per agent, in the order
        /// of the agents' numbers. Agents and servers are numbered host by host. Empty unless
        /// `mapping` is `table`.
        pub table: Vec<Vec<u32>>,
        /// What `client.clients`, `schedule.rate_per_s` and `phases.operations` refer to.
        pub amounts: Amounts = Amounts::InAll,
        /// Longest time until all agents have joined, with a first connection from each host.
        pub join_within: Span = Span::from_secs(60),
        /// Longest time of the load phase on any agent.
        pub load_within: Span = Span::from_secs(3600),
        /// An agent that is silent for this time is lost; 1 s to 1 minute. An agent also ends by
        /// itself after this time without the controller or Redis.
        pub lease: Span = Span::from_secs(40),
        /// Time from the start command to the common start of all agents; 100 ms to 1 minute.
        pub start_lead: Span = Span::from_secs(2),
        /// Manifests for Kubernetes; not rendered when absent.
        pub kubernetes: Option<KubernetesPlan>,
    }
}

with_defaults! {
    /// Contents of the manifests for Kubernetes.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct KubernetesPlan {
        /// Namespace of all objects.
        pub namespace: String = "dyno".into(),
        /// Image with `dyno`, see `deploy/kubernetes/Dockerfile`.
        pub image: String = "dyno:latest".into(),
        /// Image with `mongod` as its entry point.
        pub server_image: String = "mongo:8.0".into(),
        /// Image with `redis-server`.
        pub redis_image: String = "redis:7.4".into(),
        /// Client pods, one agent each, 1 to 4096.
        #[schemars(range(min = 1, max = 4096))]
        pub client_pods: u32 = 3,
        /// Server pods, each on its own node, 1 to 64; none are started with `server.kind = "uri"`.
        #[schemars(range(min = 1, max = 64))]
        pub server_pods: u32 = 1,
        /// CPUs of a client pod.
        #[schemars(range(min = 1))]
        pub client_cpus: u32 = 2,
        /// Memory of a client pod.
        pub client_memory: Bytes = Bytes(2 << 30),
        /// CPUs of a server.
        #[schemars(range(min = 1))]
        pub server_cpus: u32 = 4,
        /// Memory of a server.
        pub server_memory: Bytes = Bytes(8 << 30),
        /// Volumes of a server pod, one per disk, 0 to 16. A pod has one server per volume, or more
        /// with `server.pairs`, which then use the volumes in turn. Without a volume, the data is
        /// on the node's disk for pods.
        #[schemars(range(max = 16))]
        pub disks: u32 = 1,
        /// Size of each volume; without volumes, limit of the data that the servers of a pod may
        /// write.
        pub disk_size: Bytes = Bytes(100 << 30),
        /// Storage class of the volumes; the cluster's default when absent.
        pub storage_class: Option<String>,
        /// Exclusive CPUs for servers and clients: limits equal requests, in whole CPUs, and the
        /// CPU manager's static policy turns them into an exclusive set.
        pub pin_cpus: bool = true,
        /// Whether servers and clients use their node's network.
        pub host_network: bool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    fn problem_of(text: &str) -> String {
        file::parse(text, "t").expect_err("it is wrong").to_string()
    }

    const GOOD: &str = "base = \"a\"\n[fleet]\nclients = [\"c1\", \"c2\"]\nservers = [\"db\"]\n";

    #[test]
    fn plan_with_a_fleet_survives_its_own_file() {
        let text = format!("{GOOD}mapping = \"pairs\"\namounts = \"per-agent\"\nlease = \"3s\"\n");
        let text = format!("{text}[fleet.kubernetes]\nhost_network = true\n");
        let plan = file::parse(&text, "t").expect("it is valid");
        let fleet = plan.fleet.as_ref().expect("there is one");
        assert_eq!(fleet.mapping, Mapping::Pairs);
        assert_eq!(fleet.lease, Span::from_secs(3));
        assert!(fleet.kubernetes.as_ref().expect("a table").host_network);
        assert_eq!(file::parse(&file::to_toml(&plan), "t").expect("again"), plan);
    }

    #[test]
    fn wrong_values_are_reported_with_their_place() {
        for (line, expected) in [
            ("lease = \"10ms\"", "`fleet.lease`"),
            ("start_lead = \"2m\"", "`fleet.start_lead`"),
            ("join_within = \"0s\"", "`fleet.join_within`"),
            ("agents_per_host = 0", "`fleet.agents_per_host`"),
            ("mapping = \"pair\"", "`pairs`"),
            ("[fleet.kubernetes]\nnamespace = \"Dyno\"", "`fleet.kubernetes.namespace` is `Dyno`"),
            ("[fleet.kubernetes]\nimage = \"a b\"", "`fleet.kubernetes.image` is `a b`"),
            (
                "[fleet.kubernetes]\nredis_image = \"redis@sha256:00\"",
                "`fleet.kubernetes.redis_image`",
            ),
            ("[fleet.kubernetes]\nserver_pods = 65", "`fleet.kubernetes.server_pods`"),
            ("[fleet.kubernetes]\ndisk_size = \"1MiB\"", "64MiB"),
            ("client_hosts = 0", "`fleet.client_hosts`"),
            ("mapping = \"table\"", "table = [[0, 1], [2, 3]]"),
            ("table = [[0]]", "`fleet.mapping = \"table\"`"),
            ("mapping = \"table\"\ntable = [[0], []]", "agent 1"),
            ("mapping = \"table\"\ntable = [[1, 1]]", "agent 0"),
            ("[server]\npairs = 2", "`fleet.mapping = \"pairs\"`, `\"all-to-all\"`"),
            ("[data]\ninsert_start = 2", "`data.insert_start`"),
        ] {
            let message = problem_of(&format!("{GOOD}{line}\n"));
            assert!(message.contains(expected), "{line}: {message}");
            assert!(message.contains("line "), "{line}: {message}");
        }
    }

    #[test]
    fn host_names_must_be_valid_and_unique() {
        let of = |text: &str| problem_of(&format!("base = \"a\"\n{text}\n"));
        let missing = of("[fleet]\nservers = [\"s\"]");
        assert!(
            missing.contains("`fleet.clients`") && missing.contains("clients = [\"clients\"]"),
            "{missing}"
        );
        let twice = of("[fleet]\nclients = [\"c\", \"c\"]\nservers = [\"s\"]");
        assert!(twice.contains("`c` twice"), "{twice}");
        // It would be an option of the program that receives it.
        let option = of("[fleet]\nclients = [\"-e\"]\nservers = [\"s\"]");
        assert!(option.contains("`fleet.clients`") && option.contains("`-e`"), "{option}");
        let uri = "[server]\nkind = \"uri\"\nuri = \"mongodb://h\"\n";
        // Servers that are already running have hosts as well, which are read.
        let running = format!("base = \"a\"\n{uri}[fleet]\nclients = [\"c\"]\nservers = [\"s\"]\n");
        assert!(file::parse(&running, "t").is_ok());
        let pairs = of(&format!("{uri}[fleet]\nclients = [\"c\"]\nmapping = \"pairs\""));
        assert!(pairs.contains("`fleet.mapping`") && pairs.contains("`server.uri`"), "{pairs}");
    }
}

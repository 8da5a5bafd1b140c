//! Agents' host readings as sources of the run.

use super::server_use::{ServerUse, server_use};
use crate::clock::monotonic_ns;
use crate::readings::HostReading;
use dyno_engine::load_source::Readings;
use dyno_observe::watch::{Description, ReadingStatus, RemoteSource};
use dyno_record::model::{FleetRecord, PhaseKind, ReportedBy, ResourceUse, SourceKind};
use std::collections::{BTreeMap, BTreeSet};

/// Health of a source without readings.
const SILENT: &str = "no reading came from the agent";

/// An agent's number, and whether it is on a server host; both kinds are numbered from 0.
pub(super) type Who = (bool, u32);

/// The host sources of one run.
pub(super) struct HostSources {
    readings: Readings,
    relays: BTreeMap<Who, RemoteSource>,
    /// Use of server hosts by their agent's number, with the name of their source.
    busy: BTreeMap<u32, (String, ServerUse)>,
    names: BTreeSet<String>,
    /// Time up to which readings were fetched, in seconds of the run.
    heard_s: f64,
}

impl HostSources {
    /// Starts without hosts.
    pub(super) fn new(readings: Readings) -> Self {
        HostSources {
            readings,
            relays: BTreeMap::new(),
            busy: BTreeMap::new(),
            names: BTreeSet::new(),
            heard_s: 0.0,
        }
    }

    /// Adds a host that an agent reads.
    pub(super) fn expect(&mut self, who: Who, host: &str) {
        if self.relays.contains_key(&who) {
            return;
        }
        let name = self.name_of(who, host);
        let description = Description {
            name: name.clone(),
            kind: SourceKind::Agent,
            subject: host.to_owned(),
            of_server: who.0,
        };
        let wanted = &self.readings;
        let relay = RemoteSource::new(&wanted.board, description, wanted.interval, &wanted.keep);
        self.relays.insert(who, relay);
        if let (true, agent) = who {
            let used = ServerUse::new(host, wanted.interval.as_secs_f64());
            self.busy.insert(agent, (name, used));
        }
    }

    /// Unique source name that is a valid file name.
    fn name_of(&mut self, (is_server, agent): Who, host: &str) -> String {
        let allowed = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }
        };
        let plain: String = host.chars().map(allowed).take(40).collect();
        let mut name = format!("host-{plain}");
        while !self.names.insert(name.clone()) {
            let of = if is_server { "server" } else { "agent" };
            name = format!("{name}-{of}-{agent}");
        }
        name
    }

    /// Takes a reading at an instant of this host's monotonic clock. Readings from before the run are dropped.
    pub(super) fn take(&mut self, is_server: bool, local_ns: i64, reading: HostReading) {
        let at_ns = self.readings.clock.now_ns() as i64 + (local_ns - monotonic_ns());
        let relay = self.relays.get_mut(&(is_server, reading.agent));
        let account = serde_json::from_value::<ReadingStatus>(reading.account);
        if let (Some(relay), Ok(account), 0..) = (relay, account, at_ns) {
            let at_s = at_ns as f64 / 1e9;
            if let Some((_, busy)) = self.busy.get_mut(&reading.agent).filter(|_| is_server) {
                busy.take(at_s, &reading.values);
            }
            relay.take(at_s, reading.values, account);
        }
    }

    /// Utilization of all servers with `cpus` CPUs in a phase, and of their disks, if they were read.
    pub(super) fn server_use(
        &self,
        cpus: u64,
        phase: PhaseKind,
        start_s: f64,
        end_s: f64,
    ) -> Vec<ResourceUse> {
        let hosts = self.busy.values().map(|(_, busy)| busy);
        server_use(hosts, cpus, phase, start_s, end_s)
    }

    /// Utilization by machine, for servers of one deployment, which have different work. A figure missing on one machine is omitted
    /// on all.
    pub(super) fn use_of_machines(
        &self,
        record: &FleetRecord,
        phase: PhaseKind,
        start_s: f64,
        end_s: f64,
    ) -> Vec<ResourceUse> {
        let machines = self.busy.iter().map(|(agent, (source, busy))| {
            let server = record.servers.iter().find(|server| server.number == u64::from(*agent));
            let cpus = server.map_or(0, |server| server.cpus);
            let reported = ReportedBy { source: source.clone(), machine: busy.host().to_owned() };
            let uses = server_use([busy], cpus, phase, start_s, end_s).into_iter();
            let uses = uses.map(|one| ResourceUse { reported: Some(reported.clone()), ..one });
            uses.collect::<Vec<_>>()
        });
        let machines: Vec<Vec<ResourceUse>> = machines.collect();
        let has = |uses: &Vec<ResourceUse>, kind| uses.iter().any(|one| one.resource == kind);
        let is_on_all = |one: &&ResourceUse| machines.iter().all(|uses| has(uses, one.resource));
        machines.iter().flatten().filter(is_on_all).cloned().collect()
    }

    /// Records that all readings up to now have been fetched.
    pub(super) fn heard(&mut self) {
        self.heard_s = self.readings.clock.now_ns() as f64 / 1e9;
    }

    /// Writes the rest, and reports hosts that fell silent.
    pub(super) fn end(self) {
        for relay in self.relays.into_values() {
            relay.end(self.heard_s, SILENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_load::clock::Clock;
    use dyno_observe::watch::{Board, OutputOptions};
    use dyno_record::metrics::MetricId;
    use dyno_record::model::{FleetServerRecord, ResourceKind, SourceHealth};
    use std::time::Duration;

    fn reading(agent: u32) -> HostReading {
        HostReading {
            agent,
            at_ns: 0,
            values: vec![(MetricId::of("a", "x"), 1.0)],
            account: serde_json::json!(
                {"cpu_s": 0.1, "lasted_s": 10.0, "missing": [], "failed": null}
            ),
        }
    }

    fn sources(folder: &tempfile::TempDir, board: &Board) -> HostSources {
        let keep = OutputOptions {
            run_directory: folder.path().to_owned(),
            readings_per_row: 1,
            sync_every: None,
        };
        HostSources::new(Readings {
            board: board.clone(),
            keep,
            interval: Duration::from_secs(1),
            clock: Clock::start(),
        })
    }

    #[test]
    fn figures_missing_on_one_machine_are_reported_for_none() {
        let folder = tempfile::tempdir().expect("can write");
        let mut sources = sources(&folder, &Board::default());
        let cpu = MetricId::of_instance("process", "server-0", "cpu_ratio");
        let disk = MetricId::of_instance("disk", "vda", "utilization_ratio");
        let place = MetricId::of_instance("storage", "vda", "free_bytes");
        for (number, host, busy) in [(0, "a", 1.0), (1, "b", 0.5)] {
            sources.expect((true, number), host);
            let (_, used) = sources.busy.get_mut(&number).expect("expected host");
            for second in 0..=8 {
                let mut values = vec![(cpu.clone(), busy)];
                if number == 0 {
                    values.extend([(disk.clone(), 0.25), (place.clone(), 1e9)]);
                }
                used.take(f64::from(second), &values);
            }
        }
        let server =
            |number, cpus| FleetServerRecord { number, cpus, ..FleetServerRecord::default() };
        let record =
            FleetRecord { servers: vec![server(0, 4), server(1, 8)], ..FleetRecord::default() };
        let found = sources.use_of_machines(&record, PhaseKind::Measure, 2.0, 6.0);
        let found: Vec<_> = found
            .into_iter()
            .map(|one| {
                let by = one.reported.expect("it names its source");
                (one.resource, by.source, by.machine, one.units, one.busy_s)
            })
            .collect();
        let cpu = |source: &str, machine: &str, units, busy_s| {
            let kind = ResourceKind::ServerCpu;
            (kind, source.to_owned(), machine.to_owned(), units, busy_s)
        };
        // The disk of the second host is unknown.
        let expected = [cpu("host-a", "a", 4, 4.0), cpu("host-b", "b", 8, 2.0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_host_is_a_source_and_foreign_readings_are_dropped() {
        let folder = tempfile::tempdir().expect("can write");
        let board = Board::default();
        let mut sources = sources(&folder, &board);
        for who in [(false, 0), (false, 2), (true, 0), (false, 0)] {
            let host = if who == (false, 2) { "b c/d" } else { "a" };
            sources.expect(who, host);
        }
        let now_ns = monotonic_ns();
        sources.take(false, now_ns, reading(0));
        sources.take(true, now_ns - 3_600_000_000_000, reading(0));
        sources.take(false, now_ns, reading(7));
        sources.heard();
        sources.end();
        let found: Vec<_> = board
            .look()
            .into_iter()
            .map(|latest| latest.record)
            .map(|record| {
                let is_well = record.health == SourceHealth::Healthy;
                (record.name, record.of_server, record.readings, is_well)
            })
            .collect();
        let expected = [
            ("host-a", false, 1, true),
            ("host-b_c_d", false, 0, false),
            ("host-a-server-0", true, 0, false),
        ];
        let expected = expected.map(|(name, of, count, well)| (name.to_owned(), of, count, well));
        assert_eq!(found, expected);
    }
}

//! Utilization of remote server machines, from reported metrics.

use super::{Session, exporters};
use dyno_observe::reported_use::{PartialCpu, PhaseTime, UnknownDisk, Watched};
use dyno_plan::model::ExporterPlan;
use dyno_record::metrics::{self, MetricTable};
use dyno_record::model::{
    Caveat, CaveatKind, PhaseKind, ResourceKind, ResourceUse, SourceKind, SourceRecord,
};
use dyno_record::names::cpu;
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Recorded topology of a cluster, with routers that hold no data.
const SHARDED: &str = "sharded";

impl Session<'_> {
    /// Adds the utilization of remote server machines, from their sources' reports. Readings by
    /// this program or by agents stay.
    pub(super) fn keep_reported_use(&mut self) {
        let hostname = dyno_observe::environment::hostname();
        exporters::name_machines(&mut self.document.sources, hostname.as_deref());
        let sources = &self.document.sources;
        let is_known = |phase: PhaseKind, kind: ResourceKind| {
            self.document.resources.iter().any(|one| one.phase == phase && one.resource == kind)
        };
        let knows_servers = self
            .recorder
            .phases()
            .iter()
            .all(|phase| is_known(phase.name, ResourceKind::ServerCpu));
        let has_exporters = sources.iter().any(|one| one.kind == SourceKind::Exporter);
        // Reading the metrics of hours takes time.
        if knows_servers && !has_exporters {
            return;
        }
        // The report will fail on unreadable metrics and say so.
        let Ok((tables, _)) = metrics::read(&self.directory) else {
            return;
        };
        let watched = Watched { sources, tables: &tables };
        let is_sharded = self.document.server.topology.as_deref() == Some(SHARDED);
        let mut found = Vec::new();
        let (mut unknown, mut partial) = (Vec::new(), None);
        for phase in self.recorder.phases() {
            let time = PhaseTime {
                phase: phase.name,
                start_s: phase.start_s,
                end_s: phase.start_s + phase.duration_s,
            };
            let is_known = |kind| is_known(phase.name, kind);
            if !is_sharded && !is_known(ResourceKind::ServerCpu) {
                found.extend(watched.server_cpu(time));
                if phase.name == PhaseKind::Measure {
                    partial = watched.partial_server_cpu(time);
                }
            }
            let machines = watched.machines(time);
            let is_needed = |one: &ResourceUse| match one.resource {
                ResourceKind::ServerHostCpu => !is_known(ResourceKind::HostCpu),
                kind => !is_known(kind),
            };
            found.extend(machines.uses.into_iter().filter(is_needed));
            if phase.name == PhaseKind::Measure && !is_known(ResourceKind::Disk) {
                unknown = machines.unknown_disks;
            }
        }
        let unmatched = unmatched(&self.plan.observe.exporters, sources, &tables);
        self.document.resources.extend(found);
        self.caveats.extend(unmatched);
        self.caveats.extend(unknown.iter().map(unknown_disk));
        self.caveats.extend(partial.as_ref().map(partial_cpu));
    }
}

/// A caveat for each machine exporter with an unknown relation to the servers.
fn unmatched<'a>(
    exporters: &'a [ExporterPlan],
    sources: &'a [SourceRecord],
    tables: &'a [MetricTable],
) -> impl Iterator<Item = Caveat> + use<'a> {
    let is_machine = |name: &str| {
        let mut of_source = tables.iter().filter(|table| table.source == name);
        of_source.any(|table| table.column(&cpu::ALL_BUSY_RATIO.id()).is_some())
    };
    let unsaid = exporters.iter().filter(|one| one.of_server.is_none());
    let unsaid = unsaid.filter_map(move |one| {
        let source = sources.iter().find(|source| source.name == one.name)?;
        let is_doubtful = source.kind == SourceKind::Exporter && !source.of_server;
        (is_doubtful && is_machine(&one.name)).then_some(source)
    });
    unsaid.map(|source| {
        let statement = statement!(
            "exporter-of-unknown-machine",
            source = &source.name,
            subject = &source.subject
        );
        Caveat::of_run(CaveatKind::ProbeUnavailable, statement)
    })
}

/// A caveat that the CPU time of all servers together is unknown, with the part that is known.
fn partial_cpu(partial: &PartialCpu) -> Caveat {
    let missing: Vec<&str> = partial.missing.iter().map(String::as_str).collect();
    let statement = statement!(
        "server-cpu-partly-known",
        missing = missing,
        observed = partial.observed,
        cpus = Number::new(partial.cpus, Unit::Plain)
    );
    Caveat::of_run(CaveatKind::ProbeUnavailable, statement)
}

/// A caveat that the busiest disk replaces the unknown data disk, with all disks.
fn unknown_disk(unknown: &UnknownDisk) -> Caveat {
    let busy = |(name, ratio): &(String, f64)| {
        statement!("disk-of-exporter", disk = name, share = Number::new(*ratio, Unit::Ratio))
    };
    let disks: Vec<Statement> = unknown.disks.iter().map(busy).collect();
    let statement = statement!(
        "disk-of-data-unknown",
        source = &unknown.source,
        disk = unknown.disks.first().map(|(name, _)| name.as_str()),
        disks = disks
    );
    Caveat::of_run(CaveatKind::ProbeUnavailable, statement)
}

//! Figures of one run with their uncertainty: the measure phase of a run directory, for experiments to compare,
//! fit and check against the operational laws.

use super::disks;
use super::machines;
use crate::costs;
use crate::laws::{self, demand::demand};
use crate::resampling::Resampling;
use crate::stationary_part::{SteadyState, judge};
use crate::uncertainty::histogram::SparseHistogram;
use crate::uncertainty::series::{IntervalSample, Series};
use crate::windows::join_short;
use dyno_record::cpus::AllowedCpus;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{
    DiskFigures, Figure, Figures, LawCheck, PERCENTILES, Resource, SharedCpus, Statistic,
};
use dyno_record::model::{OperationRecord, PhaseKind, PhaseRecord, ResourceKind, RunDocument};
use dyno_record::responses::WindowResponses;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Record name of a placement that is left to the system.
const ANYWHERE: &str = "any@";

/// CPU time is counted in ticks of 10 ms and read about once a second; over a phase of some seconds the error
/// of both ends is below this.
const CPU_TIME_UNCERTAINTY_S: f64 = 0.04;

/// Rate and response time of operations in the measure phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationFigures {
    /// Successful operations per second.
    pub rate_per_s: Figure,
    pub response_mean_us: Figure,
    /// Percentiles of the response time, by name from [`PERCENTILES`].
    pub response_us: BTreeMap<String, Figure>,
}

impl OperationFigures {
    /// The figures of recording windows with their intervals, if they have any; `None` without operations.
    pub(super) fn of(windows: &[IntervalSample], resampling: Resampling) -> Option<Self> {
        const US_PER_NS: f64 = 1e-3;
        let series = Series::new(windows);
        let figure = |statistic: Statistic, unit: f64| -> Option<Figure> {
            match series.estimate(statistic, resampling) {
                Some(estimate) => Some(estimate.scaled(unit).into()),
                None => Some(Figure::bare(series.value(statistic)? * unit)),
            }
        };
        let percentile = |(name, percent): &(&str, f64)| {
            let figure = figure(Statistic::Percentile { percent: *percent }, US_PER_NS)?;
            Some(((*name).to_owned(), figure))
        };
        Some(OperationFigures {
            rate_per_s: figure(Statistic::Rate, 1.0)?,
            response_mean_us: figure(Statistic::MeanTime, US_PER_NS)?,
            response_us: PERCENTILES.iter().filter_map(percentile).collect(),
        })
    }
}

/// Nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run has measured nothing")]
pub struct NothingMeasured;

/// The part of a phase that its figures come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The recording windows: the stationary part if it exists, otherwise all.
    pub samples: Vec<IntervalSample>,
    /// Number of windows at the start that were excluded as a warm-up.
    pub warm_up_windows: usize,
    /// Length of the warm-up.
    pub warm_up_s: f64,
    /// Whether the samples are a steady state; `None` if there are too few samples.
    pub steady: Option<bool>,
}

/// Finds the stationary part of a phase, by its windows' rates and, at an offered rate, by their mean response
/// times.
pub fn measured(windows: &[WindowResponses], is_open: bool) -> Measured {
    let mut samples = samples(windows);
    let rates: Vec<f64> =
        samples.iter().map(|window| window.operations as f64 / window.duration_s).collect();
    let responses: Option<Vec<f64>> =
        samples.iter().map(|window| window.times.mean()).collect::<Option<_>>().filter(|_| is_open);
    let found = judge(&rates, responses.as_deref());
    let warm_up: Vec<IntervalSample> = samples.drain(..found.part.start).collect();
    Measured {
        samples,
        warm_up_windows: warm_up.len(),
        warm_up_s: warm_up.iter().fold(0.0, |length_s, window| length_s + window.duration_s),
        steady: match found.verdict {
            SteadyState::Undecided => None,
            verdict => Some(verdict == SteadyState::Steady),
        },
    }
}

/// A whole phase including its warm-up, which counters and laws refer to.
pub(super) fn whole(windows: &[WindowResponses]) -> Series {
    Series::new(&of_windows(windows))
}

/// All recording windows of a phase.
pub(super) fn of_windows(windows: &[WindowResponses]) -> Vec<IntervalSample> {
    windows.iter().map(sample).collect()
}

/// The recording windows of a phase, without windows that not all of a fleet measured. A short rest at the end
/// is merged into the window before, so that no operation is lost.
pub(super) fn samples(windows: &[WindowResponses]) -> Vec<IntervalSample> {
    let inside = windows.iter().filter(|window| !window.is_outside);
    let joined = join_short(inside.cloned(), |one| one.duration_s, WindowResponses::append);
    joined.iter().map(sample).collect()
}

fn sample(window: &WindowResponses) -> IntervalSample {
    IntervalSample {
        duration_s: window.duration_s,
        operations: window.succeeded,
        times: SparseHistogram::from_counts(window.response_ns.iter().copied())
            .with_sum(window.response_sum_ns as f64),
    }
}

/// The figures of a run. `windows` cover all operations of its measure phase. The same `seed` gives the same
/// intervals.
///
/// # Errors
/// [`NothingMeasured`] if no operation succeeded in the measure phase.
pub fn of_run(
    document: &RunDocument,
    windows: &[WindowResponses],
    seed: u64,
) -> Result<Figures, NothingMeasured> {
    let measured = measured(windows, is_open(document));
    of_measured(document, &measured, &whole(windows), seed)
}

/// [`of_run`] for prepared windows: their stationary part, and all of them.
pub(super) fn of_measured(
    document: &RunDocument,
    measured: &Measured,
    whole: &Series,
    seed: u64,
) -> Result<Figures, NothingMeasured> {
    let phase = measure_phase(document).ok_or(NothingMeasured)?;
    let OperationFigures { rate_per_s, response_mean_us, response_us } =
        OperationFigures::of(&measured.samples, Resampling::seeded(seed)).ok_or(NothingMeasured)?;
    let threads = document.client_threads().unwrap_or(0);
    let disks = disks::of_run(document);
    let resources = resources(document, phase, threads, &disks);
    let (shares_cpus, shared_cpus) = shared_cpus(document, &resources);
    // Busy times cover the whole phase, so they are divided by its rate.
    let whole_rate_per_s = Quantity::exact(whole.value(Statistic::Rate).ok_or(NothingMeasured)?);
    let demands =
        resources.iter().filter_map(|resource| demand(resource, whole_rate_per_s)).collect();
    let mut figures = Figures {
        clients: document.clients().map_or(0, |clients| u32::try_from(clients).unwrap_or(u32::MAX)),
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        offered_rate_per_s: phase.offered_rate_per_s,
        rate_per_s,
        response_mean_us,
        response_us,
        service_mean_us: mean_us(document, phase, |operation| operation.service_time_us.mean),
        think_mean_us: phase.mean_think_time_us,
        mean_in_flight: phase.mean_in_flight,
        succeeded: phase.succeeded,
        failed_ratio: ratio(phase.failed, phase.failed + phase.succeeded),
        dropped_ratio: phase.arrivals.map_or(0.0, |arrivals| ratio(arrivals.dropped, arrivals.due)),
        duration_s: phase.duration_s,
        warm_up_s: measured.warm_up_s,
        steady: measured.steady,
        shares_cpus,
        shared_cpus,
        stolen_ratio: None,
        server: server(document),
        server_address: Some(document.server.address.clone()).filter(|one| !one.is_empty()),
        resources,
        disks,
        demands,
        costs: costs::of_phase(document, phase, rate_per_s),
        laws: Vec::new(),
        caveats: document.caveats.iter().map(|caveat| caveat.kind).collect(),
    };
    figures.laws = check_laws(&figures, document, phase);
    Ok(figures)
}

/// The server by its program and version.
fn server(document: &RunDocument) -> Option<String> {
    let server = &document.server;
    let version = server.version.as_deref()?;
    // MongoDB does not report its name.
    let program = match (server.product.as_deref(), server.topology.as_deref()) {
        (Some(product), _) => product,
        (None, Some("sharded")) if server.kind == "uri" => "mongos",
        (None, _) => "mongod",
    };
    Some(format!("{program} {version}"))
}

/// Whether the measure phase of a run had an offered rate.
pub fn is_open(document: &RunDocument) -> bool {
    measure_phase(document).is_some_and(|phase| phase.offered_rate_per_s.is_some())
}

fn measure_phase(document: &RunDocument) -> Option<&PhaseRecord> {
    document.phases.iter().find(|phase| phase.name == PhaseKind::Measure && phase.succeeded > 0)
}

fn ratio(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// The CPUs of the servers on this machine and of the client, if the record has both.
fn allowed(document: &RunDocument) -> Option<[AllowedCpus; 2]> {
    let of = |kind| {
        let found = document
            .resources
            .iter()
            .find(|one| one.resource == kind && one.phase == PhaseKind::Measure);
        found.and_then(|one| one.allowed.clone())
    };
    let server = of(ResourceKind::ServerCpu)?;
    // Worker threads may have a separate placement.
    let workers = of(ResourceKind::ClientCpuWait);
    let client = workers.or_else(|| document.environment.allowed_cpus.clone())?;
    Some([server, client])
}

/// A number of CPUs, reduced to the quota if the quota is smaller.
fn less_by_quota(cpus: u64, quota: Option<f64>) -> Option<f64> {
    quota.filter(|quota| *quota < cpus as f64)
}

/// Whether server and client compete for CPUs or for the time of one quota, and the total of both.
fn shared_cpus(document: &RunDocument, resources: &[Resource]) -> (bool, Option<SharedCpus>) {
    let Some([server, client]) = allowed(document) else {
        return (shares_cpus(document, resources), None);
    };
    let Some(both) = server.shared_with(&client) else {
        return (false, None);
    };
    let cpus = both.set().map_or(0, |set| set.len() as u64).max(1);
    let shared = SharedCpus {
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        quota: less_by_quota(cpus, both.quota()),
    };
    (true, Some(shared))
}

/// Whether they share CPUs by numbers, for records without the sets: both on one machine, and neither
/// restricted to a part of it.
fn shares_cpus(document: &RunDocument, resources: &[Resource]) -> bool {
    let of = |kind| {
        let name = resource_name(kind);
        resources.iter().find(|resource| resource.name == name)
    };
    let on_one_machine = of(ResourceKind::HostCpu).is_some();
    let cpus = document.environment.cpus.unwrap_or(1);
    let is_placed = document.placement.as_ref().is_some_and(|placement| {
        placement
            .instances
            .iter()
            .chain(&placement.clients)
            .any(|place| !place.starts_with(ANYWHERE))
    });
    !is_placed
        && on_one_machine
        && of(ResourceKind::ServerCpu).is_some_and(|server| u64::from(server.servers) >= cpus)
}

fn mean_us(
    document: &RunDocument,
    phase: &PhaseRecord,
    mean: impl Fn(&OperationRecord) -> f64,
) -> f64 {
    let (sum, count) = document.commands(phase).fold((0.0, 0), |(sum, count), (_, operation)| {
        (sum + mean(operation) * operation.count as f64, count + operation.count)
    });
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Mean response time and mean service time of all operations in the whole measure phase, in microseconds;
/// `None` without successful operations.
pub(super) fn means_of_whole_phase_us(document: &RunDocument) -> Option<(f64, f64)> {
    let phase = measure_phase(document)?;
    let response_us = mean_us(document, phase, |operation| operation.response_time_us.mean);
    let service_us = mean_us(document, phase, |operation| operation.service_time_us.mean);
    Some((response_us, service_us))
}

/// Display name of a resource.
pub const fn resource_name(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::ServerCpu => "server CPU",
        ResourceKind::ClientCpu => "client CPU",
        ResourceKind::HostCpu => "all CPUs of the machine",
        ResourceKind::ServerHostCpu => "all CPUs of the server's machine",
        ResourceKind::Disk => "disk",
        ResourceKind::ClientCpuWait => "waiting for a client CPU",
    }
}

fn resources(
    document: &RunDocument,
    phase: &PhaseRecord,
    threads: u64,
    disks: &[DiskFigures],
) -> Vec<Resource> {
    let resource = |name: String, units: u64, quota: Option<f64>, used: [f64; 2]| {
        let [busy_s, duration_s] = used;
        let units = units.max(1);
        let quota = less_by_quota(units, quota);
        Resource {
            name,
            servers: u32::try_from(units).unwrap_or(u32::MAX),
            quota,
            busy_ratio: busy_s / duration_s / quota.unwrap_or(units as f64),
            uncertainty_ratio: if busy_s > 0.0 { CPU_TIME_UNCERTAINTY_S / busy_s } else { 1.0 },
        }
    };
    let recorded = machines::of_measure_phase(document)
        .into_iter()
        .filter(|one| one.kind != ResourceKind::ClientCpuWait)
        .map(|one| match disks::busiest(disks) {
            // Devices are not balanced: the most used one limits first.
            Some(disk) if one.kind == ResourceKind::Disk => {
                let busy_s = disk.busy_ratio * one.duration_s;
                resource(one.name, 1, None, [busy_s, one.duration_s])
            }
            _ => resource(one.name, one.units, one.quota, [one.busy_s, one.duration_s]),
        });
    let client_s = phase.client.cpu_user_s + phase.client.cpu_system_s;
    let allowed = allowed(document).map(|[_, client]| client);
    let allowed = allowed.or_else(|| document.environment.allowed_cpus.clone());
    let own_cpus = allowed.as_ref().and_then(AllowedCpus::set);
    let own_cpus = own_cpus.map(|set| set.len() as u64).or(document.environment.cpus);
    let usable = match &document.fleet {
        Some(fleet) => fleet.usable_cpus(),
        // A worker thread is never on two CPUs at once.
        None => own_cpus.unwrap_or(1).min(threads.max(1)),
    };
    let is_here = document.fleet.is_none();
    let quota = allowed.filter(|_| is_here).and_then(|allowed| allowed.quota());
    let client = (phase.duration_s > 0.0).then(|| {
        let name = resource_name(ResourceKind::ClientCpu).to_owned();
        resource(name, usable, quota, [client_s, phase.duration_s])
    });
    recorded.chain(client).collect()
}

fn check_laws(figures: &Figures, document: &RunDocument, phase: &PhaseRecord) -> Vec<LawCheck> {
    let mut checks = Vec::new();
    // All three cover the same operations, so the statistical error is 0.
    if let Some(ratio) = phase.little_ratio.filter(|ratio| *ratio > 0.0) {
        let predicted = phase.mean_in_flight / ratio;
        checks.extend(laws::little(
            Quantity::exact(phase.mean_in_flight),
            Quantity::exact(predicted / (figures.service_mean_us * 1e-6)),
            Quantity::exact(figures.service_mean_us * 1e-6),
        ));
    }
    checks.extend(response_time(figures, document, phase));
    checks.extend(visits(document, phase));
    checks
}

/// The response time law for clients with think time; without think time it equals Little's law. The wait ends
/// with a send, so the response time in the law is the service time. Times of failed operations are unknown.
fn response_time(
    figures: &Figures,
    document: &RunDocument,
    phase: &PhaseRecord,
) -> Option<LawCheck> {
    let think_us = figures.think_mean_us.filter(|_| phase.failed == 0)?;
    let finished: u64 = document.commands(phase).map(|(_, operation)| operation.count).sum();
    let finished = finished as f64;
    // A read-modify-write has one wait for two database operations.
    let waits_per_operation = phase.succeeded as f64 / finished;
    let longest_us = document.commands(phase).map(|(_, operation)| operation.service_time_us.max);
    let longest_us = longest_us.fold(figures.service_mean_us, f64::max);
    let service = Quantity {
        value: figures.service_mean_us * 1e-6,
        // Operations in flight at an end of the phase lie partly outside it, by at most the longest operation.
        uncertainty_ratio: (phase.mean_in_flight + 1.0) * longest_us
            / (finished * figures.service_mean_us),
    };
    laws::response_time(
        figures.clients,
        Quantity::exact(finished / phase.duration_s),
        think_us * 1e-6 * waits_per_operation,
        service,
    )
}

/// Forced flow law: each kind of operation has its share of the rate.
fn visits(document: &RunDocument, phase: &PhaseRecord) -> Vec<LawCheck> {
    let weights = document.recorded_plan().operations;
    let weight = |name: &str| weights.get(name).copied().unwrap_or(0.0);
    let whole: f64 = weights.values().sum();
    let rate = phase.succeeded as f64 / phase.duration_s;
    let has_parts =
        weights.keys().any(|name| weight(name) > 0.0 && document.operations.has_parts(name));
    if has_parts || whole <= 0.0 {
        // The parts are counted in addition to the whole.
        return Vec::new();
    }
    phase
        .operations
        .iter()
        .filter_map(|(name, operation)| {
            let share = weight(name) / whole;
            let drawn = phase.succeeded as f64;
            // The kinds are drawn at random, so the count is binomial. Four deviations, because an experiment
            // has hundreds of these checks, and one false alarm in 16,000 is enough.
            let spread = 4.0 * (share * (1.0 - share) / drawn).sqrt() / share;
            laws::forced_flow(
                name,
                Quantity {
                    value: operation.count as f64 / phase.duration_s,
                    uncertainty_ratio: spread,
                },
                Quantity::exact(share),
                Quantity::exact(rate),
            )
        })
        .collect()
}

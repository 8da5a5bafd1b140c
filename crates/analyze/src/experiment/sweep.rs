//! Analysis of a sweep: the points with their intervals, the service demands and the bounds from them, the
//! scalability law, and all laws checked at every point.

use super::ab::servers_of;
use super::demands;
use super::disks::{self, Loaded};
use super::figures::resource_name;
use super::machines::is_of_kind;
use super::queueing::{self, is_missed};
use super::relative;
use super::stations::{cpus, knows_server, stations};
use crate::costs;
use crate::estimate::combined;
use crate::knee::{LoadPoint, knee};
use crate::laws::demand::bottleneck;
use crate::laws::{self, bounds};
use crate::resampling::Resampling;
use crate::robust::mean;
use crate::uncertainty::runs::{Runs, estimate_levels};
use crate::uncertainty::series::IntervalSample;
use crate::usl::{self, UslPoint};
use dyno_record::estimate::{Estimate, Quantity};
use dyno_record::experiment::{
    Block, Bounds, CLIENTS, ClosedSystem, CurvePoint, Demand, DiskLimits, Experiment, Figure,
    Figures, LawCheck, Level, PERCENTILES, PROGRAM, Point, RATE, Resource, Statistic, SweepAnswer,
};
use dyno_record::model::ResourceKind;
use dyno_record::plan::ScheduleKind;
use std::collections::BTreeMap;

/// Curve points for a chart between two measured points.
const CURVE_STEPS: u32 = 60;

/// Plan key of the schedule.
const SCHEDULE_KIND: &str = "schedule.kind";

/// The server of a level by program and version, if programs are swept and these names distinguish them.
pub fn version<'a, 'b>(
    levels: impl Iterator<Item = &'b Level> + Clone,
    level: &'a Level,
) -> Option<&'a str> {
    let program = |level: &Level| level.settings.get(PROGRAM).cloned();
    let is_clear = |one: &Level, other: &Level| {
        one.server.is_some() && (one.server == other.server) == (program(one) == program(other))
    };
    program(level)?;
    levels
        .clone()
        .all(|one| levels.clone().all(|other| is_clear(one, other)))
        .then_some(level.server.as_deref())
        .flatten()
}

/// The highest offered rate that was achieved.
pub fn kept_rate_per_s(answer: &SweepAnswer) -> Option<f64> {
    let kept = answer.levels.iter().filter(|level| !is_missed(level));
    kept.filter_map(|level| level.offered_rate_per_s).reduce(f64::max)
}

/// Whether clients that wait for their own answers offered the rates, like YCSB's threads, instead of an open
/// loop.
pub fn is_throttled(answer: &SweepAnswer) -> bool {
    let kind = |level: &Level| level.settings.get(SCHEDULE_KIND).cloned();
    answer.levels.iter().all(|level| kind(level).as_deref() == Some("throttled"))
}

/// Analyses the measured points of a sweep without blocks. `windows` are the recording windows of each point's
/// measure phase, by point number. `None` if no point was run.
pub fn analyze(
    experiment: &Experiment,
    windows: &BTreeMap<usize, Vec<IntervalSample>>,
    resampling: Resampling,
) -> Option<SweepAnswer> {
    analyze_block(experiment, None, windows, resampling)
}

/// Analyses the measured points of a block.
pub(super) fn analyze_block(
    experiment: &Experiment,
    block: Option<Block>,
    windows: &BTreeMap<usize, Vec<IntervalSample>>,
    resampling: Resampling,
) -> Option<SweepAnswer> {
    let mut levels = levels(experiment, block, windows, resampling);
    let axis = axis_of(experiment, block);
    match axis {
        Some(RATE) => levels.sort_by(|a, b| {
            let rate = |level: &Level| level.offered_rate_per_s.unwrap_or(0.0);
            rate(a).total_cmp(&rate(b))
        }),
        Some(_) => levels.sort_by_key(|level| level.clients),
        None => {}
    }
    let best = (0..levels.len()).max_by(|a, b| {
        let rate = |place: &usize| levels[*place].rate_per_s.value;
        rate(a).total_cmp(&rate(b))
    })?;
    let is_closed = levels.iter().all(|level| level.offered_rate_per_s.is_none());
    let over_clients = axis == Some(CLIENTS) && is_closed;
    let lone = levels.iter().position(|level| over_clients && level.clients == 1);
    // Levels with other settings may have another disk.
    let alike = axis.map_or(&levels[best..=best], |_| &levels[..]);
    let disk = disk_limits(&levels[best], alike);
    let system = system(&levels, best, lone, disk.as_ref());
    let bottleneck = system.as_ref().and_then(|system| bottleneck(&system.demands).cloned());
    let mut answer = SweepAnswer {
        block,
        axis: axis.map(str::to_owned),
        best: u32::try_from(best).ok()?,
        bound_per_s: bottleneck.as_ref().map(Figure::bound_by),
        disk,
        bottleneck,
        saturation_clients: system
            .as_ref()
            .zip(lone)
            .and_then(|(system, lone)| saturation_clients(system, &levels[lone])),
        // Without a lone client the delay that no demand explains is unknown, so there is no bound or curve.
        bounds: match (&system, lone) {
            (Some(system), Some(_)) => bounds(system, &levels),
            _ => Vec::new(),
        },
        network: match (&system, lone) {
            (Some(system), Some(_)) => queueing::network(system, &levels),
            _ => Vec::new(),
        },
        queue: None,
        usl: None,
        usl_problem: None,
        usl_curve: Vec::new(),
        // At an offered rate clients are connections, not load.
        knee: axis
            .filter(|axis| *axis == RATE || over_clients)
            .map(|axis| knee(&load_points(&levels, axis))),
        system,
        relative: relative::relative(experiment, &levels, windows, resampling),
        levels,
    };
    if over_clients {
        fit_usl(&mut answer, resampling);
    }
    if axis == Some(RATE) && is_poisson(experiment, &answer.levels) {
        let bottleneck = answer.bottleneck.as_ref();
        answer.queue = queueing::queue(&answer.levels, bottleneck, resampling);
    }
    check_demands(&mut answer);
    check_bounds(&mut answer, lone);
    Some(answer)
}

/// The axis, if exactly one with an order is swept.
fn axis_of(experiment: &Experiment, block: Option<Block>) -> Option<&'static str> {
    let swept: Vec<&str> = experiment
        .axes_of(block)
        .filter(|axis| axis.values.len() > 1)
        .map(|axis| axis.key.as_str())
        .collect();
    match swept.as_slice() {
        [CLIENTS] => Some(CLIENTS),
        [RATE] => Some(RATE),
        _ => None,
    }
}

/// Whether all arrivals were random, as in a queue with Poisson arrivals.
fn is_poisson(experiment: &Experiment, levels: &[Level]) -> bool {
    let planned = experiment.recorded_plan().schedule_kind().map(ScheduleKind::as_str);
    levels.iter().all(|level| {
        let kind = level.settings.get(SCHEDULE_KIND).map(String::as_str);
        kind.or(planned) == Some("poisson")
    })
}

/// The measured points by setting and, in a suite, by workload, in order of first appearance.
pub(super) fn levels(
    experiment: &Experiment,
    block: Option<Block>,
    windows: &BTreeMap<usize, Vec<IntervalSample>>,
    resampling: Resampling,
) -> Vec<Level> {
    let mut order: Vec<(&Point, Vec<usize>)> = Vec::new();
    let done = experiment.points.iter().enumerate();
    let done = done.filter(|(_, point)| point.figures.is_some() && point.block == block);
    for (place, point) in done {
        let is_alike = |(first, _): &&mut (&Point, Vec<usize>)| {
            first.settings == point.settings && first.workload == point.workload
        };
        match order.iter_mut().find(is_alike) {
            Some((_, places)) => places.push(place),
            None => order.push((point, vec![place])),
        }
    }
    let figures: Vec<Vec<&Figures>> = order
        .iter()
        .map(|(_, places)| {
            let points = places.iter().map(|place| &experiment.points[*place]);
            points.filter_map(|point| point.figures.as_ref()).collect()
        })
        .collect();
    let samples = order.iter().map(|(_, places)| {
        let samples = places.iter().map(|place| windows.get(place).cloned());
        samples.collect::<Option<Vec<_>>>().unwrap_or_default()
    });
    let merged = merged(&samples.collect::<Vec<_>>(), resampling);
    let demands = demands::of_levels(&figures);
    order
        .iter()
        .zip(&figures)
        .zip(merged.iter().zip(demands))
        .filter_map(|(((first, places), figures), (merged, demands))| {
            level(first, places, figures, merged, demands)
        })
        .collect()
}

/// Statistics of the pooled windows of repeated runs, in the order of [`statistics`].
pub(super) type Merged = Vec<Option<Figure>>;

/// Rate, mean and percentiles.
fn statistics() -> impl Iterator<Item = Statistic> {
    let percentiles = PERCENTILES.iter();
    let percentiles = percentiles.map(|(_, percent)| Statistic::Percentile { percent: *percent });
    [Statistic::Rate, Statistic::MeanTime].into_iter().chain(percentiles)
}

/// Statistics of the levels with several runs, from the pooled windows; empty for the others.
pub(super) fn merged(levels: &[Vec<Vec<IntervalSample>>], resampling: Resampling) -> Vec<Merged> {
    const US_PER_NS: f64 = 1e-3;
    let levels_of_several = levels.iter().enumerate().filter(|(_, runs)| runs.len() > 1);
    let repeated: Vec<(usize, Runs)> =
        levels_of_several.map(|(place, runs)| (place, Runs::new(runs))).collect();
    let runs: Vec<&Runs> = repeated.iter().map(|(_, runs)| runs).collect();
    let mut merged = vec![Merged::new(); levels.len()];
    for statistic in statistics() {
        let unit = match statistic {
            Statistic::Rate => 1.0,
            Statistic::MeanTime | Statistic::Percentile { .. } => US_PER_NS,
        };
        let estimates = estimate_levels(&runs, statistic, resampling);
        for ((place, runs), found) in repeated.iter().zip(estimates) {
            merged[*place].push(match found {
                Some(found) => Some(Estimate::scaled(&found.estimate, unit).into()),
                // Too few windows for an interval still give the value over all runs.
                None => runs.value(statistic).map(|value| Figure::bare(value * unit)),
            });
        }
    }
    merged
}

fn level(
    point: &Point,
    places: &[usize],
    figures: &[&Figures],
    merged: &Merged,
    demands: Vec<Demand>,
) -> Option<Level> {
    let first = figures.first()?;
    let mut merged = merged.iter().copied();
    // A level with one run keeps the figures of its run.
    let mut figure = |alone: Figure| merged.next().flatten().unwrap_or(alone);
    let finished: u64 = figures.iter().map(|one| one.succeeded).sum();
    let mean_of =
        |of: fn(&Figures) -> f64| mean(&figures.iter().map(|one| of(one)).collect::<Vec<_>>());
    let mut level = Level {
        settings: point.settings.clone(),
        workload: point.workload.clone(),
        runs: places.iter().filter_map(|place| u32::try_from(*place).ok()).collect(),
        clients: first.clients,
        offered_rate_per_s: first.offered_rate_per_s,
        rate_per_s: figure(first.rate_per_s),
        response_mean_us: figure(first.response_mean_us),
        think_mean_us: think_mean_us(figures),
        response_us: BTreeMap::new(),
        failed_ratio: mean_of(|one| one.failed_ratio),
        dropped_ratio: mean_of(|one| one.dropped_ratio),
        demands,
        costs: costs::of_runs(figures),
        busy_ratio: busy(figures),
        disks: disks::of_runs(figures),
        laws: figures.iter().flat_map(|one| one.laws.clone()).collect(),
        succeeded: finished,
        shares_cpus: figures.iter().all(|one| one.shares_cpus),
        shared_cpus: first
            .shared_cpus
            .filter(|shared| figures.iter().all(|one| one.shared_cpus == Some(*shared))),
        server: servers_of(figures.iter().copied()),
        generator_bound: figures.iter().any(|one| one.is_generator_bound()),
        unsteady: figures.iter().any(|one| one.steady == Some(false)),
    };
    if finished == 0 {
        return None;
    }
    for (name, _) in PERCENTILES {
        let alone = first.percentile(name);
        let merged = figure(alone.unwrap_or(Figure::bare(0.0)));
        if alone.is_some() {
            level.response_us.insert(name.to_owned(), merged);
        }
    }
    Some(level)
}

/// The mean think time over the runs, if clients waited in all of them.
fn think_mean_us(figures: &[&Figures]) -> Option<f64> {
    let all = figures.iter().map(|one| one.think_mean_us);
    let all: Vec<f64> = all.collect::<Option<_>>()?;
    Some(mean(&all))
}

fn busy(figures: &[&Figures]) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for resource in figures.iter().flat_map(|one| &one.resources) {
        let own = all.entry(resource.name.clone()).or_default();
        own.push(resource.busy_ratio);
    }
    all.into_iter().map(|(name, own)| (name, mean(&own))).collect()
}

/// The disk limits by runs with the same settings.
pub fn disk_limits_of(runs: &[&Figures]) -> Option<DiskLimits> {
    disk_limits_of_runs(runs, &demands::of_runs(runs), &[])
}

/// The disk limits by runs with the same settings and by the device figures at several loads.
pub(super) fn disk_limits_of_runs(
    runs: &[&Figures],
    demands: &[Demand],
    loads: &[Loaded],
) -> Option<DiskLimits> {
    let last = runs.last()?;
    let at = disks::At {
        rate_per_s: last.rate_per_s.value,
        disks: &disks::of_runs(runs),
        demands,
        cpus: &cpus(demands, (*last).into()),
    };
    disks::limits(&at, loads)
}

/// The disk limits at a level, by all levels of the sweep.
pub(super) fn disk_limits(level: &Level, levels: &[Level]) -> Option<DiskLimits> {
    let at = disks::At {
        rate_per_s: level.rate_per_s.value,
        disks: &level.disks,
        demands: &level.demands,
        cpus: &cpus(&level.demands, level.into()),
    };
    disks::limits(&at, &Loaded::of_levels(levels))
}

/// The mean time from an answer to the intended start of the client's next operation, by the response time law
/// N / X − R; `None` if no think time is set. The measured wait differs: it ends with the send and so includes
/// the client's start delay. The response time includes this delay as well, and both together are longer than a
/// cycle.
fn think_time_s(level: &Level) -> Option<f64> {
    level.think_mean_us?;
    let cycle_s = f64::from(level.clients) / level.rate_per_s.value;
    Some((cycle_s - level.response_mean_us.value * 1e-6).max(0.0))
}

/// The bench as a queueing system; `None` if the server was not watched, because it may be the unseen
/// bottleneck. R(1) and Z both come from the lone client, if there is one, so that N clients cannot exceed N /
/// (R(1) + Z) = N · X(1): the client is often the limit at the best level, and the time that it adds between
/// two operations there would lower the bounds of all levels. Without a lone client Z comes from the best
/// level, and there is no bound; nor is there one in a throttled loop, where waits depend on the level: its
/// rate is offered, so none of its levels counts as a lone client.
fn system(
    levels: &[Level],
    best: usize,
    lone: Option<usize>,
    disk: Option<&DiskLimits>,
) -> Option<ClosedSystem> {
    if !knows_server(&levels[best].demands) {
        return None;
    }
    let demands = stations(&levels[best].demands, (&levels[best]).into(), disk);
    let total_s: f64 = demands.iter().map(Demand::occupied_s).sum();
    let lone_s = lone.map_or(total_s, |lone| levels[lone].response_mean_us.value * 1e-6);
    Some(ClosedSystem {
        demands,
        delay_s: (lone_s - total_s).max(0.0),
        think_time_s: think_time_s(&levels[lone.unwrap_or(best)]).unwrap_or(0.0),
    })
}

/// N* with its error: the cycle of a lone client, including think time, divided by the largest demand. They
/// come from different runs unless the lone client is the best level. The cycle is the response time or, with
/// think time, 1 / X(1).
fn saturation_clients(system: &ClosedSystem, lone: &Level) -> Option<Figure> {
    let cycle = match lone.think_mean_us {
        Some(_) => &lone.rate_per_s,
        None => &lone.response_mean_us,
    };
    let errors = [
        cycle.quantity().uncertainty_ratio,
        bounds::saturation_rate_per_s(system).uncertainty_ratio,
    ];
    Some(Figure::of_quotient(Quantity {
        value: bounds::saturation_clients(system)?,
        uncertainty_ratio: combined(&errors),
    }))
}

fn bounds(system: &ClosedSystem, levels: &[Level]) -> Vec<Bounds> {
    let most = levels.iter().map(|level| level.clients).max().unwrap_or(1);
    let step = most.div_ceil(CURVE_STEPS).max(1);
    let mut numbers: Vec<u32> = (1..=most).step_by(step as usize).collect();
    numbers.extend(levels.iter().map(|level| level.clients));
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(|clients| bounds::bounds(system, clients)).collect()
}

fn load_points(levels: &[Level], axis: &str) -> Vec<LoadPoint> {
    levels
        .iter()
        .map(|level| {
            let response = level.response_mean_us.quantity();
            LoadPoint {
                load: match axis {
                    RATE => level.offered_rate_per_s.unwrap_or(0.0),
                    _ => f64::from(level.clients),
                },
                rate_per_s: level.rate_per_s.quantity(),
                response_s: Quantity { value: response.value * 1e-6, ..response },
            }
        })
        .collect()
}

fn fit_usl(answer: &mut SweepAnswer, resampling: Resampling) {
    let points: Vec<UslPoint> = answer
        .levels
        .iter()
        .map(|level| UslPoint { clients: level.clients, rate_per_s: level.rate_per_s.quantity() })
        .collect();
    match usl::fit(&points, resampling) {
        Ok(fit) => {
            let (low, high) = (fit.measured_clients_min, fit.measured_clients_max);
            let span = f64::from(high - low);
            answer.usl_curve = (0..=CURVE_STEPS)
                .map(|step| {
                    let clients = f64::from(low) + span * f64::from(step) / f64::from(CURVE_STEPS);
                    CurvePoint { clients, rate_per_s: usl::rate_at(&fit, clients) }
                })
                .collect();
            answer.usl = Some(fit);
        }
        Err(error) => answer.usl_problem = Some(error.statement()),
    }
}

/// Resources with less utilization are not checked: their demands change no bound.
const LEAST_BUSY_RATIO: f64 = 0.2;

/// The utilization law at each level, with the demands of the best level: it shows demands that depend on the
/// load.
fn check_demands(answer: &mut SweepAnswer) {
    let best = answer.best as usize;
    // Whole-machine figures include more than the operations.
    let is_whole = |demand: &Demand| {
        [ResourceKind::HostCpu, ResourceKind::ServerHostCpu]
            .iter()
            .any(|kind| is_of_kind(&demand.name, *kind))
    };
    let mut known: Vec<Demand> = answer.levels[best].demands.clone();
    known.retain(|demand| !is_whole(demand));
    // The more concurrent requests a disk serves, the shorter its busy time per operation.
    if !disks::is_one_server(&answer.levels[best].disks) {
        known.retain(|demand| demand.name != resource_name(ResourceKind::Disk));
    }
    for (place, level) in answer.levels.iter_mut().enumerate() {
        if place == best {
            continue;
        }
        let checks = known.iter().filter_map(|demand| {
            let own = level.demands.iter().find(|own| own.name == demand.name)?;
            let busy_ratio = *level.busy_ratio.get(&own.name)?;
            if busy_ratio < LEAST_BUSY_RATIO {
                return None;
            }
            let resource = Resource {
                name: own.name.clone(),
                servers: own.servers,
                quota: own.quota,
                busy_ratio,
                uncertainty_ratio: own.uncertainty_ratio,
            };
            // Both are counted in the same phase, so the rate has no error here.
            let rate = resource.busy_servers().value / own.demand_s;
            laws::utilization(&resource, Quantity::exact(rate), demand)
        });
        let checks: Vec<LawCheck> = checks.collect();
        level.laws.extend(checks);
    }
}

/// Checks that no rate exceeds, and no response time undercuts, the bounds from the best level's demands and
/// the lone client. The lone client is skipped, as it would be compared with itself. At the best level, the
/// bound by its own demands is skipped, and the lone client alone is the bound. Without a lone client no check
/// remains: no rate exceeds the highest, which is within its own demands. A figure without an interval makes
/// its check too uncertain.
fn check_bounds(answer: &mut SweepAnswer, lone: Option<usize>) {
    let (Some(system), Some(lone)) = (&answer.system, lone) else {
        return;
    };
    let best = answer.best as usize;
    let lone_uncertainty_ratio = answer.levels[lone].response_mean_us.quantity().uncertainty_ratio;
    for (place, level) in answer.levels.iter_mut().enumerate() {
        if place == lone {
            continue;
        }
        // Each level uses its own think time, by the clients' clocks: the law would only repeat that R is at
        // least R(1).
        let mut system = system.clone();
        if let Some(think_us) = level.think_mean_us {
            system.think_time_s = think_us * 1e-6;
        }
        let bound_of = if place == best {
            bounds::rate_without_waiting_per_s
        } else {
            bounds::rate_bound_per_s
        };
        let bound = bound_of(&system, level.clients, lone_uncertainty_ratio);
        let rate = level.rate_per_s.quantity();
        level.laws.extend(laws::rate_within_bound(rate, bound));
        let response = level.response_mean_us.quantity();
        let response = Quantity { value: response.value * 1e-6, ..response };
        // N / X − Z, as the rate is at most the bound.
        let low = laws::less_think_time(level.clients, bound, system.think_time_s);
        level.laws.extend(laws::response_within_bound(response, low));
    }
}

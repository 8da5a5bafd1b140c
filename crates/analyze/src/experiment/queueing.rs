//! Queueing models of a sweep: the network of the measured demands over the number of clients, and the queue
//! that fits the response times at offered rates. Both show how much of a response time is waiting for measured
//! resources, and how much has other causes.

use crate::caveats::RATE_SHORTFALL_RATIO;
use crate::closed_network::curve;
use crate::open_queue::{ResponsePoint, applies, fit, mean_response_s};
use crate::resampling::Resampling;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{ClosedPoint, ClosedSystem, Demand, Level, QueueModel, QueuePoint};

/// Most clients for the network's curve, because its time grows with the square of their number.
const MOST_CLIENTS: u32 = 2000;

/// Points of a curve in a chart.
const CURVE_STEPS: usize = 60;

/// Standard deviations by which the random number of arrivals may fall short of the expected one.
const DEVIATIONS: f64 = 3.0;

/// The exact curves of the demands' network, at each level and between, from 1 client to the largest number.
/// Empty for more than 2000 clients, and without a level with one client, which alone shows the delay that no
/// demand explains.
pub(super) fn network(system: &ClosedSystem, levels: &[Level]) -> Vec<ClosedPoint> {
    let most = levels.iter().map(|level| level.clients).max().unwrap_or(0);
    if most > MOST_CLIENTS || !levels.iter().any(|level| level.clients == 1) {
        return Vec::new();
    }
    let step = most.div_ceil(CURVE_STEPS as u32).max(1);
    let is_shown = |point: &ClosedPoint| {
        (point.clients - 1).is_multiple_of(step)
            || levels.iter().any(|level| level.clients == point.clients)
    };
    curve(system, most).into_iter().filter(is_shown).collect()
}

/// Fits a queue with Poisson arrivals and one server, and one with the bottleneck's number of servers, and
/// returns the closer one. `None` with fewer than three achieved rates.
pub(super) fn queue(
    levels: &[Level],
    bottleneck: Option<&Demand>,
    resampling: Resampling,
) -> Option<QueueModel> {
    let points: Vec<ResponsePoint> = levels
        .iter()
        .filter(|level| level.offered_rate_per_s.is_some() && !is_missed(level))
        .map(point)
        .collect();
    let servers = bottleneck.map_or(1, |demand| demand.servers);
    let mut numbers = vec![1, servers];
    numbers.dedup();
    let fits = numbers.into_iter().filter_map(|servers| fit(&points, servers, resampling));
    let fit = fits.min_by(|a, b| a.residual_ratio.total_cmp(&b.residual_ratio))?;
    let (low, high) = (fit.measured_rate_min_per_s, fit.measured_rate_max_per_s);
    let curve = (0..=CURVE_STEPS)
        .map(|step| low + (high - low) * step as f64 / CURVE_STEPS as f64)
        .map(|rate_per_s| QueuePoint {
            rate_per_s,
            response_s: mean_response_s(&fit.queue, rate_per_s),
        })
        .filter(|point| point.response_s.is_finite())
        .collect();
    let highest = levels.iter().map(|level| level.rate_per_s.value).fold(0.0, f64::max);
    let contradicted_by_per_s = Some(highest).filter(|rate| *rate > fit.capacity_per_s.high);
    Some(QueueModel {
        applies: applies(&fit) && contradicted_by_per_s.is_none(),
        contradicted_by_per_s,
        fit,
        curve,
    })
}

/// Whether the bench missed the offered rate: the achieved rate fell short by more than chance, or operations
/// failed or were dropped. Never in a closed loop.
pub fn is_missed(level: &Level) -> bool {
    let Some(offered) = level.offered_rate_per_s else {
        return false;
    };
    let is_sustained = is_sustained(level.rate_per_s.value, offered, level.succeeded);
    !is_sustained || level.dropped_ratio > 0.0 || level.failed_ratio > 0.0
}

/// Whether an achieved rate equals the offered one except for chance; `operations` is the counted number.
pub(super) fn is_sustained(rate_per_s: f64, offered_per_s: f64, operations: u64) -> bool {
    let chance = DEVIATIONS / (operations.max(1) as f64).sqrt();
    rate_per_s >= (1.0 - chance.max(RATE_SHORTFALL_RATIO)) * offered_per_s
}

fn point(level: &Level) -> ResponsePoint {
    let response = level.response_mean_us.quantity();
    ResponsePoint {
        rate_per_s: level.rate_per_s.value,
        mean_response_s: Quantity { value: response.value * 1e-6, ..response },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::experiment::{Figure, OpenQueue};
    use std::collections::BTreeMap;

    fn level(clients: u32, offered: Option<f64>, rate: f64, response_s: f64) -> Level {
        Level {
            costs: Vec::new(),
            settings: BTreeMap::new(),
            workload: None,
            runs: vec![0],
            clients,
            offered_rate_per_s: offered,
            rate_per_s: Figure::bare(rate),
            response_mean_us: Figure::bare(response_s * 1e6),
            think_mean_us: None,
            response_us: BTreeMap::new(),
            failed_ratio: 0.0,
            dropped_ratio: 0.0,
            demands: Vec::new(),
            busy_ratio: BTreeMap::new(),
            disks: Vec::new(),
            laws: Vec::new(),
            succeeded: 100_000,
            shares_cpus: false,
            shared_cpus: None,
            server: None,
            generator_bound: false,
            unsteady: false,
        }
    }

    fn demand(servers: u32, demand_s: f64) -> Demand {
        Demand { name: "cpu".into(), servers, quota: None, demand_s, uncertainty_ratio: 0.01 }
    }

    #[test]
    fn queue_with_the_bottlenecks_servers_is_fitted_to_kept_rates() {
        let truth = OpenQueue { servers: 4, service_s: 0.002, delay_s: 0.0005 };
        let kept = |rate: f64| level(64, Some(rate), rate, mean_response_s(&truth, rate));
        let mut levels: Vec<Level> = [200.0, 800.0, 1400.0, 1800.0].map(kept).into();
        // The queue of this level grows to the end of the run, so it belongs to no curve.
        levels.push(level(64, Some(3000.0), 1950.0, 4.0));
        let found = queue(&levels, Some(&demand(4, 0.002)), Resampling::seeded(1)).unwrap();
        assert!(found.applies);
        assert_eq!(found.fit.queue.servers, 4);
        let capacity = found.fit.capacity_per_s.value;
        assert!((capacity / 2000.0 - 1.0).abs() < 0.01, "{capacity}");
        assert!(found.curve.iter().all(|point| point.rate_per_s <= 1800.0));
        // With another shape of bottleneck the fit is farther off and reports it.
        let other = queue(&levels, Some(&demand(1, 0.002)), Resampling::seeded(1)).unwrap();
        assert!(other.fit.residual_ratio > found.fit.residual_ratio);
        levels.push(level(64, Some(4000.0), 2200.0, 4.0));
        let contradicted = queue(&levels, Some(&demand(4, 0.002)), Resampling::seeded(1)).unwrap();
        assert_eq!(contradicted.contradicted_by_per_s, Some(2200.0));
        assert!(!contradicted.applies);
        assert_eq!(queue(&levels[2..5], None, Resampling::seeded(1)), None);
    }

    #[test]
    fn the_network_has_the_levels_and_needs_the_lone_client() {
        let system =
            ClosedSystem { demands: vec![demand(2, 0.001)], delay_s: 0.0002, think_time_s: 0.0 };
        let levels = [1, 7, 300].map(|clients| level(clients, None, 1.0, 1.0));
        let points = network(&system, &levels);
        for level in &levels {
            assert!(points.iter().any(|point| point.clients == level.clients));
        }
        assert!(points.len() < 70, "{}", points.len());
        assert!((points[0].response_s - 0.0012).abs() < 1e-9);
        assert_eq!(network(&system, &levels[1..]), []);
        let many = [1, 5000].map(|clients| level(clients, None, 1.0, 1.0));
        assert_eq!(network(&system, &many), []);
    }
}

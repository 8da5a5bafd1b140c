use super::*;
use dyno_testkit::simulate::normal;

const LEVELS: [u32; 9] = [1, 2, 3, 4, 6, 8, 16, 32, 64];

fn points(truth: &[f64; 3], levels: &[u32], noise_ratio: f64, seed: u64) -> Vec<UslPoint> {
    let point = |(clients, error): (&u32, f64)| UslPoint {
        clients: *clients,
        rate_per_s: Quantity::exact(
            curve(truth, f64::from(*clients)) * (noise_ratio * error).exp(),
        ),
    };
    levels.iter().zip(normal(seed, levels.len())).map(point).collect()
}

fn quick(seed: u64) -> Resampling {
    Resampling { draws: 200, ..Resampling::seeded(seed) }
}

#[test]
fn fit_recovers_the_parameters_of_exact_points() {
    for truth in [[1000.0, 0.05, 0.002], [40.0, 0.0, 0.0], [7000.0, 0.3, 0.0], [5e5, 0.0, 0.01]] {
        let found = fit(&points(&truth, &LEVELS, 0.0, 1), quick(1)).unwrap();
        assert!((found.lambda_per_s.value / truth[0] - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.sigma_ratio.value - truth[1]).abs() < 1e-6, "{found:?}");
        assert!((found.kappa_ratio.value - truth[2]).abs() < 1e-7, "{found:?}");
    }
}

/// Number of 200 trials with intervals that contain λ, σ, κ, the peak's clients and the peak's rate.
fn coverage(truth: &[f64; 3], levels: &[u32], noise_ratio: f64) -> [usize; 5] {
    let mut hits = [0; 5];
    for seed in 0..200 {
        let found = fit(&points(truth, levels, noise_ratio, seed), quick(seed)).unwrap();
        hits[0] += usize::from(found.lambda_per_s.contains(truth[0]));
        hits[1] += usize::from(found.sigma_ratio.contains(truth[1]));
        hits[2] += usize::from(found.kappa_ratio.contains(truth[2]));
        let holds = |open: &OpenEstimate, value: f64| {
            open.low <= value && open.high.is_none_or(|high| value <= high)
        };
        if let Some(peak) = found.peak {
            hits[3] += usize::from(holds(&peak.clients, peak_clients(truth)));
            hits[4] += usize::from(holds(&peak.rate_per_s, peak_rate(truth)));
        }
    }
    hits
}

#[test]
fn intervals_have_their_stated_coverage() {
    // 95 % of 200 are 190; fewer than 179 have a probability of 0.1 % then.
    for (truth, levels) in [
        ([1000.0, 0.05, 0.002], &LEVELS[..]),
        ([20_000.0, 0.2, 0.0005], &LEVELS[..]),
        ([1000.0, 0.05, 0.01], &[1, 2, 4, 8, 16, 32][..]),
    ] {
        let hits = coverage(&truth, levels, 0.03);
        assert!(hits.iter().all(|hits| *hits >= 179), "{truth:?}: {hits:?}");
    }
}

#[test]
fn intervals_contain_zero_parameters() {
    let hits = coverage(&[1000.0, 0.1, 0.0], &LEVELS, 0.03);
    assert!(hits[..3].iter().all(|hits| *hits >= 179), "{hits:?}");
}

#[test]
fn a_peak_beyond_the_measured_clients_is_marked() {
    let truth = [1000.0, 0.05, 0.001];
    let near = fit(&points(&truth, &LEVELS[..6], 0.0, 1), quick(1)).unwrap();
    let far = fit(&points(&truth, &LEVELS, 0.0, 1), quick(1)).unwrap();
    assert!(near.peak.unwrap().extrapolated);
    assert!(!far.peak.unwrap().extrapolated);
    assert!((far.peak.unwrap().clients.value - 950f64.sqrt()).abs() < 1e-3);
}

#[test]
fn a_rate_that_never_falls_has_no_peak() {
    let found = fit(&points(&[1000.0, 0.1, 0.0], &LEVELS, 0.0, 1), quick(1)).unwrap();
    assert_eq!(found.peak, None);
}

#[test]
fn uncertain_points_count_less() {
    let mut points = points(&[1000.0, 0.05, 0.002], &LEVELS, 0.0, 1);
    for point in &mut points {
        point.rate_per_s.uncertainty_ratio = 0.01;
    }
    points[8].rate_per_s.value *= 1.5;
    let equal = fit(&points, quick(1)).unwrap();
    points[8].rate_per_s.uncertainty_ratio = 1.0;
    let weighted = fit(&points, quick(1)).unwrap();
    assert!((equal.kappa_ratio.value - 0.002).abs() > 3e-4, "{equal:?}");
    assert!((weighted.kappa_ratio.value - 0.002).abs() < 1e-5, "{weighted:?}");
}

#[test]
fn too_little_data_is_refused() {
    let three = points(&[1000.0, 0.05, 0.002], &LEVELS[..3], 0.0, 1);
    let error = fit(&three, quick(1)).unwrap_err();
    assert_eq!(error, UslError::TooFewPoints { points: 3, levels: 3 });
    let two_levels = points(&[1000.0, 0.05, 0.002], &[1, 1, 2, 2, 2], 0.0, 1);
    let error = fit(&two_levels, quick(1)).unwrap_err();
    assert_eq!(error, UslError::TooFewPoints { points: 5, levels: 2 });
    let mut broken = points(&[1000.0, 0.05, 0.002], &LEVELS, 0.0, 1);
    broken[2].rate_per_s.value = 0.0;
    assert_eq!(fit(&broken, quick(1)), Err(UslError::NotPositive { clients: 3 }));
}

#[test]
fn the_same_seed_gives_the_same_intervals() {
    let points = points(&[1000.0, 0.05, 0.002], &LEVELS, 0.05, 3);
    assert_eq!(fit(&points, quick(7)), fit(&points, quick(7)));
    assert_ne!(fit(&points, quick(7)), fit(&points, quick(8)));
}

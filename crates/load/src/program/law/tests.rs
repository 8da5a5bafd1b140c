use super::*;
use crate::program::stream::{Place, Stream};
use dyno_plan::workload::template::Law;
use statrs::distribution::{
    ChiSquared, ContinuousCDF, Discrete, LogNormal as LogNormalLaw, Normal as NormalLaw,
    Poisson as PoissonLaw,
};

const DRAWS: u32 = 200_000;

/// Draws of `law`, one for each of the numbers from 0 on, as documents draw them.
fn drawn<T>(draw: impl Fn(u64, &mut Draws) -> T) -> impl Iterator<Item = T> {
    let stream = Stream::new(17, "law").field("value");
    (0..u64::from(DRAWS)).map(move |number| draw(number, &mut stream.at(Place::new(number))))
}

/// Probability that a right law fits as badly as the observed counts do. `weights` are the expected shares, of any sum.
fn p_value(observed: &[u64], weights: &[f64]) -> f64 {
    assert_eq!(observed.len(), weights.len());
    let scale = f64::from(DRAWS) / weights.iter().sum::<f64>();
    // Rare values are counted together: chi-square needs some of each.
    let (mut statistic, mut cells) = (0.0, 0);
    let (mut count, mut expected) = (0, 0.0);
    let last = observed.len() - 1;
    for (index, (&o, &w)) in observed.iter().zip(weights).enumerate() {
        count += o;
        expected += w * scale;
        if expected >= 10.0 || index == last {
            if expected > 0.0 {
                statistic += (count as f64 - expected).powi(2) / expected;
                cells += 1;
            } else {
                assert_eq!(count, 0, "impossible value");
            }
            (count, expected) = (0, 0.0);
        }
    }
    // A single cell always fits.
    if cells < 2 { 1.0 } else { ChiSquared::new(f64::from(cells - 1)).unwrap().sf(statistic) }
}

/// Counts of an integer law over a range.
fn counts(law: &Law, min: i64, max: i64) -> Vec<u64> {
    let law = IntegerLaw::new(law, min, max).unwrap();
    let mut counts = vec![0; (max - min + 1) as usize];
    for value in drawn(|number, draws| law.draw(number, draws)) {
        counts[(value - min) as usize] += 1;
    }
    counts
}

#[track_caller]
fn assert_law(law: &Law, min: i64, max: i64, weight: impl Fn(i64) -> f64) {
    let weights: Vec<f64> = (min..=max).map(weight).collect();
    let p = p_value(&counts(law, min, max), &weights);
    assert!(p > 0.001, "{law:?}: p = {p}");
}

fn zipf(exponent: f64) -> impl Fn(i64) -> f64 {
    move |rank| (rank as f64 + 1.0).powf(-exponent)
}

#[test]
fn uniform_law_fits() {
    assert_law(&Law::Uniform, -3, 96, |_| 1.0);
}

#[test]
fn zipf_fits_for_all_kinds_of_exponents() {
    for exponent in [0.2, 0.99, 1.0 - 1e-12, 1.0, 1.000_001, 1.5, 4.0, 60.0] {
        let weight = zipf(exponent);
        assert_law(&Law::Zipf { exponent }, 5, 304, |value| weight(value - 5));
        assert_law(&Law::Latest { exponent }, 5, 304, |value| weight(304 - value));
    }
}

#[test]
fn zipf_fits_beyond_its_prepared_range() {
    let law = Sampler::new(&Law::Zipf { exponent: 0.8 }, 9).unwrap();
    let mut counts = vec![0; 50];
    for value in drawn(|number, draws| law.integer(Ranks { min: 0, last: 49 }, number, draws)) {
        counts[value as usize] += 1;
    }
    let weights: Vec<f64> = (0..50).map(zipf(0.8)).collect();
    let p = p_value(&counts, &weights);
    assert!(p > 0.001, "p = {p}");
}

#[test]
fn zipf_fits_over_all_positive_integers() {
    // Over n ranks with exponent 1/2, the share of the first n / 4 is 1/2.
    let law = IntegerLaw::new(&Law::Zipf { exponent: 0.5 }, 0, i64::MAX).unwrap();
    let low = drawn(|n, draws| law.draw(n, draws)).filter(|&value| value < i64::MAX / 4).count();
    assert!(p_value(&[low as u64, u64::from(DRAWS) - low as u64], &[1.0, 1.0]) > 0.001);
    // Over infinitely many with exponent 2, the share of the first is 6 / pi^2.
    let law = IntegerLaw::new(&Law::Zipf { exponent: 2.0 }, 0, i64::MAX).unwrap();
    let first = drawn(|n, draws| law.draw(n, draws)).filter(|&value| value == 0).count();
    let share = 6.0 / std::f64::consts::PI.powi(2);
    let observed = [first as u64, u64::from(DRAWS) - first as u64];
    assert!(p_value(&observed, &[share, 1.0 - share]) > 0.001);
}

#[test]
fn hotspot_fits() {
    let law = Law::Hotspot { data: 0.2, draws: 0.8 };
    assert_law(&law, 0, 99, |value| if value < 20 { 0.8 / 20.0 } else { 0.2 / 80.0 });
    assert_law(&Law::Hotspot { data: 1.0, draws: 0.5 }, 0, 9, |_| 1.0);
}

#[test]
fn sequential_law_repeats_the_range() {
    let law = IntegerLaw::new(&Law::Sequential, 10, 12).unwrap();
    let values: Vec<i64> = drawn(|number, draws| law.draw(number, draws)).take(7).collect();
    assert_eq!(values, [10, 11, 12, 10, 11, 12, 10]);
}

/// How many pairs of random(0, A) and random(x, y) yield each value.
fn nurand_counts(a: i64, c: i64, x: i64, y: i64) -> Vec<f64> {
    let mut counts = vec![0.0; (y - x + 1) as usize];
    for low in 0..=a {
        for value in x..=y {
            counts[(((low | value) + c) % (y - x + 1)) as usize] += 1.0;
        }
    }
    counts
}

#[test]
fn nurand_fits_its_closed_count() {
    // Last names, customers and items of TPC-C, the last over a tenth of its range.
    for (a, c, x, y) in [(255, 123, 0, 999), (1023, 259, 1, 3000), (8191, 7911, 1, 10_000)] {
        let closed = nurand_counts(a, c, x, y);
        let law = Law::NuRand { a: a as u64, c: c as u64 };
        assert_law(&law, x, y, |value| closed[(value - x) as usize]);
    }
}

#[test]
fn normal_fits_inside_its_range() {
    let law = NormalLaw::new(50.0, 10.0).unwrap();
    let weight = |value: i64| law.cdf(value as f64 + 0.5) - law.cdf(value as f64 - 0.5);
    assert_law(&Law::Normal { mean: 50.0, sd: 10.0 }, 30, 65, weight);
}

#[test]
fn lognormal_fits_inside_its_range() {
    let law = LogNormalLaw::new(3.0, 0.5).unwrap();
    let weight = |value: i64| law.cdf(value as f64 + 0.5) - law.cdf((value as f64 - 0.5).max(0.0));
    assert_law(&Law::LogNormal { mu: 3.0, sigma: 0.5 }, 0, 60, weight);
}

#[test]
fn exponential_fits_inside_its_range() {
    let weight = |value: i64| (-(value - 10) as f64 / 20.0).exp();
    assert_law(&Law::Exponential { mean: 20.0 }, 10, 100, weight);
}

#[test]
fn geometric_fits_inside_its_range() {
    for probability in [0.05, 0.382, 0.9] {
        let weight = |value: i64| (1.0_f64 - probability).powi((value - 1) as i32);
        assert_law(&Law::Geometric { probability }, 1, 40, weight);
    }
}

#[test]
fn poisson_fits_inside_its_range() {
    for (mean, max) in [(4.0, 10), (40.0, 90)] {
        let law = PoissonLaw::new(mean).unwrap();
        assert_law(&Law::Poisson { mean }, 0, max, |value| law.pmf(value as u64));
    }
}

#[test]
fn histogram_fits() {
    let law = Law::Histogram { values: vec![-5, 0, 3, 99], weights: vec![1.0, 0.0, 2.5, 7.0] };
    // 99 is outside of the range.
    assert_law(&law, -5, 5, |value| match value {
        -5 => 1.0,
        3 => 2.5,
        _ => 0.0,
    });
}

#[test]
fn real_laws_fit_inside_their_ranges() {
    let normal = NormalLaw::new(0.0, 1.0).unwrap();
    let lognormal = LogNormalLaw::new(0.0, 0.5).unwrap();
    type Cumulative<'a> = &'a dyn Fn(f64) -> f64;
    let hot = |x: f64| if x < -0.75 { (x + 1.0) * 3.2 } else { 0.8 + (x + 0.75) / 8.75 };
    let cases: [(Law, Cumulative<'_>); 5] = [
        (Law::Uniform, &|x| x),
        (Law::Normal { mean: 0.0, sd: 1.0 }, &|x| normal.cdf(x)),
        (Law::LogNormal { mu: 0.0, sigma: 0.5 }, &|x| lognormal.cdf(x.max(0.0))),
        (Law::Exponential { mean: 0.5 }, &|x| 1.0 - (-(x + 1.0) / 0.5).exp()),
        (Law::Hotspot { data: 0.125, draws: 0.8 }, &|x| {
            // The hot eighth of -1 to 1 ends at -0.75.
            hot(x)
        }),
    ];
    for (law, cumulative) in cases {
        let sampler = Sampler::new(&law, 0).unwrap();
        let mut counts = vec![0; 80];
        for value in drawn(|_, draws| sampler.real(-1.0, 1.0, draws)) {
            counts[(((value + 1.0) * 40.0) as usize).min(79)] += 1;
        }
        let end = |cell: usize| cell as f64 / 40.0 - 1.0;
        let weights: Vec<f64> =
            (0..80).map(|cell| cumulative(end(cell + 1)) - cumulative(end(cell))).collect();
        let p = p_value(&counts, &weights);
        assert!(p > 0.001, "{law:?}: p = {p}");
    }
}

#[test]
fn chi_square_refuses_slightly_wrong_laws() {
    let refuse = |law: &Law, weight: &dyn Fn(i64) -> f64| {
        let weights: Vec<f64> = (0..=99).map(weight).collect();
        let p = p_value(&counts(law, 0, 99), &weights);
        assert!(p < 1e-6, "{law:?}: p = {p}");
    };
    refuse(&Law::Zipf { exponent: 0.99 }, &zipf(1.02));
    refuse(&Law::Uniform, &|value| 1.0 + value as f64 / 1_000.0);
    // Rounded instead of cut off, the first value would have half of its probability.
    let rounded = |value: i64| {
        let end = |x: f64| (-x.max(0.0) / 20.0).exp();
        end(value as f64 - 0.5) - end(value as f64 + 0.5)
    };
    refuse(&Law::Exponential { mean: 20.0 }, &rounded);
}

#[test]
fn values_that_stay_outside_are_clamped() {
    let normal = Law::Normal { mean: 1000.0, sd: 1.0 };
    let law = IntegerLaw::new(&normal, 0, 10).unwrap();
    assert!(drawn(|number, draws| law.draw(number, draws)).take(100).all(|value| value == 10));
    let law = Sampler::new(&normal, 0).unwrap();
    assert!(drawn(|_, draws| law.real(0.0, 1.5, draws)).take(100).all(|value| value == 1.5));
}

#[test]
fn laws_cover_all_64_bit_integers() {
    let laws = [
        Law::Uniform,
        Law::Zipf { exponent: 0.1 },
        Law::Latest { exponent: 0.1 },
        Law::Hotspot { data: 0.5, draws: 0.5 },
        Law::NuRand { a: 0, c: 5 },
        Law::Normal { mean: 0.0, sd: 1e19 },
    ];
    for law in laws {
        let integers = IntegerLaw::new(&law, i64::MIN, i64::MAX).unwrap();
        let values = drawn(|number, draws| integers.draw(number, draws));
        let negative = values.take(1000).filter(|&value| value < 0).count();
        assert!((300..700).contains(&negative), "{law:?}: {negative}");
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let laws = [
        Law::Zipf { exponent: 0.0 },
        Law::Latest { exponent: f64::NAN },
        Law::Hotspot { data: 0.0, draws: 0.5 },
        Law::Hotspot { data: 0.5, draws: 1.5 },
        Law::Normal { mean: 0.0, sd: f64::INFINITY },
        Law::LogNormal { mu: f64::NAN, sigma: 1.0 },
        Law::Exponential { mean: 0.0 },
        Law::Geometric { probability: 0.0 },
        Law::Poisson { mean: -1.0 },
        Law::Histogram { values: vec![1], weights: vec![0.0] },
        Law::Histogram { values: vec![1, 2], weights: vec![1.0] },
        Law::Histogram { values: vec![100], weights: vec![1.0] },
    ];
    for law in laws {
        assert!(IntegerLaw::new(&law, 0, 9).is_err(), "{law:?}");
    }
}

//! Figures of a phase: exact, and independent of the order of windows.

use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::model::{Arrivals, ClientUsage, PhaseKind};
use proptest::prelude::*;

#[test]
fn scalar_figures_of_three_windows_are_exact() {
    let record = crate::common::accumulated(3).to_record();
    assert_eq!(record.name, PhaseKind::Measure);
    assert_eq!((record.start_s, record.duration_s), (0.0, 3.0));
    assert_eq!(record.offered_rate_per_s, Some(12.0));
    assert_eq!(record.achieved_rate_per_s, 11.0);
    assert_eq!(record.mean_in_flight, 0.121);
    assert_eq!(record.little_ratio, Some(121.0 / 120.0));
    assert_eq!(record.reconnects, 3);
    assert_eq!(record.arrivals, Some(Arrivals { due: 36, started: 36, dropped: 0, late: 3 }));
    assert_eq!(
        record.client,
        ClientUsage {
            cpu_user_s: 0.009,
            cpu_system_s: 0.027,
            cpu_us_per_operation: 1_000.0,
            max_rss_bytes: 10_000_002
        }
    );
    assert_eq!(record.errors.into_iter().collect::<Vec<_>>(), [("timeout".to_owned(), 3)]);
}

#[test]
fn latencies_come_from_merged_histograms_and_exact_sums() {
    let record = crate::common::accumulated(3).to_record();
    let read = &record.operations["read"];
    assert_eq!((read.count, read.errors, read.documents), (30, 0, 30));
    assert_eq!(read.rate_per_s, 10.0);
    // 1..=10, 2..=11 and 3..=12 ms: sum 55 + 65 + 75.
    assert_eq!(read.response_time_us.mean, 6_500.0);
    assert_eq!(read.service_time_us.mean, 6_000.0);
    assert_eq!(read.start_delay_us.mean, 500.0);
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.001;
    assert!(near(read.response_time_us.min, 1_000.0), "{read:?}");
    // The 15th of the 30 values in order is 6 ms, the 27th is 10 ms.
    assert!(near(read.response_time_us.p50, 6_000.0), "{read:?}");
    assert!(near(read.response_time_us.p90, 10_000.0), "{read:?}");
    assert!(near(read.response_time_us.max, 12_000.0), "{read:?}");
    let update = &record.operations["update"];
    assert_eq!((update.count, update.errors), (3, 3));
}

#[test]
fn a_phase_without_windows_has_no_infinite_figures() {
    let record = PhaseAccumulator::new(PhaseKind::Load, None).to_record();
    assert_eq!(record.achieved_rate_per_s, 0.0);
    assert_eq!(record.mean_in_flight, 0.0);
    assert_eq!(record.client.cpu_us_per_operation, 0.0);
    assert_eq!(record.little_ratio, None);
    assert_eq!(record.arrivals, None);
}

#[test]
fn a_closed_loop_has_no_arrivals() {
    let mut phase = PhaseAccumulator::new(PhaseKind::Measure, None);
    phase.add(&crate::common::window(PhaseKind::Measure, 0)).unwrap();
    let record = phase.to_record();
    assert_eq!((record.offered_rate_per_s, record.arrivals), (None, None));
}

#[test]
fn clients_that_wait_have_a_mean_think_time_and_no_arrivals() {
    let mut phase = PhaseAccumulator::new(PhaseKind::Measure, Some(12.0));
    for index in 0..2 {
        let mut window = crate::common::window(PhaseKind::Measure, index);
        window.counts.thinking_ns = 36_000_000;
        phase.add(&window).unwrap();
    }
    let record = phase.to_record();
    // 72 ms over eleven successes and one failure in each window.
    assert_eq!(record.mean_think_time_us, Some(3_000.0));
    assert_eq!((record.offered_rate_per_s, record.arrivals), (Some(12.0), None));
    let others = crate::common::accumulated(3).to_record();
    assert_eq!(others.mean_think_time_us, None);
}

#[test]
fn adding_windows_does_not_increase_memory() {
    let mut phase = crate::common::accumulated(1);
    let size = |phase: &PhaseAccumulator| -> usize {
        let buckets = |(_, d): (&str, &dyno_record::accumulate::Distribution)| {
            d.response.distinct_values()
                + d.service.distinct_values()
                + d.start_delay.distinct_values()
        };
        phase.distributions().map(buckets).sum()
    };
    let before = size(&phase);
    for index in 1..200 {
        phase.add(&crate::common::window(PhaseKind::Measure, index)).unwrap();
    }
    assert_eq!(size(&phase), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_order_of_windows_does_not_matter(order in Just((0..8u64).collect::<Vec<_>>()).prop_shuffle()) {
        let mut shuffled = PhaseAccumulator::new(PhaseKind::Measure, Some(crate::common::OFFERED_PER_S));
        for index in order {
            shuffled.add(&crate::common::window(PhaseKind::Measure, index)).unwrap();
        }
        let ordered = crate::common::accumulated(8);
        prop_assert_eq!(shuffled.to_record(), ordered.to_record());
        prop_assert!(shuffled.distributions().eq(ordered.distributions()));
    }
}

//! Counters that are read before or after the ends of a phase.

use super::*;

/// Counters with a constant use per operation, at 5,000 operations per second from 0 to 21 s and little after
/// that, read at these times.
fn steady(at: [f64; 2]) -> Consumption {
    const IDLE_RATIO: f64 = 0.02;
    let until = |at_s: f64| at_s.clamp(0.0, 21.0) + (at_s - 21.0).max(0.0) * IDLE_RATIO;
    let grown = until(at[1]) - until(at[0]);
    Consumption {
        start_s: at[0],
        end_s: at[1],
        // 50 µs, 3 switches and 1,170 bytes of 5,000 operations.
        server_cpu_s: Some(0.25 * grown),
        context_switches: Some((15_000.0 * grown) as u64),
        device: used()
            .device
            .map(|device| DeviceUse { written_bytes: (5_850_000.0 * grown) as u64, ..device }),
        ..used()
    }
}

#[test]
fn late_readings_are_scaled_and_the_truth_lies_in_the_interval() {
    let exact = [read(1.0, 1.0), read(21.0, 21.0)];
    for (late_s, later_s) in [(0.0, 0.0), (0.3, 0.0), (0.3, 0.4), (2.0, 3.0), (0.0, 0.3)] {
        let at = [1.0 + late_s, 21.0 + later_s];
        let readings = at.map(|at_s| read(at_s, at_s));
        let mut document = read_at(readings, readings, true);
        let read = document.consumption[0].read;
        document.consumption = vec![Consumption { read, ..steady(at) }];
        // One warm-up operation in a hundred thousand ends in the phase.
        let found = costs(&document);
        for (kind, truth) in [
            (CostKind::ServerCpu, 50.0),
            (CostKind::ContextSwitches, 3.0),
            (CostKind::WrittenBytes, 1_170.0),
        ] {
            let figure = found.of(kind).expect("a counted figure");
            let (low, high) = figure.low.zip(figure.high).expect("an interval");
            assert!(low <= truth && truth <= high, "{late_s} {later_s} {kind:?}: {figure:?}");
            // Use after the end is nearly 0, and the missed start is like the rest.
            let near_ratio = 0.01 + later_s / 20.0 * 0.02;
            assert!(
                (figure.value / truth - 1.0).abs() < near_ratio,
                "{late_s} {later_s}: {figure:?}"
            );
            // Its width is at most the missed or additional time.
            let caveat = (late_s + later_s) / 20.0 + 0.005;
            assert!(low > truth * (1.0 - 1.3 * caveat), "{late_s} {later_s}: {figure:?}");
            assert!(high < truth * (1.0 + 1.3 * caveat), "{late_s} {later_s}: {figure:?}");
        }
    }
    assert!(
        costs(&read_at(exact, exact, false))
            .of(CostKind::SentBytes)
            .expect("a counted figure")
            .low
            .is_none()
    );
}

#[test]
fn early_reading_includes_idle_time_or_warm_up_load() {
    // Half a second of 20 s.
    let early = [read(0.5, 0.5), read(21.0, 21.0)];
    let idle = costs(&read_at(early, early, false));
    let figure = idle.of(CostKind::SentBytes).expect("a counted figure");
    let (low, high) = figure.low.zip(figure.high).expect("an interval");
    assert_eq!((figure.value, high), (800.0, 800.0));
    assert!((low - 780.0).abs() < 1e-9, "{figure:?}");
    let led = costs(&read_at(early, early, true));
    let figure = led.of(CostKind::SentBytes).expect("a counted figure");
    let expected = 800.0 * 20.0 / 20.5;
    assert!((figure.value - expected).abs() < 1e-9, "{figure:?}");
    assert!(figure.high.is_some_and(|high| (high - expected * 1.025).abs() < 1e-9), "{figure:?}");
}

#[test]
fn phase_ends_with_a_last_operation_before_its_planned_end() {
    // At one operation in a few seconds nothing is due in the last two.
    let early = [read(1.0, 1.0), read(19.0, 19.1)];
    let found = costs(&read_at(early, early, true));
    let figure = found.of(CostKind::SentBytes).expect("a counted figure");
    let high = figure.high.expect("an interval");
    assert!(figure.value == 800.0 && high == 800.0, "{figure:?}");
}

#[test]
fn slow_answer_widens_only_figures_that_servers_report() {
    let kernel = [read(1.0, 1.0), read(21.0, 21.0)];
    let found = costs(&read_at(kernel, [read(1.0, 1.4), read(21.0, 21.0)], true));
    let sent = found.of(CostKind::SentBytes).expect("a counted figure");
    // The answer was created after 0.2 s ± 0.2 s.
    assert!((sent.value - 800.0 * 20.0 / 19.8).abs() < 1e-9, "{sent:?}");
    assert!(sent.high.is_some_and(|high| (high / sent.value - 1.02).abs() < 1e-9), "{sent:?}");
    let cpu = found.of(CostKind::ServerCpu).expect("a counted figure");
    assert!((cpu.value - 50.0).abs() < 1e-9, "{cpu:?}");
}

#[test]
fn counters_include_operations_left_over_from_the_warm_up() {
    let exact = [read(1.0, 1.0), read(21.0, 21.0)];
    let mut document = read_at(exact, exact, true);
    // Of 100,000 operations.
    document.phases[1].mean_in_flight = 500.0;
    let figure = of_phase(&document, &document.phases[1], Figure::bare(5_000.0))
        .and_then(|found| found.of(CostKind::SentBytes))
        .expect("a counted figure");
    assert_eq!(figure.value, 800.0);
    let (low, high) = figure.low.zip(figure.high).expect("an interval");
    assert!((low - 796.0).abs() < 1e-9 && high == 800.0, "{figure:?}");
}

#[test]
fn amplification_includes_late_writes_and_scales_only_the_start() {
    let late = [read(2.0, 2.0), read(25.0, 25.0)];
    let mut document = read_at(late, late, false);
    let device = document.consumption[0].device.as_mut().expect("a value");
    device.deferred_bytes = Some(39_000_000);
    let found = costs(&document);
    let figure = found.of(CostKind::WriteAmplification).expect("changed documents");
    assert!((figure.value - 4.0 * 20.0 / 19.0).abs() < 1e-9, "{figure:?}");
    let low = figure.low.expect("an interval");
    assert!((low / figure.value - 0.95).abs() < 1e-9, "{figure:?}");
}

#[test]
fn late_warm_up_reading_includes_load_of_the_next_phase() {
    let mut document = read_at([read(1.0, 1.0), read(21.0, 21.0)], [read(1.0, 1.0); 2], true);
    let (start, end) = (read(0.0, 0.0), read(1.25, 1.25));
    document.consumption = vec![Consumption {
        phase: PhaseKind::Warmup,
        read: Some(ReadTimes {
            kernel_at_start: start,
            kernel_at_end: end,
            servers_at_start: start,
            servers_at_end: end,
        }),
        ..used()
    }];
    let found =
        of_phase(&document, &document.phases[0], Figure::bare(1.0)).expect("a counted figure");
    let figure = found.of(CostKind::SentBytes).expect("a counted figure");
    // A quarter of a second of load in addition to the second of the phase.
    assert!((figure.value - 640.0).abs() < 1e-9, "{figure:?}");
}

#[test]
fn server_reported_cpu_time_is_read_with_the_answers() {
    let exact = [read(1.0, 1.0), read(21.0, 21.0)];
    let mut document = read_at(exact, [read(6.0, 6.0), read(21.0, 21.0)], true);
    document.consumption[0].processes = 0;
    let cpu = costs(&document).of(CostKind::ServerCpu).expect("a counted figure");
    assert!((cpu.value - 50.0 * 20.0 / 15.0).abs() < 1e-9, "{cpu:?}");
}

#[test]
fn phase_over_before_its_counters_were_read_has_no_costs() {
    let kernel = [read(12.0, 12.0), read(21.0, 21.0)];
    let servers = [read(10.0, 10.0), read(21.0, 21.0)];
    let found = costs(&read_at(kernel, servers, false));
    assert!(found.of(CostKind::ServerCpu).is_none() && found.of(CostKind::WrittenBytes).is_none());
    assert!(found.of(CostKind::SentBytes).is_some());
    let what: Vec<Counted> = found.unknown.iter().map(|one| one.what).collect();
    assert_eq!(what, [Counted::ServerCpu, Counted::Device, Counted::Energy]);
}

#[test]
fn counters_that_agents_read_every_so_often_are_in_proportion() {
    let mut document = document();
    document.consumption =
        vec![Consumption { every_s: Some(1.0), server_cpu_error_s: None, ..used() }];
    let found = costs(&document);
    let figure = found.of(CostKind::ServerCpu).expect("a counted figure");
    // During 1.25 of the 20 seconds the use may be 0, or twice the mean.
    let (low, high) = (figure.low.unwrap(), figure.high.unwrap());
    assert!((low / figure.value - 0.9375).abs() < 1e-6, "{figure:?}");
    assert!((high / figure.value - 1.0625).abs() < 1e-6, "{figure:?}");
    assert_eq!(found.of(CostKind::WrittenBytes).map(|one| one.low.is_some()), Some(true));
    document.consumption[0].every_s = Some(10.0);
    let found = costs(&document);
    assert_eq!(found.of(CostKind::ServerCpu), None, "the phase is too short");
    assert!(found.unknown.iter().any(|one| one.reason == READ_TOO_LATE));
}

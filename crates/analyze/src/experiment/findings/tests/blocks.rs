use super::*;
use crate::experiment::blocks;
use crate::experiment::sweep::kept_rate_per_s;
use dyno_record::experiment::{Block, BlocksAnswer};

/// The sweeps over clients and over rates as one experiment; the points of both alternate.
pub(super) fn both() -> Experiment {
    let (mut closed, open) = (clients(), rates());
    let rates = open.points.into_iter().map(|mut point| {
        point.block = Some(Block::Open);
        point.settings.insert(CLIENTS.into(), "64".into());
        point
    });
    let mut rates: Vec<Point> = rates.collect();
    let mut points = Vec::new();
    for mut point in closed.points.drain(..) {
        point.block = Some(Block::Closed);
        points.push(point);
        points.extend(rates.pop());
    }
    closed.points = points;
    closed.axes.extend(open.axes);
    closed.plan = open.plan;
    closed
}

pub(super) fn answered(mut experiment: Experiment) -> Experiment {
    experiment.answer = blocks::answer(&experiment, &BTreeMap::new(), Resampling::seeded(1));
    experiment
}

fn blocks_of(experiment: &Experiment) -> &BlocksAnswer {
    match experiment.answer.as_ref().expect("an answer") {
        Answer::Blocks(answer) => answer,
        other => panic!("an answer without blocks: {other:?}"),
    }
}

#[test]
fn each_block_has_the_answer_of_a_separate_sweep() {
    let both = answered(both());
    let found = blocks_of(&both);
    let of = |experiment: &Experiment| match experiment.answer.clone() {
        Some(Answer::Sweep(answer)) => *answer,
        other => panic!("not a sweep: {other:?}"),
    };
    let mut closed = found.closed.clone().expect("clients were swept");
    assert_eq!((closed.block, closed.axis.as_deref()), (Some(Block::Closed), Some(CLIENTS)));
    assert!(closed.usl.is_some() && !closed.bounds.is_empty() && closed.knee.is_some());
    let mut open = found.open.clone().expect("rates were swept");
    assert_eq!((open.block, open.axis.as_deref()), (Some(Block::Open), Some(RATE)));
    assert!(open.queue.is_some() && open.usl.is_none() && open.bounds.is_empty());
    // Only run numbers and settings differ.
    for (own, alone) in [(&mut closed, of(&clients())), (&mut open, of(&rates()))] {
        own.block = None;
        for (level, other) in own.levels.iter_mut().zip(&alone.levels) {
            let points = level.runs.iter().map(|place| &both.points[*place as usize]);
            assert!(points.clone().all(|point| point.settings == level.settings));
            level.runs.clone_from(&other.runs);
            level.settings.clone_from(&other.settings);
        }
        assert_eq!(*own, alone);
    }
}

#[test]
fn closed_loop_x_max_is_reported_with_the_kept_offered_rate() {
    let both = answered(both());
    let found = the(&both, "x-max-of-blocks");
    assert_eq!(
        found.statement.to_string(),
        "x-max-of-blocks (at: with-clients (clients: [8]), has_rates: true, is_reached: true, kept: 16,000/s, share: 85 %, \
         x_max: 18,800/s in 18,600/s to 19,000/s)"
    );
    let has = |part: &str| super::reported(&found.evidence).iter().any(|text| text.contains(part));
    assert!(has("mean: 425 µs"), "{found:?}");
    assert!(has("more-clients-bring-nothing"), "{found:?}");
    assert!(has("rates-not-kept (at: at-offered-rates (rates: [30,000/s]))"), "{found:?}");
    // Each block has its own advice.
    the(&both, "in-closed-loop (said: recommended-clients (");
    the(&both, "in-open-loop (said: achieved-offered-rates (");
}

#[test]
fn each_finding_about_one_block_names_the_block() {
    let both = answered(both());
    for (word, block) in
        [("recommended-clients", "in-closed-loop"), ("achieved-offered-rates", "in-open-loop")]
    {
        let reported = texts(&both);
        let reported: Vec<&String> = reported.iter().filter(|text| text.contains(word)).collect();
        assert!(!reported.is_empty(), "{word}");
        let others = reported.iter().filter(|text| !text.starts_with(block));
        assert_eq!(others.count(), 0, "{word}: {reported:?}");
    }
    // Possible changes appear once.
    the(&both, "more-cpus");
    // Equal findings of both appear once, without a block.
    let mut unwatched = both;
    for point in &mut unwatched.points {
        let figures = point.figures.as_mut().expect("a run");
        figures.demands.clear();
    }
    let found = the(&answered(unwatched), "server-not-watched");
    assert!(found.statement.code == "server-not-watched", "{found:?}");
}

#[test]
fn rising_rate_bounds_x_max_and_client_limited_rate_does_not() {
    let mut growing = both();
    growing.points.retain(|point| {
        let clients = &point.settings[CLIENTS];
        point.block == Some(Block::Open) || ["1", "2", "4"].contains(&clients.as_str())
    });
    let growing = answered(growing);
    assert!(!blocks_of(&growing).is_x_max_reached);
    let found = the(&growing, "x-max-of-blocks");
    assert!(found.statement.to_string().contains("is_reached: false"), "{found:?}");
    let mut of_the_client = both();
    for point in &mut of_the_client.points {
        let figures = point.figures.as_mut().expect("a run");
        if figures.offered_rate_per_s.is_none() {
            figures.caveats.push(CaveatKind::GeneratorBottleneck);
        }
    }
    let of_the_client = answered(of_the_client);
    assert_eq!(blocks_of(&of_the_client).x_max_per_s, None);
    none_says(&of_the_client, "x-max");
    the(&of_the_client, "generator-bound");
}

#[test]
fn single_block_is_answered_and_unblocked_points_are_crossed() {
    let mut first = both();
    first.points.retain(|point| point.block == Some(Block::Closed));
    let first = answered(first);
    assert!(blocks_of(&first).open.is_none());
    let found = the(&first, "x-max-of-blocks");
    assert!(found.statement.to_string().contains("(clients: [8])"), "{found:?}");
    let mut crossed = both();
    for point in &mut crossed.points {
        point.block = None;
    }
    let crossed = answered(crossed);
    let Some(Answer::Sweep(found)) = &crossed.answer else {
        panic!("it has blocks: {:?}", crossed.answer);
    };
    assert_eq!((found.axis.as_deref(), found.levels.len()), (None, 9));
}

/// The closed loop up to some clients, and the open loop.
pub(super) fn up_to(clients: &[&str]) -> Experiment {
    let mut some = both();
    some.points.retain(|point| {
        let its = &point.settings[CLIENTS];
        point.block == Some(Block::Open) || clients.contains(&its.as_str())
    });
    some
}

#[test]
fn poorly_known_rates_do_not_make_x_max_more_certain() {
    let mut growing = up_to(&["1", "2", "4"]);
    for point in &mut growing.points {
        let figures = point.figures.as_mut().expect("a run");
        if figures.offered_rate_per_s.is_none() {
            let rate = &mut figures.rate_per_s;
            (rate.low, rate.high) = (Some(0.6 * rate.value), Some(1.4 * rate.value));
        }
    }
    assert!(!blocks_of(&answered(growing)).is_x_max_reached);
}

#[test]
fn offered_rate_above_the_closed_loop_means_too_few_clients() {
    let found = answered(up_to(&["1"]));
    assert!(!blocks_of(&found).is_x_max_reached);
    let reported = the(&found, "is_reached: false");
    let evidence = super::reported(&reported.evidence);
    let said = evidence.iter().find(|text| text.contains("kept-more-than"));
    let said = said.expect("a reason");
    assert!(said.contains("clients: 1, kept: 16,000/s"), "{said}");
}

#[test]
fn rate_is_not_kept_when_arrivals_are_dropped_failed_or_missing() {
    let kept = |change: fn(&mut Figures)| {
        let mut experiment = both();
        for point in &mut experiment.points {
            let figures = point.figures.as_mut().expect("a run");
            if figures.offered_rate_per_s == Some(16_000.0) {
                change(figures);
            }
        }
        let found = answered(experiment);
        blocks_of(&found).open.as_ref().and_then(kept_rate_per_s)
    };
    assert_eq!(kept(|_| ()), Some(16_000.0));
    for change in [
        (|figures: &mut Figures| figures.dropped_ratio = 0.01) as fn(&mut Figures),
        |figures| figures.failed_ratio = 0.01,
        |figures| figures.rate_per_s.value *= 0.96,
    ] {
        assert!(kept(change) < Some(16_000.0));
    }
}

//! The findings of a comparison of two plans.

use super::super::super::ab::tests::{answer as answer_of, demand, row};
use super::*;
use dyno_record::experiment::{
    AbAnswer, AbOptions, Basis, Comparison, ComparisonVerdict, DiskFigures, DisturbedPair,
    Explanation, Side, Statistic,
};

pub(super) fn cases() -> Vec<Case> {
    let cases = [caveats(), verdicts(), bounds(), demands(), pairs()];
    cases.into_iter().flatten().collect()
}

/// A pair of runs with this comparison.
fn compared(rows: Vec<Comparison>) -> Experiment {
    let run = figures(8, None, 18_800.0, 425.0);
    let mut experiment = experiment((CLIENTS, &["8", "8"]), vec![run.clone(), run]);
    for (point, side) in experiment.points.iter_mut().zip([Side::A, Side::B]) {
        point.side = Some(side);
    }
    experiment.options.max_steal = Some(0.01);
    experiment.options.ab = Some(AbOptions { max_pairs: 5, ..AbOptions::default() });
    runs(&mut experiment).for_each(|run| run.stolen_ratio = Some(0.0));
    experiment.answer = Some(Answer::Ab(Box::new(answer_of(rows))));
    experiment
}

fn rate(ratio: [f64; 3], verdict: ComparisonVerdict) -> Comparison {
    row(Statistic::Rate, ratio, verdict)
}

fn slower() -> Experiment {
    compared(vec![rate([0.88, 0.9, 0.92], ComparisonVerdict::Slower)])
}

fn unclear() -> Experiment {
    compared(vec![rate([0.9, 1.02, 1.15], ComparisonVerdict::NotEnoughData)])
}

fn plans(experiment: &mut Experiment) -> &mut AbAnswer {
    match experiment.answer.as_mut() {
        Some(Answer::Ab(answer)) => answer,
        other => panic!("not a comparison: {other:?}"),
    }
}

fn caveats() -> Vec<Case> {
    let stolen = with(slower(), |it| {
        let pair = DisturbedPair { pair: 0, stolen_ratio: 0.03 };
        plans(it).set_aside = vec![pair];
    });
    let full = with(slower(), |it| {
        runs(it).for_each(|run| run.caveats = vec![CaveatKind::GeneratorBottleneck]);
        let said = statement!("client-cpus-busy", used = crate::values::number(0.99));
        caveat(it, CaveatKind::GeneratorBottleneck, said);
    });
    vec![
        case("pairs-set-aside", stolen)
            .not_if("none was", |it| plans(it).set_aside.clear())
            .not_without("stolen-time", "not-watched", |it| {
                plans(it).set_aside.clear();
                runs(it).for_each(|run| run.stolen_ratio = None);
            }),
        case("runs-generator-bound", full).not_if("the client had time left", |it| {
            runs(it).for_each(|run| run.caveats.clear());
        }),
    ]
}

fn verdicts() -> Vec<Case> {
    let same = ComparisonVerdict::NoDifferenceLargerThan { margin_ratio: 0.05 };
    let alike = compared(vec![rate([0.99, 1.0, 1.01], same)]);
    let faster = compared(vec![rate([1.08, 1.1, 1.12], ComparisonVerdict::Faster)]);
    let p99 = Statistic::Percentile { percent: 99.0 };
    let both = with(slower(), |it| {
        let times = row(p99, [1.9, 2.0, 2.1], ComparisonVerdict::Slower);
        plans(it).comparisons.push(times);
    });
    // The deciding figure has no interval.
    let undecided = |it: &mut Experiment| {
        plans(it).deciding = Statistic::Percentile { percent: 99.0 };
    };
    let by_chance = |it: &mut Experiment| *it = unclear();
    let reason = "deciding-has-no-interval";
    vec![
        case("faster", faster).not_if("it is by chance", by_chance).not_without(
            reason,
            "not-enough-data",
            undecided,
        ),
        case("slower", slower()).not_if("it is by chance", by_chance).not_without(
            reason,
            "not-enough-data",
            undecided,
        ),
        case("no-difference-larger-than", alike).not_if("it may be larger", by_chance).not_without(
            reason,
            "not-enough-data",
            undecided,
        ),
        case("not-enough-data-for-difference", unclear())
            .not_if("there is one for certain", |it| *it = slower())
            .not_without(reason, "not-enough-data", undecided),
        case("not-enough-data", with(slower(), undecided))
            .not_if("what decides has an interval", |it| *it = slower()),
        case("others-with-b", both).not_if("it is by chance", |it| {
            let p99 = Statistic::Percentile { percent: 99.0 };
            plans(it).comparisons[1] = row(p99, [0.9, 2.0, 4.4], ComparisonVerdict::NotEnoughData);
        }),
    ]
}

/// Gives both sides a disk that is always busy and serves several requests at once.
fn busy_disk(experiment: &mut Experiment) {
    unwatched(experiment, ResourceKind::Disk);
    for run in runs(experiment) {
        let disk = resource(ResourceKind::Disk, 1, 0.99);
        let rate = run.rate_per_s.quantity();
        run.demands.extend(super::super::demand(&disk, rate));
        run.resources.push(disk);
        run.disks = vec![DiskFigures { busy_ratio: 0.99, ..super::super::disks::idle_disk() }];
    }
}

fn one_at_a_time(experiment: &mut Experiment) {
    for run in runs(experiment) {
        run.disks[0].serves_several = Some(false);
    }
}

fn bounds() -> Vec<Case> {
    let busy = with(slower(), busy_disk);
    vec![
        case("disk-without-bound", busy)
            .not_if("they serve one at a time", one_at_a_time)
            .not_without("name: server CPU", "not-watched", |it| {
                unwatched(it, ResourceKind::ServerCpu);
                plans(it).demands.clear();
            })
            .not_without("name: disk", "not-watched", |it| {
                unwatched(it, ResourceKind::Disk);
            }),
    ]
}

fn demands() -> Vec<Case> {
    let explained = |by| {
        with(slower(), |it| {
            plans(it).demands = vec![demand([1.06, 1.1, 1.14])];
            plans(it).explanation = Some(by);
        })
    };
    let name = resource_name(ResourceKind::ServerCpu).to_owned();
    let unexplained = |it: &mut Experiment| plans(it).explanation = None;
    let uncertain = |it: &mut Experiment| {
        plans(it).demands = vec![demand([0.97, 1.1, 1.25])];
    };
    let server_unwatched = |it: &mut Experiment| {
        unwatched(it, ResourceKind::ServerCpu);
        plans(it).demands.clear();
    };
    vec![
        case("explanation", explained(Explanation::Demand { name }))
            .not_if("nothing has to be explained", unexplained),
        case(
            "explanation",
            with(slower(), |it| {
                plans(it).explanation = Some(Explanation::NotWatched);
            }),
        )
        .not_if("nothing has to be explained", unexplained),
        case(
            "only-demands-differ",
            with(unclear(), |it| {
                plans(it).demands = vec![demand([1.06, 1.1, 1.14])];
            }),
        )
        .not_if("it is by chance", uncertain)
        .not_without("name: server CPU", "not-watched", server_unwatched),
        case("not-watched", with(slower(), server_unwatched))
            .not_if("everything was watched", |it| *it = slower()),
    ]
}

fn pairs() -> Vec<Case> {
    let alone = with(slower(), |it| {
        plans(it).comparisons[0].basis = Basis::WithinRun;
    });
    let hopeless = |it: &mut Experiment| plans(it).pairs_needed = None;
    let certain = |it: &mut Experiment| *it = slower();
    vec![
        case("single-pair", alone).not_if("there are several", |it| {
            plans(it).comparisons[0].basis = Basis::BetweenRuns;
        }),
        case("pairs-needed", unclear())
            .not_if("there are enough", certain)
            .not_if("no number would decide", hopeless),
        case("no-number-of-pairs-would-tell", with(unclear(), hopeless))
            .not_if("there are enough", certain)
            .not_if("some would", |it| plans(it).pairs_needed = Some(12)),
        case(
            "no-number-of-pairs-would-tell",
            with(unclear(), |it| plans(it).pairs_needed = Some(3894)),
        )
        .not_if("there are enough", certain),
    ]
}

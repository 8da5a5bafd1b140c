//! The findings of searches for the highest rate and for an objective.

use super::super::super::{slo, xmax};
use super::*;
use dyno_record::experiment::{ClientsEnd, ObjectiveEnd, SloAnswer, XmaxAnswer};

pub(super) fn cases() -> Vec<Case> {
    let cases = [
        maxima(),
        confirmations(),
        ends_of_maxima(),
        objectives(),
        ends_of_objectives(),
        single_runs(),
    ];
    cases.into_iter().flatten().collect()
}

/// Two runs with the answer.
fn answered_by(answer: Answer) -> Experiment {
    let run = figures(8, None, 18_800.0, 425.0);
    let mut experiment = experiment((CLIENTS, &["8", "8"]), vec![run.clone(), run]);
    experiment.options.max_steal = Some(0.01);
    runs(&mut experiment).for_each(|run| run.stolen_ratio = Some(0.0));
    experiment.answer = Some(answer);
    experiment
}

fn search(change: impl FnOnce(&mut XmaxAnswer)) -> Experiment {
    let mut answer = xmax::tests::answer();
    change(&mut answer);
    answered_by(Answer::Xmax(Box::new(answer)))
}

fn searched(experiment: &mut Experiment) -> &mut XmaxAnswer {
    match experiment.answer.as_mut() {
        Some(Answer::Xmax(answer)) => answer,
        other => panic!("not a search for a rate: {other:?}"),
    }
}

fn objective(change: impl FnOnce(&mut SloAnswer)) -> Experiment {
    let mut answer = slo::tests::answer(Some(10_000.0), ObjectiveEnd::Resolved);
    change(&mut answer);
    answered_by(Answer::Slo(Box::new(answer)))
}

fn kept(experiment: &mut Experiment) -> &mut SloAnswer {
    match experiment.answer.as_mut() {
        Some(Answer::Slo(answer)) => answer,
        other => panic!("not a search for an objective: {other:?}"),
    }
}

fn by_client(answer: &mut XmaxAnswer) {
    let reason = statement!("client-limit-in-runs", runs = 2u32, all = 2u32, clients = 8u32);
    answer.client_maximum_per_s = answer.x_max_per_s.take();
    answer.generator_bound = vec![reason];
}

fn maxima() -> Vec<Case> {
    vec![
        case("client-maximum", search(by_client))
            .not_if("the server was", |it| *it = search(|_| ())),
        case("x-max", search(|_| ()))
            .not_if("the client was the limit", |it| by_client(searched(it))),
        case("bottleneck", search(|_| ()))
            .not_if("the client was the limit", |it| by_client(searched(it)))
            .not_without("name: server CPU", "server-not-watched", unwatched_server),
        case("server-not-watched", with(search(|_| ()), unwatched_server))
            .not_if("it was watched", |it| *it = search(|_| ())),
    ]
}

fn unwatched_server(experiment: &mut Experiment) {
    unwatched(experiment, ResourceKind::ServerCpu);
    searched(experiment).bottleneck = None;
}

fn confirmations() -> Vec<Case> {
    // No tried rate meets the objective.
    let missed = |number: usize| {
        move |answer: &mut XmaxAnswer| {
            let mut one = answer.confirmations[0].clone();
            one.kept = false;
            answer.confirmations = vec![one; number];
            answer.sustained_rate_per_s = None;
        }
    };
    let all = crate::experiment::xmax::CONFIRMATION_RATIOS.len();
    let by_client = search(|answer| {
        missed(all)(answer);
        answer.confirmations[0].generator_bound = true;
    });
    let as_usual = |it: &mut Experiment| *it = search(|_| ());
    let not_offered = |it: &mut Experiment| searched(it).confirmations.clear();
    vec![
        case("sustained", search(|_| ()))
            .not_if("it was not kept", |it| {
                searched(it).sustained_rate_per_s = None;
            })
            .not_if("none was offered", not_offered),
        case("none-sustained-yet", search(missed(1)))
            .not_if("it was kept", as_usual)
            .not_if("none was offered", not_offered),
        case("none-sustained", search(missed(all)))
            .not_if("it was kept", as_usual)
            .not_if("none was offered", not_offered),
        case("none-sustained-by-client", by_client)
            .not_if("the client had time left", |it| {
                searched(it).confirmations[0].generator_bound = false;
            })
            .not_if("none was offered", not_offered),
    ]
}

fn ends_of_maxima() -> Vec<Case> {
    let ends = [
        ("rate-still-grew", ClientsEnd::StillGrowing),
        ("most-clients-reached", ClientsEnd::LimitReached),
        ("clients-search-ended-early", ClientsEnd::OutOfMeasurements),
    ];
    let reported = ends.map(|(code, end)| {
        case(code, search(|answer| answer.search.end = end)).not_if("the rate stays", |it| {
            searched(it).search.end = ClientsEnd::Plateau;
        })
    });
    reported.into()
}

fn objectives() -> Vec<Case> {
    let by_chance = objective(|answer| slo::tests::with_outlier(answer, 10_400.0, true));
    let stolen = objective(|answer| {
        let mut lost = answer.attempts[3].clone();
        lost.stolen_ratio = Some(0.137);
        answer.set_aside = vec![lost];
    });
    let none = |it: &mut Experiment| kept(it).search.rate_per_s = None;
    let as_usual = |it: &mut Experiment| *it = objective(|_| ());
    vec![
        case(
            "client-too-busy-in-runs",
            objective(|answer| answer.attempts[3].generator_bound = true),
        )
        .not_if("the client had time left", as_usual),
        case("runs-set-aside", stolen).not_if("none was", as_usual).not_without(
            "stolen-time",
            "not-watched",
            |it| {
                kept(it).set_aside[0].stolen_ratio = None;
                runs(it).for_each(|run| run.stolen_ratio = None);
            },
        ),
        case("no-rate-keeps-objective", with(objective(|_| ()), none)).not_if("one does", as_usual),
        case("objective-kept-up-to", objective(|_| ())).not_if("none does", none),
        case("objective-bracket", objective(interrupted))
            .not_if("the search was complete", as_usual)
            .not_if("the boundary was found", |it| {
                *it = objective(|answer| answer.search.end = ObjectiveEnd::Interrupted);
            }),
        case("chance-decides", by_chance)
            .not_if("no run contradicts another", as_usual)
            .not_if("there is no curve", |it| kept(it).search.boundary = None),
    ]
}

fn interrupted(answer: &mut SloAnswer) {
    answer.search.end = ObjectiveEnd::Interrupted;
    answer.search.boundary = None;
}

fn ends_of_objectives() -> Vec<Case> {
    let ends = [
        ("objective-always-kept", ObjectiveEnd::AlwaysKept, true),
        ("objective-never-kept", ObjectiveEnd::NeverKept, true),
        ("objective-search-ended-early", ObjectiveEnd::OutOfMeasurements, true),
        ("boundary-not-certain", ObjectiveEnd::OutOfMeasurements, false),
    ];
    let reported = ends.map(|(code, end, has_boundary)| {
        let ended = objective(|answer| {
            answer.search.end = end;
            answer.search.boundary.take_if(|_| !has_boundary);
        });
        case(code, ended).not_if("the boundary was found", |it| {
            kept(it).search.end = ObjectiveEnd::Resolved;
        })
    });
    reported.into()
}

fn single_runs() -> Vec<Case> {
    let failing = with(search(|_| ()), |it| {
        runs(it).for_each(|run| run.failed_ratio = 0.02);
    });
    let drifting = with(search(|_| ()), |it| {
        unsteady(it, Some(false));
        let said = statement!("trend", change = crate::values::percent(0.2));
        caveat(it, CaveatKind::NotSteady, said);
    });
    vec![
        case("runs-with-failures", failing).not_if("none failed", |it| {
            runs(it).for_each(|run| run.failed_ratio = 0.0);
        }),
        case("runs-unsteady", drifting)
            .not_if("all were steady", |it| unsteady(it, Some(true)))
            .not_without("steady-state", "not-watched", |it| unsteady(it, None)),
        case("not-watched", with(search(|_| ()), |it| unsteady(it, None)))
            .not_if("everything was watched", |it| unsteady(it, Some(true))),
    ]
}

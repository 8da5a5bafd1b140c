//! The findings of a sweep.

use super::super::blocks::{both, up_to};
use super::super::disks::saturated;
use super::super::relative::{drifting, lucky, versions};
use super::super::{blocks, rates_of};
use super::*;
use crate::values::percent;
use dyno_record::experiment::{Block, LawVerdict, Level};

pub(super) fn cases() -> Vec<Case> {
    let cases = [
        alarms(),
        limits(),
        rates_and_queues(),
        clients_and_knees(),
        relative(),
        reach(),
        opportunities(),
        in_blocks(),
    ];
    cases.into_iter().flatten().collect()
}

fn level(experiment: &mut Experiment, number: usize) -> &mut Level {
    &mut answer(experiment).levels[number]
}

/// Removes a resource from all runs, and answers again.
fn without(experiment: &mut Experiment, kind: ResourceKind) {
    unwatched(experiment, kind);
    *experiment = answered(experiment.clone());
}

fn server_unwatched(experiment: &mut Experiment) {
    without(experiment, ResourceKind::ServerCpu);
}

fn as_usual(experiment: &mut Experiment) {
    *experiment = clients();
}

fn alarms() -> Vec<Case> {
    let full = with(clients(), |it| level(it, 3).generator_bound = true);
    let partial = with(clients(), |it| {
        it.status = RunStatus::Partial;
        it.status_reason = Some("interrupted by a signal".into());
        it.points[4].figures = None;
    });
    vec![
        case("experiment-not-complete", partial)
            .not_if("it is", |it| it.status = RunStatus::Complete),
        case("generator-bound-at-levels", full).not_if("the client had time left", as_usual),
        case("failed-at-levels", with(rates(), |it| level(it, 3).failed_ratio = 0.02))
            .not_if("none failed", |it| level(it, 3).failed_ratio = 0.0),
        case("dropped-at-levels", with(rates(), |it| level(it, 3).dropped_ratio = 0.3))
            .not_if("all were sent", |it| level(it, 3).dropped_ratio = 0.0),
        case(
            "law-broken-at-levels",
            with(clients(), |it| {
                level(it, 4).laws[0].verdict = LawVerdict::Broken;
            }),
        )
        .not_if("it holds", |it| {
            level(it, 4).laws[0].verdict = LawVerdict::Holds;
        })
        .not_if("it is too uncertain", |it| {
            level(it, 4).laws[0].verdict = LawVerdict::TooUncertain;
        }),
    ]
}

fn limits() -> Vec<Case> {
    // The server needs twice as much with a lone client.
    let varying = with(clients(), |it| {
        let lone = runs(it).next().unwrap();
        lone.demands[0].demand_s *= 2.0;
        lone.resources[0].busy_ratio *= 2.0;
        *it = answered(it.clone());
    });
    vec![
        case("highest-rate", first_levels(1)).not_if("nothing was measured", |it| it.answer = None),
        case("recommended-clients", clients())
            .not_if("a single number was measured", |it| *it = first_levels(1)),
        case(
            "indistinct-clients",
            with(clients(), |it| {
                (0..5).for_each(|place| level(it, place).rate_per_s = figure(18_000.0, 0.1));
            }),
        )
        .not_if("the intervals are narrow", as_usual),
        // The rate rises to the end.
        case("recommended-clients", first_levels(3))
            .not_if("nothing was measured", |it| it.answer = None),
        case("bottleneck", clients())
            .not_if("nothing was busy", |it| {
                for run in runs(it) {
                    run.demands.iter_mut().for_each(|one| one.demand_s = 0.0);
                }
                *it = answered(it.clone());
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        case("demand-varies", varying).not_if("it does not", as_usual).not_without(
            "name: server CPU",
            "server-not-watched",
            server_unwatched,
        ),
    ]
}

fn rates_and_queues() -> Vec<Case> {
    let queue = |applies| {
        with(rates(), |it| {
            let queue = answer(it).queue.as_mut().unwrap();
            (queue.contradicted_by_per_s, queue.applies) = (None, applies);
        })
    };
    let constant = |it: &mut Experiment| *it = rates_of("constant");
    vec![
        case("achieved-offered-rates", rates())
            .not_if("none was", |it| {
                (0..4).for_each(|place| level(it, place).rate_per_s = figure(100.0, 0.01));
            })
            .not_if("none was offered", as_usual),
        case("achieved-offered-rates", all_kept()).not_if("none was offered", as_usual),
        case(
            "no-offered-rate-achieved",
            with(rates(), |it| {
                (0..4).for_each(|place| level(it, place).rate_per_s = figure(100.0, 0.01));
            }),
        )
        .not_if("some were", |it| *it = rates()),
        case("queue-contradicted", rates())
            .not_if("no rate is above its capacity", |it| {
                answer(it).queue.as_mut().unwrap().contradicted_by_per_s = None;
            })
            .not_if("arrivals were not random", constant),
        case("queue-fits", queue(true))
            .not_if("it does not describe the times", |it| {
                answer(it).queue.as_mut().unwrap().applies = false;
            })
            .not_if("arrivals were not random", constant),
        case("no-simple-queue", queue(false))
            .not_if("it describes the times", |it| {
                answer(it).queue.as_mut().unwrap().applies = true;
            })
            .not_if("arrivals were not random", constant),
    ]
}

/// Offered rates that were all achieved.
fn all_kept() -> Experiment {
    with(rates(), |it| level(it, 3).rate_per_s = figure(30_000.0, 0.01))
}

/// The first levels of the sweep over clients.
fn first_levels(number: usize) -> Experiment {
    let mut some = clients();
    some.points.truncate(number);
    some.axes[0].values.truncate(number);
    answered(some)
}

fn clients_and_knees() -> Vec<Case> {
    let slow = |mean_us| {
        with(clients(), |it| {
            level(it, 4).response_mean_us = figure(mean_us, 0.02);
        })
    };
    let without_lone = |it: &mut Experiment| {
        it.points.remove(0);
        *it = answered(it.clone());
    };
    let knee = |knee| with(clients(), |it| answer(it).knee = Some(knee));
    let few = |it: &mut Experiment| answer(it).knee = Some(Knee::TooFewLoads);
    let found =
        Knee::Found { load: 3.21, low: 2.0, high: 4.0, rate_per_s: 16_500.0, response_s: 190e-6 };
    let (above, below) =
        (Knee::AboveMeasured { highest_load: 16.0 }, Knee::BelowMeasured { lowest_load: 1.0 });
    vec![
        case("operations-wait-beyond", clients())
            .not_if("there was no lone client", without_lone)
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        // Two clients are fewer than N*.
        case("operations-wait-beyond", first_levels(2))
            .not_if("there was no lone client", without_lone),
        case("waiting-explained", slow(850.0))
            .not_if("it takes twice as long", |it| {
                level(it, 4).response_mean_us = figure(1_600.0, 0.02);
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        case("waiting-unexplained", slow(1_600.0))
            .not_if("it takes half as long", |it| {
                level(it, 4).response_mean_us = figure(850.0, 0.02);
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        case("knee", knee(found)).not_if("there are too few loads", few),
        case("knee-above", knee(above)).not_if("there are too few loads", few),
        case("knee-below", knee(below)).not_if("there are too few loads", few),
        case("more-load-is-slower", clients())
            .not_if("it is by chance", |it| {
                level(it, 4).rate_per_s = figure(17_000.0, 0.2);
            })
            .not_without("clients: [16]", "rate-poorly-known-at-levels", |it| {
                level(it, 4).rate_per_s = Figure::bare(17_000.0);
            }),
        case("peak-of-law", clients()).not_if("no law fits", |it| answer(it).usl = None),
    ]
}

fn relative() -> Vec<Case> {
    let alone = |it: &mut Experiment| answer(it).relative = None;
    let uncompared = |it: &mut Experiment| {
        let relative = answer(it).relative.as_mut().unwrap();
        relative.levels[0].comparisons.clear();
    };
    vec![
        case("level-differs", drifting(0.9, 1.1))
            .not_if("it differs by chance", |it| *it = lucky())
            .not_if("nothing is its base", alone)
            .not_without("settings: [mongod 6.0.27]", "level-not-compared", uncompared),
        case("level-differs", versions(&[[(10_000.0, 80e-6), (9_000.0, 90e-6)]]))
            .not_if("nothing is its base", alone),
        case("level-indistinct", lucky())
            .not_if("it differs for certain", |it| *it = drifting(0.9, 1.1))
            .not_without("settings: [mongod 6.0.27]", "level-not-compared", uncompared),
        case("level-not-compared", with(drifting(0.9, 1.1), uncompared))
            .not_if("the figures have intervals", |it| *it = drifting(0.9, 1.1)),
    ]
}

fn reach() -> Vec<Case> {
    let drifted = with(clients(), |it| {
        unsteady(it, Some(false));
        let said = statement!("trend", subject = "rate", change = percent(0.2));
        *it = answered(it.clone());
        caveat(it, CaveatKind::NotSteady, said);
    });
    let shared = with(clients(), |it| {
        let busy = &mut level(it, 0).busy_ratio;
        busy.insert(resource_name(ResourceKind::HostCpu).to_owned(), 0.95);
    });
    vec![
        case("server-not-watched", with(clients(), server_unwatched))
            .not_if("it was watched", as_usual),
        case("not-watched", with(clients(), |it| without(it, ResourceKind::Disk)))
            .not_if("everything was watched", as_usual),
        case("unsteady-at-levels", drifted).not_if("it was steady", as_usual).not_without(
            "steady-state",
            "not-watched",
            |it| {
                unsteady(it, None);
                *it = answered(it.clone());
            },
        ),
        case("others-use-machine-at-levels", shared)
            .not_if("nobody else did", as_usual)
            .not_without("name: all CPUs", "not-watched", |it| {
                without(it, ResourceKind::HostCpu);
            }),
        case(
            "rate-poorly-known-at-levels",
            with(clients(), |it| {
                level(it, 0).rate_per_s = figure(8_000.0, 0.3);
            }),
        )
        .not_if("it is well known", as_usual),
    ]
}

fn opportunities() -> Vec<Case> {
    vec![
        case("more-cpus", clients())
            .not_if("they had time left", |it| *it = first_levels(1))
            .not_if("the schedule is the limit", |it| {
                let offered = figures(8, Some(18_800.0), 18_800.0, 425.0);
                *it = answered(experiment((CLIENTS, &["8"]), vec![offered]));
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        case("two-machines", clients())
            .not_if("the client needs next to nothing", |it| {
                for run in runs(it) {
                    let name = resource_name(ResourceKind::ClientCpu);
                    let own = run.demands.iter_mut().find(|one| one.name == name);
                    own.unwrap().demand_s = 1e-6;
                }
                *it = answered(it.clone());
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        case("faster-disk", saturated())
            .not_if("its limit is not known", |it| {
                runs(it).for_each(|run| run.disks[0].queue_mean = None);
                *it = answered(it.clone());
            })
            .not_without("name: disk", "not-watched", |it| {
                without(it, ResourceKind::Disk);
            }),
    ]
}

fn in_blocks() -> Vec<Case> {
    let by_client = |it: &mut Experiment| {
        for run in runs(it).filter(|run| run.offered_rate_per_s.is_none()) {
            run.caveats.push(CaveatKind::GeneratorBottleneck);
        }
        *it = blocks::answered(it.clone());
    };
    let x_max = |experiment: Experiment| {
        case("x-max-of-blocks", blocks::answered(experiment))
            .not_if("the client was the limit", by_client)
    };
    // With four clients as with eight.
    let as_fast = with(up_to(&["1", "2", "4", "8"]), |it| {
        for run in runs(it).filter(|run| run.clients == 4) {
            run.rate_per_s = figure(18_790.0, 0.01);
        }
    });
    let kept = with(both(), |it| {
        it.points.retain(|point| {
            let figures = point.figures.as_ref().unwrap();
            figures.offered_rate_per_s != Some(30_000.0)
        });
    });
    let alone = |it: &mut Experiment| *it = clients();
    let throttled = with(both(), |it| {
        let of_rates = |point: &&mut Point| point.block == Some(Block::Open);
        for point in it.points.iter_mut().filter(of_rates) {
            let kind = ("schedule.kind".to_owned(), "throttled".to_owned());
            point.settings.extend([kind]);
        }
    });
    let open = |it: &mut Experiment| *it = blocks::answered(both());
    vec![
        x_max(both()),
        x_max(up_to(&["1"])),
        x_max(up_to(&["1", "2", "4"])),
        x_max(as_fast),
        x_max(kept),
        case("in-closed-loop", blocks::answered(both())).not_if("there is no other", alone),
        case("in-open-loop", blocks::answered(both())).not_if("there is none", alone),
        case("in-throttled-loop", blocks::answered(throttled))
            .not_if("arrivals came from outside", open),
    ]
}

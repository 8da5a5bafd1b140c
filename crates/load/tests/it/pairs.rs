//! Several servers with their own clients in one run: merged and by pair.

use dyno_load::LoadError;
use dyno_load::backend::Backend;
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec};
use dyno_load::responder::{Behaviour, Fault, FaultRule, Responder, Service, ServiceTime};
use dyno_load::workload::{Concerns, LoadTask, Workload};
use dyno_plan::Plan;
use dyno_plan::model::Schedule;
use dyno_plan::units::Span;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::{PhaseKind, PhaseRecord};
use std::sync::Arc;
use std::time::Duration;

fn plan() -> Plan {
    let mut plan = dyno_plan::builtin::find("read").unwrap();
    plan.data.records = 1000;
    plan
}

fn slow(service_ms: u64) -> Behaviour {
    Behaviour {
        service: Service::Parallel { time: ServiceTime::Fixed(Duration::from_millis(service_ms)) },
        ..Behaviour::default()
    }
}

fn pair(responder: &Responder, workload: Workload) -> Pair {
    let text = format!("mongodb://{}", responder.address());
    let (target, credentials) = dyno_plan::uri::parse(&text).unwrap();
    Pair {
        clients: 4,
        threads: 1,
        ..Pair::from_plan(
            &plan(),
            Arc::new(workload),
            Backend::Wire(Connector::new(&target, credentials).unwrap()),
        )
    }
}

fn job(pairs: Vec<Pair>, kind: PhaseKind, schedule: Schedule) -> Job {
    Job {
        phases: vec![PhaseSpec { kind, duration: Some(Duration::from_secs(3)), operations: None }],
        schedule,
        seed: 1,
        timeout: Duration::from_secs(5),
        ..Job::from_plan(&plan(), pairs)
    }
}

/// Results of all pairs together and by pair.
struct Outcome {
    merged: PhaseRecord,
    pairs: Vec<PhaseRecord>,
    windows: Vec<(IntervalRecord, Vec<Option<IntervalRecord>>)>,
}

fn perform(job: Job) -> Outcome {
    let kind = job.phases[0].kind;
    let mut merged = PhaseAccumulator::new(kind, None);
    let mut pairs: Vec<_> = job.pairs.iter().map(|_| PhaseAccumulator::new(kind, None)).collect();
    let mut windows = Vec::new();
    dyno_load::run(job, &mut |window| {
        merged.add(&window.merged)?;
        for (sum, pair) in pairs.iter_mut().zip(&window.pairs) {
            if let Some(pair) = pair {
                sum.add(pair)?;
            }
        }
        windows.push((window.merged, window.pairs));
        Ok(())
    })
    .unwrap();
    Outcome {
        merged: merged.to_record(),
        pairs: pairs.iter().map(PhaseAccumulator::to_record).collect(),
        windows,
    }
}

fn mix() -> Workload {
    Workload::mix(&plan(), &Concerns::default()).unwrap()
}

#[test]
fn percentiles_use_merged_histograms_and_rates_add_up() {
    let responders = [2, 20].map(|ms| Responder::start(slow(ms)).unwrap());
    let pairs = responders.iter().map(|r| pair(r, mix())).collect();
    let outcome = perform(job(pairs, PhaseKind::Measure, Schedule::Closed {}));
    for (merged, pairs) in &outcome.windows {
        let sum: u64 = pairs.iter().flatten().map(|pair| pair.counts.succeeded).sum();
        assert_eq!(merged.counts.succeeded, sum);
        assert_eq!(pairs.iter().flatten().count(), 2);
        assert!(pairs.iter().flatten().all(|pair| pair.start_ns == merged.start_ns));
    }
    let p50 = |record: &PhaseRecord| record.operations["read"].response_time_us.p50;
    let (fast, slow) = (p50(&outcome.pairs[0]), p50(&outcome.pairs[1]));
    assert!((2_000.0..15_000.0).contains(&fast), "{fast}");
    assert!(slow >= 20_000.0, "{slow}");
    // Ten in eleven operations are fast: the overall median is the fast server's median, and far from the mean of the
    // two medians.
    let merged = p50(&outcome.merged);
    assert!((merged / fast - 1.0).abs() < 0.05, "{merged} against {fast}");
    assert!(merged < 0.8 * (fast + slow) / 2.0);
    let rates: f64 = outcome.pairs.iter().map(|p| p.achieved_rate_per_s).sum();
    assert!((outcome.merged.achieved_rate_per_s / rates - 1.0).abs() < 1e-9);
}

#[test]
fn an_idle_pair_counts_until_the_last_answer_of_all() {
    let responders = [1, 2_500].map(|ms| Responder::start(slow(ms)).unwrap());
    let pairs = responders.iter().map(|r| pair(r, mix())).collect();
    let mut job = job(pairs, PhaseKind::Measure, Schedule::Closed {});
    job.phases[0].duration = None;
    job.phases[0].operations = Some(50);
    let outcome = perform(job);
    assert!(outcome.merged.duration_s >= 2.5, "{:?}", outcome.merged);
    for pair in &outcome.pairs {
        assert_eq!(pair.duration_s, outcome.merged.duration_s);
    }
    let rates: f64 = outcome.pairs.iter().map(|p| p.achieved_rate_per_s).sum();
    assert!((outcome.merged.achieved_rate_per_s / rates - 1.0).abs() < 1e-9);
}

#[test]
fn operation_count_is_per_pair_and_all_pairs_end_together() {
    let responders = [1, 10].map(|ms| Responder::start(slow(ms)).unwrap());
    let pairs = responders.iter().map(|r| pair(r, mix())).collect();
    let mut job = job(pairs, PhaseKind::Measure, Schedule::Closed {});
    job.phases[0].duration = None;
    job.phases[0].operations = Some(500);
    let outcome = perform(job);
    let count = |record: &PhaseRecord| record.operations["read"].count;
    assert_eq!(count(&outcome.merged), 1000);
    assert!(count(&outcome.pairs[0]) > count(&outcome.pairs[1]));
    let ends: Vec<f64> = outcome.pairs.iter().map(|pair| pair.start_s + pair.duration_s).collect();
    assert!((ends[0] - ends[1]).abs() < 0.1, "{ends:?}");
}

#[test]
fn a_rate_is_offered_to_each_pair() {
    let responders = [1, 1].map(|ms| Responder::start(slow(ms)).unwrap());
    let pairs = responders.iter().map(|r| pair(r, mix())).collect();
    let schedule = Schedule::Constant { rate_per_s: 100.0, max_start_delay: Span::from_secs(10) };
    let outcome = perform(job(pairs, PhaseKind::Measure, schedule));
    for pair in &outcome.pairs {
        assert_eq!(pair.operations["read"].count, 300);
    }
    assert_eq!(outcome.merged.operations["read"].count, 600);
}

#[test]
fn each_pair_loads_all_of_its_documents() {
    let responders = [(); 2].map(|()| Responder::start(Behaviour::default()).unwrap());
    let load = || {
        let task = LoadTask { first: 0, count: 777, batch: 10, keep_existing: false };
        Workload::load(&plan(), task, &Concerns::default()).unwrap()
    };
    let mut pairs: Vec<Pair> = responders.iter().map(|r| pair(r, load())).collect();
    let (tell, reported) = std::sync::mpsc::channel();
    pairs[1].memory = Some(Arc::new(move || {
        let _ = tell.send(std::thread::current().name().map(str::to_owned));
        Ok(())
    }));
    let mut job = job(pairs, PhaseKind::Load, Schedule::Closed {});
    job.phases[0].operations = job.pairs[0].workload.load_operations();
    let outcome = perform(job);
    assert_eq!(outcome.merged.operations["insert_batch"].documents, 1554);
    for responder in responders {
        assert_eq!(responder.stop().unwrap().inserted, 777);
    }
    // The memory policy of a pair is set in its own workers.
    let placed: Vec<_> = reported.iter().flatten().collect();
    assert_eq!(placed, ["worker-1"]);
}

#[test]
fn an_error_names_its_pair() {
    let sound = Responder::start(Behaviour::default()).unwrap();
    let failing = Responder::start(Behaviour {
        faults: vec![FaultRule { every: 1, kind: Fault::ErrorCode(8000) }],
        ..Behaviour::default()
    })
    .unwrap();
    let pairs = vec![pair(&sound, mix()), pair(&failing, mix())];
    let mut job = job(pairs, PhaseKind::Measure, Schedule::Closed {});
    job.abort_on_failure = true;
    let error = dyno_load::run(job, &mut |_| Ok(())).unwrap_err();
    assert!(
        matches!(&error, LoadError::Pair { pair: 1, source } if matches!(**source, LoadError::Operation { .. })),
        "{error:?}"
    );
}

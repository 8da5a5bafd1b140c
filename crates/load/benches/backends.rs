//! CPU time of the worker threads per operation for each backend, with a responder in this process.
//!
//! `cargo bench -p dyno-load --bench backends` prints one line per workload and backend: the minimum of several rounds,
//! because other activity on the machine only adds time. With `-- WORKLOAD BACKEND OPERATIONS`, it runs a single round
//! of that combination, for a profiler that counts instructions.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use dyno_load::backend::{Backend, driver::DriverTarget};
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec};
use dyno_load::responder::{Behaviour, Responder};
use dyno_load::workload::{Concerns, Workload};
use dyno_plan::model::Schedule;
use dyno_record::model::PhaseKind;
use std::sync::Arc;

const ROUNDS: u32 = 7;

/// User and system CPU time of the workers per operation, in microseconds.
fn cost(address: &str, name: &str, is_driver: bool, operations: u64) -> (f64, f64) {
    let mut plan = dyno_plan::builtin::find(name).unwrap();
    plan.data.records = 10_000;
    let (target, credentials) = dyno_plan::uri::parse(&format!("mongodb://{address}")).unwrap();
    let pair = || {
        let backend = if is_driver {
            Backend::Driver(Box::new(DriverTarget::new(&target, None).unwrap()))
        } else {
            Backend::Wire(Connector::new(&target, credentials.clone()).unwrap())
        };
        let workload = Workload::mix(&plan, &Concerns::default()).unwrap();
        Pair { clients: 8, threads: 1, ..Pair::from_plan(&plan, Arc::new(workload), backend) }
    };
    // Windows have the CPU time of only their workers if there are several pairs.
    let pairs = vec![pair(), pair()];
    let job = Job {
        phases: vec![PhaseSpec {
            kind: PhaseKind::Measure,
            duration: None,
            operations: Some(operations),
        }],
        schedule: Schedule::Closed {},
        ..Job::from_plan(&plan, pairs)
    };
    let (mut user_ns, mut system_ns, mut performed) = (0, 0, 0);
    dyno_load::run(job, &mut |window| {
        for pair in window.pairs.iter().flatten() {
            user_ns += pair.counts.cpu_user_ns;
            system_ns += pair.counts.cpu_system_ns;
        }
        performed += window.merged.counts.succeeded + window.merged.counts.failed;
        Ok(())
    })
    .unwrap();
    let per_operation_us = |ns: u64| ns as f64 / performed as f64 / 1000.0;
    (per_operation_us(user_ns), per_operation_us(system_ns))
}

fn main() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let address = responder.address().to_string();
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [name, backend, operations] = arguments.as_slice() {
        cost(&address, name, backend == "driver", operations.parse().unwrap());
        return;
    }
    for name in ["c", "a", "f", "e"] {
        for (backend, is_driver, operations) in [("wire", false, 40_000), ("driver", true, 10_000)]
        {
            let rounds = (0..ROUNDS).map(|_| cost(&address, name, is_driver, operations));
            let best = rounds.reduce(|best, next| {
                let sum = |(user_us, system_us): (f64, f64)| user_us + system_us;
                if sum(next) < sum(best) { next } else { best }
            });
            let (user_us, system_us) = best.unwrap();
            println!(
                "{name} {backend:6} user {user_us:7.3} us, system {system_us:7.3} us per operation"
            );
        }
    }
}

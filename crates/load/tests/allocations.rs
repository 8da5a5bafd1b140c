//! The worker loop does not allocate per operation: ten times the operations cost no more memory calls.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dyno_load::backend::Backend;
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec};
use dyno_load::pace::Think;
use dyno_load::responder::{Behaviour, Responder};
use dyno_load::workload::{Concerns, Workload};
use dyno_plan::Plan;
use dyno_plan::model::{Schedule, ThinkTime};
use dyno_plan::units::Span;
use dyno_record::model::PhaseKind;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts every allocation of the process.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: see `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: see `alloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A plan with an own operation of each kind.
const OWN: &str = "own";

fn own_plan() -> Plan {
    let text = r#"
        [[data.collections]]
        name = "orders"
        records = 1000
        document = '{ _id: "%number", customer: {%int: [1, 50]}, items: {%array: [1, 8], of: {%string: 12}} }'

        [[operations]]
        name = "find"
        weight = 3
        command = '{find: "orders", filter: {customer: {%from: "orders.customer"}}, limit: 3}'
        expect = 3

        [[operations]]
        name = "insert"
        weight = 1
        command = '{insert: "orders", documents: ["%new orders"]}'

        [[operations]]
        name = "steps"
        weight = 1
        let = { id = '{%from: "orders._id"}' }
        steps = [
          '{find: "orders", filter: {_id: "%id"}, limit: 1}',
          { command = '{delete: "orders", deletes: [{q: {_id: "%id", of: {%reply: "0.cursor.id"}}, limit: 1}]}', when = { count = '{%reply: "0.ok"}', is = '1' } },
        ]

        [[operations]]
        name = "change"
        weight = 1
        let = { id = '{%from: "orders._id"}' }
        command = '{findAndModify: "orders", query: {_id: "%id"}, update: {$set: {twice: ["%id", "%id"]}}}'
        expect = 1
    "#;
    dyno_plan::file::parse(text, "own").unwrap()
}

/// Allocations of a whole run of a workload, and its number of recording windows.
fn allocations(
    address: &str,
    workload: &str,
    operations: u64,
    (schedule, think): (Schedule, Think),
) -> (u64, u64) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let plan = match workload {
        OWN => own_plan(),
        built_in => {
            let mut plan = dyno_plan::builtin::find(built_in).unwrap();
            plan.data.records = 1000;
            plan
        }
    };
    let text = format!("mongodb://{address}/?retryWrites=true&retryReads=true");
    let (target, credentials) = dyno_plan::uri::parse(&text).unwrap();
    let workload = Arc::new(Workload::mix(&plan, &Concerns::default()).unwrap());
    let backend = Backend::Wire(Connector::new(&target, credentials).unwrap());
    let pair = Pair { clients: 8, threads: 1, ..Pair::from_plan(&plan, workload, backend) };
    let job = Job {
        phases: vec![PhaseSpec {
            kind: PhaseKind::Measure,
            duration: None,
            operations: Some(operations),
        }],
        schedule,
        think,
        seed: 1,
        timeout: Duration::from_secs(10),
        abort_on_failure: true,
        ..Job::from_plan(&plan, vec![pair])
    };
    let mut windows = 0;
    dyno_load::run(job, &mut |_| {
        windows += 1;
        Ok(())
    })
    .unwrap();
    (ALLOCATIONS.load(Ordering::Relaxed) - before, windows)
}

/// Maximum number of memory calls per recording window, for merging and handing over.
const PER_WINDOW: u64 = 300;

#[test]
fn ten_times_the_operations_allocate_no_more() {
    let behaviour = Behaviour { documents: 1000, ..Behaviour::default() };
    let responder = Responder::start(behaviour).unwrap();
    let address = responder.address().to_string();
    let open = Schedule::Constant { rate_per_s: 1e6, max_start_delay: Span::from_secs(60) };
    let think = |mean_ns| Think { mean_ns, distribution: ThinkTime::Exponential };
    let throttled = Schedule::Throttled { rate_per_s: 30_000.0 };
    for (workload, schedule, think) in [
        ("a", Schedule::Closed {}, think(0)),
        ("a", Schedule::Closed {}, think(100_000)),
        ("a", throttled, think(0)),
        ("d", Schedule::Closed {}, think(0)),
        ("e", Schedule::Closed {}, think(0)),
        ("f", open, think(0)),
        (OWN, Schedule::Closed {}, think(0)),
    ] {
        let load = || (schedule.clone(), think);
        let (short, short_windows) = allocations(&address, workload, 3_000, load());
        let (long, long_windows) = allocations(&address, workload, 30_000, load());
        let more_windows = long_windows.saturating_sub(short_windows);
        let more = long.saturating_sub(short);
        assert!(
            more <= (more_windows + 1) * PER_WINDOW,
            "workload {workload}, {:?}: 27 000 more operations made {more} more allocations in {more_windows} more windows",
            load()
        );
    }
}

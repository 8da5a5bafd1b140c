//! Every finding of traces with its measurement, and without it.

use crate::access_pattern::{BLOCK, document, read, run, shuffled};
use dyno_analyze::access_pattern::{
    AccessPatterns, Activity, DeviceShare, Settings, findings, order_statement,
};
use dyno_testkit::findings::{Reported, case};

#[test]
fn every_finding_is_measured_and_silent_where_it_is_not() {
    let mut reported = Reported::default();
    let activity = Activity { subject: "fio".to_owned(), scans_records: false };
    let of_one = |patterns: &AccessPatterns| findings(patterns, &activity);
    let without_order = |it: &mut AccessPatterns| it.files[0].score = None;
    let cases = vec![
        case("order-of-file", scan())
            .not_if("there are too few calls", |it| it.files[0].calls = 63)
            .not_if("they move almost nothing", |it| {
                let mut larger = it.files[0].clone();
                (larger.calls, larger.bytes) = (1, it.files[0].bytes * 100);
                it.files.push(larger);
            })
            .not_without("order-of-calls", "not-watched", without_order),
        case("device-share-uncertain", scan())
            .not_if("hardly any request could be of another call", |it| {
                it.files[0].device = Some(share(0.1));
            })
            .not_if("no request was traced", |it| it.files[0].device = None),
        case("not-watched", without(without_order)).not_if("the order is known", |it| *it = scan()),
    ];
    reported.check(of_one, cases);
    // Names of the order in reports.
    reported.hear(&order_statement(0.5));
    reported.finish("crates/analyze/src/access_pattern");
}

fn share(ambiguous_ratio: f64) -> DeviceShare {
    DeviceShare {
        waiting_calls: 900,
        waiting_ratio: 0.9,
        device_bytes: 1 << 25,
        device_ratio: 1.0,
        ambiguous_ratio,
    }
}

/// A thousand blocks in random order that came from a device, read by several threads at once.
fn scan() -> AccessPatterns {
    let calls = shuffled(1000, BLOCK, 3)
        .into_iter()
        .enumerate()
        .map(|(number, offset)| read(number, offset, BLOCK));
    let document = document(1000 * BLOCK);
    let mut patterns = run(Settings::default(), &document, calls.collect(), Vec::new());
    patterns.files[0].device = Some(share(0.3));
    patterns
}

fn without(change: fn(&mut AccessPatterns)) -> AccessPatterns {
    let mut patterns = scan();
    change(&mut patterns);
    patterns
}

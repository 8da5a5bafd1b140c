//! Measurements of one worker in one recording window. Each worker owns its recorder; at the end of a window it is
//! swapped out and merged elsewhere.

use crate::operation::{OperationError, Outcome};
use dyno_plan::operation::{OperationId, Operations};
use dyno_record::error_example::ErrorExample;
use dyno_record::interval::{
    ErrorCount, FINE_NS, HIGHEST_NS, IntervalRecord, LOWEST_NS, OperationInterval,
    SIGNIFICANT_DIGITS, SubSecondPart, WindowCounts, latency_histogram,
};
use dyno_record::model::PhaseKind;
use hdrhistogram::Histogram;

/// Distinct pairs of operation and failure per window before the list has to grow.
const ERROR_KINDS: usize = 64;

/// A started arrival counts as late above this start delay.
pub(crate) const LATE_NS: u64 = 1_000_000;

/// Timestamps of one finished operation, in nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) intended_ns: u64,
    pub(crate) send_ns: u64,
    pub(crate) end_ns: u64,
}

/// A histogram with exact sum. Counts have 32 bits: a window of one worker cannot overflow them,
/// and half the memory is half the cache.
#[derive(Debug)]
struct Latency {
    histogram: Histogram<u32>,
    sum_ns: u128,
    clamped: u64,
}

impl Latency {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("the constant bounds are valid");
        Latency { histogram, sum_ns: 0, clamped: 0 }
    }

    #[inline]
    fn record(&mut self, value_ns: u64) {
        self.sum_ns += u128::from(value_ns);
        if self.histogram.record(value_ns.min(HIGHEST_NS)).is_err() {
            debug_assert!(false, "a value inside the bounds is always recordable");
        }
        self.clamped += u64::from(value_ns > HIGHEST_NS);
    }

    fn clear(&mut self) {
        self.histogram.reset();
        self.sum_ns = 0;
        self.clamped = 0;
    }
}

/// Statistics of one operation in one window of one worker.
#[derive(Debug)]
struct OperationPart {
    response: Latency,
    service: Latency,
    start_delay: Latency,
    documents: u64,
    errors: u64,
}

impl OperationPart {
    fn new() -> Self {
        OperationPart {
            response: Latency::new(),
            service: Latency::new(),
            start_delay: Latency::new(),
            documents: 0,
            errors: 0,
        }
    }

    fn clear(&mut self) {
        self.response.clear();
        self.service.clear();
        self.start_delay.clear();
        self.documents = 0;
        self.errors = 0;
    }

    fn is_empty(&self) -> bool {
        self.response.histogram.is_empty() && self.errors == 0
    }
}

/// Failures of one kind in one window of one worker.
#[derive(Debug)]
struct Failures {
    operation: OperationId,
    error: OperationError,
    count: u64,
    example: Option<ErrorExample>,
}

/// One recording window of one worker.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) phase: PhaseKind,
    pub(crate) index: u64,
    pub(crate) start_ns: u64,
    /// End of the window, or of the last operation in it when the phase ended there.
    pub(crate) end_ns: u64,
    pub(crate) operations: Operations,
    /// By the index of the operation; absent for operations of other phases.
    statistics: Box<[Option<Box<OperationPart>>]>,
    errors: Vec<Failures>,
    pub(crate) counts: WindowCounts,
    /// Parts of the window in the order of time.
    sub_second: Box<[SubSecondPart]>,
    /// Clients that are still thinking when the worker has ended.
    pub(crate) thinking_at_end: u32,
}

impl Part {
    /// An empty window of this length with room for the `counted` ones of the operations.
    pub(crate) fn new(operations: &Operations, counted: &[OperationId], length_ns: u64) -> Self {
        let mut statistics: Box<[_]> = operations.iter().map(|_| None).collect();
        for id in counted {
            statistics[id.index()] = Some(Box::new(OperationPart::new()));
        }
        Part {
            phase: PhaseKind::Measure,
            index: 0,
            start_ns: 0,
            end_ns: 0,
            operations: operations.clone(),
            statistics,
            errors: Vec::with_capacity(ERROR_KINDS),
            counts: WindowCounts::default(),
            sub_second: vec![SubSecondPart::default(); length_ns.div_ceil(FINE_NS) as usize].into(),
            thinking_at_end: 0,
        }
    }

    /// Makes the window ready for use again, keeping its memory.
    pub(crate) fn reset(&mut self, phase: PhaseKind, index: u64, start_ns: u64) {
        for operation in self.statistics.iter_mut().flatten() {
            if !operation.is_empty() {
                operation.clear();
            }
        }
        self.errors.clear();
        self.phase = phase;
        self.index = index;
        self.start_ns = start_ns;
        self.end_ns = start_ns;
        self.counts = WindowCounts::default();
        self.sub_second.fill(SubSecondPart::default());
        self.thinking_at_end = 0;
    }

    /// Records statistics of an operation or of a part of one (the read and the update of a read-modify-write).
    #[inline]
    pub(crate) fn record(&mut self, id: OperationId, times: Times, outcome: Outcome) {
        let Some(operation) = self.statistics[id.index()].as_deref_mut() else {
            debug_assert!(false, "{id:?} is not counted in this phase");
            return;
        };
        match outcome {
            Ok(documents) => {
                operation.documents += u64::from(documents);
                operation.response.record(times.end_ns.saturating_sub(times.intended_ns));
                operation.service.record(times.end_ns.saturating_sub(times.send_ns));
                operation.start_delay.record(times.send_ns.saturating_sub(times.intended_ns));
            }
            Err(error) => {
                operation.errors += 1;
                // The failure of a read-modify-write is the failure of a part, which has been counted by its kind, and a
                // step's failure is counted by its operation.
                let planned = &self.operations[id];
                if planned.parts.is_empty() && planned.step_of.is_none() {
                    self.failures(id, error).count += 1;
                }
            }
        }
    }

    /// Counts a whole operation (a read-modify-write once) that ended.
    #[inline]
    pub(crate) fn finish(&mut self, times: Times, succeeded: bool) {
        self.counts.succeeded += u64::from(succeeded);
        self.counts.failed += u64::from(!succeeded);
        self.counts.busy_ns += u128::from(times.end_ns.saturating_sub(times.send_ns));
        // Operations that end after the last part belong to the tail of a phase, which is not part of any pattern.
        let place = times.end_ns.saturating_sub(self.start_ns) / FINE_NS;
        if let Some(part) = self.sub_second.get_mut(place as usize) {
            part.ended += 1;
            part.failed += u64::from(!succeeded);
            part.response_sum_ns += times.end_ns.saturating_sub(times.intended_ns);
        }
    }

    /// Keeps the message of a failure that is the first of its kind.
    pub(crate) fn note_example(
        &mut self,
        id: OperationId,
        error: OperationError,
        example: impl FnOnce() -> ErrorExample,
    ) {
        let known = self.errors.len();
        let failures = self.failures(id, error);
        if failures.example.is_none() && known < ERROR_KINDS {
            failures.example = Some(example());
        }
    }

    /// Message of the first failure of this kind.
    pub(crate) fn example(&self, id: OperationId, error: OperationError) -> Option<&ErrorExample> {
        let mut errors = self.errors.iter();
        errors.find(|known| known.operation == id && known.error == error)?.example.as_ref()
    }

    fn failures(&mut self, id: OperationId, error: OperationError) -> &mut Failures {
        let is_it = |known: &Failures| known.operation == id && known.error == error;
        let place = self.errors.iter().position(is_it).unwrap_or_else(|| {
            self.errors.push(Failures { operation: id, error, count: 0, example: None });
            self.errors.len() - 1
        });
        &mut self.errors[place]
    }

    /// Extends the clients' think time to the end of the merged window, if their own worker ended before.
    pub(crate) fn think_until(&mut self, end_ns: u64) {
        let rest_ns = end_ns.saturating_sub(self.end_ns);
        self.counts.thinking_ns += u128::from(self.thinking_at_end) * u128::from(rest_ns);
    }

    /// The window, without length and content.
    pub(crate) fn window(&self) -> IntervalRecord {
        IntervalRecord::empty(self.phase, self.index, self.start_ns)
    }

    /// Adds it to the sum of all workers for the same window.
    pub(crate) fn add_to(&self, total: &mut IntervalRecord) {
        total.duration_ns = total.duration_ns.max(self.end_ns.saturating_sub(self.start_ns));
        total.counts.add(&self.counts);
        if total.sub_second.len() < self.sub_second.len() {
            total.sub_second.resize(self.sub_second.len(), SubSecondPart::default());
        }
        for (total, part) in total.sub_second.iter_mut().zip(&self.sub_second) {
            total.ended += part.ended;
            total.failed += part.failed;
            total.response_sum_ns += part.response_sum_ns;
        }
        for (operation, part) in self.operations.iter().zip(&self.statistics) {
            if let Some(part) = part.as_deref().filter(|part| !part.is_empty()) {
                add_operation(&mut total.operations, &operation.name, part);
            }
        }
        // A message may belong to an operation that was retried, or that is counted in another window.
        for failures in self.errors.iter().filter(|failures| failures.count > 0) {
            add_failures(&mut total.errors, &self.operations[failures.operation].name, failures);
        }
    }
}

fn add_operation(totals: &mut Vec<OperationInterval>, name: &str, part: &OperationPart) {
    let place = totals.iter().position(|total| total.name == name).unwrap_or_else(|| {
        totals.push(empty_operation(name.to_owned()));
        totals.len() - 1
    });
    let total = &mut totals[place];
    for (into, from) in [
        (&mut total.response, &part.response),
        (&mut total.service, &part.service),
        (&mut total.start_delay, &part.start_delay),
    ] {
        // Counters differ in width, so `Histogram::add` does not apply.
        for bucket in from.histogram.iter_recorded() {
            let recorded =
                into.record_n(bucket.value_iterated_to(), u64::from(bucket.count_at_value()));
            debug_assert!(recorded.is_ok(), "all histograms have the same bounds");
        }
    }
    total.response_sum_ns += part.response.sum_ns;
    total.service_sum_ns += part.service.sum_ns;
    total.start_delay_sum_ns += part.start_delay.sum_ns;
    total.documents += part.documents;
    total.errors += part.errors;
    total.clamped += part.response.clamped;
}

fn empty_operation(name: String) -> OperationInterval {
    OperationInterval {
        name,
        response: latency_histogram(),
        service: latency_histogram(),
        start_delay: latency_histogram(),
        response_sum_ns: 0,
        service_sum_ns: 0,
        start_delay_sum_ns: 0,
        documents: 0,
        errors: 0,
        clamped: 0,
    }
}

fn add_failures(totals: &mut Vec<ErrorCount>, name: &str, more: &Failures) {
    let kind = more.error.to_string();
    match totals.iter_mut().find(|total| total.operation == name && total.kind == kind) {
        Some(total) => {
            total.count += more.count;
            if total.example.is_none() {
                total.example.clone_from(&more.example);
            }
        }
        None => totals.push(ErrorCount {
            operation: name.to_owned(),
            kind,
            count: more.count,
            example: more.example.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::operation::{Effect, Operation};
    use dyno_record::model::{RunDocument, SCHEMA_VERSION};
    use dyno_record::reader::Run;
    use dyno_record::writer::RunWriter;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A window of one second with a single operation.
    fn window() -> (Part, OperationId) {
        let operations = Operations::from(vec![Operation::new("checkout", Effect::Update)]);
        let id = operations.id("checkout").unwrap();
        (Part::new(&operations, &[id], SECOND_NS), id)
    }

    const TIMES: Times = Times { intended_ns: 1_000_000, send_ns: 3_000_000, end_ns: 10_000_000 };

    #[test]
    fn the_three_latencies_have_their_own_starts() {
        let (mut part, id) = window();
        part.record(id, TIMES, Ok(1));
        let read = part.statistics[id.index()].as_ref().unwrap();
        assert_eq!(read.response.sum_ns, 9_000_000);
        assert_eq!(read.service.sum_ns, 7_000_000);
        assert_eq!(read.start_delay.sum_ns, 2_000_000);
    }

    #[test]
    fn operations_keep_their_own_names_in_files_of_a_run() {
        let parts = ["orders of a customer", "pay"].map(str::to_owned).to_vec();
        let operations = Operations::from(vec![
            Operation::new(&parts[0], Effect::Read),
            Operation::new(&parts[1], Effect::Update),
            Operation { parts, ..Operation::new("checkout", Effect::Update) },
        ]);
        let ids: Vec<OperationId> =
            operations.iter().filter_map(|one| operations.id(&one.name)).collect();
        let mut part = Part::new(&operations, &ids, SECOND_NS);
        ids.iter().for_each(|id| part.record(*id, TIMES, Ok(1)));
        ids[1..].iter().for_each(|id| part.record(*id, TIMES, Err(OperationError::Timeout)));
        part.end_ns = SECOND_NS;
        let mut interval = part.window();
        part.add_to(&mut interval);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let document = RunDocument {
            schema_version: SCHEMA_VERSION,
            started_at: "2026-08-22T10:15:00Z".to_owned(),
            operations: operations.clone(),
            ..RunDocument::default()
        };
        RunWriter::create(&path, "", &document).unwrap().record(&interval).unwrap();
        let run = Run::open(&path).unwrap();
        assert_eq!(run.document.operations, operations);
        let recorded = &run.document.phases[0].operations;
        let counts: Vec<_> = operations
            .iter()
            .map(|one| &recorded[&one.name])
            .map(|r| (r.count, r.errors))
            .collect();
        assert_eq!(counts, [(1, 0), (1, 1), (1, 1)]);
        // The whole counts as its parts.
        let all = &run.responses.all[0];
        assert_eq!(all.response_ns.iter().map(|(_, count)| count).sum::<u64>(), 2);
        let file = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
        assert!(file("latency.hlog").contains("Tag=measure.orders_of_a_customer.response,"));
        assert!(file("series/errors.csv").ends_with("measure,0,pay,timeout,1\n"));
    }

    #[test]
    fn failures_are_counted_and_leave_no_latency() {
        let (mut part, id) = window();
        part.record(id, TIMES, Err(OperationError::Server(50)));
        part.record(id, TIMES, Err(OperationError::Server(50)));
        part.finish(TIMES, false);
        let mut interval = part.window();
        part.add_to(&mut interval);
        part.add_to(&mut interval);
        assert_eq!(interval.operations[0].response.len(), 0);
        assert_eq!(interval.operations[0].errors, 4);
        assert_eq!(interval.errors[0].kind, "server_50");
        assert_eq!(interval.errors[0].count, 4);
        let counts = interval.counts;
        assert_eq!((counts.succeeded, counts.failed), (0, 2));
        assert_eq!(counts.busy_ns, 14_000_000);
    }

    #[test]
    fn first_text_of_each_kind_is_kept_once_it_is_counted() {
        let (mut part, id) = window();
        let error = OperationError::Server(121);
        let example = |text: &str| ErrorExample::new(Some(121), "", text);
        part.note_example(id, error, || example("first"));
        let mut interval = part.window();
        part.add_to(&mut interval);
        assert!(interval.errors.is_empty(), "it was sent again");
        part.record(id, TIMES, Err(error));
        part.note_example(id, error, || example("second"));
        part.add_to(&mut interval);
        assert_eq!(interval.errors.len(), 1);
        assert_eq!(interval.errors[0].count, 1);
        assert_eq!(interval.errors[0].example, Some(example("first")));
        part.reset(PhaseKind::Measure, 1, SECOND_NS);
        assert_eq!(part.example(id, error), None);
    }

    #[test]
    fn values_above_the_range_are_kept_as_the_highest_and_counted() {
        let (mut part, id) = window();
        let times = Times { intended_ns: 0, send_ns: 0, end_ns: 2 * HIGHEST_NS };
        part.record(id, times, Ok(3));
        let mut interval = part.window();
        part.add_to(&mut interval);
        assert_eq!(interval.operations[0].clamped, 1);
        assert!(interval.operations[0].response.max() >= HIGHEST_NS);
        assert_eq!(interval.operations[0].response_sum_ns, u128::from(2 * HIGHEST_NS));
    }

    #[test]
    fn operations_count_in_the_window_part_in_which_they_end() {
        let (mut part, _) = window();
        part.reset(PhaseKind::Measure, 0, 5 * SECOND_NS);
        let ending = |after_ns: u64| Times {
            intended_ns: 5 * SECOND_NS,
            send_ns: 5 * SECOND_NS,
            end_ns: 5 * SECOND_NS + after_ns,
        };
        part.finish(ending(FINE_NS - 1), true);
        part.finish(ending(FINE_NS), false);
        part.finish(ending(SECOND_NS - 1), true);
        // In the tail, after the window.
        part.finish(ending(SECOND_NS), true);
        let mut interval = part.window();
        part.add_to(&mut interval);
        part.add_to(&mut interval);
        let sub_second = interval.sub_second;
        let ended: Vec<u64> = sub_second.iter().map(|part| part.ended).collect();
        assert_eq!((ended.len(), ended.iter().sum::<u64>()), (100, 6));
        assert_eq!((ended[0], ended[1], ended[99]), (2, 2, 2));
        assert_eq!(sub_second[1].response_sum_ns, 2 * FINE_NS);
        assert_eq!([0, 1, 99].map(|place| sub_second[place].failed), [0, 2, 0]);
        part.reset(PhaseKind::Measure, 1, 6 * SECOND_NS);
        assert!(part.sub_second.iter().all(|part| *part == SubSecondPart::default()));
    }

    #[test]
    fn a_reset_window_is_empty() {
        let (mut part, id) = window();
        part.record(id, TIMES, Ok(1));
        part.finish(TIMES, true);
        part.reset(PhaseKind::Warmup, 4, 99);
        let mut interval = part.window();
        part.add_to(&mut interval);
        assert!(interval.operations.is_empty());
        assert_eq!((interval.index, interval.start_ns, interval.counts.succeeded), (4, 99, 0));
    }
}

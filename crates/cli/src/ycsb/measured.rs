//! YCSB's measurements from the recording windows: one histogram in microseconds per block, since the
//! last reset.

use dyno_plan::ycsb::MeasurementInterval;
use dyno_record::interval::{HIGHEST_NS, IntervalRecord, OperationInterval};
use dyno_record::model::PhaseKind;
use dyno_report::ycsb::block_name;
use hdrhistogram::Histogram;

const NS_PER_US: u64 = 1_000;

/// Histograms by block name, in order of first appearance.
#[derive(Debug)]
pub(crate) struct Measured {
    interval: MeasurementInterval,
    blocks: Vec<Block>,
}

/// Measurements of one operation.
#[derive(Debug)]
pub(crate) struct Block {
    /// `READ`, `INSERT`, `Intended-READ`, …
    pub(crate) name: String,
    /// In microseconds, successful operations only.
    pub(crate) histogram: Histogram<u64>,
}

impl Measured {
    pub(crate) fn new(interval: MeasurementInterval) -> Self {
        Measured { interval, blocks: Vec::new() }
    }

    /// Adds one window.
    pub(crate) fn add(&mut self, interval: &IntervalRecord) {
        for operation in &interval.operations {
            let name = block_name(&operation.name);
            let weight = weight(interval.phase, operation);
            match self.interval {
                MeasurementInterval::Op => self.block(name).add(&operation.service, weight),
                MeasurementInterval::Intended => self.block(name).add(&operation.response, weight),
                MeasurementInterval::Both => {
                    self.block(format!("Intended-{name}")).add(&operation.response, weight);
                    self.block(name).add(&operation.service, weight);
                }
            }
        }
    }

    /// All blocks so far.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Resets the histograms and keeps the blocks.
    pub(crate) fn clear(&mut self) {
        for block in &mut self.blocks {
            block.histogram.reset();
        }
    }

    fn block(&mut self, name: String) -> &mut Block {
        let index = match self.blocks.iter().position(|block| block.name == name) {
            Some(index) => index,
            None => {
                let histogram = Histogram::new_with_bounds(1, HIGHEST_NS / NS_PER_US, 3);
                let histogram = histogram.expect("the constant bounds are valid");
                self.blocks.push(Block { name, histogram });
                self.blocks.len() - 1
            }
        };
        &mut self.blocks[index]
    }
}

impl Block {
    fn add(&mut self, latencies_ns: &Histogram<u64>, weight: u64) {
        for value in latencies_ns.iter_recorded() {
            let value_us = value.value_iterated_to() / NS_PER_US;
            self.histogram.saturating_record_n(value_us, value.count_at_value() * weight);
        }
    }
}

/// Number of YCSB's operations: in the load phase YCSB counts documents, `dyno` counts batches.
fn weight(phase: PhaseKind, operation: &OperationInterval) -> u64 {
    let commands = operation.response.len();
    if phase != PhaseKind::Load || commands == 0 {
        return 1;
    }
    (operation.documents as f64 / commands as f64).round().max(1.0) as u64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use dyno_record::interval::{WindowCounts, latency_histogram};

    /// A window of one second with operations that took 2 ms, and 3 ms from their intended starts.
    pub(crate) fn window(
        phase: PhaseKind,
        name: &'static str,
        commands: u64,
        documents: u64,
    ) -> IntervalRecord {
        let histogram = |value_ns: u64| {
            let mut histogram = latency_histogram();
            histogram.record_n(value_ns, commands).expect("it is in range");
            histogram
        };
        IntervalRecord {
            duration_ns: 1_000_000_000,
            operations: vec![OperationInterval {
                name: name.into(),
                response: histogram(3_000_000),
                service: histogram(2_000_000),
                start_delay: histogram(1_000_000),
                response_sum_ns: 0,
                service_sum_ns: 0,
                start_delay_sum_ns: 0,
                documents,
                errors: 0,
                clamped: 0,
            }],
            counts: WindowCounts { succeeded: commands, ..WindowCounts::default() },
            ..IntervalRecord::empty(phase, 0, 0)
        }
    }

    fn maximum(measured: &Measured, name: &str) -> u64 {
        let block =
            measured.blocks().iter().find(|block| block.name == name).expect("the block is there");
        block.histogram.max()
    }

    #[test]
    fn interval_option_selects_the_start_of_latencies() {
        let measure = |interval| {
            let mut measured = Measured::new(interval);
            measured.add(&window(PhaseKind::Measure, "read", 5, 5));
            measured
        };
        assert_eq!(maximum(&measure(MeasurementInterval::Op), "READ") / 10, 200);
        assert_eq!(maximum(&measure(MeasurementInterval::Intended), "READ") / 10, 300);
        let both = measure(MeasurementInterval::Both);
        assert_eq!(maximum(&both, "READ") / 10, 200);
        assert_eq!(maximum(&both, "Intended-READ") / 10, 300);
    }

    #[test]
    fn batch_counts_as_its_documents() {
        let mut measured = Measured::new(MeasurementInterval::Op);
        measured.add(&window(PhaseKind::Load, "insert_batch", 3, 300));
        assert_eq!(measured.blocks()[0].name, "INSERT");
        assert_eq!(measured.blocks()[0].histogram.len(), 300);
        measured.clear();
        assert_eq!(measured.blocks()[0].histogram.len(), 0);
    }
}

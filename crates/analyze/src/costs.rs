//! Costs of a phase: counters per operation, write and space amplification, energy and price. All pages use
//! these ratios.

mod coverage;
mod premises;
pub mod work;

use crate::estimate::Spread;
use crate::robust::mean;
use crate::uncertainty::mean::of_repetitions;
use coverage::{Coverage, Span};
use dyno_record::consumption::{Consumption, Counted, Unknown};
use dyno_record::experiment::{
    ChangedDocuments, Cost, CostBasis, CostKind, CostRatio, Costs, Figure, Figures,
};
use dyno_record::model::{
    CollectionRecord, Effect, PhaseEdge, PhaseKind, PhaseRecord, RunDocument,
};
use dyno_record::plan::PricePlan;

/// Time between WiredTiger checkpoints. Source: `storage.syncPeriodSecs` in the MongoDB manual.
pub(crate) const CHECKPOINT_INTERVAL_S: f64 = 60.0;

/// Reason for a short phase without costs.
const READ_TOO_LATE: &str = "the counters were read too late for such a short phase";

/// Costs of a phase; `None` if its record has no counters and no price. `rate_per_s` is the rate of successful
/// operations, which the price per operation uses.
pub fn of_phase(document: &RunDocument, phase: &PhaseRecord, rate_per_s: Figure) -> Option<Costs> {
    let used = document.consumption.iter().find(|used| used.phase == phase.name);
    let price = document.recorded_plan().price;
    if used.is_none() && price.is_none() {
        return None;
    }
    let (basis, basis_count) = match phase.name {
        PhaseKind::Load => (CostBasis::Document, changed_documents(document, phase)),
        _ => (CostBasis::Operation, phase.succeeded + phase.failed),
    };
    let mut tally = Tally::new(basis, basis_count, used);
    if let Some(used) = used {
        let span = Span::new(document, phase);
        tally.count(used, &span, premises::energy(document, phase, used));
        tally.amplification(document, phase, used, &span);
    }
    tally.put_each(CostKind::ClientCpu, Some(client_s(phase) * 1e6));
    let rate_per_s = match basis {
        CostBasis::Operation => rate_per_s,
        // An operation of the load phase inserts many documents.
        _ => Figure::bare(basis_count as f64 / phase.duration_s),
    };
    tally.price(price, rate_per_s);
    (basis_count > 0).then(|| tally.finished())
}

/// Costs of the measure phase, by its mean rate.
pub fn of_measure(document: &RunDocument) -> Option<Costs> {
    let phase = document.phases.iter().find(|phase| phase.name == PhaseKind::Measure)?;
    of_phase(document, phase, Figure::bare(phase.achieved_rate_per_s))
}

fn client_s(phase: &PhaseRecord) -> f64 {
    phase.client.cpu_user_s + phase.client.cpu_system_s
}

struct Tally {
    costs: Costs,
}

impl Tally {
    fn new(basis: CostBasis, basis_count: u64, used: Option<&Consumption>) -> Self {
        let mut unknown = used.map_or(Vec::new(), |used| used.unknown.clone());
        if used.is_none() {
            unknown.push(Unknown {
                what: Counted::ServerCpu,
                reason: "the record has no server counters for this phase".to_owned(),
            });
        }
        Tally {
            costs: Costs {
                basis,
                basis_count,
                values: Vec::new(),
                currency: None,
                changed: None,
                unknown,
            },
        }
    }

    fn put(&mut self, kind: CostKind, value: Figure) {
        if value.value.is_finite() {
            self.costs.values.push(Cost { kind, value });
        }
    }

    fn put_each(&mut self, kind: CostKind, sum: Option<f64>) {
        if let Some(sum) = sum {
            self.put(kind, Figure::bare(sum / self.costs.basis_count as f64));
        }
    }

    /// The growth of a counter between two readings, per operation. The growth itself may be wrong by `error`.
    fn put_counted(
        &mut self,
        kind: CostKind,
        sum: Option<f64>,
        error: f64,
        held: Option<Coverage>,
    ) {
        if let (Some(sum), Some(held)) = (sum, held) {
            let count = self.costs.basis_count as f64;
            self.put(kind, held.figure(sum / count, error / count));
        }
    }

    /// Adds the price from the price per hour and the rate per second.
    fn price(&mut self, price: Option<PricePlan>, rate_per_s: Figure) {
        let Some(price) = price else { return };
        let of_million = |rate_per_s: f64| price.per_h / 3600.0 / rate_per_s * 1e6;
        let value = Figure {
            value: of_million(rate_per_s.value),
            // The higher the rate, the lower the price.
            low: rate_per_s.high.map(of_million),
            high: rate_per_s.low.filter(|low| *low > 0.0).map(of_million),
        };
        self.put(CostKind::Price, value);
        self.costs.currency = price.currency;
    }

    /// The costs in display order.
    fn finished(mut self) -> Costs {
        self.costs.values.sort_by_key(|cost| cost.kind);
        self.costs
    }

    fn unknown(&mut self, what: Counted, reason: &str) {
        let reason = reason.to_owned();
        self.costs.unknown.push(Unknown { what, reason });
    }

    /// Whether a premise of a figure holds; notes the reason if it does not.
    fn holds(&mut self, what: Counted, premise: Result<(), String>) -> bool {
        let reason = premise.as_ref().err();
        reason.into_iter().for_each(|reason| self.unknown(what, reason));
        premise.is_ok()
    }

    /// Adds the counted costs. `energy` says whether the processors' energy belongs to this work.
    fn count(&mut self, used: &Consumption, span: &Span, energy: Result<(), String>) {
        let number = |value: Option<u64>| value.map(|value| value as f64);
        let memory = [
            (CostKind::ResidentBytes, used.resident_bytes),
            (CostKind::PeakBytes, used.peak_resident_bytes),
        ];
        for (kind, bytes) in memory {
            number(bytes).into_iter().for_each(|bytes| self.put(kind, Figure::bare(bytes)));
        }
        let is_of_kernel = used.processes > 0;
        let of_kernel = self.held(coverage::of_kernel(used, span), |what| match what {
            Counted::Device | Counted::Energy => true,
            Counted::ServerCpu => is_of_kernel,
            _ => false,
        });
        let of_servers = self.held(coverage::of_servers(used, span), |what| match what {
            Counted::ContextSwitches
            | Counted::CacheMisses
            | Counted::JournalSyncs
            | Counted::Network => true,
            Counted::ServerCpu => !is_of_kernel,
            _ => false,
        });
        let mut counts = vec![
            (CostKind::ContextSwitches, used.context_switches, of_servers),
            (CostKind::CacheMisses, used.cache_misses, of_servers),
            (CostKind::ReceivedBytes, used.network.map(|one| one.received_bytes), of_servers),
            (CostKind::SentBytes, used.network.map(|one| one.sent_bytes), of_servers),
        ];
        if let Some(device) = used.device.as_ref().filter(|_| of_kernel.is_some()) {
            if self.holds(Counted::DeviceReads, premises::device_reads(used, device)) {
                counts.extend([
                    (CostKind::ReadBytes, Some(device.read_bytes), of_kernel),
                    (CostKind::ReadRequests, Some(device.read_requests), of_kernel),
                ]);
            }
            if self.holds(Counted::DeviceWrites, premises::device_writes(used, device)) {
                counts.extend([
                    (CostKind::WrittenBytes, Some(device.written_bytes), of_kernel),
                    (CostKind::WriteRequests, Some(device.write_requests), of_kernel),
                    (CostKind::Flushes, device.flushes, of_kernel),
                ]);
            }
        }
        for (kind, count, held) in counts {
            self.put_counted(kind, number(count), 0.0, held);
        }
        let sync_us = used.journal_sync_s.map(|sync_s| sync_s * 1e6);
        self.put_counted(CostKind::JournalSyncs, sync_us, 0.0, of_servers);
        if let Some(found) = used.energy.as_ref().filter(|_| of_kernel.is_some())
            && self.holds(Counted::Energy, energy)
        {
            let energy_uj = found.energy_joules * 1e6;
            self.put_counted(CostKind::Energy, Some(energy_uj), 0.0, of_kernel);
        }
        // Without process data, the servers' own counters apply.
        let held = if is_of_kernel { of_kernel } else { of_servers };
        let error_us = used.server_cpu_error_s.unwrap_or(0.0) * 1e6;
        let cpu_us = used.server_cpu_s.map(|cpu_s| cpu_s * 1e6);
        self.put_counted(CostKind::ServerCpu, cpu_us, error_us, held);
    }

    /// The share of the phase between two readings; notes what remains unknown without it.
    fn held(
        &mut self,
        held: Option<Coverage>,
        is_read: impl Fn(Counted) -> bool,
    ) -> Option<Coverage> {
        if held.is_none() {
            for what in Counted::ALL.into_iter().filter(|what| is_read(*what)) {
                if self.costs.unknown.iter().all(|one| one.what != what) {
                    self.unknown(what, READ_TOO_LATE);
                }
            }
        }
        held
    }

    fn amplification(
        &mut self,
        document: &RunDocument,
        phase: &PhaseRecord,
        used: &Consumption,
        span: &Span,
    ) {
        let all = document.collections.iter();
        let at_end = |one: &&CollectionRecord| one.phase == phase.name && one.at == PhaseEdge::End;
        let collections: Vec<&CollectionRecord> = all.filter(at_end).collect();
        let sum = |of: fn(&CollectionRecord) -> Option<u64>| -> Option<u64> {
            let sum: Option<u64> = collections.iter().map(|one| of(one)).sum();
            sum.filter(|sum| *sum > 0)
        };
        let data_bytes = sum(|one| one.statistics.data_bytes);
        let files = sum(|one| one.statistics.storage_bytes)
            .zip(sum(|one| one.statistics.indexes_bytes))
            .map(|(collection, indexes)| collection + indexes);
        match data_bytes.zip(files) {
            Some((data, files)) => {
                let premise = premises::space_amplification(used, data, phase);
                if self.holds(Counted::SpaceAmplification, premise) {
                    let value = Figure::bare(files as f64 / data as f64);
                    self.put(CostKind::SpaceAmplification, value);
                }
            }
            None => self.unknown(Counted::Files, "the server does not report their size"),
        }
        let documents = changed_documents(document, phase);
        let Some(device) = used.device.as_ref().filter(|_| documents > 0) else {
            return;
        };
        let documents_there = sum(|one| Some(one.statistics.documents));
        let Some((data, there)) = data_bytes.zip(documents_there) else {
            return self.unknown(Counted::Documents, "the server does not report their size");
        };
        let changed = ChangedDocuments {
            documents,
            mean_document_bytes: data as f64 / there as f64,
            written_bytes: device.written_bytes + device.deferred_bytes.unwrap_or(0),
        };
        let held = match device.deferred_bytes {
            Some(_) => coverage::since(used, span),
            None => coverage::of_kernel(used, span),
        };
        let premise = premises::write_amplification(used, device, &changed, phase.duration_s);
        let Some(held) = held.filter(|_| self.holds(Counted::WriteAmplification, premise)) else {
            return;
        };
        let ratio = changed.written_bytes as f64 / changed.bytes();
        self.put(CostKind::WriteAmplification, held.figure(ratio, 0.0));
        self.costs.changed = Some(changed);
    }
}

/// Number of inserted or updated documents.
fn changed_documents(document: &RunDocument, phase: &PhaseRecord) -> u64 {
    let is_changing = |name: &str| {
        let effect = document.operations.find(name).map(|one| one.effect);
        matches!(effect, Some(Effect::Insert | Effect::Update))
    };
    let changing = document.commands(phase).filter(|(name, _)| is_changing(name));
    // A batch has several documents.
    changing.map(|(_, one)| one.documents.max(one.count)).sum()
}

/// Costs of runs with the same settings: the mean of each kind that all runs know, with Student's interval over
/// the runs. A single run keeps its own interval.
pub fn of_runs(runs: &[&Figures]) -> Vec<Cost> {
    let all: Option<Vec<&Costs>> = runs.iter().map(|run| run.costs.as_ref()).collect();
    all.map_or_else(Vec::new, |all| mean_of(&all))
}

/// The mean of known costs.
fn mean_of(runs: &[&Costs]) -> Vec<Cost> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let of_kind = |cost: &Cost| {
        let all: Vec<Figure> = runs.iter().map(|run| run.of(cost.kind)).collect::<Option<_>>()?;
        let plain: Vec<f64> = all.iter().map(|figure| figure.value).collect();
        let mean = mean(&plain);
        let value = match of_repetitions(&plain) {
            Some(found) => {
                // The uncertainty within the runs is a lower bound. All may be wrong in the same direction, so
                // use the mean.
                let own: f64 = all.iter().filter_map(half_width).sum();
                let own = own / all.len() as f64;
                let width = own.max(found.high - found.value);
                Figure { value: mean, low: Some((mean - width).max(0.0)), high: Some(mean + width) }
            }
            None => cost.value,
        };
        Some(Cost { kind: cost.kind, value })
    };
    first.values.iter().filter_map(of_kind).collect()
}

/// Costs of candidates relative to baselines, for pairs of runs.
pub(crate) fn ratios(pairs: &[[&Costs; 2]]) -> Vec<CostRatio> {
    let sides = [0_usize, 1].map(|side| pairs.iter().map(|pair| pair[side]).collect::<Vec<_>>());
    ratios_of_sides([&sides[0], &sides[1]], spread_of_pairs)
}

/// Costs of candidates relative to baselines, from the logarithms: 0 without an interval if no candidate has a
/// cost that each baseline has. Other costs with a 0 in any run have no ratio, and neither do prices in several
/// currencies.
fn ratios_of_sides(
    sides: [&[&Costs]; 2],
    spread: fn(baseline: &[f64], candidate: &[f64]) -> Option<Spread>,
) -> Vec<CostRatio> {
    let Some(first) = sides[0].first().filter(|_| !sides[1].is_empty()) else {
        return Vec::new();
    };
    let all = || sides.iter().copied().flatten();
    let is_one_currency = all().all(|costs| costs.currency == first.currency);
    let of_kind = |cost: &Cost| {
        let is_price = cost.kind == CostKind::Price;
        if is_price && !is_one_currency {
            return None;
        }
        let side = |side: usize| -> Option<Vec<f64>> {
            sides[side].iter().map(|one| Some(one.of(cost.kind)?.value)).collect()
        };
        let log = |value: &f64| (*value > 0.0).then(|| value.ln());
        let logs = |values: &[f64]| values.iter().map(log).collect::<Option<Vec<f64>>>();
        let (baseline, candidate) = (logs(&side(0)?)?, side(1)?);
        let mut compared = CostRatio {
            kind: cost.kind,
            currency: first.currency.clone().filter(|_| is_price),
            baseline: mean(&baseline).exp(),
            candidate: 0.0,
            ratio: Figure::bare(0.0),
            degrees_of_freedom: None,
        };
        if candidate.iter().any(|value| *value != 0.0) {
            let candidate = logs(&candidate)?;
            let value = (mean(&candidate) - mean(&baseline)).exp();
            let spread = spread(&baseline, &candidate);
            let interval = spread.and_then(|spread| spread.interval(value));
            compared.candidate = mean(&candidate).exp();
            compared.ratio = Figure {
                value,
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
            };
            compared.degrees_of_freedom =
                interval.and(spread).map(|spread| spread.degrees_of_freedom);
        }
        Some(compared)
    };
    first.values.iter().filter_map(of_kind).collect()
}

/// Spread of the geometric mean of the pairs' ratios, for Student's interval of its logarithm.
fn spread_of_pairs(baseline: &[f64], candidate: &[f64]) -> Option<Spread> {
    let differences: Vec<f64> = baseline.iter().zip(candidate).map(|(a, b)| b - a).collect();
    Some(Spread::of(&differences)?.of_mean(differences.len()))
}

/// Spread of the ratio of the geometric means of independent runs, for Welch's interval.
fn spread_of_independent(baseline: &[f64], candidate: &[f64]) -> Option<Spread> {
    let sides = [baseline, candidate];
    Spread::of_sides(sides.map(Spread::of), |side, one| one.of_mean(sides[side].len()))
}

/// Costs of one side's runs relative to the other side's, without pairs. Empty unless all runs have costs.
pub(crate) fn ratios_of_runs(sides: [&[RunDocument]; 2]) -> Vec<CostRatio> {
    let [Some(a), Some(b)] =
        sides.map(|runs| runs.iter().map(of_measure).collect::<Option<Vec<Costs>>>())
    else {
        return Vec::new();
    };
    let [a, b] = [&a, &b].map(|runs| runs.iter().collect::<Vec<&Costs>>());
    ratios_of_sides([&a, &b], spread_of_independent)
}

fn half_width(figure: &Figure) -> Option<f64> {
    Some((figure.high? - figure.low?) / 2.0)
}

#[cfg(test)]
mod tests;

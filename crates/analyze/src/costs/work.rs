//! Costs of work outside run phases: index builds per document and messages per received message.

use super::coverage::Span;
use super::{Tally, mean_of};
use crate::messages::lines::{combination, label};
use dyno_record::consumption::{Consumption, Counted};
use dyno_record::experiment::{Cost, CostBasis, CostKind, Costs, Figure};
use dyno_record::index_build::{BuildRecord, IndexBuildDocument};
use dyno_record::plan::PricePlan;
use dyno_record::tail::{Cell, CellStatus, Measured, Settings, TailDocument};
use serde::Serialize;

/// Costs with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedCosts {
    /// The index build or the message cell.
    pub name: String,
    #[serde(flatten)]
    pub costs: Costs,
}

/// The cost-related part of some work.
struct Work<'a> {
    basis: CostBasis,
    count: u64,
    duration_s: f64,
    used: Option<&'a Consumption>,
    price: Option<PricePlan>,
}

/// Costs of an index build per document of its collection; `None` if its record has no counters and no price.
pub fn of_build(document: &IndexBuildDocument, build: &BuildRecord) -> Option<Costs> {
    let found = document
        .configurations
        .iter()
        .find(|one| build.configuration.as_ref() == Some(&one.topology));
    let collection = found.map_or(&document.collection, |found| &found.collection);
    let work = Work {
        basis: CostBasis::Document,
        count: collection.documents,
        duration_s: build.duration_s,
        used: build.consumption.as_ref(),
        price: document.recorded_plan().price,
    };
    Some(work.tally()?.finished())
}

/// Costs of each index build.
pub fn of_builds(document: &IndexBuildDocument) -> Vec<NamedCosts> {
    let of_one = |build: &BuildRecord| {
        Some(NamedCosts { name: build.name.clone(), costs: of_build(document, build)? })
    };
    document.builds.iter().filter_map(of_one).collect()
}

/// Costs of a cell's messages, per message that a consumer received; `None` if its record has no counters and
/// no price, or no message was received.
pub fn of_messages(document: &TailDocument, measured: &Measured) -> Option<Costs> {
    let received = || measured.consumers.iter().map(|one| one.sum.received);
    let work = Work {
        basis: CostBasis::Message,
        count: received().sum(),
        duration_s: delivering_s(measured)?,
        used: measured.consumption.as_ref(),
        price: document.recorded_plan().price,
    };
    let mut tally = work.tally()?;
    let producers = measured.producers.iter().map(|one| &one.resources);
    let consumers = measured.consumers.iter().map(|one| &one.resources);
    let client_s: Option<f64> = producers.chain(consumers).map(|used| used.cpu_s).sum();
    match client_s {
        Some(client_s) => tally.put_each(CostKind::ClientCpu, Some(client_s * 1e6)),
        None => tally
            .unknown(Counted::ClientCpu, "a driver process ended before its counters were read"),
    }
    Some(tally.finished())
}

/// Costs of each cell with received messages.
pub fn of_cells(document: &TailDocument) -> Vec<NamedCosts> {
    let of_one = |cell: &Cell| {
        Some(NamedCosts {
            name: label(document, cell),
            costs: of_messages(document, cell.measured.as_ref()?)?,
        })
    };
    document.cells.iter().filter_map(of_one).collect()
}

/// Costs of each message combination, over the complete cells of its repetitions.
pub fn of_combinations(document: &TailDocument) -> Vec<(String, Vec<Cost>)> {
    let mut groups: Vec<(&Settings, String, Vec<Costs>)> = Vec::new();
    let complete = |cell: &&Cell| cell.status == CellStatus::Complete;
    for cell in document.cells.iter().filter(complete) {
        let measured = cell.measured.as_ref();
        let Some(costs) = measured.and_then(|measured| of_messages(document, measured)) else {
            continue;
        };
        let mut known = groups.iter_mut();
        match known.find(|(settings, ..)| **settings == cell.settings) {
            Some((_, _, all)) => all.push(costs),
            None => groups.push((&cell.settings, combination(document, cell), vec![costs])),
        }
    }
    let mean = |(_, name, all): (&Settings, String, Vec<Costs>)| {
        (name, mean_of(&all.iter().collect::<Vec<_>>()))
    };
    groups.into_iter().map(mean).collect()
}

/// Time from the first send until the last message was received.
pub fn delivering_s(measured: &Measured) -> Option<f64> {
    let of_one = measured.consumers.iter().filter_map(|one| {
        let rate_per_s = one.received_per_s.filter(|rate_per_s| *rate_per_s > 0.0)?;
        Some(one.sum.received as f64 / rate_per_s)
    });
    of_one.max_by(f64::total_cmp)
}

impl Work<'_> {
    fn tally(self) -> Option<Tally> {
        let is_known = self.used.is_some() || self.price.is_some();
        if !is_known || self.count == 0 {
            return None;
        }
        let mut tally = Tally::new(self.basis, self.count, self.used);
        if let Some(used) = self.used {
            tally.count(used, &Span::alone(self.duration_s), Ok(()));
        }
        let rate_per_s = Figure::bare(self.count as f64 / self.duration_s);
        tally.price(self.price, rate_per_s);
        Some(tally)
    }
}

//! What work costs that is no phase of a run: an index build for each document, and messages for each that was received.

use super::coverage::Span;
use super::{Tally, mean_of};
use crate::messages::lines::{combination, label};
use dyno_record::consumption::{Consumption, Counted};
use dyno_record::experiment::{Cost, CostBasis, CostKind, Costs, Figure};
use dyno_record::index_build::{BuildRecord, IndexBuildDocument};
use dyno_record::plan::RecordedPrice;
use dyno_record::tail::{Cell, CellStatus, Measured, Settings, TailDocument};
use serde::Serialize;

/// What one of several costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedCosts {
    /// The index build, or the cell of messages.
    pub name: String,
    /// What it cost.
    #[serde(flatten)]
    pub costs: Costs,
}

/// Some work as far as its costs go.
struct Work<'a> {
    basis: CostBasis,
    count: u64,
    duration_s: f64,
    used: Option<&'a Consumption>,
    price: Option<RecordedPrice>,
}

/// What an index build cost for each document of its collection; `None` if its record counts nothing and names no price.
pub fn of_build(document: &IndexBuildDocument, build: &BuildRecord) -> Option<Costs> {
    let mut configurations = document.configurations.iter();
    let found = configurations.find(|one| build.configuration.as_ref() == Some(&one.topology));
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

/// What each index build cost.
pub fn of_builds(document: &IndexBuildDocument) -> Vec<NamedCosts> {
    let of_one = |build: &BuildRecord| {
        Some(NamedCosts {
            name: build.name.clone(),
            costs: of_build(document, build)?,
        })
    };
    document.builds.iter().filter_map(of_one).collect()
}

/// What the messages of a cell cost, for each one that a consumer received; `None` if its record counts nothing and names no
/// price, or if none was received.
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
        None => tally.unknown(
            Counted::ClientCpu,
            "a driver's process ended before it was looked at",
        ),
    }
    Some(tally.finished())
}

/// What each cell cost of which messages were received.
pub fn of_cells(document: &TailDocument) -> Vec<NamedCosts> {
    let of_one = |cell: &Cell| {
        Some(NamedCosts {
            name: label(document, cell),
            costs: of_messages(document, cell.measured.as_ref()?)?,
        })
    };
    document.cells.iter().filter_map(of_one).collect()
}

/// What each combination of messages cost, over the complete cells of its repetitions.
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

/// From the first send until the last message was received.
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

//! Reports of a sweep.

use super::demands::{self, Demands};
use super::figure::{
    bound_of_rate, cell, interval_or_why, no_interval_of, no_interval_of_p99, seconds, unwanted,
};
use super::levels::{Sweep, key_column};
use super::parts::Parts;
use super::relative;
use super::sweep_charts as charts;
use crate::caveat::{CaveatBook, Topic};
use crate::costs;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Figure, Section, charts_of};
use crate::terms::terms;
use dyno_analyze::experiment::figures::resource_name;
use dyno_record::experiment::{CLIENTS, Demand, Experiment, Level, RATE, SweepAnswer};
use dyno_record::model::ResourceKind;
use dyno_record::quantity::Quantity;

mod laws;
mod scalability;

/// Percentiles of the table of levels, with their column ranks.
const PERCENTILES: [(&str, u8); 3] = [("p50", 120), ("p95", 130), ("p99", 170)];

/// Resources of the table of levels, with their short names and column ranks.
const RESOURCES: [(&str, &str, u8); 5] = [
    (resource_name(ResourceKind::ServerCpu), "server CPUs", 150),
    (resource_name(ResourceKind::ClientCpu), "client CPUs", 110),
    (DISK, "disk", 100),
    (resource_name(ResourceKind::HostCpu), "all CPUs", 30),
    (resource_name(ResourceKind::ServerHostCpu), "machine CPUs", 155),
];

const DISK: &str = resource_name(ResourceKind::Disk);

/// Use of a resource: the number of busy CPUs, which server and client have in common, or the busy share of the disk.
fn used(level: &Level, name: &str) -> Option<Quantity> {
    let busy_ratio = *level.busy_ratio.get(name)?;
    if name == DISK {
        return Some(Quantity::ratio(busy_ratio));
    }
    let demand = level.demands.iter().find(|demand| demand.name == name)?;
    let cpus = demand.quota.unwrap_or_else(|| f64::from(demand.servers));
    Some(Quantity::plain(busy_ratio * cpus).brief())
}

/// All parts of the page of a sweep.
pub(super) fn parts(experiment: &Experiment, answer: &SweepAnswer, book: &CaveatBook) -> Parts {
    let sweep = Sweep { answer, experiment, book };
    let sections = [
        relative::section(&sweep),
        Some(sweep.levels_section()),
        sweep.demands_section(),
        sweep.costs_section(),
        scalability::section(&sweep),
        laws::section(&sweep),
    ];
    Parts {
        headline: sweep.headline(),
        facts: Vec::new(),
        sections: sections.into_iter().flatten().collect(),
        definitions: match answer.relative {
            Some(_) => {
                terms(&["level", "interval", "service-demand", "sweep", "law-check", "base"])
            }
            None => terms(&["level", "interval", "service-demand", "sweep", "law-check"]),
        },
    }
}

impl Sweep<'_> {
    fn headline(&self) -> Vec<Figure> {
        let best = self.best();
        let marks = |topic| self.book.marks(topic, None);
        let rate = &best.rate_per_s;
        let range = interval_or_why(rate, Quantity::per_second, no_interval_of(best));
        let highest = Figure::new("highest rate", Quantity::per_second(rate.value));
        let note = format!("{}, {range}", self.at(best));
        let mut figures = vec![highest.with_note(note).marked(&marks(Topic::Rate))];
        let p99 = best.response_us.get("p99");
        let times = [
            ("mean response time there", Some(best.response_mean_us), no_interval_of(best)),
            ("p99 response time there", p99.copied(), no_interval_of_p99(best)),
        ];
        figures.extend(times.into_iter().filter_map(|(label, time, why)| {
            let time = time?;
            let us = Quantity::microseconds;
            let note = interval_or_why(&time, us, why);
            let figure = Figure::new(label, us(time.value)).with_note(note);
            Some(figure.marked(&marks(Topic::Latency)))
        }));
        figures.extend(
            self.answer
                .bottleneck
                .as_ref()
                .map(|demand| bound_of_rate(demand, self.answer.bound_per_s, rate.value)),
        );
        figures
    }

    fn levels_section(&self) -> Section {
        let mut notes = vec![
            "The 95 % interval is below each value. It rests on the variation between the runs of a level, or \
             within the run if there is only one; levels without an interval are too short."
                .to_owned(),
        ];
        if self.answer.levels.iter().any(|level| !level.busy_ratio.is_empty()) {
            notes.push(
                "The columns of CPUs show how many were busy on average, and the one of the disk the share of the time \
                 in which it was busy."
                    .to_owned(),
            );
        }
        Section {
            title: self.title("Rate and response time").into(),
            charts: [charts_of(charts::plots(self)), charts_of(charts::rows(self))].concat(),
            tables: vec![self.levels_table()],
            notes,
            ..Section::default()
        }
    }

    fn levels_table(&self) -> Table {
        let (keys, levels) = (self.keys(), self.levels());
        let is_repeated = levels.iter().any(|level| level.runs.len() > 1);
        let marked = |column: Column, topic| column.marked(&self.book.marks(topic, None));
        let us = Quantity::microseconds;
        let mut columns = Table::of(&levels);
        for key in &keys {
            columns = columns.with(key_column(key), |level| self.key_cell(key, level));
        }
        columns = columns
            .number("clients", 35, |level| {
                let is_unknown = !keys.contains(&CLIENTS);
                Cell::known(is_unknown.then(|| Quantity::count(level.clients.into())))
            })
            .number("offered", 40, |level| {
                let offered = level.offered_rate_per_s.filter(|_| !keys.contains(&RATE));
                Cell::known(offered.map(Quantity::per_second))
            })
            .number("runs", 20, |level| Cell::known(is_repeated.then_some(level.runs.len())))
            .number("think time", 45, |level| Cell::known(level.think_mean_us.map(us)))
            .with(marked(Column::number("rate", 200), Topic::Rate), |level| {
                let rate = cell(Some(&level.rate_per_s), Quantity::per_second);
                let is_best = std::ptr::eq(*level, self.best());
                Cell { tone: if is_best { Tone::Strong } else { Tone::Plain }, ..rate }
            })
            .with(marked(Column::number("mean", 180), Topic::Latency), |level| {
                cell(Some(&level.response_mean_us), us)
            });
        for (name, rank) in PERCENTILES {
            columns = columns.with(marked(Column::number(name, rank), Topic::Latency), |level| {
                cell(level.response_us.get(name), us)
            });
        }
        for (name, title, rank) in RESOURCES {
            columns = columns.number(title, rank, |level| Cell::known(used(level, name)));
        }
        columns
            .with(marked(Column::number("failed", 160), Topic::Errors), |level| {
                unwanted(level.failed_ratio)
            })
            .with(marked(Column::number("dropped", 155), Topic::Arrivals), |level| {
                unwanted(level.dropped_ratio)
            })
            .text("notes", |level| self.level_notes(level))
            .table("Levels")
    }

    fn level_notes(&self, level: &Level) -> Cell {
        let is_best = std::ptr::eq(level, self.best());
        let notes = [
            (level.generator_bound, "generator-bound"),
            (level.unsteady, "not steady"),
            (is_best, "best"),
        ];
        let notes: Vec<&str> =
            notes.iter().filter(|(holds, _)| *holds).map(|(_, note)| *note).collect();
        let tone = match (level.generator_bound, level.unsteady) {
            (true, _) => Tone::Alarm,
            (false, true) => Tone::Doubt,
            (false, false) => Tone::Soft,
        };
        Cell::new(notes.join(", "), tone)
    }

    fn costs_section(&self) -> Option<Section> {
        let keys = self.keys();
        let cells = |level: &Level| keys.iter().map(|key| self.key_cell(key, level)).collect();
        let levels = self.levels();
        let rows = levels.iter().map(|level| (cells(level), level.costs.as_slice()));
        let rows: Vec<costs::Row<'_>> = rows.collect();
        let columns: Vec<Column> = keys.iter().map(|key| key_column(key)).collect();
        let section = costs::of_rows(&columns, &rows, costs::currency(self.experiment))?;
        Some(Section { title: self.title("Cost per operation").into(), ..section })
    }

    fn demands_section(&self) -> Option<Section> {
        let system = self.answer.system.as_ref()?;
        let best = self.best();
        // Only a level with one client shows the duration of a lone operation.
        let lone = match self.answer.saturation_clients {
            Some(_) => format!(
                " A lone operation takes {}, including {} without queues, such as in the network.",
                seconds(system.lone_response_s()),
                seconds(system.delay_s)
            ),
            None => String::new(),
        };
        let is_station = |demand: &Demand| system.demands.iter().any(|one| one.name == demand.name);
        let parts = best.demands.iter().filter(|one| !is_station(one));
        let section = demands::section(&Demands {
            stations: &system.demands,
            parts: parts.collect(),
            disk: self.answer.disk.as_ref(),
            bottleneck: self.answer.bottleneck.as_ref(),
            rate_per_s: best.rate_per_s.value,
            lead: format!("Measured {}, at the highest rate.{lone}", self.at(best)),
        });
        Some(Section { title: self.title("Service demands").into(), ..section })
    }
}

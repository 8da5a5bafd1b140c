//! Service demands of each resource, as a chart and a table.

use super::figure::{cell, interval, seconds};
use crate::page::rows::{RowValue, RowsChart, Scale};
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Section, charts_of};
use dyno_analyze::experiment::figures::resource_name;
use dyno_analyze::experiment::machines::{is_of_kind, is_of_one_machine};
use dyno_record::experiment::{Demand, DiskFigures, DiskLimits, Figure, LimitBasis, NoLimit};
use dyno_record::model::ResourceKind;
use dyno_record::quantity::Quantity;

/// Caption of the chart.
const CAPTION: &str = "The demand of an operation, divided by the number of parallel units.";

/// Service demands at a rate.
pub(crate) struct Demands<'a> {
    pub(crate) stations: &'a [Demand],
    /// Other watched resources: parts of the stations, and the whole machine.
    pub(crate) parts: Vec<&'a Demand>,
    /// Limits of the disks.
    pub(crate) disk: Option<&'a DiskLimits>,
    /// The station that saturates first.
    pub(crate) bottleneck: Option<&'a Demand>,
    /// The rate at which the demands were measured.
    pub(crate) rate_per_s: f64,
    /// The conditions of the measurement in words.
    pub(crate) lead: String,
}

/// The section about service demands.
pub(crate) fn section(demands: &Demands<'_>) -> Section {
    // Each with whether operations wait for it.
    let stations = demands.stations.iter().map(|demand| (demand, true));
    let rows: Vec<(&Demand, bool)> =
        stations.chain(demands.parts.iter().map(|demand| (*demand, false))).collect();
    let table = Table::of(&rows)
        .text("resource", |(demand, is_station)| {
            Cell::new(&demand.name, demands.note(demand, *is_station).0)
        })
        .number("units", 60, |(demand, _)| match demand.quota {
            Some(quota) => Cell::from(Quantity::plain(quota)),
            None => demand.servers.into(),
        })
        .number("demand", 200, |(demand, _)| {
            let ends = interval_s(demand).map(|(low, high)| interval(seconds(low), seconds(high)));
            Cell::from(seconds(demand.demand_s)).with_detail(ends)
        })
        .number("busy", 100, |(demand, is_station)| {
            let busy = Quantity::ratio(demands.rate_per_s * demand.per_server_s());
            Cell::from(busy).with_detail(demands.share_note(demand, *is_station))
        })
        .number("limits the rate to", 150, |(demand, is_station)| match is_station {
            true => cell(Some(&Figure::bound_by(demand)), Quantity::per_second),
            false if is_disk(demand) => Cell::new("not known", Tone::Soft),
            false => Cell::default(),
        })
        .text("notes", |(demand, is_station)| demands.note(demand, *is_station).1)
        .table("Service demands");
    Section {
        title: "Service demands".into(),
        lead: demands.lead.clone(),
        charts: charts_of([demands.chart()]),
        tables: vec![table],
        notes: demands.notes(),
        ..Section::default()
    }
}

impl Demands<'_> {
    fn is_bottleneck(&self, demand: &Demand) -> bool {
        let bottleneck = self.bottleneck;
        bottleneck.is_some_and(|bottleneck| bottleneck.name == demand.name)
    }

    /// Whether the servers run on other machines than the client.
    fn is_elsewhere(&self) -> bool {
        let mut names = self
            .stations
            .iter()
            .chain(self.parts.iter().copied())
            .map(|demand| demand.name.as_str());
        names.any(|name| is_of_kind(name, ResourceKind::ServerHostCpu) || is_of_one_machine(name))
    }

    fn note(&self, demand: &Demand, is_station: bool) -> (Tone, &'static str) {
        match (self.is_bottleneck(demand), is_station) {
            (true, _) => (Tone::Strong, "lowest bound"),
            (false, true) => (Tone::Plain, ""),
            (false, false) => (Tone::Soft, self.part_note(&demand.name)),
        }
    }

    /// Note for a disk that can take more requests while it is busy.
    fn share_note(&self, demand: &Demand, is_station: bool) -> Option<String> {
        let limit = self.disk.and_then(|disk| disk.known.as_ref());
        let limit = limit.filter(|_| is_station && is_disk(demand))?;
        (limit.basis != LimitBasis::OneAtATime).then(|| "of its capacity".to_owned())
    }

    /// Note for a resource that gives no bound by itself.
    fn part_note(&self, name: &str) -> &'static str {
        let is_whole = |kind| is_of_kind(name, kind);
        if name == resource_name(ResourceKind::Disk) {
            let unknown = self.disk.and_then(|disk| disk.unknown.as_ref());
            return match unknown.map(|one| one.reason) {
                Some(NoLimit::ServesSeveral) => "serves several",
                Some(NoLimit::WritesLimited) => "writes limited",
                Some(NoLimit::FlushesUnknown) => "flushes unknown",
                Some(
                    NoLimit::PartUnknown | NoLimit::ReadsBesideWrites | NoLimit::FlushesBeside,
                ) => "known in part",
                Some(NoLimit::KindUnknown) | None => "kind unknown",
            };
        }
        match self.is_elsewhere() {
            _ if is_whole(ResourceKind::HostCpu) => "with all others",
            true if name == resource_name(ResourceKind::ServerCpu) => "of all machines",
            true if is_whole(ResourceKind::ServerHostCpu) => "with all others",
            _ => "part of the CPUs",
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let of_server = resource_name(ResourceKind::ServerCpu);
        if self.parts.iter().any(|demand| !is_disk(demand)) {
            let text = if self.is_elsewhere() {
                "The demands of all processes on a server's machine, and of servers on several machines together, are shown in \
                 addition to the resources that operations wait for."
            } else if self.parts.iter().any(|demand| demand.name == of_server) {
                "Client and server on one machine wait for the same CPUs, which are one resource; their parts and the demand of \
                 the whole machine are shown in addition."
            } else {
                "The whole machine is shown in addition to the resources that operations wait for, because other processes use it as well."
            };
            notes.push(text.to_owned());
        }
        if self.parts.iter().any(|demand| is_disk(demand)) {
            notes.push(
                "A disk is busy while it has any request. A disk that serves several requests at once is always busy long before \
                 it is saturated, so its busy time gives no bound unless its limit was measured or a sweep reaches it."
                    .to_owned(),
            );
        }
        let known = self.disk.and_then(|disk| disk.known.as_ref());
        notes.extend(known.map(|limit| {
            let disk = device(&limit.disk);
            match limit.basis {
                LimitBasis::OneAtATime => format!("{disk} serves one request at a time."),
                LimitBasis::Measured => format!(
                    "The capacity of {disk} was measured alone: the demand is the larger of an operation's shares of its reads and writes \
                     (more if reads and writes share device time), and its inverse is the highest rate that the disk allows."
                ),
                LimitBasis::Limited => {
                    format!("Reads of the servers on {disk} are limited: the demand is an operation's share of the limit.")
                }
                LimitBasis::Saturated => format!(
                    "At higher loads the request rate of {disk} did not grow, but its queue did: an operation's share \
                     of this limit is its demand."
                ),
            }
        }));
        notes
    }

    fn chart(&self) -> RowsChart {
        let values = self
            .stations
            .iter()
            .chain(self.parts.iter().copied())
            .map(|demand| self.bar(demand))
            .collect();
        RowsChart {
            title: "How long an operation occupies each resource".to_owned(),
            caption: match self.bottleneck {
                Some(_) if self.parts.is_empty() => {
                    format!("{CAPTION} The longest bar, in bold, has the lowest bound.")
                }
                Some(_) => format!(
                    "{CAPTION} The resource in bold has the lowest bound; a longer bar is a resource that operations do not \
                     wait for as a whole, or whose limit is unknown."
                ),
                None => CAPTION.to_owned(),
            },
            axis: "time per operation and unit".to_owned(),
            ..RowsChart::from_zero(values, Scale::bar, |us| Quantity::microseconds(us).to_string())
        }
    }

    fn bar(&self, demand: &Demand) -> RowValue {
        let units = demand.usable();
        let us_per_unit = |demand_s: f64| demand_s / units * 1e6;
        RowValue {
            label: demand.name.clone(),
            value_text: seconds(demand.per_server_s()).to_string(),
            detail: match (demand.quota, demand.servers) {
                (None, 1) => String::new(),
                (None, servers) => format!("{} / {servers}", seconds(demand.demand_s)),
                (Some(quota), _) => {
                    format!("{} / {}", seconds(demand.demand_s), Quantity::plain(quota))
                }
            },
            is_strong: self.is_bottleneck(demand),
            value: us_per_unit(demand.demand_s),
            interval: interval_s(demand).map(|(low, high)| (us_per_unit(low), us_per_unit(high))),
        }
    }
}

/// The interval of a demand, if its error is known.
fn interval_s(demand: &Demand) -> Option<(f64, f64)> {
    let quantity = demand.quantity();
    let error = quantity.uncertainty();
    let is_known = quantity.uncertainty_ratio < 1.0;
    is_known.then_some((quantity.value - error, quantity.value + error))
}

fn is_disk(demand: &Demand) -> bool {
    demand.name == resource_name(ResourceKind::Disk)
}

fn device(disk: &DiskFigures) -> String {
    match &disk.host {
        Some(host) => format!("`{}` of `{host}`", disk.device),
        None => format!("`{}`", disk.device),
    }
}

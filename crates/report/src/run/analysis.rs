//! The analysis of one run: the result with its uncertainty, service demands and laws.

use super::answer::bound;
use crate::caveat::{CaveatBook, Topic};
use crate::experiment::demands::{self, Demands};
use crate::experiment::figure::cell;
use crate::experiment::law_words::{self, TOLERANCES};
use crate::facts::{operation_label, wholes};
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_analyze::experiment::run::{OperationFigures, RunAnalysis};
use dyno_record::experiment::{Demand, LawCheck};
use dyno_record::model::{PhaseKind, ResourceKind, RunDocument, SourceKind};
use dyno_record::quantity::Quantity;

/// Percentiles of the table, with column titles and ranks.
const PERCENTILES: [(&str, &str, u8); 4] =
    [("p50", "p50", 180), ("p95", "p95", 130), ("p99", "p99", 190), ("p99_9", "p99.9", 170)];

/// The sections of an analysis.
pub(super) fn sections(
    document: &RunDocument,
    analysis: &RunAnalysis,
    book: &CaveatBook,
) -> Vec<Section> {
    let sections = [
        Some(uncertainty(document, analysis, book)),
        demands_section(document, analysis),
        laws(&analysis.figures.laws),
    ];
    sections.into_iter().flatten().collect()
}

fn uncertainty(document: &RunDocument, analysis: &RunAnalysis, book: &CaveatBook) -> Section {
    let marks = |topic| book.marks(topic, Some(PhaseKind::Measure));
    let figures = &analysis.figures;
    let all = OperationFigures {
        rate_per_s: figures.rate_per_s,
        response_mean_us: figures.response_mean_us,
        response_us: figures.response_us.clone(),
    };
    // A single operation equals the total.
    let all = (analysis.operations.len() != 1).then(|| ("all operations".to_owned(), &all));
    let operations = analysis.operations.iter();
    let operations = operations.map(|(name, figures)| (operation_label(name), figures));
    let rows: Vec<(String, &OperationFigures)> = all.into_iter().chain(operations).collect();
    let mut columns = Table::of(&rows)
        .text("operation", |(label, _)| Cell::new(label, Tone::Strong))
        .with(Column::number("rate", 200).marked(&marks(Topic::Rate)), |(_, one)| {
            cell(Some(&one.rate_per_s), Quantity::per_second)
        })
        .with(Column::number("mean", 150).marked(&marks(Topic::Latency)), |(_, one)| {
            cell(Some(&one.response_mean_us), Quantity::microseconds)
        });
    for (name, title, rank) in PERCENTILES {
        let topic = if name == "p99_9" { Topic::Tail } else { Topic::Latency };
        let column = Column::number(title, rank).marked(&marks(topic));
        columns = columns
            .with(column, |(_, one)| cell(one.response_us.get(name), Quantity::microseconds));
    }
    Section {
        title: "Rate and response time with their uncertainty".into(),
        lead: format!(
            "The 95 % interval is below each value, from the variation between the {} windows of the measure phase.",
            Quantity::count(analysis.windows.into())
        ),
        tables: vec![columns.table("Rate and response time")],
        notes: interval_notes(document, analysis),
        ..Section::default()
    }
}

/// Notes about exclusions from the intervals; a finding says why intervals are missing.
fn interval_notes(document: &RunDocument, analysis: &RunAnalysis) -> Vec<String> {
    let mut notes = Vec::new();
    if analysis.figures.warm_up_s > 0.0 {
        notes.push(format!(
            "The first {} of the phase still belonged to the warm-up and are left out here; the totals of the phase include them.",
            Quantity::seconds(analysis.figures.warm_up_s)
        ));
    }
    if analysis.figures.rate_per_s.low.is_some() {
        notes.push(
            "They show the uncertainty within this run. Differences between runs are larger: repeat them \
             before believing a small difference."
                .to_owned(),
        );
    }
    notes.extend(wholes(document, analysis.operations.keys()).map(|(whole, parts)| {
        format!(
            "Among all operations, a {whole} counts as {parts}, each with its own time; the rate \
             counts it once."
        )
    }));
    notes
}

fn demands_section(document: &RunDocument, analysis: &RunAnalysis) -> Option<Section> {
    let stations = &analysis.stations;
    if stations.is_empty() {
        return None;
    }
    let is_station = |demand: &Demand| stations.iter().any(|one| one.name == demand.name);
    let others = analysis.figures.demands.iter();
    let lead = "Service demand per operation in the measure phase: busy time divided by \
                operations (D = U / X).";
    let mut section = demands::section(&Demands {
        stations,
        parts: others.filter(|demand| !is_station(demand)).collect(),
        disk: analysis.disk.as_ref(),
        bottleneck: analysis.bottleneck.as_ref().map(|found| &found.demand),
        rate_per_s: analysis.figures.rate_per_s.value,
        lead: match &analysis.bottleneck {
            None => format!(
                "{lead} The server's own use is not in this record, so no bottleneck can be named."
            ),
            Some(found) if !found.is_shown() => format!(
                "{lead} No resource was busy enough to show its limit (at most {} of the time): at a higher rate an \
                 operation may need less.",
                Quantity::ratio(found.reached_ratio)
            ),
            Some(found) => format!(
                "{lead} The largest demand per unit limits the rate to {}; {} of this bound were reached.",
                bound(found),
                Quantity::ratio(found.reached_ratio)
            ),
        },
    });
    section.notes.push(
        "The intervals cover the error of the counters; other runs may need more or less."
            .to_owned(),
    );
    section.notes.extend(reported(document));
    Some(section)
}

/// The sources of values about remote servers.
fn reported(document: &RunDocument) -> Vec<String> {
    let measured = document.resources.iter();
    let measured = measured.filter(|one| one.phase == PhaseKind::Measure);
    let said = measured.filter_map(|one| {
        let by = one.reported.as_ref()?;
        let disks: Vec<_> = one.disks.iter().map(|disk| format!("`{}`", disk.device)).collect();
        let what = match one.resource {
            ResourceKind::Disk => format!("the busy time of {}", disks.join(", ")),
            ResourceKind::ServerCpu => "the CPU time of the servers' processes".to_owned(),
            _ => "the busy time of its CPUs".to_owned(),
        };
        let source = document.sources.iter().find(|source| source.name == by.source);
        let source = match one.resource {
            _ if source.is_some_and(|source| source.kind == SourceKind::Agent) => {
                "the agent there".to_owned()
            }
            ResourceKind::ServerCpu => format!("`{}`", by.source),
            _ => format!("exporter `{}`", by.source),
        };
        Some(format!("Of `{}`, {source} reported {what}.", by.machine))
    });
    said.collect()
}

fn laws(checks: &[LawCheck]) -> Option<Section> {
    let rows: Vec<(String, &LawCheck)> = checks.iter().map(|one| (String::new(), one)).collect();
    let table = law_words::table("Law checks", &rows)?;
    Some(Section {
        title: "Laws".into(),
        lead:
            "These laws hold for every queueing system, whatever its distributions. Does this run obey them?"
                .to_owned(),
        tables: vec![table],
        notes: vec![TOLERANCES.to_owned()],
        ..Section::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn model(analysis: &RunAnalysis) -> Vec<Section> {
        sections(&testdata::watched_run().0.document, analysis, &CaveatBook::new(&[]))
    }

    #[test]
    fn every_operation_has_a_row_but_a_lone_one_has_no_total() {
        let (_, mut analysis) = testdata::watched_run();
        let labels = |analysis: &RunAnalysis| -> Vec<String> {
            let table = &model(analysis)[0].tables[0];
            table.rows.iter().map(|row| row[0].text.clone()).collect()
        };
        assert_eq!(labels(&analysis), ["all operations", "read", "update"]);
        analysis.operations.remove("update");
        assert_eq!(labels(&analysis), ["read"]);
    }
}

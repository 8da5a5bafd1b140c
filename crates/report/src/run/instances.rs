//! The servers of a run one by one with their differences, and the hosts of a fleet.

use crate::facts;
use crate::page::Section;
use crate::page::table::{Cell, Table, Tone};
use dyno_record::model::{
    FleetAgentRecord, FleetRecord, FleetServerRecord, InstanceRecord, OperationRecord, PhaseRecord,
    RunDocument,
};
use dyno_record::quantity::Quantity;

/// A server or host.
struct Row {
    /// Number and address.
    label: String,
    rate: Quantity,
    failed: Quantity,
    /// Response times: p50, p99, p99.9 and the maximum.
    times: [Quantity; 4],
    /// Client CPU time per operation, of the worker threads.
    cpu: Quantity,
}

/// The section with one row each.
fn section(
    title: &'static str,
    what: &str,
    operation: &str,
    rows: Vec<Row>,
    notes: Vec<String>,
) -> Section {
    let table = Table::of(&rows)
        .text(what, |row| Cell::new(&row.label, Tone::Strong))
        .number("rate", 90, |row| row.rate)
        .number("failed", 60, |row| {
            let tone = if row.failed.value() > 0.0 { Tone::Alarm } else { Tone::Plain };
            Cell::new(row.failed, tone)
        })
        .number("p50", 70, |row| row.times[0])
        .number("p99", 80, |row| row.times[1])
        .number("p99.9", 50, |row| row.times[2])
        .number("max", 40, |row| row.times[3])
        .number("CPU/op", 20, |row| row.cpu)
        .table(title);
    Section {
        title: title.into(),
        lead: format!(
            "Rate, response time of {}, and the client's CPU time per operation.",
            facts::operation_label(operation)
        ),
        tables: vec![table],
        notes,
        ..Section::default()
    }
}

/// The servers of the result phase; `None` unless several servers took part in it.
pub(crate) fn instances(document: &RunDocument, result: &PhaseRecord) -> Option<Section> {
    let parts: Vec<(&InstanceRecord, &PhaseRecord)> = document
        .instances
        .iter()
        .filter_map(|instance| {
            let phase = instance.phases.iter().find(|p| p.name == result.name)?;
            Some((instance, phase))
        })
        .collect();
    if parts.len() < 2 {
        return None;
    }
    let (operation, merged) = most_frequent(document, result)?;
    let rows = parts.iter().map(|(instance, phase)| row(instance, phase, operation)).collect();
    let rates: Vec<f64> = parts.iter().map(|(_, p)| p.achieved_rate_per_s).collect();
    let p99s: Vec<f64> = parts
        .iter()
        .filter_map(|(_, phase)| phase.operations.get(operation))
        .map(|operation| operation.response_time_us.p99)
        .collect();
    let mut notes = vec![
        rate_note(result.achieved_rate_per_s, &rates),
        p99_note(merged.response_time_us.p99, &p99s),
    ];
    let missing = document.instances.len() - parts.len();
    if missing > 0 {
        let missing = Quantity::counted(missing as u64, "instance");
        notes.push(format!("Without figures of this phase: {missing}."));
    }
    Some(section("Instances", "instance", operation, rows, notes))
}

/// The most frequent operation that is not a step of another one.
fn most_frequent<'a>(
    document: &RunDocument,
    phase: &'a PhaseRecord,
) -> Option<(&'a String, &'a OperationRecord)> {
    let is_step = |name: &str| {
        document.operations.find(name).is_some_and(|operation| operation.step_of.is_some())
    };
    let operations = phase.operations.iter().filter(|(name, _)| !is_step(name));
    operations.max_by_key(|(_, operation)| operation.count)
}

/// The hosts of a fleet; `None` for a run on one machine.
pub(crate) fn hosts(document: &RunDocument, result: &PhaseRecord) -> Option<Section> {
    let fleet = document.fleet.as_ref()?;
    let (operation, _) = most_frequent(document, result)?;
    let rows = fleet.agents.iter().map(|agent: &FleetAgentRecord| {
        let phase = agent.phases.iter().find(|phase| phase.name == result.name);
        let label = format!("agent {} on {}", agent.number, agent.host);
        let row = figures(label, phase, operation);
        match phase {
            Some(_) => row,
            // A lost agent has sent no record, but its windows are known.
            None => Row {
                rate: Quantity::per_second(agent.succeeded as f64 / result.duration_s),
                failed: Quantity::count(agent.failed),
                ..row
            },
        }
    });
    Some(section("Fleet", "host", operation, rows.collect(), host_notes(fleet)))
}

fn host_notes(fleet: &FleetRecord) -> Vec<String> {
    let seconds = |seconds: f64| Quantity::microseconds(seconds * 1e6);
    let mut notes = Vec::new();
    if let Some(rate_per_s) = fleet.common_rate_per_s {
        notes.push(format!(
            "In the {} intervals in which all agents measured: {}.",
            fleet.common_intervals,
            Quantity::per_second(rate_per_s)
        ));
    }
    if let Some((skew_s, uncertainty_s)) = fleet.start_skew_s.zip(fleet.start_skew_uncertainty_s) {
        notes.push(format!(
            "From the first start of an agent to the last: {}, with an error of up to {}.",
            seconds(skew_s),
            seconds(uncertainty_s)
        ));
    }
    for agent in &fleet.agents {
        let share = format!("Share of agent {}: {}.", agent.number, agent.share);
        let clock = format!(
            " Its clock differs from the clock of Redis by {}, with an error of up to {}.",
            seconds(agent.clock_offset_s),
            seconds(agent.clock_uncertainty_s)
        );
        let lost = agent.lost.as_ref();
        let lost = lost.map(|reason| format!(" It was lost: {reason}."));
        notes.push(share + &clock + &lost.unwrap_or_default());
    }
    for server in &fleet.servers {
        let place = place(fleet, server);
        let place = place.map(|place| format!(", placed on {place}"));
        notes.push(format!(
            "Server {} on {}: {}{}.",
            server.number,
            server.host,
            server.address,
            place.unwrap_or_default()
        ));
    }
    let findings = fleet.agents.iter().map(|agent| (&agent.host, &agent.findings));
    let findings =
        findings.chain(fleet.servers.iter().map(|server| (&server.host, &server.findings)));
    for (host, findings) in findings.filter(|(_, findings)| !findings.is_empty()) {
        notes.push(format!("Of {host}: {}.", findings.join("; ")));
    }
    let not_applied = fleet.servers.iter().filter(|one| !one.not_applied.is_empty());
    notes.extend(not_applied.map(|server| {
        let what = server.not_applied.join("; ");
        format!("Not changed on {}: {what}.", server.host)
    }));
    notes
}

/// The placement of a server on its host, if any was planned. The first server of a host has the places of all.
fn place<'a>(fleet: &'a FleetRecord, server: &FleetServerRecord) -> Option<&'a str> {
    let mut of_host = fleet.servers.iter().filter(|one| one.host == server.host);
    let placement = of_host.clone().find_map(|one| one.placement.as_ref())?;
    let turn = of_host.position(|one| one.number == server.number)?;
    let place = placement.instances.get(turn)?;
    (placement.request != "none client=none" && placement.request != "none").then_some(place)
}

fn row(instance: &InstanceRecord, phase: &PhaseRecord, operation: &str) -> Row {
    let label = format!("{} {}", instance.number, instance.server.address);
    figures(label, Some(phase), operation)
}

/// Figures are unknown without a phase.
fn figures(label: String, phase: Option<&PhaseRecord>, operation: &str) -> Row {
    let latency = phase
        .and_then(|phase| phase.operations.get(operation))
        .filter(|operation| operation.count > 0)
        .map(|operation| &operation.response_time_us);
    let level = |value: fn(&dyno_record::model::LatencySummary) -> f64| {
        Quantity::microseconds(latency.map_or(f64::NAN, value))
    };
    let of_phase = |value: fn(&PhaseRecord) -> f64| phase.map_or(f64::NAN, value);
    Row {
        label,
        rate: Quantity::per_second(of_phase(|phase| phase.achieved_rate_per_s)),
        failed: Quantity::count(phase.map_or(0, |phase| phase.failed)),
        times: [
            level(|latency| latency.p50),
            level(|latency| latency.p99),
            level(|latency| latency.p99_9),
            level(|latency| latency.max),
        ],
        cpu: Quantity::microseconds(of_phase(|phase| phase.client.cpu_us_per_operation)),
    }
}

fn rate_note(together_per_s: f64, rates: &[f64]) -> String {
    let (least, most) = extremes(rates);
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let spread = if mean > 0.0 { (most - least) / mean } else { 0.0 };
    format!(
        "Together {}; the fastest did {}, the slowest {}, a difference of {} of the mean.",
        Quantity::per_second(together_per_s),
        Quantity::per_second(most),
        Quantity::per_second(least),
        Quantity::ratio(spread)
    )
}

fn p99_note(merged_us: f64, p99s: &[f64]) -> String {
    let (least, most) = extremes(p99s);
    let mean = p99s.iter().sum::<f64>() / p99s.len().max(1) as f64;
    format!(
        "The p99 of all operations together is {}, read from the merged histograms. The p99s of the \
         instances are {} to {}; their mean, {}, is not a percentile of any data.",
        Quantity::microseconds(merged_us),
        Quantity::microseconds(least),
        Quantity::microseconds(most),
        Quantity::microseconds(mean)
    )
}

fn extremes(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn notes_show_merged_percentile_and_mean_of_instances() {
        let mut document = testdata::closed_run().document;
        let result = document
            .phases
            .iter()
            .find(|phase| phase.name == dyno_record::model::PhaseKind::Measure)
            .cloned()
            .expect("it has one");
        assert_eq!(instances(&document, &result), None);
        for (number, factor) in [(0, 1.0), (1, 3.0)] {
            let mut phase = result.clone();
            phase.achieved_rate_per_s *= factor / 4.0;
            for operation in phase.operations.values_mut() {
                operation.response_time_us.p99 = 1_000.0 * factor;
            }
            document.instances.push(InstanceRecord {
                number,
                directory: format!("instances/{number}"),
                server: Default::default(),
                phases: vec![phase],
            });
        }
        let model = instances(&document, &result).expect("there are two");
        assert_eq!(model.tables[0].rows.len(), 2);
        assert!(model.notes[0].contains("100 %"), "{model:?}");
        assert!(model.notes[1].contains("2.00 ms"), "{model:?}");
    }
}

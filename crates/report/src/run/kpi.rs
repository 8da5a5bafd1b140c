//! The key figures of the multi-instance benchmark of the Workload Services Framework, with the labels
//! of its scripts.
//!
//! Tools that list key figures take the text of each line before the first `: ` as its key, skip lines that begin with `#`,
//! and keep the last of several lines with the same key. So each label contains the number of its server and the phase, and
//! other text is a comment. Only `Counter of [… PHASE]` repeats its key, as in the original.
//!
//! The benchmark's "mean of P99" is the arithmetic mean of the instances' percentiles, which is not a percentile of any
//! data; it is printed for comparison with older results, next to the true percentile of all operations. `[CLEANUP]` lines
//! are left out: closing connections is not measured. The list of a run that did not end as planned begins with
//! `INCOMPLETE`.

use super::result::incomplete;
use crate::error::ReportError;
use crate::ycsb::java_double::java_double;
use dyno_analyze::grouping::grouped;
use dyno_plan::operation::{INSERT, INSERT_BATCH, READ, UPDATE};
use dyno_record::model::{LatencySummary, OperationRecord, PhaseKind, PhaseRecord, RunDocument};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Operations of the summary, in the benchmark's order.
const SUMMARY: [&str; 3] = [INSERT, READ, UPDATE];

/// Renders the figures of a run.
///
/// # Errors
/// [`ReportError::NoPhase`] without a measured phase, and [`ReportError::MissingInstance`] if an instance has no figures,
/// which would otherwise count as 0.
pub(crate) fn render(document: &RunDocument) -> Result<String, ReportError> {
    let whole = phase(&document.phases, PhaseKind::Measure).ok_or(ReportError::NoPhase)?;
    let mut text = incomplete(document);
    let mut runs = Vec::new();
    let batch = batch(document);
    for (number, phases) in instances(document).into_iter().enumerate() {
        if let Some(load) = phase(phases, PhaseKind::Load) {
            line(&mut text, "Counter of [LOAD_PHASE]", &number.to_string());
            figures(&mut text, number, load, batch);
        }
        let run =
            phase(phases, PhaseKind::Measure).ok_or(ReportError::MissingInstance { number })?;
        line(&mut text, "Counter of [RUN_PHASE]", &number.to_string());
        figures(&mut text, number, run, batch);
        runs.push(run);
    }
    summary(&mut text, whole, &runs);
    clients(&mut text, document);
    Ok(text)
}

/// The phases of each server. With a single server: the phases of each agent, which are clients with a file of their own in
/// the benchmark; without a fleet the phases of the run.
fn instances(document: &RunDocument) -> Vec<&[PhaseRecord]> {
    let agents = document.fleet.as_ref().map_or(&[][..], |fleet| &fleet.agents);
    if !document.instances.is_empty() {
        document.instances.iter().map(|one| one.phases.as_slice()).collect()
    } else if agents.len() > 1 && agents.iter().any(|one| one.lost.is_none()) {
        let whole = agents.iter().filter(|one| one.lost.is_none());
        whole.map(|one| one.phases.as_slice()).collect()
    } else {
        vec![&document.phases]
    }
}

/// A comment for each client host of a fleet, and for each lost agent.
fn clients(text: &mut String, document: &RunDocument) {
    let agents = document.fleet.as_ref();
    let agents = agents.map_or(&[][..], |fleet| &fleet.agents);
    let whole = agents.iter().filter(|agent| agent.lost.is_none());
    let runs = whole.map(|agent| (&agent.host, phase(&agent.phases, PhaseKind::Measure)));
    for (host, runs) in grouped(runs) {
        line(text, &format!("# Client host {host}"), &of_host(&runs));
    }
    for agent in agents {
        if let Some(reason) = &agent.lost {
            let who = format!("# Agent {} on {}", agent.number, agent.host);
            line(text, &who, &format!("lost, {reason}"));
        }
    }
}

/// The combined figures of a client host's agents. Percentiles cannot be added: the highest one is an upper limit.
fn of_host(agents: &[Option<&PhaseRecord>]) -> String {
    let runs: Vec<&PhaseRecord> = agents.iter().flatten().copied().collect();
    if runs.is_empty() {
        return "no figures".into();
    }
    let (by, most) = match runs.len() {
        1 => (String::new(), ""),
        count => (format!(" by {count} agents"), "at most "),
    };
    let rate: f64 = runs.iter().map(|run| run.achieved_rate_per_s).sum();
    let mut p99s: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, operation) in runs.iter().flat_map(|run| &run.operations) {
        let p99 = p99s.entry(name.as_str()).or_default();
        *p99 = p99.max(operation.response_time_us.p99);
    }
    let p99s = p99s.iter();
    let p99s = p99s.map(|(name, p99)| format!(", P99 {name} {most}{} us", p99.round()));
    let rate = java_double(rate);
    format!("{rate} ops/sec{by}{}", p99s.collect::<String>())
}

fn phase(phases: &[PhaseRecord], kind: PhaseKind) -> Option<&PhaseRecord> {
    phases.iter().find(|phase| phase.name == kind)
}

/// Documents per insert command of the load phase, as planned.
fn batch(document: &RunDocument) -> u64 {
    document.recorded_plan().client.map_or(1, |client| client.batch.into())
}

/// The figures of one server or agent in one phase.
fn figures(text: &mut String, number: usize, phase: &PhaseRecord, batch: u64) {
    let (of_phase, rate_per_s) = match phase.name {
        // The benchmark's clients count documents, whatever one command inserts.
        PhaseKind::Load if phase.duration_s > 0.0 => {
            let documents: u64 = phase.operations.values().map(|o| o.documents).sum();
            ("LOAD", documents as f64 / phase.duration_s)
        }
        PhaseKind::Load => ("LOAD", phase.achieved_rate_per_s),
        _ => ("RUN", phase.achieved_rate_per_s),
    };
    let label = format!("[OVERALL {of_phase}][{number}] Throughput(ops/sec)");
    line(text, &label, &java_double(rate_per_s));
    for (name, operation) in &phase.operations {
        // The benchmark's labels of inserts name the phase and have no comma.
        let (name, comma) = match name.as_str() {
            INSERT_BATCH if batch > 1 => (format!("INSERT BATCH OF {batch} {of_phase}"), ""),
            // The time of one document.
            INSERT | INSERT_BATCH => (format!("INSERT {of_phase}"), ""),
            name => (name.to_uppercase().replace('_', "-"), ","),
        };
        let latency = &operation.response_time_us;
        let level = |value: f64| (value.round() as u64).to_string();
        let figures = [
            ("", "AverageLatency(us)", java_double(latency.mean)),
            (comma, "MinLatency(us)", level(latency.min)),
            (comma, "MaxLatency(us)", level(latency.max)),
            (comma, "99thPercentileLatency(us)", level(latency.p99)),
        ];
        for (comma, what, value) in figures {
            line(text, &format!("[{name}][{number}]{comma} {what}"), &value);
        }
        if operation.errors > 0 {
            let label = format!("[{name}-FAILED][{number}] Operations");
            line(text, &label, &operation.errors.to_string());
        }
    }
}

fn summary(text: &mut String, whole: &PhaseRecord, runs: &[&PhaseRecord]) {
    text.push_str("# Summary\n");
    let count = runs.len() as f64;
    for name in SUMMARY {
        let p99s = runs.iter().map(|run| p99(run.operations.get(name)));
        let mean = p99s.sum::<f64>() / count;
        let label = format!("Mean of [RUN PHASE] P99 {name} latency(us)");
        line(text, &label, &java_double(mean));
        let label = format!("Merged [RUN PHASE] P99 {name} latency(us)");
        line(text, &label, &java_double(p99(whole.operations.get(name))));
    }
    let sum: f64 = runs.iter().map(|run| run.achieved_rate_per_s).sum();
    line(text, "Mean of [RUN PHASE] Throughput(ops/sec)", &java_double(sum / count));
    // The sum of the rates above, which all cover the same time.
    line(text, "*Sum of [RUN PHASE] Throughput(ops/sec)", &java_double(whole.achieved_rate_per_s));
}

/// 0 for an operation that is not part of the workload, as in the benchmark's scripts.
fn p99(operation: Option<&OperationRecord>) -> f64 {
    let latency: Option<&LatencySummary> = operation.map(|operation| &operation.response_time_us);
    latency.map_or(0.0, |latency| latency.p99)
}

fn line(text: &mut String, label: &str, value: &str) {
    writeln!(text, "{label}: {value}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;
    use dyno_record::fleet::{FleetAgentRecord, FleetRecord};
    use dyno_record::model::{InstanceRecord, RunStatus};

    fn value(text: &str, label: &str) -> f64 {
        let prefix = format!("{label}: ");
        let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
        line.expect("the line is there").parse().expect("it is a number")
    }

    #[test]
    fn mean_of_percentiles_and_merged_percentile_are_both_listed() {
        let mut document = testdata::closed_run().document;
        let whole = phase(&document.phases, PhaseKind::Measure).expect("it has one").clone();
        for (number, p99_us) in [(0, 1_000.0), (1, 3_000.0)] {
            let mut part = whole.clone();
            part.achieved_rate_per_s = 100.0 * (number + 1) as f64;
            for operation in part.operations.values_mut() {
                operation.response_time_us.p99 = p99_us;
            }
            document.instances.push(InstanceRecord {
                number,
                directory: format!("instances/{number}"),
                server: Default::default(),
                phases: vec![part],
            });
        }
        let text = render(&document).expect("it has figures");
        assert_eq!(value(&text, "Mean of [RUN PHASE] P99 read latency(us)"), 2000.0);
        assert_eq!(
            value(&text, "Merged [RUN PHASE] P99 read latency(us)"),
            whole.operations["read"].response_time_us.p99
        );
        assert_eq!(value(&text, "Mean of [RUN PHASE] Throughput(ops/sec)"), 150.0);
        assert_eq!(
            value(&text, "*Sum of [RUN PHASE] Throughput(ops/sec)"),
            whole.achieved_rate_per_s
        );
        assert!(text.contains("Counter of [RUN_PHASE]: 1\n"), "{text}");
    }

    /// Lists key figures like the benchmark's script: comments are skipped, a key is the text before the first colon
    /// followed by a space, and the last value wins. Other lines are ignored.
    fn listed(text: &str) -> BTreeMap<&str, &str> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let figures = lines.filter_map(|line| {
            let (key, rest) = line.split_once(':')?;
            Some((key, rest.strip_prefix(' ')?))
        });
        figures.collect()
    }

    #[test]
    fn figures_of_a_fleet_have_distinct_keys() {
        let mut document = testdata::closed_run().document;
        let run = phase(&document.phases, PhaseKind::Measure).expect("it has one");
        let (run, mut load) = (run.clone(), run.clone());
        load.name = PhaseKind::Load;
        let insert = run.operations["read"].clone();
        load.operations = [("insert".to_owned(), insert)].into();
        for number in 0..2 {
            let mut phases = vec![load.clone(), run.clone()];
            for (offset, phase) in (0..).zip(&mut phases) {
                phase.achieved_rate_per_s = (100 * (number + 1) + offset) as f64;
                phase.duration_s = (number + 1) as f64;
                for operation in phase.operations.values_mut() {
                    operation.documents = 50;
                    operation.errors = 1;
                    operation.response_time_us.p99 = (10 * (number + 1) + offset) as f64;
                }
            }
            document.instances.push(InstanceRecord {
                number,
                directory: format!("instances/{number}"),
                server: Default::default(),
                phases,
            });
        }
        let agent = |number: u64, host: &str, lost: Option<&str>| {
            let mut run = run.clone();
            run.achieved_rate_per_s = 1_000.0 * (number + 1) as f64;
            for operation in run.operations.values_mut() {
                operation.response_time_us.p99 = 100.0 * (number + 1) as f64;
            }
            FleetAgentRecord {
                number,
                host: host.to_owned(),
                phases: vec![run],
                lost: lost.map(str::to_owned),
                ..FleetAgentRecord::default()
            }
        };
        let agents = vec![
            agent(0, "client0:22", None),
            agent(1, "client1:22", None),
            agent(2, "client2:22", Some("a: b")),
            agent(3, "client1:22", None),
        ];
        document.fleet = Some(FleetRecord { agents, ..FleetRecord::default() });
        let text = render(&document).expect("it has figures");
        let listed = listed(&text);
        for (key, value) in [
            ("[OVERALL LOAD][0] Throughput(ops/sec)", "50.0"),
            ("[OVERALL LOAD][1] Throughput(ops/sec)", "25.0"),
            ("[OVERALL RUN][0] Throughput(ops/sec)", "101.0"),
            ("[OVERALL RUN][1] Throughput(ops/sec)", "201.0"),
            ("[INSERT LOAD][0] 99thPercentileLatency(us)", "10"),
            ("[INSERT LOAD][1] 99thPercentileLatency(us)", "20"),
            ("[READ][0], 99thPercentileLatency(us)", "11"),
            ("[READ][1], 99thPercentileLatency(us)", "21"),
            ("[READ-FAILED][1] Operations", "1"),
            ("Counter of [LOAD_PHASE]", "1"),
        ] {
            assert_eq!(listed.get(key), Some(&value), "{key}: {text}");
        }
        // Only the first numbers of the counters are lost.
        let comments = text.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(listed.len() + comments + 2, text.lines().count(), "{text}");
        let is_of_client = |key: &&str| key.contains("Agent") || key.contains("Client");
        assert!(!listed.keys().any(is_of_client), "{text}");
        // With one server the figures are per agent, and the comments are the same.
        document.instances.clear();
        let of_one = render(&document).expect("it has figures");
        assert!(of_one.contains("[OVERALL RUN][2] "), "{of_one}");
        for text in [text.as_str(), &of_one] {
            for comment in [
                "# Client host client0:22: 1000.0 ops/sec, P99 read 100 us",
                "# Client host client1:22: 6000.0 ops/sec by 2 agents, P99 read at most 400 us",
                "# Agent 2 on client2:22: lost, a: b\n",
            ] {
                assert!(text.contains(&format!("\n{comment}")), "{comment}: {text}");
            }
            assert_eq!(text.matches("# Client host ").count(), 2, "{text}");
        }
    }

    #[test]
    fn incomplete_run_says_so_in_the_first_line() {
        let mut document = testdata::closed_run().document;
        document.status = RunStatus::Complete;
        let complete = render(&document).expect("it has figures");
        assert!(!complete.contains("INCOMPLETE"), "{complete}");
        let mut first_line = |status, reason: Option<&str>| {
            document.status = status;
            document.status_reason = reason.map(str::to_owned);
            let text = render(&document).expect("it has figures");
            let (first, rest) = text.split_once('\n').expect("it has lines");
            assert_eq!(rest, complete);
            let reason = first.strip_prefix("INCOMPLETE: ");
            reason.expect("it begins with that").to_owned()
        };
        let reason = first_line(RunStatus::Partial, Some("interrupted"));
        assert_eq!(reason, "interrupted");
        let reason = first_line(RunStatus::Failed, Some("a server ended:\n  line"));
        assert_eq!(reason, "a server ended: line");
        let reason = first_line(RunStatus::Running, None);
        assert!(reason.contains("killed"), "{reason}");
    }

    #[test]
    fn batch_time_is_not_labelled_as_insert_time() {
        let mut document = testdata::closed_run().document;
        document.phases.retain(|phase| phase.name == PhaseKind::Measure);
        let mut load = document.phases[0].clone();
        load.name = PhaseKind::Load;
        let operation = load.operations["read"].clone();
        load.operations = [("insert_batch".to_owned(), operation)].into();
        document.phases.insert(0, load);
        for (batch, label) in [(1, "[INSERT LOAD]"), (100, "[INSERT BATCH OF 100 LOAD]")] {
            document.plan = serde_json::json!({"client": {"batch": batch}});
            let text = render(&document).expect("it has figures");
            assert!(text.contains(&format!("\n{label}[0] AverageLatency(us): ")), "{text}");
            assert_eq!(text.matches("[INSERT").count(), 4, "{text}");
            assert_eq!(text.contains("[INSERT LOAD]"), batch == 1, "{text}");
        }
    }

    #[test]
    fn instance_without_figures_is_not_counted_as_zero() {
        let mut document = testdata::closed_run().document;
        document.instances.push(InstanceRecord {
            number: 0,
            directory: "instances/0".into(),
            server: Default::default(),
            phases: Vec::new(),
        });
        assert!(matches!(render(&document), Err(ReportError::MissingInstance { number: 0 })));
    }
}

//! Periodic activities that the servers of a run reported: intervals by their settings, and counts.

use crate::periodicity::PatternHints;
use crate::verdict::Bench;
use dyno_record::model::ServerRecord;
use dyno_record::names::{Metric, checkpoint, log};

const MILLISECOND_S: f64 = 1e-3;

/// All hints from the settings and the counts of the measured time.
pub(super) fn hints(bench: &Bench<'_>) -> PatternHints {
    let server = &bench.document.server;
    let interval_s = |name: &str, parameter: &str, unit_s: f64| {
        let reported = agreed(server, name, parameter)?.parse::<f64>().ok()?;
        (reported > 0.0).then_some(reported * unit_s)
    };
    let is_off = |name, parameter| agreed(server, name, parameter) == Some("false");
    let journal =
        interval_s("journal_commit_interval_ms", "parameter.journalCommitInterval", MILLISECOND_S);
    let diagnostic_data = interval_s(
        "diagnostic_data_interval_ms",
        "parameter.diagnosticDataCollectionPeriodMillis",
        MILLISECOND_S,
    );
    PatternHints {
        checkpoint_interval_s: interval_s("checkpoint_interval_s", "parameter.syncdelay", 1.0),
        journal_interval_s: journal.filter(|_| !is_off("journal", "storage.journal.enabled")),
        diagnostic_data_interval_s: diagnostic_data
            .filter(|_| !is_off("diagnostic_data", "parameter.diagnosticDataCollectionEnabled")),
        checkpoints_per_s: per_s(bench, checkpoint::FINISHED_PER_S),
        journal_flushes_per_s: per_s(bench, log::FLUSHES_PER_S),
        ..PatternHints::default()
    }
}

/// The value of a setting if all servers agree: from servers that were started for the run under `name`, from
/// an existing one under `reported`.
fn agreed<'a>(server: &'a ServerRecord, name: &str, reported: &str) -> Option<&'a str> {
    if server.members.is_empty() {
        return server.settings.get(reported).map(String::as_str);
    }
    let mut reported = server.members.iter().map(|member| {
        let setting = member.found.get(name).or_else(|| member.asked.get(name));
        setting.map(String::as_str)
    });
    let first = reported.next()??;
    reported.all(|one| one == Some(first)).then_some(first)
}

/// Counts per second on the busiest server over the measured time.
fn per_s(bench: &Bench<'_>, metric: Metric) -> Option<f64> {
    let measured = bench.measured()?;
    let mut most: Option<f64> = None;
    for table in bench.tables {
        for (_, values) in table.columns_of(metric) {
            let rows = super::rows_within(table, measured).filter(|row| values[*row].is_finite());
            let (count, time_s) = rows.fold((0.0, 0.0), |(count, time_s), row| {
                let duration_s = table.duration_s[row];
                (count + values[row] * duration_s, time_s + duration_s)
            });
            if time_s > 0.0 {
                most = Some(most.unwrap_or(0.0).max(count / time_s));
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::MemberRecord;

    fn member(settings: &[(&str, &str)]) -> MemberRecord {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        MemberRecord {
            name: "server".into(),
            address: "127.0.0.1:1".into(),
            version: "6.0.5".into(),
            was_primary: false,
            asked: [("checkpoint_interval_s".to_owned(), "server default".to_owned())].into(),
            found: settings.iter().map(own).collect(),
        }
    }

    fn server(members: &[&[(&str, &str)]]) -> ServerRecord {
        ServerRecord {
            members: members.iter().map(|settings| member(settings)).collect(),
            ..ServerRecord::default()
        }
    }

    #[test]
    fn value_read_back_counts_only_when_all_servers_agree() {
        let name = "checkpoint_interval_s";
        let same = server(&[&[(name, "30")], &[(name, "30")]]);
        assert_eq!(agreed(&same, name, "parameter.syncdelay"), Some("30"));
        let differ = server(&[&[(name, "30")], &[(name, "60")]]);
        assert_eq!(agreed(&differ, name, "parameter.syncdelay"), None);
        // A default is known only if the server reported it.
        let unreported = server(&[&[]]);
        let reported = agreed(&unreported, name, "parameter.syncdelay");
        assert_eq!(reported.and_then(|text| text.parse::<f64>().ok()), None);
    }

    #[test]
    fn existing_server_is_asked_for_its_parameters() {
        let mut running = ServerRecord::default();
        let settings = &mut running.settings;
        settings.insert("parameter.syncdelay".into(), "60".into());
        let reported = agreed(&running, "checkpoint_interval_s", "parameter.syncdelay");
        assert_eq!(reported, Some("60"));
    }
}

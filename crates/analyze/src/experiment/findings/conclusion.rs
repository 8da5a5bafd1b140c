//! A single conclusion about a run's limit. The verdict uses all watched figures, the findings only busy times;
//! if they differ, the verdict counts, and the busy times are listed below it as a figure.

use super::view::used_up;
use crate::experiment::figures::resource_name;
use crate::experiment::machines::is_of_kind;
use crate::experiment::saturation::UsedUp;
use crate::experiment::stations::SHARED_CPUS;
use crate::verdict::{Cause, Verdict};
use dyno_record::experiment::Finding;
use dyno_record::model::ResourceKind;
use dyno_record::statement;
use dyno_record::statement::{Statement, Value};

/// The findings of a run, adapted to its verdict: none names another cause or contradicts its advice.
pub(in crate::experiment) fn beside(verdict: &Verdict, findings: Vec<Finding>) -> Vec<Finding> {
    if !verdict.is_reached() {
        return findings;
    }
    let cause = verdict.causes.first().map(|first| first.cause);
    let short = short_by(cause);
    let mut agrees = false;
    let mut reported = Vec::new();
    for mut finding in findings {
        match finding.statement.code.as_str() {
            "bottleneck" => {
                let found = station(&finding.statement);
                agrees = found.zip(short).is_some_and(|(found, short)| is_short(found, short));
                let is_near = finding.statement.values.get("is_near") == Some(&Value::Flag(true));
                // The verdict then says whether the run was near saturation.
                if !(is_near && agrees) && (is_near || is_exhausted(cause)) {
                    finding.statement = finding.statement.with("is_beside_verdict", true);
                }
            }
            // The verdict knows the use that the record's busy times lack.
            "server-not-watched" if !verdict.not_watched.contains(&Cause::ServerCpu) => continue,
            // The verdict has its own list.
            "not-watched" => continue,
            // More of a resource helps only if the verdict also finds it short.
            "more-cpus" | "faster-disk" if !agrees => continue,
            "two-machines" if !matches!(cause, Some(Cause::ServerCpu | Cause::SharedCpu)) => {
                continue;
            }
            "more-clients-could-raise" if is_exhausted(cause) => continue,
            _ => {}
        }
        reported.push(finding);
    }
    reported
}

/// Whether a cause is an exhausted resource or an obstacle.
fn is_exhausted(cause: Option<Cause>) -> bool {
    !matches!(cause, None | Some(Cause::TooFewClients | Cause::RoundTrip))
}

/// The verdict with the resources that busy times show as used up, so that it does not claim that nothing was
/// exhausted.
pub(in crate::experiment) fn with_used_up(verdict: Verdict, used: &[UsedUp]) -> Verdict {
    let is_said = verdict.headline.code == "nothing-watched" || !verdict.is_reached();
    let mut causes = verdict.causes;
    if !used.is_empty() {
        causes.retain(|one| one.cause != Cause::TooFewClients);
    }
    let headline = match (causes.first(), used_up(used)) {
        (None, Some(resources)) if !is_said => {
            statement!("used-up-without-cause", resources = resources)
        }
        (Some(first), _) => first.statement.clone(),
        _ => verdict.headline,
    };
    Verdict { headline, causes, ..verdict }
}

/// The resource of a bottleneck.
fn station(statement: &Statement) -> Option<&str> {
    match statement.values.get("resource")? {
        Value::Statement(resource) => resource.text("name"),
        _ => None,
    }
}

/// Whether a station is the short resource. A remote server's CPUs can appear as its own, its machine's, or one
/// machine's of several.
fn is_short(station: &str, short: &str) -> bool {
    let cpus = [ResourceKind::ServerCpu, ResourceKind::ServerHostCpu];
    let is_server = |name: &str| cpus.iter().any(|kind| is_of_kind(name, *kind));
    station == short || is_server(station) && is_server(short)
}

/// The resource that a cause makes short, by its name in findings.
fn short_by(cause: Option<Cause>) -> Option<&'static str> {
    Some(match cause? {
        Cause::Client => resource_name(ResourceKind::ClientCpu),
        Cause::ServerCpu => resource_name(ResourceKind::ServerCpu),
        Cause::SharedCpu => SHARED_CPUS,
        Cause::DiskOperations
        | Cause::DiskBandwidth
        | Cause::BurstCredits
        | Cause::SlowSync
        | Cause::CacheTooSmall
        | Cause::Checkpoint => resource_name(ResourceKind::Disk),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::CauseFinding;

    fn verdict(causes: &[Cause]) -> Verdict {
        let finding = |cause: &Cause| CauseFinding {
            cause: *cause,
            statement: statement!("cause.any"),
            start_s: 0.0,
            end_s: 10.0,
            spans: Vec::new(),
            confidence: 0.8,
            evidence: Vec::new(),
            advice: Vec::new(),
        };
        let code = if causes.is_empty() { "nothing-exhausted" } else { "cause.any" };
        Verdict {
            headline: Statement::new(code),
            causes: causes.iter().map(finding).collect(),
            not_watched: Vec::new(),
        }
    }

    fn reported(name: &str, verdict: &Verdict) -> Vec<String> {
        let resource = statement!("resource", name = name);
        let evidence = || vec![statement!("busy")];
        let findings = vec![
            Finding::found(
                statement!("bottleneck", resource = resource, is_near = true),
                evidence(),
            ),
            Finding::opportunity(statement!("more-cpus"), evidence()),
            Finding::opportunity(statement!("two-machines"), evidence()),
            Finding::opportunity(statement!("more-clients-could-raise"), evidence()),
        ];
        let short = |finding: &Finding| {
            let is_beside = finding.statement.values.contains_key("is_beside_verdict");
            let mark = if is_beside { " (beside)" } else { "" };
            format!("{}{mark}", finding.statement.code)
        };
        beside(verdict, findings).iter().map(short).collect()
    }

    #[test]
    fn a_finding_that_agrees_with_the_verdict_stays() {
        let shared = reported(SHARED_CPUS, &verdict(&[Cause::SharedCpu]));
        assert_eq!(shared, ["bottleneck", "more-cpus", "two-machines"]);
        let server = reported("server CPU", &verdict(&[Cause::ServerCpu]));
        assert_eq!(server, ["bottleneck", "more-cpus", "two-machines"]);
        for elsewhere in ["all CPUs of the server's machine", "server CPU of db1"] {
            assert_eq!(reported(elsewhere, &verdict(&[Cause::ServerCpu])), server);
        }
        let whole = reported("all CPUs of the machine", &verdict(&[Cause::ServerCpu]));
        assert_eq!(whole, ["bottleneck (beside)", "two-machines"]);
    }

    #[test]
    fn finding_with_another_cause_becomes_a_figure_beside_it() {
        let shared = reported(SHARED_CPUS, &verdict(&[Cause::ServerCpu]));
        assert_eq!(shared, ["bottleneck (beside)", "two-machines"]);
        let disk = reported("server CPU", &verdict(&[Cause::DiskOperations]));
        assert_eq!(disk, ["bottleneck (beside)"]);
        let nothing = reported("server CPU", &verdict(&[]));
        assert_eq!(nothing, ["bottleneck (beside)", "more-clients-could-raise"]);
        let clients = reported("disk", &verdict(&[Cause::TooFewClients]));
        assert_eq!(clients, ["bottleneck (beside)", "more-clients-could-raise"]);
    }

    #[test]
    fn finding_is_not_called_unknown_when_the_verdict_knows_it() {
        let found = |code: &str, verdict: &Verdict| {
            let finding = Finding::found(Statement::new(code), vec![statement!("busy")]);
            beside(verdict, vec![finding]).len()
        };
        let mut nothing = verdict(&[]);
        assert_eq!(found("server-not-watched", &nothing), 0);
        nothing.not_watched.push(Cause::ServerCpu);
        assert_eq!(found("server-not-watched", &nothing), 1);
        assert_eq!(found("not-watched", &nothing), 0);
    }

    #[test]
    fn missing_verdict_changes_no_findings() {
        let mut none = verdict(&[]);
        none.headline = statement!("too-short-for-verdict");
        assert_eq!(reported("disk", &none).len(), 4);
        assert!(!reported("disk", &none)[0].contains("beside"));
    }
}

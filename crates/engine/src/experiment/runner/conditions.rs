//! Refuses a run under other conditions than the experiment's earlier runs: they could not be
//! compared.

use crate::error::{Error, Kind};
use dyno_analyze::experiment::conditions::Conditions;

/// Most facts in an error.
const MOST_FACTS: usize = 4;

/// Facts that differ from an earlier run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct OtherConditions(String);

/// Compares a starting run with earlier runs, by their names.
///
/// # Errors
/// A fact differs from an earlier run.
pub(super) fn check(now: &Conditions, like: &[(String, Conditions)]) -> Result<(), Error> {
    for (run, earlier) in like {
        let others = earlier.differing(now);
        if others.is_empty() {
            continue;
        }
        let facts = others.iter().take(MOST_FACTS);
        let facts = facts.map(|one| format!("{} is `{}`, was `{}`", one.what, one.now, one.before));
        let mut facts: Vec<String> = facts.collect();
        if others.len() > MOST_FACTS {
            facts.push(format!("and {} more", others.len() - MOST_FACTS));
        }
        let text = format!("other conditions than in `{run}`: {}", facts.join("; "));
        return Err(Error::from_cause(Kind::Environment, OtherConditions(text))
            .context("cannot continue the experiment")
            .with_hint("restore the conditions of the earlier runs, or start a new experiment"));
    }
    Ok(())
}

/// Whether a run failed because its conditions differ from earlier runs.
pub(super) fn are_others(failure: &Error) -> bool {
    failure.cause.is::<OtherConditions>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::document;
    use dyno_record::model::Environment;
    use jiff::Timestamp;

    #[test]
    fn run_on_another_host_is_refused() {
        let plan = dyno_plan::builtin::find("a").expect("it is built in");
        let machine = Environment { hostname: Some("vm".to_owned()), ..Environment::default() };
        let mut document = document::initial(&plan, Timestamp::now(), machine);
        let same = Conditions::of_run(&document, None);
        let earlier = [("runs/001-a".to_owned(), same.clone())];
        assert!(check(&same, &earlier).is_ok());
        document.environment.hostname = Some("other".to_owned());
        let other = Conditions::of_run(&document, None);
        let failure = check(&other, &earlier).unwrap_err();
        assert!(are_others(&failure.context("the run failed")));
        assert!(check(&other, &[]).is_ok());
    }
}

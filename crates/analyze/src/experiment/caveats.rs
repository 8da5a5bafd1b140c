//! Caveats of an experiment: the caveats of its runs, each once.

use dyno_record::model::{Caveat, CaveatKind, PhaseKind};
use dyno_record::statement;

/// A caveat with its runs.
struct Group<'a> {
    first: &'a Caveat,
    /// The name of the run with the `first` caveat.
    run: &'a str,
    /// Number of runs with the caveat.
    runs: usize,
    /// Whether all runs have the same figures as well.
    alike: bool,
}

/// The caveats of all named runs; equal ones are merged into one with the number of runs. Caveats are equal if
/// only their figures differ.
pub fn of_runs(runs: &[(String, Vec<Caveat>)]) -> Vec<Caveat> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (run, caveats) in runs {
        let mut seen: Vec<usize> = Vec::new();
        for caveat in caveats {
            let known = groups.iter().position(|group| key(group.first) == key(caveat));
            let place = known.unwrap_or(groups.len());
            match groups.get_mut(place) {
                None => groups.push(Group { first: caveat, run, runs: 1, alike: true }),
                Some(group) => {
                    group.alike &= group.first.statement == caveat.statement;
                    // A run may have the same caveat for two phases.
                    group.runs += usize::from(!seen.contains(&place));
                }
            }
            seen.push(place);
        }
    }
    groups.iter().map(|group| group.caveat(runs.len())).collect()
}

/// The common part of equal caveats: their code without figures, and the names that distinguish several things
/// with one code.
fn key(caveat: &Caveat) -> (CaveatKind, &str, [Option<&str>; 4], Option<PhaseKind>) {
    let said = &caveat.statement;
    let which = ["hint", "check", "trace", "source"].map(|name| said.text(name));
    (caveat.kind, &said.code, which, caveat.phase)
}

impl Group<'_> {
    fn caveat(&self, all: usize) -> Caveat {
        let (runs, caveat) = (self.runs, &self.first.statement);
        let statement = match (self.alike, runs == all) {
            (true, true) => caveat.clone(),
            (true, false) => {
                statement!("caveat-of-some-runs", caveat = caveat, runs = runs, all = all)
            }
            (false, _) => statement!(
                "caveat-like-run",
                caveat = caveat,
                run = self.run,
                runs = runs,
                all = all
            ),
        };
        Caveat { statement, ..self.first.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::statement::Statement;

    fn caveat(kind: CaveatKind, statement: Statement) -> Caveat {
        Caveat::of_run(kind, statement)
    }

    fn runs(all: &[&[Caveat]]) -> Vec<(String, Vec<Caveat>)> {
        all.iter()
            .enumerate()
            .map(|(number, caveats)| (format!("runs/{number}"), caveats.to_vec()))
            .collect()
    }

    #[test]
    fn caveat_of_all_runs_appears_once() {
        let same = caveat(CaveatKind::Durability, statement!("writes-not-durable"));
        let one = std::slice::from_ref(&same);
        assert_eq!(of_runs(&runs(&[one, one])), one);
    }

    #[test]
    fn caveat_of_some_runs_names_their_number() {
        let rare = caveat(CaveatKind::NotSteady, statement!("trend"));
        let found = of_runs(&runs(&[&[], std::slice::from_ref(&rare), &[]]));
        let expected = statement!(
            "caveat-of-some-runs",
            caveat = &rare.statement,
            runs = 1usize,
            all = 3usize
        );
        assert_eq!(found[0].statement, expected);
    }

    #[test]
    fn differing_figures_come_from_a_named_run() {
        let few = |windows: u32| {
            let said = statement!("few-windows", windows = windows);
            caveat(CaveatKind::TooFewIntervals, said)
        };
        let (one, other) = (few(6), few(7));
        let found = of_runs(&runs(&[std::slice::from_ref(&one), &[other]]));
        let expected = statement!(
            "caveat-like-run",
            caveat = &one.statement,
            run = "runs/0",
            runs = 2usize,
            all = 2usize
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].statement, expected);
    }

    #[test]
    fn caveats_of_one_kind_stay_apart_when_they_differ() {
        let check = |name: &str| {
            let said = statement!("check-fails", check = name);
            caveat(CaveatKind::SharedMachine, said)
        };
        let older = |hint: &str| {
            let said = Statement::recorded("it is").with("hint", hint);
            caveat(CaveatKind::SharedMachine, said)
        };
        let all = [check("a"), check("b"), older("wait"), older("go")];
        assert_eq!(of_runs(&runs(&[&all, &all])), all);
    }
}

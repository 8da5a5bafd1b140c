//! Doubts of an experiment: those that its runs have, each once.

use dyno_record::model::{Caveat, CaveatKind, PhaseKind};

/// A doubt and the runs that have it.
struct Group<'a> {
    first: &'a Caveat,
    /// The name of the run that `first` is from.
    run: &'a str,
    /// Number of runs that have it.
    runs: usize,
    /// Whether all of them say the same, figures included.
    alike: bool,
}

/// The caveats of all runs, each with its name; alike ones become one that says how many runs have it. They are
/// alike if only their figures differ.
pub fn of_runs(runs: &[(String, Vec<Caveat>)]) -> Vec<Caveat> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (run, caveats) in runs {
        let mut seen: Vec<usize> = Vec::new();
        for caveat in caveats {
            let known = groups
                .iter()
                .position(|group| key(group.first) == key(caveat));
            let place = known.unwrap_or(groups.len());
            match groups.get_mut(place) {
                None => groups.push(Group {
                    first: caveat,
                    run,
                    runs: 1,
                    alike: true,
                }),
                Some(group) => {
                    group.alike &= group.first.message == caveat.message;
                    // A run may say the same of two phases.
                    group.runs += usize::from(!seen.contains(&place));
                }
            }
            seen.push(place);
        }
    }
    groups
        .iter()
        .map(|group| group.caveat(runs.len()))
        .collect()
}

/// The figures of a doubt are in its message; the hint is the same for all of its kind.
fn key(caveat: &Caveat) -> (CaveatKind, Option<&str>, Option<PhaseKind>) {
    (caveat.kind, caveat.hint.as_deref(), caveat.phase)
}

impl Group<'_> {
    fn caveat(&self, all: usize) -> Caveat {
        let runs = self.runs;
        let note = match (self.alike, runs == all) {
            (true, true) => String::new(),
            (true, false) => format!(" (in {runs} of {all} runs)"),
            (false, _) => format!(
                " (in `{}`; {runs} of {all} runs have such a doubt)",
                self.run
            ),
        };
        Caveat {
            message: format!("{}{note}", self.first.message),
            ..self.first.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caveat(kind: CaveatKind, message: &str, hint: &str) -> Caveat {
        Caveat {
            kind,
            message: message.into(),
            hint: Some(hint.into()),
            phase: None,
        }
    }

    fn runs(all: &[&[Caveat]]) -> Vec<(String, Vec<Caveat>)> {
        let named = all.iter().enumerate();
        named
            .map(|(number, caveats)| (format!("runs/{number}"), caveats.to_vec()))
            .collect()
    }

    #[test]
    fn what_all_runs_say_is_said_once() {
        let same = caveat(CaveatKind::Durability, "not durable", "compare");
        let one = std::slice::from_ref(&same);
        assert_eq!(of_runs(&runs(&[one, one])), one);
    }

    #[test]
    fn what_some_runs_say_names_their_number() {
        let rare = caveat(CaveatKind::NotSteady, "it drifted", "longer");
        let found = of_runs(&runs(&[&[], std::slice::from_ref(&rare), &[]]));
        assert_eq!(found[0].message, "it drifted (in 1 of 3 runs)");
    }

    #[test]
    fn figures_that_differ_are_those_of_a_run_that_is_named() {
        let one = caveat(CaveatKind::TooFewIntervals, "6 windows", "longer");
        let other = caveat(CaveatKind::TooFewIntervals, "7 windows", "longer");
        let found = of_runs(&runs(&[&[one], &[other]]));
        let expected = "6 windows (in `runs/0`; 2 of 2 runs have such a doubt)";
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, expected);
    }

    #[test]
    fn two_doubts_of_one_kind_stay_apart_by_their_cures() {
        let both = [
            caveat(CaveatKind::SharedMachine, "shared", "two machines"),
            caveat(CaveatKind::SharedMachine, "busy", "wait"),
        ];
        assert_eq!(of_runs(&runs(&[&both, &both])).len(), 2);
    }
}

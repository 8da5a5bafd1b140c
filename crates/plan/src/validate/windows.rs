//! Checks trace windows against their phases.

use crate::model::{PhaseKind, Plan};
use crate::problem::Problem;
use crate::units::Span;

/// A trace window, and its key in the plan.
struct Window {
    key: String,
    phase: PhaseKind,
    from: Span,
    length: Option<Span>,
}

/// Windows that begin after the end of their phase.
pub(crate) fn outside(plan: &Plan) -> Vec<Problem> {
    windows(plan)
        .filter_map(|window| {
            let (key, end) = end(plan, window.phase)?;
            let message = format!(
                "`{}` is `{}`, but that phase ends after `{key}` = `{end}`, so nothing would be recorded",
                window.key, window.from
            );
            let hint = format!("lengthen the phase with `{key}`, or let the trace begin earlier");
            let problem = Problem::new(message).with_hint(hint).about([window.key.as_str(), key]);
            (window.from.0 >= end.0).then_some(problem)
        })
        .collect()
}

/// Warnings about windows that a run may not record completely.
pub(crate) fn warnings(plan: &Plan) -> Vec<String> {
    windows(plan).filter_map(|window| warning(plan, &window)).collect()
}

fn warning(plan: &Plan, window: &Window) -> Option<String> {
    let (key, from) = (&window.key, window.from);
    let is_late = !from.0.is_zero();
    let known = end(plan, window.phase);
    let wanted = window.length.map(|length| from.0 + length.0);
    match (window.phase, plan.phases.operations, known) {
        (PhaseKind::Measure, Some(operations), _) if is_late => Some(format!(
            "`{key}` is `{from}`: nothing is recorded if the {operations} operations of `phases.operations` end earlier"
        )),
        (PhaseKind::Load, _, _) if is_late => {
            Some(format!("`{key}` is `{from}`: nothing is recorded if the load ends earlier"))
        }
        (_, _, Some((limit, end))) if wanted.is_some_and(|wanted| wanted > end.0) => Some(format!(
            "the trace from `{key}` = `{from}` ends with its phase, after `{limit}` = `{end}`"
        )),
        _ => None,
    }
}

/// The latest end of a phase, and its key.
fn end(plan: &Plan, phase: PhaseKind) -> Option<(&'static str, Span)> {
    match phase {
        PhaseKind::Load => None,
        PhaseKind::Warmup => Some(("phases.warmup", plan.phases.warmup)),
        PhaseKind::Measure => Some(("phases.duration", plan.phases.duration?)),
    }
}

/// The windows of a load. Index builds and messages have other phases.
fn windows(plan: &Plan) -> impl Iterator<Item = Window> {
    let has_phases = plan.index_build.is_none() && plan.tail.is_none();
    let programs = plan.traces.iter().enumerate().map(|(index, trace)| Window {
        key: format!("traces[{index}].from"),
        phase: trace.phase,
        from: trace.from,
        length: trace.length,
    });
    let files = plan.trace.iter().map(|trace| Window {
        key: "trace.from".to_owned(),
        phase: trace.phase,
        from: trace.from,
        length: trace.length,
    });
    programs.chain(files).filter(move |_| has_phases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    fn pkm(duration_s: Option<u64>, operations: Option<u64>) -> Plan {
        let mut plan = builtin::find("pkm").expect("it is built in");
        plan.phases.duration = duration_s.map(Span::from_secs);
        plan.phases.operations = operations;
        plan
    }

    #[test]
    fn windows_outside_their_phase_are_problems() {
        for (duration_s, count) in [(180, 1), (300, 1), (301, 0), (720, 0)] {
            let problems = outside(&pkm(Some(duration_s), None));
            assert_eq!(problems.len(), count, "{duration_s} s");
        }
        let mut plan = pkm(Some(720), None);
        plan.traces[0].phase = PhaseKind::Warmup;
        assert!(outside(&plan)[0].message.contains("`phases.warmup`"));
        plan.traces.clear();
        plan.trace = Some(Default::default());
        assert_eq!(outside(&plan), []);
        plan.trace.as_mut().unwrap().from = Span::from_secs(720);
        assert!(outside(&plan)[0].message.contains("`trace.from`"));
    }

    #[test]
    fn windows_that_may_be_cut_short_give_warnings() {
        assert_eq!(warnings(&pkm(Some(720), None)), Vec::<String>::new());
        for plan in [pkm(Some(720), Some(1_000)), pkm(None, Some(1_000)), pkm(Some(420), None)] {
            assert_eq!(warnings(&plan).len(), 1);
        }
        let mut plan = pkm(Some(10), None);
        plan.traces[0].phase = PhaseKind::Load;
        assert!(outside(&plan).is_empty() && warnings(&plan).len() == 1);
    }
}

//! Values of a knob: ordered numbers, and ranges that depend on the machine.

use super::file::KnobPlan;
use super::{MOST_VALUES, Machine, invalid};
use crate::error::PlanError;
use crate::problem::Problem;
use crate::units::Bytes;

/// Sorts numbers in ascending order, and keeps other values unchanged.
pub(super) fn in_order(mut values: Vec<String>) -> Vec<String> {
    if values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|one, other| {
            number(one).unwrap_or(0.0).total_cmp(&number(other).unwrap_or(0.0))
        });
    }
    values
}

/// Parses a number or a size in bytes.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|value| value.is_finite());
    plain.or_else(|| Some(text.parse::<Bytes>().ok()?.0 as f64))
}

/// The values of a range without duplicates.
pub(super) fn range(
    plan: &KnobPlan,
    from: &str,
    to: &str,
    steps: usize,
    machine: Machine,
) -> Result<Vec<String>, PlanError> {
    let mut end = amount(to, machine);
    if let Some(most) = &plan.most {
        let is_most = is_of_other_machine(plan, to, machine);
        let both = end.zip(amount(most, machine));
        end = both.map(|(to, most)| if is_most || most.0 < to.0 { most } else { to });
    }
    let ends = amount(from, machine).zip(end);
    let fits = |((from, _), (to, _)): &((f64, bool), (f64, bool))| from < to && *from > 0.0;
    let Some(((from, size), (to, other_size))) = ends.filter(fits) else {
        let text = format!("knob `{}` has no range from `{from}` to `{to}`", plan.name);
        let hint = "two numbers, the lower one first, such as `1` and `cores*4`, or `256MiB` and `memory/2`";
        return Err(invalid(Problem::new(text).with_hint(hint)));
    };
    if !(2..=MOST_VALUES).contains(&steps) {
        let text = format!("knob `{}` needs 2 to {MOST_VALUES} `steps`", plan.name);
        return Err(invalid(Problem::new(text)));
    }
    let last = (steps - 1) as f64;
    let at = |step: usize| from * (to / from).powf(step as f64 / last);
    let is_whole = from.fract() == 0.0 && to.fract() == 0.0;
    let mut values: Vec<String> =
        (0..steps).map(|step| written(at(step), size || other_size, is_whole)).collect();
    values.dedup();
    Ok(values)
}

/// Whether a value for the servers depends on the properties of another machine.
fn is_of_other_machine(plan: &KnobPlan, text: &str, machine: Machine) -> bool {
    let depends = ["cores", "memory"].into_iter().any(|name| text.trim().starts_with(name));
    depends && plan.key.starts_with("server.") && !machine.has_servers
}

/// A number, and whether it is a size in bytes.
pub(super) fn amount(text: &str, machine: Machine) -> Option<(f64, bool)> {
    let text = text.trim();
    let of_machine = |rest: &str, value: f64| match rest.split_at_checked(1) {
        None => Some(value),
        Some(("*", factor)) => Some(value * factor.parse::<f64>().ok()?),
        Some(("/", divisor)) => Some(value / divisor.parse::<f64>().ok()?),
        Some(_) => None,
    };
    if let Some(rest) = text.strip_prefix("memory") {
        return Some((of_machine(rest, machine.memory_bytes as f64)?, true));
    }
    if let Some(rest) = text.strip_prefix("cores") {
        return Some((of_machine(rest, f64::from(machine.cores))?, false));
    }
    match text.parse::<f64>() {
        Ok(value) => Some((value, false)).filter(|_| value.is_finite()),
        Err(_) => Some((text.parse::<Bytes>().ok()?.0 as f64, true)),
    }
}

/// Formats a number: whole, with at most three decimals, or in whole mebibytes.
pub(super) fn written(value: f64, is_size: bool, is_whole: bool) -> String {
    const MEBIBYTE: f64 = 1_048_576.0;
    if is_size {
        format!("{}MiB", (value / MEBIBYTE).round().max(1.0))
    } else if is_whole {
        format!("{}", value.round())
    } else {
        format!("{}", (value * 1e3).round() / 1e3)
    }
}

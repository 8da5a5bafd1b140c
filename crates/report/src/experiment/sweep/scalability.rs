//! The fit of the scalability law, or the reason for a missing fit.

use crate::experiment::figure::interval;
use crate::experiment::levels::Sweep;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::texts::text;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{OpenEstimate, UslFit};
use dyno_record::quantity::{Quantity, Unit};

/// The section; absent if no numbers of clients were compared.
pub(super) fn section(sweep: &Sweep<'_>) -> Option<Section> {
    let title = "Scalability";
    let Some(fit) = &sweep.answer.usl else {
        let problem = text(sweep.answer.usl_problem.as_ref()?);
        return Some(Section {
            title: title.into(),
            lead: format!("The law could not be fitted: {problem}."),
            ..Section::default()
        });
    };
    Some(Section {
        title: title.into(),
        lead: format!(
            "The universal scalability law, fitted to {} to {} clients. The curve differs from the measured rates by {} on \
             average.",
            fit.measured_clients_min,
            fit.measured_clients_max,
            Quantity::ratio(fit.residual_ratio)
        ),
        tables: vec![table(fit)],
        notes: notes(fit),
        ..Section::default()
    })
}

fn table(fit: &UslFit) -> Table {
    let columns = vec![
        Column::text("parameter"),
        Column::number("value", 200),
        Column::number("95 % interval", 150),
        Column::text("meaning"),
    ];
    let mut rows = vec![
        row("λ", closed(&fit.lambda_per_s), Quantity::per_second, "rate of a lone client"),
        row(
            "σ",
            closed(&fit.sigma_ratio),
            significant,
            "contention: work that cannot be done in parallel",
        ),
        row("κ", closed(&fit.kappa_ratio), significant, "coherency: cost of coordination"),
    ];
    if let Some(peak) = &fit.peak {
        let note = if peak.extrapolated {
            "beyond the measured range: an extrapolation, not a measurement"
        } else {
            "clients at the highest point of the curve"
        };
        let mut clients = row("peak, clients", peak.clients, Quantity::plain, note);
        let mut rate = row("peak, rate", peak.rate_per_s, Quantity::per_second, "rate there");
        if peak.extrapolated {
            clients[3].tone = Tone::Doubt;
            rate[3] = Cell::new("also extrapolated", Tone::Doubt);
        }
        rows.extend([clients, rate]);
    }
    Table::new("Scalability law", columns, rows)
}

/// A number with three significant digits, for parameters that may be tiny.
fn significant(value: f64) -> Quantity {
    Quantity::new(value, Unit::Parameter)
}

/// An estimate with a two-sided interval.
fn closed(estimate: &Estimate) -> OpenEstimate {
    OpenEstimate { value: estimate.value, low: estimate.low, high: Some(estimate.high) }
}

fn row(
    name: &str,
    estimate: OpenEstimate,
    quantity: fn(f64) -> Quantity,
    meaning: &str,
) -> Vec<Cell> {
    let range = match estimate.high {
        Some(high) => interval(quantity(estimate.low), quantity(high)),
        None => format!("{} and above", quantity(estimate.low)),
    };
    vec![
        Cell::new(name, Tone::Strong),
        quantity(estimate.value).into(),
        range.into(),
        Cell::new(meaning, Tone::Soft),
    ]
}

fn notes(fit: &UslFit) -> Vec<String> {
    let mut notes = Vec::new();
    if fit.peak.is_none() {
        notes.push("The fitted curve has no peak: more clients never lower the rate.".to_owned());
    }
    if fit.sigma_ratio.low <= 0.0 || fit.kappa_ratio.low <= 0.0 {
        notes.push("A parameter with an interval from 0 is indistinguishable from 0.".to_owned());
    }
    notes
}

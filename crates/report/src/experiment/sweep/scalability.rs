//! The fit of the scalability law, or the reason for a missing fit.

use crate::experiment::figure::interval;
use crate::experiment::levels::Sweep;
use crate::page::Section;
use crate::page::table::{Cell, Table, Tone};
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

/// A parameter: name, value with its interval, format, and meaning.
type Row = (&'static str, OpenEstimate, fn(f64) -> Quantity, Cell);

fn table(fit: &UslFit) -> Table {
    let soft = |meaning| Cell::new(meaning, Tone::Soft);
    let mut rows: Vec<Row> = vec![
        ("λ", closed(&fit.lambda_per_s), Quantity::per_second, soft("rate of a lone client")),
        (
            "σ",
            closed(&fit.sigma_ratio),
            significant,
            soft("contention: work that cannot be done in parallel"),
        ),
        ("κ", closed(&fit.kappa_ratio), significant, soft("coherency: cost of coordination")),
    ];
    if let Some(peak) = &fit.peak {
        let [clients, rate] = match peak.extrapolated {
            true => [
                "beyond the measured range: an extrapolation, not a measurement",
                "also extrapolated",
            ]
            .map(|meaning| Cell::new(meaning, Tone::Doubt)),
            false => ["clients at the highest point of the curve", "rate there"].map(soft),
        };
        rows.push(("peak, clients", peak.clients, Quantity::plain, clients));
        rows.push(("peak, rate", peak.rate_per_s, Quantity::per_second, rate));
    }
    Table::of(&rows)
        .text("parameter", |(name, ..)| Cell::new(name, Tone::Strong))
        .number("value", 200, |(_, estimate, quantity, _)| quantity(estimate.value))
        .number("95 % interval", 150, |(_, estimate, quantity, _)| match estimate.high {
            Some(high) => interval(quantity(estimate.low), quantity(high)),
            None => format!("{} or more", quantity(estimate.low)),
        })
        .text("meaning", |(.., meaning)| meaning.clone())
        .table("Scalability law")
}

/// A number with three significant digits, for parameters that may be tiny.
fn significant(value: f64) -> Quantity {
    Quantity::new(value, Unit::Parameter)
}

/// An estimate with a two-sided interval.
fn closed(estimate: &Estimate) -> OpenEstimate {
    OpenEstimate { value: estimate.value, low: estimate.low, high: Some(estimate.high) }
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

//! Findings of a single run. It has one load, so nothing here is about growth: how the rate depends on the
//! clients, where response times bend and which plan is faster are questions for experiments.

use super::disks;
use super::laws::{LAWS, is_bound, meaning, name};
use super::saturation::{self, AtRate};
use super::trust::WIDE_RATIO;
use super::view::{busy, statements_of, subject};
use super::watched::{self, OF_LEVELS};
use crate::experiment::figures::means_of_whole_phase_us;
use crate::experiment::queueing::is_sustained;
use crate::experiment::run::{NoInterval, RunAnalysis, longest_needed_s};
use crate::laws::tolerance_ratio;
use crate::values::{number, percent, rate, rate_of, seconds, time, us};
use dyno_record::experiment::{Figure, Figures, Finding, Law, LawCheck, LawVerdict};
use dyno_record::model::{CaveatKind, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::statement;
use dyno_record::statement::Statement;
use std::collections::BTreeMap;

/// Share of the mean response time from which the wait before the send is reported.
const WAIT_RATIO: f64 = 0.1;

/// A run as the rules see it.
struct View<'a> {
    document: &'a RunDocument,
    analysis: &'a RunAnalysis,
    figures: &'a Figures,
}

/// The findings in reading order: invalidating problems, results, limits of their validity, and possible
/// changes. Advice from the caveats is part of every report of a run.
pub(in crate::experiment) fn all(document: &RunDocument, analysis: &RunAnalysis) -> Vec<Finding> {
    let view = &View { document, analysis, figures: &analysis.figures };
    let at = view.at_rate();
    // Far from saturation there is no evidence that the resource matters.
    let near = at.as_ref().filter(|at| at.is_near());
    // At an achieved offered rate the schedule is the limit, and nothing would raise the rate.
    let limited = near.filter(|_| !view.is_offered_and_achieved());
    let here = Some(statement!("in-measure-phase")).filter(|_| analysis.knows_server());
    let here = here.as_ref();
    let rules = [
        generator_bound(view),
        failed_operations(view),
        rate_not_achieved(view),
        at.as_ref().map(saturation::bottleneck),
        here.and_then(|here| disks::without_bound(analysis.disk.as_ref(), here)),
        here.and_then(|here| disks::uneven(&view.figures.disks, here)),
        wait_before_send(view),
        dropped_arrivals(view),
        unsteady(view),
        poorly_known(view),
        not_watched(view),
        limited.and_then(saturation::widen),
        limited.and_then(saturation::two_machines),
        more_clients(view),
    ];
    // A broken law makes the rest invalid.
    let mut found = laws_broken(view);
    found.extend(rules.into_iter().flatten());
    found
}

impl<'a> View<'a> {
    fn measured(&self) -> Option<&'a PhaseRecord> {
        self.document.phases.iter().find(|phase| phase.name == PhaseKind::Measure)
    }

    /// `with 8 clients in a closed loop`, `with 5,000/s offered`.
    fn at(&self) -> Statement {
        match (self.figures.offered_rate_per_s, self.figures.clients) {
            (Some(offered), _) => statement!("with-offered-rate", rate = rate(offered)),
            (None, 0) => statement!("in-a-closed-loop"),
            (None, clients) => statement!("with-clients-in-a-closed-loop", clients = clients),
        }
    }

    /// Whether the rate is the offered rate.
    fn is_offered_and_achieved(&self) -> bool {
        self.figures.offered_rate_per_s.is_some() && rate_not_achieved(self).is_none()
    }

    /// Utilization of all resources.
    fn busy(&self) -> Statement {
        let ratios: BTreeMap<String, f64> = self
            .figures
            .resources
            .iter()
            .map(|resource| (resource.name.clone(), resource.busy_ratio))
            .collect();
        busy(statement!("in-measure-phase"), &ratios)
    }

    fn at_rate(&self) -> Option<AtRate<'a>> {
        let bottleneck = self.analysis.bottleneck.as_ref()?;
        Some(AtRate {
            bottleneck: &bottleneck.demand,
            stations: &self.analysis.stations,
            demands: &self.figures.demands,
            disk: self.analysis.disk.as_ref(),
            rate_per_s: self.figures.rate_per_s,
            is_of_sweep: false,
            at: self.at(),
            busy: Some(self.busy()),
            used_up: self.analysis.used_up(),
        })
    }
}

fn share_of(figure: &Figure) -> Option<f64> {
    let (low, high) = figure.low.zip(figure.high)?;
    Some((high - low) / 2.0 / figure.value)
}

/// The client was the limit: the rate says nothing about the server.
fn generator_bound(view: &View<'_>) -> Option<Finding> {
    let mut evidence = statements_of(&view.document.caveats, CaveatKind::GeneratorBottleneck);
    if evidence.is_empty() {
        return None;
    }
    evidence.push(view.busy());
    Some(Finding::warning(statement!("generator-bound"), evidence))
}

fn failed_operations(view: &View<'_>) -> Option<Finding> {
    let phase = view.measured()?;
    let share = percent(view.figures.failed_ratio);
    let evidence =
        statement!("failed-in-run", failed = phase.failed, all = phase.failed + phase.succeeded);
    (view.figures.failed_ratio > 0.0).then(|| {
        Finding::warning(statement!("operations-failed-in-run", share = share), vec![evidence])
    })
}

fn dropped_arrivals(view: &View<'_>) -> Option<Finding> {
    let arrivals = view.measured()?.arrivals.filter(|arrivals| arrivals.dropped > 0)?;
    let share = percent(view.figures.dropped_ratio);
    let evidence = statement!("dropped-in-run", dropped = arrivals.dropped, due = arrivals.due);
    Some(Finding::warning(statement!("arrivals-dropped-in-run", share = share), vec![evidence]))
}

/// The bench did not achieve the offered rate.
fn rate_not_achieved(view: &View<'_>) -> Option<Finding> {
    let offered = view.figures.offered_rate_per_s?;
    let value = view.figures.rate_per_s.value;
    let is_missed = !is_sustained(value, offered, view.figures.succeeded);
    is_missed.then(|| {
        let achieved = rate_of(&view.figures.rate_per_s);
        Finding::found(
            statement!(
                "bench-did-not-keep-up",
                share = percent(value / offered),
                offered = rate(offered)
            ),
            vec![statement!("achieved", rate = achieved), view.busy()],
        )
    })
}

/// The server's limits are unknown without its resource use.
fn not_watched(view: &View<'_>) -> Option<Finding> {
    let knows_server = view.analysis.knows_server();
    watched::not_watched(&[view.figures], &OF_LEVELS, !knows_server)
}

/// Response time before the send, in the whole phase: the stationary part may have another response time, and
/// its service time is unknown.
fn wait_before_send(view: &View<'_>) -> Option<Finding> {
    let (response, service) = means_of_whole_phase_us(view.document)?;
    let wait = response - service;
    (wait > response * WAIT_RATIO).then(|| {
        Finding::found(
            statement!("wait-before-send", share = percent(wait / response), wait = us(wait)),
            vec![statement!(
                "response-and-service-time",
                response = us(response),
                service = us(service),
                is_of_whole_phase = (view.figures.warm_up_s > 0.0).then_some(true)
            )],
        )
    })
}

/// One warning for each broken law, with its consequence for the measurement.
fn laws_broken(view: &View<'_>) -> Vec<Finding> {
    LAWS.iter()
        .filter_map(|law| {
            let broken = checks(view, *law, LawVerdict::Broken);
            let said = statement!("law-broken", law = name(*law), meaning = meaning(*law));
            let evidence: Vec<Statement> = broken.iter().map(|check| compared(check)).collect();
            (!evidence.is_empty()).then(|| Finding::warning(said, evidence))
        })
        .collect()
}

fn checks<'a>(view: &View<'a>, law: Law, verdict: LawVerdict) -> Vec<&'a LawCheck> {
    view.figures.laws.iter().filter(|check| check.law == law && check.verdict == verdict).collect()
}

fn compared(check: &LawCheck) -> Statement {
    let unit = match check.law {
        Law::Utilization | Law::Little => number,
        Law::ResponseTime | Law::ResponseBound => time,
        Law::ForcedFlow | Law::RateBound => rate,
    };
    let limit = check.uncertainty_ratio.max(tolerance_ratio(check.law));
    statement!(
        "law-checked",
        law = name(check.law),
        subject = check.subject.as_ref(),
        measured = unit(check.measured),
        is_bound = is_bound(check.law),
        predicted = unit(check.predicted),
        difference = percent(check.difference_ratio),
        uncertainty = percent(limit)
    )
}

fn unsteady(view: &View<'_>) -> Option<Finding> {
    (view.figures.steady == Some(false)).then(|| {
        let mut evidence = statements_of(&view.document.caveats, CaveatKind::NotSteady);
        if evidence.is_empty() {
            let windows = view.analysis.windows;
            evidence.push(statement!("rate-drifted", windows = windows));
        }
        Finding::warning(statement!("unsteady"), evidence)
    })
}

/// Figures with a wide interval or none.
fn poorly_known(view: &View<'_>) -> Option<Finding> {
    let figures = view.figures;
    let rate_share = share_of(&figures.rate_per_s);
    if rate_share.is_some_and(|share| share > WIDE_RATIO) {
        return Some(Finding::warning(
            statement!("rate-poorly-known", limit = percent(WIDE_RATIO)),
            vec![statement!("interval-is-wide", share = percent(rate_share.unwrap_or(0.0)))],
        ));
    }
    let missing = view.analysis.without_interval.iter();
    let missing: Vec<_> = missing.filter(|one| one.operation.is_none()).collect();
    let windows = view.analysis.windows;
    let because = |reason: NoInterval, code: &str| -> Option<Statement> {
        let of_reason = || missing.iter().filter(|one| one.reason == reason);
        let figures: Vec<String> = of_reason().map(|one| one.figure.clone()).collect();
        let worth = of_reason().map(|one| one.independent_windows);
        let needed_s = longest_needed_s(of_reason().copied());
        (!figures.is_empty()).then(|| {
            Statement::new(code)
                .with("figures", figures)
                .with("windows", windows)
                .with("worth", worth.reduce(f64::min).map(number))
                .with("needed", needed_s.map(seconds))
        })
    };
    let evidence: Vec<Statement> = [
        because(NoInterval::TooFewWindows, "none-for-few-windows"),
        because(NoInterval::Correlated, "none-for-correlation"),
        because(NoInterval::TooFewBeyond, "none-for-few-beyond"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let said = statement!(
        "intervals-missing",
        needed = longest_needed_s(missing.iter().copied()).map(seconds)
    );
    (!evidence.is_empty()).then(|| Finding::warning(said, evidence))
}

/// Nothing was near its limit, so there may be too few clients.
fn more_clients(view: &View<'_>) -> Option<Finding> {
    let bottleneck = view.analysis.bottleneck.as_ref()?;
    let is_open = view.figures.offered_rate_per_s.is_some();
    let at = view.at_rate()?;
    let is_near = at.is_near() || !view.analysis.used_up().is_empty();
    if is_open || view.figures.is_generator_bound() || is_near {
        return None;
    }
    let reached = statement!(
        "reached-of-bound",
        share = percent(bottleneck.reached_ratio),
        bound = rate(bottleneck.bound_per_s),
        resource = subject(&bottleneck.demand.name)
    );
    Some(Finding::opportunity(
        statement!(
            "more-clients-could-raise",
            is_of_known = disks::may_limit(view.analysis.disk.as_ref()).then_some(true)
        ),
        Some(reached).filter(|_| !at.is_small()).into_iter().chain([view.busy()]).collect(),
    ))
}

//! What one run says by itself. It has one load, so that nothing here is about growth: how the rate depends on the
//! clients, where response time bends and which plan is faster are questions for experiments.

use super::laws::{LAWS, is_bound, name, signed};
use super::saturation::{self, AtRate, NEAR_RATIO};
use super::trust::{OTHERS_RATIO, WIDE_RATIO};
use super::view::{busy, doubts, subject};
use super::{finding, opportunities, opportunity, warning};
use crate::experiment::figures::resource_name;
use crate::experiment::queueing::is_sustained;
use crate::experiment::run::{NoInterval, RunAnalysis};
use crate::experiment::words::{count, exact, interval, list, number, percent, rate, time};
use crate::laws;
use dyno_record::experiment::{Figure, Figures, Finding, Law, LawCheck, LawVerdict, Resource};
use dyno_record::model::{CaveatKind, ResourceKind, RunDocument};
use std::collections::BTreeMap;

/// From this share of the mean response time on, the wait before the send is worth a word.
const WAIT_RATIO: f64 = 0.1;

/// A run as the rules look at it.
struct View<'a> {
    document: &'a RunDocument,
    analysis: &'a RunAnalysis,
    figures: &'a Figures,
}

/// The findings in the order in which they are read: what makes the result worthless, what was found, what limits
/// its reach, and what could be changed. What the caveats advise stands with them in every report of a run.
pub(in crate::experiment) fn all(document: &RunDocument, analysis: &RunAnalysis) -> Vec<Finding> {
    let view = &View {
        document,
        analysis,
        figures: &analysis.figures,
    };
    let at = view.at_rate();
    // Far from saturation nothing says that the resource would matter.
    let near = at.as_ref().filter(|at| at.share() >= NEAR_RATIO);
    // At an offered rate that was achieved the schedule is the limit, and nothing would raise the rate.
    let limited = near.filter(|_| !view.is_offered_and_achieved());
    let rules = [
        generator_bound(view),
        failed_operations(view),
        Some(result(view)),
        rate_not_achieved(view),
        at.as_ref().map(saturation::bottleneck),
        server_not_watched(view),
        wait_before_send(view),
        share_of_work(view),
        laws_hold(view),
        dropped_arrivals(view),
        other_processes(view),
        unsteady(view),
        poorly_known(view),
        limited.and_then(saturation::widen),
        limited.and_then(saturation::two_machines),
        more_clients(view),
        disk_is_idle(view),
    ];
    // A broken law makes the rest worthless.
    let mut found = laws_broken(view);
    found.extend(rules.into_iter().flatten());
    found
}

impl<'a> View<'a> {
    /// `with 8 clients in a closed loop`, `with 5,000/s offered`.
    fn at(&self) -> String {
        match (self.figures.offered_rate_per_s, self.figures.clients) {
            (Some(offered), _) => format!("with {}/s offered", exact(offered)),
            (None, 0) => "in a closed loop".to_owned(),
            (None, 1) => "with 1 client in a closed loop".to_owned(),
            (None, clients) => format!(
                "with {} clients in a closed loop",
                exact(f64::from(clients))
            ),
        }
    }

    /// Whether the rate is what the schedule asked for.
    fn is_offered_and_achieved(&self) -> bool {
        self.figures.offered_rate_per_s.is_some() && rate_not_achieved(self).is_none()
    }

    fn resource(&self, kind: ResourceKind) -> Option<&'a Resource> {
        let name = resource_name(kind);
        let mut resources = self.figures.resources.iter();
        resources.find(|resource| resource.name == name)
    }

    /// How busy everything was.
    fn busy(&self) -> String {
        let resources = self.figures.resources.iter();
        let ratios: BTreeMap<String, f64> = resources
            .map(|resource| (resource.name.clone(), resource.busy_ratio))
            .collect();
        busy("in the measure phase", &ratios)
    }

    fn at_rate(&self) -> Option<AtRate<'a>> {
        let bottleneck = self.analysis.bottleneck.as_ref()?;
        Some(AtRate {
            bottleneck: &bottleneck.demand,
            stations: &self.analysis.stations,
            demands: &self.figures.demands,
            rate_per_s: self.figures.rate_per_s.value,
            rate_name: "rate",
            at: self.at(),
            busy: self.busy(),
            error: "counted to",
        })
    }
}

fn us(value: f64) -> String {
    time(value * 1e-6)
}

fn share_of(figure: &Figure) -> Option<f64> {
    let (low, high) = figure.low.zip(figure.high)?;
    Some((high - low) / 2.0 / figure.value)
}

/// The rate and the response time that it was measured with.
fn result(view: &View<'_>) -> Finding {
    let figures = view.figures;
    let p99 = figures.percentile("p99").map_or(String::new(), |p99| {
        format!(
            "; 99 % of the operations took at most {}{}",
            us(p99.value),
            interval(&p99, us)
        )
    });
    let text = format!(
        "the rate is {}{} {}, at a mean response time of {}{}{p99}",
        rate(figures.rate_per_s.value),
        interval(&figures.rate_per_s, rate),
        view.at(),
        us(figures.response_mean_us.value),
        interval(&figures.response_mean_us, us)
    );
    let mut evidence = vec![format!(
        "{} operations succeeded in {}",
        exact(figures.succeeded as f64),
        time(figures.duration_s)
    )];
    if figures.rate_per_s.low.is_some() {
        evidence.push(format!(
            "the intervals rest on the variation between {} of this run; another run may differ by more",
            count(view.analysis.windows as usize, "window", "windows")
        ));
    }
    finding(text, evidence)
}

/// The client was the limit: the rate says nothing about the server.
fn generator_bound(view: &View<'_>) -> Option<Finding> {
    let said = doubts(&view.document.caveats, CaveatKind::GeneratorBottleneck);
    let mut evidence: Vec<String> = said.iter().map(|(text, _)| (*text).to_owned()).collect();
    if evidence.is_empty() {
        return None;
    }
    evidence.push(view.busy());
    let text =
        "the load generator was the limit and not the server: the rate is that of the client";
    Some(warning(text.to_owned(), evidence))
}

fn failed_operations(view: &View<'_>) -> Option<Finding> {
    let ratio = view.figures.failed_ratio;
    (ratio > 0.0).then(|| {
        warning(
            "operations failed: rate and response times are those of the others".to_owned(),
            vec![format!("{} of the operations failed", percent(ratio))],
        )
    })
}

fn dropped_arrivals(view: &View<'_>) -> Option<Finding> {
    let ratio = view.figures.dropped_ratio;
    (ratio > 0.0).then(|| {
        warning(
            "arrivals were dropped: response times are those of the others".to_owned(),
            vec![format!(
                "{} of the arrivals were never sent",
                percent(ratio)
            )],
        )
    })
}

/// The bench did not keep up with what was offered.
fn rate_not_achieved(view: &View<'_>) -> Option<Finding> {
    let offered = view.figures.offered_rate_per_s?;
    let value = view.figures.rate_per_s.value;
    let is_missed = !is_sustained(value, offered, view.figures.succeeded);
    is_missed.then(|| {
        finding(
            format!(
                "the bench did not keep up: {} of the offered {}/s were achieved",
                percent(value / offered),
                exact(offered)
            ),
            vec![
                format!(
                    "{}{} were achieved",
                    rate(value),
                    interval(&view.figures.rate_per_s, rate)
                ),
                view.busy(),
            ],
        )
    })
}

/// Without the use of the server its limits are not known.
fn server_not_watched(view: &View<'_>) -> Option<Finding> {
    if view.analysis.knows_server() {
        return None;
    }
    let resources = view.figures.resources.iter();
    Some(saturation::server_not_watched(
        resources.map(|one| one.name.as_str()),
    ))
}

/// Response time that passes before the send.
fn wait_before_send(view: &View<'_>) -> Option<Finding> {
    let figures = view.figures;
    let response = figures.response_mean_us.value;
    let wait = response - figures.service_mean_us;
    (wait > response * WAIT_RATIO).then(|| {
        finding(
            format!(
                "{} of the response time passes before the send: operations wait {} on average for a free connection or \
                 for the client",
                percent(wait / response),
                us(wait)
            ),
            vec![format!(
                "the mean response time is {}{}, the mean service time {}",
                us(response),
                interval(&figures.response_mean_us, us),
                us(figures.service_mean_us)
            )],
        )
    })
}

/// How much of the time between send and answer is work of what was watched.
fn share_of_work(view: &View<'_>) -> Option<Finding> {
    let kinds = [ResourceKind::ServerCpu, ResourceKind::Disk];
    let demands: Vec<_> = kinds
        .iter()
        .filter_map(|kind| {
            let name = resource_name(*kind);
            view.figures.demands.iter().find(|one| one.name == name)
        })
        .filter(|demand| demand.demand_s > 0.0)
        .collect();
    let work_s: f64 = demands.iter().map(|demand| demand.demand_s).sum();
    let service_s = view.figures.service_mean_us * 1e-6;
    // More work than time is done by several at once, of which nothing follows for the rest.
    if !view.analysis.knows_server() || demands.is_empty() || work_s >= service_s {
        return None;
    }
    let each: Vec<String> = demands
        .iter()
        .map(|demand| format!("{} of {}", time(demand.demand_s), subject(&demand.name)))
        .collect();
    Some(finding(
        format!(
            "at most {} of the {} between send and answer is work of the server's CPU and disk; the rest is waiting for \
             them, for locks and for the client, and the way between both",
            percent(work_s / service_s),
            time(service_s)
        ),
        vec![format!(
            "an operation needs {}, background work of the server included; the mean service time is {}",
            list(&each),
            time(service_s)
        )],
    ))
}

/// One warning for each law that is broken, with what that says about the measurement.
fn laws_broken(view: &View<'_>) -> Vec<Finding> {
    LAWS.iter()
        .filter_map(|law| {
            let broken = checks(view, *law, LawVerdict::Broken);
            let text = format!(
                "{} is broken: {}",
                name(*law),
                laws::meaning_when_broken(*law)
            );
            let evidence: Vec<String> = broken.iter().map(|check| compared(check)).collect();
            (!evidence.is_empty()).then(|| warning(text, evidence))
        })
        .collect()
}

/// The laws that hold, each with what was measured and what it predicts.
fn laws_hold(view: &View<'_>) -> Option<Finding> {
    let mut names = Vec::new();
    let mut evidence = Vec::new();
    for law in LAWS {
        let holding = checks(view, law, LawVerdict::Holds);
        if holding.is_empty() || !checks(view, law, LawVerdict::Broken).is_empty() {
            continue;
        }
        names.push(name(law).to_owned());
        evidence.extend(holding.iter().map(|check| compared(check)));
    }
    let verb = match names.as_slice() {
        [] => return None,
        [_] => "holds",
        _ => "hold",
    };
    let text = format!(
        "{} {verb}: the measurements agree with each other",
        list(&names)
    );
    Some(finding(text, evidence))
}

fn checks<'a>(view: &View<'a>, law: Law, verdict: LawVerdict) -> Vec<&'a LawCheck> {
    let laws = view.figures.laws.iter();
    laws.filter(|check| check.law == law && check.verdict == verdict)
        .collect()
}

fn compared(check: &LawCheck) -> String {
    let write = match check.law {
        Law::Utilization | Law::Little => number,
        Law::ResponseTime | Law::ResponseBound => time,
        Law::ForcedFlow | Law::RateBound => rate,
    };
    let subject = check.subject.as_ref();
    let subject = subject.map_or(String::new(), |subject| format!(", `{subject}`"));
    let other = match is_bound(check.law) {
        true => "the bound is",
        false => "the law says",
    };
    let limit = check
        .uncertainty_ratio
        .max(laws::tolerance_ratio(check.law));
    format!(
        "{}{subject}: measured {}, {other} {}; the difference is {}, the uncertainty ± {}",
        name(check.law),
        write(check.measured),
        write(check.predicted),
        signed(check.difference_ratio),
        percent(limit)
    )
}

/// Other processes used the machine of the server.
fn other_processes(view: &View<'_>) -> Option<Finding> {
    let kinds = [
        ResourceKind::HostCpu,
        ResourceKind::ServerCpu,
        ResourceKind::ClientCpu,
    ];
    let [all, server, client] = kinds.map(|kind| view.resource(kind));
    let (all, server, client) = (all?, server?, client?);
    let busy = |resource: &Resource| resource.busy_servers().value;
    let others = busy(all) - busy(server) - busy(client);
    let ratio = others / f64::from(all.servers);
    (ratio > OTHERS_RATIO).then(|| {
        warning(
            format!(
                "the machine was not idle: neither server nor client used {} of its CPUs",
                percent(ratio)
            ),
            vec![format!(
                "of {} CPUs {} were busy, {} for the server and {} for the client, which leaves {} for others and the kernel",
                all.servers,
                number(busy(all)),
                number(busy(server)),
                number(busy(client)),
                number(others)
            )],
        )
    })
}

fn unsteady(view: &View<'_>) -> Option<Finding> {
    (view.figures.steady == Some(false)).then(|| {
        let said = doubts(&view.document.caveats, CaveatKind::NotSteady);
        let mut evidence: Vec<String> = said.iter().map(|(text, _)| (*text).to_owned()).collect();
        if evidence.is_empty() {
            let windows = count(view.analysis.windows as usize, "window", "windows");
            evidence.push(format!("the rate drifted over the {windows}"));
        }
        let text = "there was no steady state: the figures depend on when they were taken";
        warning(text.to_owned(), evidence)
    })
}

/// Intervals that are wide or missing.
fn poorly_known(view: &View<'_>) -> Option<Finding> {
    let figures = view.figures;
    let rate_share = share_of(&figures.rate_per_s);
    if rate_share.is_some_and(|share| share > WIDE_RATIO) {
        return Some(warning(
            format!(
                "the rate is known to no better than ± {}; a longer `--duration` would tell more",
                percent(WIDE_RATIO)
            ),
            vec![format!(
                "its 95 % interval is ± {} of it",
                percent(rate_share.unwrap_or(0.0))
            )],
        ));
    }
    let missing = view.analysis.without_interval.iter();
    let missing: Vec<_> = missing.filter(|one| one.operation.is_none()).collect();
    let because = |reason: NoInterval| -> Vec<String> {
        let of_reason = missing.iter().filter(|one| one.reason == reason);
        of_reason
            .map(|one| one.figure.replace("p99_9", "p99.9"))
            .collect()
    };
    let few_windows = because(NoInterval::TooFewWindows);
    let few_beyond = because(NoInterval::TooFewBeyond);
    let mut evidence = Vec::new();
    if !few_windows.is_empty() {
        evidence.push(format!(
            "there is none of {}: the {} of the measure phase are too few, or follow each other too closely",
            list(&few_windows),
            count(view.analysis.windows as usize, "window", "windows")
        ));
    }
    if !few_beyond.is_empty() {
        evidence.push(format!(
            "there is none of {}: less than ten operations took longer",
            list(&few_beyond)
        ));
    }
    (!evidence.is_empty()).then(|| {
        let text = "not every figure has an interval; a longer `--duration` would give it one";
        warning(text.to_owned(), evidence)
    })
}

/// Nothing was near its limit, so that the clients may be too few.
fn more_clients(view: &View<'_>) -> Option<Finding> {
    let bottleneck = view.analysis.bottleneck.as_ref()?;
    let is_open = view.figures.offered_rate_per_s.is_some();
    if is_open || view.figures.is_generator_bound() || bottleneck.reached_ratio >= NEAR_RATIO {
        return None;
    }
    Some(opportunity(
        "more clients could raise the rate, as nothing that was watched came near saturation; `dyno sweep --clients` \
         would tell"
            .to_owned(),
        vec![
            format!(
                "the rate reached {} of {}, the bound by {}",
                percent(bottleneck.reached_ratio),
                rate(bottleneck.bound_per_s),
                subject(&bottleneck.demand.name)
            ),
            view.busy(),
        ],
    ))
}

fn disk_is_idle(view: &View<'_>) -> Option<Finding> {
    let disk = view.resource(ResourceKind::Disk)?;
    let bottleneck = view.analysis.bottleneck.as_ref();
    let demand = bottleneck.map(|bottleneck| &bottleneck.demand);
    opportunities::idle_disk(
        disk.servers,
        disk.busy_ratio,
        demand,
        "in the measure phase",
    )
}

//! A finding as a sentence with its numbers.

use super::judge::{Cause, Course, InFlight, Judgement, Part, QueuePlace, SLOWER_RATIO};
use super::trend::{LEAST_POINTS, Trend};
use crate::experiment::words::{exact, number, rate, time};

/// Distance of Little's ratio from 1 that still agrees: medians stand for means, and inserts that are
/// in flight when the run ends are counted on one side only.
const LITTLE_TOLERANCE: f64 = 0.25;

pub(super) fn of(course: &Course, found: &Judgement) -> String {
    let mut sentences = match found.cause {
        Cause::TooFew => vec![format!(
            "too few messages to judge: {} points, and {LEAST_POINTS} are needed",
            course.points.len()
        )],
        Cause::Stationary => vec![stationary(course, found)],
        Cause::MoreOfferedThanSent => vec![more_offered(course, found)],
        Cause::UnboundedInFlight => unbounded(course, found),
        Cause::Server => server(course, found),
        Cause::Delivery => vec![delivery(course, found)],
    };
    sentences.extend(connection_wait(course, found));
    if found.cause != Cause::TooFew {
        sentences.extend(slower(course));
    }
    sentences.join("; ")
}

/// A time given in nanoseconds, which may be below zero.
fn duration(ns: f64) -> String {
    time(ns / 1e9)
}

fn per_thousand(trend: &Trend) -> String {
    format!("{} per 1,000 messages", duration(trend.slope * 1000.0))
}

fn tau(trend: &Trend) -> String {
    format!("Kendall's tau {:.2}", trend.tau_ratio)
}

/// What a part does, beside another that grows.
fn beside(found: &Judgement, part: Part, name: &str) -> String {
    use super::trend::Direction::{Falling, Flat, Growing, TooFew};
    let Some(trend) = found.trend_of(part) else {
        return format!("{name} was not measured");
    };
    match trend.direction {
        Growing => format!("{name} grows by {}", per_thousand(trend)),
        Falling => format!("{name} falls"),
        Flat => format!("{name} is flat (median {})", duration(trend.median)),
        TooFew => format!("{name} has too few points"),
    }
}

fn stationary(course: &Course, found: &Judgement) -> String {
    let total = found
        .trend_of(Part::Total)
        .or(found.trend_of(Part::Acknowledged));
    let median = total.map_or(0.0, |trend| trend.median);
    let tau_ratio = total.map_or(0.0, |trend| trend.tau_ratio);
    format!(
        "latency does not grow over {} messages: median {}, Kendall's tau {tau_ratio:.2}",
        exact(course.messages as f64),
        duration(median),
    )
}

fn more_offered(course: &Course, found: &Judgement) -> String {
    let wait = found.trend_of(Part::Wait);
    let grows = wait.map_or_else(String::new, per_thousand);
    let rates = match course.rates.offered_per_s {
        Some(offered) => format!(
            "{} offered, {} sent",
            rate(offered),
            rate(course.rates.sent_per_s)
        ),
        None => format!("{} sent", rate(course.rates.sent_per_s)),
    };
    let inserted = found.trend_of(Part::Acknowledged);
    let in_flight = wait.map(|wait| wait.change) < inserted.map(|inserted| inserted.change);
    if let (true, Some(inserted)) = (in_flight, inserted) {
        return format!(
            "more offered than is acknowledged: insert time grows by {} with the number in flight while {} ({rates}; {})",
            per_thousand(inserted),
            beside(found, Part::Wait, "intended→send"),
            tau(inserted),
        );
    }
    format!(
        "more offered than the driver sends: intended→send grows by {grows} while {} ({rates}; {})",
        beside(found, Part::Acknowledged, "insert time"),
        wait.map_or_else(String::new, tau),
    )
}

fn unbounded(course: &Course, found: &Judgement) -> Vec<String> {
    let messages = exact(course.messages as f64);
    let rates = &course.rates;
    let wait = found.trend_of(Part::Wait);
    let inserted = found.trend_of(Part::Acknowledged);
    let in_program = course.place == QueuePlace::Program
        || wait.map(|wait| wait.change) > inserted.map(|inserted| inserted.change);
    if in_program {
        let due = match rates.offered_per_s {
            Some(offered) => format!("{messages} were due at {}", rate(offered)),
            None => format!("all {messages} were due at the start"),
        };
        return vec![format!(
            "nothing bounds the messages that are due: {due} and wait in the program for one of its threads, so \
             intended→send grows by {} while {}; {} were sent",
            wait.map_or_else(String::new, per_thousand),
            beside(found, Part::Acknowledged, "insert time"),
            rate(rates.sent_per_s),
        )];
    }
    let mut sentences = vec![format!(
        "unbounded in-flight: all {messages} messages were handed over within {} and acknowledged within {}, \
         insert time grows by {} with the number in flight",
        time(rates.handed_over_s),
        time(rates.all_s),
        inserted.map_or_else(String::new, per_thousand),
    )];
    if let Some((ratio, most)) = found.little_ratio.zip(most_in_flight(course)) {
        let law = most / rates.acknowledged_per_s;
        let verdict = match (ratio - 1.0).abs() <= LITTLE_TOLERANCE {
            true => "as measured",
            false => "measured differs",
        };
        sentences.push(format!(
            "Little's law: {} in flight / {} = {}, {verdict} (ratio {ratio:.2})",
            number(most),
            rate(rates.acknowledged_per_s),
            time(law),
        ));
    }
    sentences
}

fn most_in_flight(course: &Course) -> Option<f64> {
    let most = course.points.iter().map(|point| point.in_flight);
    most.max_by(f64::total_cmp).filter(|most| *most > 0.0)
}

fn server(course: &Course, found: &Judgement) -> Vec<String> {
    let inserted = found.trend_of(Part::Acknowledged);
    let in_flight = match course.in_flight {
        InFlight::Bounded(bound) => format!("at most {} inserts are", exact(bound as f64)),
        InFlight::Unbounded => format!("about {} inserts are", number(found.in_flight.median)),
    };
    vec![format!(
        "inserts take longer, at the server, on the way or for want of CPU in the producer: insert time grows by {} \
         (median {}; {}) though {in_flight} in flight all along, {}",
        inserted.map_or_else(String::new, per_thousand),
        inserted.map_or_else(String::new, |trend| duration(trend.median)),
        inserted.map_or_else(String::new, tau),
        beside(found, Part::Wait, "intended→send"),
    )]
}

fn delivery(course: &Course, found: &Judgement) -> String {
    let after = found.trend_of(Part::After);
    let ends: Vec<f64> = course
        .points
        .iter()
        .filter_map(|point| point.batch_messages)
        .collect();
    let batches = match ends.as_slice() {
        [first, .., last] => format!(
            "; a reply of the server brings {} messages at first and {} at last",
            number(*first),
            number(*last)
        ),
        _ => String::new(),
    };
    format!(
        "delivery falls behind: acknowledged→received grows by {} while {} ({}){batches}",
        after.map_or_else(String::new, per_thousand),
        beside(found, Part::Acknowledged, "insert time"),
        after.map_or_else(String::new, tau),
    )
}

fn connection_wait(course: &Course, found: &Judgement) -> Option<String> {
    let wait = found.connection_wait_ns?;
    let pool = course.pool?;
    Some(format!(
        "of the median insert time at least {} is waiting for one of {} connections",
        duration(wait),
        exact(pool as f64)
    ))
}

fn slower(course: &Course) -> Option<String> {
    let rates = &course.rates;
    let (first, second) = (
        rates.acknowledged_first_half_per_s,
        rates.acknowledged_second_half_per_s,
    );
    (first > 0.0 && second > 0.0 && second < SLOWER_RATIO * first).then(|| {
        format!(
            "the second half was acknowledged more slowly: {} after {}",
            rate(second),
            rate(first)
        )
    })
}

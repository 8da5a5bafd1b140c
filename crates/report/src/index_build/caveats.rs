//! Caveats of an index build: of the experiment and of its traces, including missing traces.

use super::sides::Side;
use crate::caveat::{NumberedCaveat, Severity, Trust};
use crate::io_trace;
use dyno_record::index_build::IndexBuildDocument;

/// All caveats with their subjects, by number.
pub(super) struct Book<'a> {
    entries: Vec<Entry<'a>>,
}

struct Entry<'a> {
    caveat: NumberedCaveat,
    /// The affected build; all builds if absent.
    build: Option<&'a str>,
    /// Whether it is about the trace instead of the build time.
    is_of_trace: bool,
}

/// Numbers all caveats, the most serious first. With several builds, their caveats name the build.
pub(super) fn book<'a>(document: &'a IndexBuildDocument, sides: &[Side<'a>]) -> Book<'a> {
    let mut entries = Vec::new();
    for caveat in &document.caveats {
        let build = caveat.build.as_deref();
        let mut caveat = NumberedCaveat::said(&caveat.statement, ("doubt", Severity::Doubt));
        caveat.message = named(build, &caveat.message, sides);
        entries.push(Entry { caveat, build, is_of_trace: false });
    }
    for side in sides {
        for mut caveat in side.trace.iter().flat_map(io_trace::caveats_of) {
            caveat.message = named(Some(side.name), &caveat.message, sides);
            entries.push(Entry { caveat, build: Some(side.name), is_of_trace: true });
        }
        if side.trace.is_none() {
            entries.push(no_trace(side));
        }
    }
    // The sort is stable: within a severity, the order of the builds stays.
    entries.sort_by_key(|entry| entry.caveat.severity);
    for (place, entry) in entries.iter_mut().enumerate() {
        entry.caveat.number = place + 1;
    }
    Book { entries }
}

fn named(build: Option<&str>, message: &str, sides: &[Side<'_>]) -> String {
    match build {
        Some(build) if sides.len() > 1 => format!("{build}: {message}"),
        _ => message.to_owned(),
    }
}

fn no_trace<'a>(side: &Side<'a>) -> Entry<'a> {
    let message = format!(
        "the build `{}` has no trace, so the read order of its files is unknown",
        side.name
    );
    Entry {
        caveat: NumberedCaveat::of("no trace", Severity::Doubt, message, None),
        build: Some(side.name),
        is_of_trace: true,
    }
}

impl Book<'_> {
    /// Numbers of the caveats about a build's duration.
    pub(super) fn of_duration(&self, build: &str) -> Vec<usize> {
        self.numbers(|entry| !entry.is_of_trace && entry.touches(build))
    }

    /// Numbers of the caveats about the order and amount of a build's reads. Caveats of a trace are about single calls, and
    /// mark nothing.
    pub(super) fn of_order(&self, build: &str) -> Vec<usize> {
        self.numbers(|entry| {
            entry.is_of_trace && entry.touches(build) && entry.caveat.severity == Severity::Serious
        })
    }

    /// The trust in the answer. Doubts about a trace concern single calls, as in [`Book::of_order`].
    pub(super) fn trust(&self, builds: usize) -> Trust {
        let concerns =
            |entry: &&Entry<'_>| !entry.is_of_trace || entry.caveat.severity == Severity::Serious;
        let concerning = self.entries.iter().filter(concerns).map(|entry| &entry.caveat);
        Trust::of(concerning, builds, Some("a build is measured once, so its time has no interval"))
    }

    /// Numbers of the caveats about everything.
    pub(super) fn serious(&self) -> Vec<usize> {
        self.numbers(|entry| entry.caveat.severity == Severity::Serious)
    }

    fn numbers(&self, touches: impl Fn(&Entry<'_>) -> bool) -> Vec<usize> {
        let touching = self.entries.iter().filter(|entry| touches(entry));
        touching.map(|entry| entry.caveat.number).collect()
    }

    /// The caveats in numerical order.
    pub(super) fn into_caveats(self) -> Vec<NumberedCaveat> {
        self.entries.into_iter().map(|entry| entry.caveat).collect()
    }
}

impl Entry<'_> {
    fn touches(&self, build: &str) -> bool {
        self.build.is_none_or(|of| of == build)
    }
}

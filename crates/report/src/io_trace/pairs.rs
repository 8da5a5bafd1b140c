//! Matches the files of two traces that are the same or replace each other.

use dyno_analyze::access_pattern::{AccessPatterns, FilePattern};
use dyno_record::io_trace::document::FileKind;
use dyno_record::io_trace::event::Operation;

/// Largest number of pairs shown.
const MOST_PAIRS: usize = 8;
/// A pair with a smaller share of all calls of a trace is not shown.
const SMALL_RATIO: f64 = 0.01;

/// A file before and after; at least one of both exists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair<'a> {
    pub(super) before: Option<&'a FilePattern>,
    pub(super) after: Option<&'a FilePattern>,
}

impl<'a> Pair<'a> {
    /// The file before, or else after.
    pub(super) fn any(&self) -> &'a FilePattern {
        self.after.or(self.before).expect("a pair has at least one file")
    }

    /// Both files with the names of the sides.
    pub(super) fn sides(&self) -> [(&'static str, Option<&'a FilePattern>); 2] {
        [("before", self.before), ("after", self.after)]
    }

    /// The content of the file, because its name may have changed.
    pub(super) fn name(&self) -> String {
        let (before, after) = (self.before, self.after);
        match (before, after) {
            (Some(before), Some(after)) if before.label() != after.label() => {
                format!("`{}`, then `{}`", before.label(), after.label())
            }
            _ => format!("`{}`", self.any().label()),
        }
    }

    fn calls(&self) -> u64 {
        self.before.map_or(0, |file| file.calls) + self.after.map_or(0, |file| file.calls)
    }
}

/// The identity of a file across traces.
#[derive(PartialEq)]
enum Key<'a> {
    Role(FileKind, &'a str, Option<&'a str>),
    Name(&'a str),
}

/// The pairs with the most calls.
pub(super) fn pairs<'a>(before: &'a AccessPatterns, after: &'a AccessPatterns) -> Vec<Pair<'a>> {
    let mut rest: Vec<&FilePattern> = after.files.iter().collect();
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    for file in &before.files {
        let same =
            |other: &&FilePattern| other.operation == file.operation && key(other) == key(file);
        let found = rest.iter().position(same).map(|place| rest.remove(place));
        pairs.push(Pair { before: Some(file), after: found });
    }
    join_replaced(&mut pairs, &mut rest);
    pairs.extend(rest.into_iter().map(|file| Pair { before: None, after: Some(file) }));
    let all = before.calls + after.calls;
    pairs.retain(|pair| {
        let is_moving = pair.any().operation != Operation::Sync;
        is_moving && pair.calls() as f64 >= all as f64 * SMALL_RATIO
    });
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.calls()));
    pairs.truncate(MOST_PAIRS);
    pairs
}

/// Pairs the file with most of an operation on one side with its counterpart on the other, if neither has a partner: a
/// rewritten file has another name.
fn join_replaced<'a>(pairs: &mut [Pair<'a>], rest: &mut Vec<&'a FilePattern>) {
    for operation in [Operation::Read, Operation::Fault, Operation::Write] {
        let alone = pairs.iter_mut().filter(|pair| {
            pair.after.is_none() && pair.before.is_some_and(|f| f.operation == operation)
        });
        let Some(pair) = alone.max_by_key(|pair| pair.calls()) else {
            continue;
        };
        let candidates = rest.iter().enumerate();
        let candidates = candidates.filter(|(_, file)| file.operation == operation);
        let kind = |file: &FilePattern| file.role.as_ref().map(|role| role.kind);
        let best = candidates.max_by_key(|(_, file)| file.calls);
        if let Some((place, _)) = best.filter(|(_, file)| kind(file) == pair.before.and_then(kind))
        {
            pair.after = Some(rest.remove(place));
        }
    }
}

fn key(file: &FilePattern) -> Key<'_> {
    let role = file.role.as_ref();
    let named =
        role.and_then(|role| Some((role.kind, role.namespace.as_deref()?, role.index.as_deref())));
    match named {
        Some((kind, namespace, index)) => Key::Role(kind, namespace, index),
        None => Key::Name(&file.name),
    }
}

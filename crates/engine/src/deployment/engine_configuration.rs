//! Storage-engine options that can change while a server runs, through the parameter
//! `wiredTigerEngineRuntimeConfig`. A server reports only the text set last and its start text, not
//! the options in effect. The earlier value of an option therefore comes from these two texts, or
//! from the known defaults.

use std::collections::BTreeMap;

/// Options with their values after `mongod` opened the engine: `mongod` requests
/// `eviction=(threads_min=4,threads_max=4)` (its log line "Opening WiredTiger", versions 4.4 to
/// 8.0), the others are WiredTiger defaults (`dist/api_data.py`).
const DEFAULTS: [(&str, &str); 8] = [
    ("eviction.threads_min", "4"),
    ("eviction.threads_max", "4"),
    ("eviction_target", "80"),
    ("eviction_trigger", "95"),
    ("eviction_dirty_target", "5"),
    ("eviction_dirty_trigger", "20"),
    ("eviction_updates_target", "0"),
    ("eviction_updates_trigger", "0"),
];

/// Names of the options that can be restored.
pub(crate) fn known() -> Vec<&'static str> {
    DEFAULTS.iter().map(|(name, _)| *name).collect()
}

/// The text that restores the options changed by `asked`. The value of each comes from `now` (the
/// text set last), else `started` (the server's start text), else the defaults. The other options
/// of `now` follow unchanged: a server reports only the last text, and the next run would take
/// missing options for their start values.
///
/// # Errors
/// The first option without a known value.
pub(crate) fn before(started: &str, now: &str, asked: &str) -> Result<String, String> {
    let known = effective(started, now);
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, _) in options(asked, "").into_iter().chain(options(now, "")) {
        if found.iter().any(|(other, _)| *other == name) {
            continue;
        }
        let value = known.get(&name).ok_or_else(|| name.clone())?.clone();
        found.push((name, value));
    }
    Ok(written(&found))
}

/// The engine's options in effect, as one text: those that can be restored or were set last.
pub(crate) fn in_effect(started: &str, now: &str) -> String {
    written(&effective(started, now).into_iter().collect::<Vec<_>>())
}

/// The reported values at `place` in `text`; `None` for options that were not reported.
pub(crate) fn placed(text: &str, place: &str, reported: &str) -> Vec<Option<String>> {
    let reported = options(reported, "");
    let placed = options(text, "").into_iter().filter(|(_, value)| value.contains(place));
    let value = |(name, text): (String, String)| {
        let (_, value) = reported.iter().rev().find(|(other, _)| *other == name)?;
        within(&text, place, value)
    };
    placed.map(value).collect()
}

/// The part of `reported` at `place` in `text`, if the rest is the same.
pub(crate) fn within(text: &str, place: &str, reported: &str) -> Option<String> {
    let (before, after) = text.split_once(place)?;
    let found = reported.strip_prefix(before)?.strip_suffix(after)?;
    Some(found.to_owned())
}

/// The restorable options: the defaults, overridden by the server's start text and then by the text
/// set last.
fn effective(started: &str, now: &str) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for (name, value) in options(started, "") {
        if let Some(known) = all.get_mut(&name) {
            *known = value;
        }
    }
    all.extend(options(now, ""));
    all
}

/// Options as one text. Each group comes once, because the engine uses only the last one.
fn written(options: &[(String, String)]) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in options {
        let (group, text) = match name.split_once('.') {
            Some((group, option)) => (group.to_owned(), format!("{option}={value}")),
            None => (name.clone(), value.clone()),
        };
        match groups.iter_mut().find(|(other, _)| *other == group) {
            Some((_, texts)) => texts.push(text),
            None => groups.push((group, vec![text])),
        }
    }
    let texts = groups.iter().map(|(name, texts)| match texts.join(",") {
        inner if is_group(name) => format!("{name}=({inner})"),
        value => format!("{name}={value}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

/// Options of a text by name; options of a group, such as `eviction=(threads_min=4)`, as
/// `eviction.threads_min`.
fn options(text: &str, group: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in parts(text) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = format!("{group}{}", name.trim());
        let inner = value.trim().strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
        match inner {
            Some(inner) if group.is_empty() && is_group(&name) => {
                found.extend(options(inner, &format!("{name}.")));
            }
            _ => found.push((name, value.trim().to_owned())),
        }
    }
    found
}

/// Whether known options are in this group.
fn is_group(name: &str) -> bool {
    let mut groups = DEFAULTS.iter().filter_map(|(option, _)| option.split_once('.'));
    groups.any(|(group, _)| group == name)
}

/// The parts between commas outside of brackets.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = text.split(move |c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_set_value_is_restored_or_else_start_value_or_default() {
        let before = |now: &str, asked: &str| super::before("", now, asked);
        let asked = "eviction=(threads_min=2,threads_max=8), eviction_trigger=90";
        assert_eq!(
            before("", asked).as_deref(),
            Ok("eviction=(threads_min=4,threads_max=4),eviction_trigger=95")
        );
        let now = "eviction=(threads_max=6),eviction_trigger=92";
        assert_eq!(
            before(now, asked).as_deref(),
            Ok("eviction=(threads_min=4,threads_max=6),eviction_trigger=92")
        );
        let other = "eviction_target=70,eviction=(threads_min=2)";
        let back = before(other, "eviction_dirty_target=2");
        let kept = "eviction_dirty_target=5,eviction_target=70,eviction=(threads_min=2)";
        assert_eq!(back.as_deref(), Ok(kept));
        assert_eq!(
            before(kept, "eviction_target=60").as_deref(),
            Ok("eviction_target=70,eviction_dirty_target=5,eviction=(threads_min=2)")
        );
        assert_eq!(before("", "log=(enabled=false)"), Err("log".to_owned()));
        assert_eq!(
            before("", "eviction=(evict_sample_inmem=true)"),
            Err("eviction.evict_sample_inmem".to_owned())
        );
        let started = "cache_overhead=9, eviction=(threads_max=20), eviction_dirty_target=2";
        let before = |now: &str, asked: &str| super::before(started, now, asked);
        assert_eq!(
            before("", asked).as_deref(),
            Ok("eviction=(threads_min=4,threads_max=20),eviction_trigger=95")
        );
        assert_eq!(
            before("eviction=(threads_max=6)", "eviction_dirty_target=7").as_deref(),
            Ok("eviction_dirty_target=2,eviction=(threads_max=6)")
        );
        // Some start options cannot be set while the server runs.
        let fixed = before("", "cache_overhead=8");
        assert_eq!(fixed, Err("cache_overhead".to_owned()));
        let all = in_effect(started, "eviction_target=70");
        let own = "eviction=(threads_min={},threads_max={}),eviction_target={}";
        let found: Option<Vec<String>> = placed(own, "{}", &all).into_iter().collect();
        assert_eq!(found.unwrap_or_default(), ["4", "20", "70"]);
        assert_eq!(placed("log=(enabled={})", "{}", &all), [None::<String>]);
    }
}

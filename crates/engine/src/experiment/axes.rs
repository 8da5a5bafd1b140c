//! The keys that an experiment varies: several values of a key, from the command line or a plan.

use super::request::may_hold_secrets;
use crate::deployment::choice;
use crate::environment::Environment;
use crate::error::{Error, refuse};
use dyno_plan::file;
use dyno_plan::request::Setting;
use dyno_plan::task::Task;
use dyno_record::experiment::Axis;
use std::path::Path;

/// Keys with values that may contain commas; their values are separated by `;`.
const KEYS_WITH_COMMAS: [&str; 8] = [
    "server.uri",
    "server.topology",
    "server.storage",
    "server.placement",
    "server.connection_options",
    "server.receive_packet_steering",
    "server.runtime_parameters.wiredTigerEngineRuntimeConfig",
    "description",
];

/// Whether a text holds several values of a key.
pub fn is_several(key: &str, text: &str) -> bool {
    let (_, axes) = split(&[(key.to_owned(), text.to_owned())]);
    !axes.is_empty()
}

/// Splits settings into single values and axes with several values.
pub(super) fn split(settings: &[(String, String)]) -> (Vec<(String, String)>, Vec<Axis>) {
    let mut fixed: Vec<(String, String)> = Vec::new();
    let mut axes: Vec<Axis> = Vec::new();
    for (key, text) in settings {
        let by_semicolon = split_values(text, ';');
        let values = if KEYS_WITH_COMMAS.contains(&key.as_str()) || by_semicolon.len() > 1 {
            by_semicolon
        } else {
            split_values(text, ',')
        };
        let mut once: Vec<String> = Vec::new();
        for value in values {
            let value = value.trim().to_owned();
            if !once.contains(&value) {
                once.push(value);
            }
        }
        // The last setting of a key wins.
        axes.retain(|axis| axis.key != *key);
        fixed.retain(|(other, _)| other != key);
        match once.as_slice() {
            [only] => fixed.push((key.clone(), only.clone())),
            _ => axes.push(Axis { key: key.clone(), values: once }),
        }
    }
    (fixed, axes)
}

/// Splits at separators outside of brackets and quotes, which may enclose one value, such as a
/// list.
fn split_values(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quote) = (0, 0_usize, None);
    for (position, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) => quote = (c != open).then_some(open),
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) if c == separator && depth == 0 => {
                parts.push(&text[start..position]);
                start = position + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The settings that all points have in common, with one value of each axis that chooses the
/// server.
pub(super) fn resolved(
    fixed: Vec<(String, String)>,
    axes: &[Axis],
    embedded: Option<&Path>,
    environment: &Environment,
) -> Result<Vec<(String, String)>, Error> {
    let mut resolved = fixed;
    for axis in axes {
        choice::check_values(&axis.key, &axis.values, embedded, environment)?;
        let value = choice::representative(&axis.key, &axis.values);
        resolved.extend(value.map(|value| (axis.key.clone(), value.clone())));
    }
    Ok(resolved)
}

/// Refuses a key that is set by an option and by `--set`.
pub(super) fn check_once(
    key: &str,
    option: &str,
    fixed: &[(String, String)],
    axes: &[Axis],
) -> Result<(), Error> {
    let is_set = fixed.iter().any(|(other, _)| other == key);
    if is_set || axes.iter().any(|axis| axis.key == key) {
        let text = format!("`{key}` is given by `{option}` and by `--set`");
        return refuse(text, "give one of them");
    }
    Ok(())
}

/// Refuses secrets in swept values, which appear in the record, in tables and in file names.
pub(super) fn check_secrets(axis: &Axis, task: &Task) -> Result<(), Error> {
    if !may_hold_secrets(&axis.key) {
        return Ok(());
    }
    for value in &axis.values {
        let mut plan = task.plan.clone();
        let setting = Setting::from_text(&axis.key, value);
        let is_set = file::set(&mut plan, &[setting]).is_ok();
        if is_set && plan != plan.without_secrets() {
            let text = format!("a value of `{}` holds a secret", axis.key);
            let hint = "the values of a sweep are recorded: let the program read its secret from a file or a variable";
            return refuse(text, hint);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_a_list_do_not_split_values() {
        let settings = |text: &str| [("observe.exporters".to_owned(), text.to_owned())];
        let list = r#"[{name="a", url="http://a:1"}, {name="b;c", url="http://b:2"}]"#;
        let (fixed, axes) = split(&settings(list));
        assert_eq!(fixed, settings(list));
        assert_eq!(axes, []);
        let (fixed, axes) = split(&settings("[1, 2],[], 'a,b'"));
        assert_eq!(fixed, []);
        assert_eq!(axes[0].values, ["[1, 2]", "[]", "'a,b'"]);
        let storage = |text: &str| [("server.storage".to_owned(), text.to_owned())];
        let (fixed, _) = split(&storage("raid0 xfs on /dev/sdb,/dev/sdc"));
        assert_eq!(fixed, storage("raid0 xfs on /dev/sdb,/dev/sdc"));
        let (_, axes) = split(&storage("ext4 on loop:1GiB; btrfs-raid0 on loop:1GiB,loop:1GiB"));
        assert_eq!(axes[0].values, ["ext4 on loop:1GiB", "btrfs-raid0 on loop:1GiB,loop:1GiB"]);
        let (_, axes) = split(&settings("a,b;c"));
        assert_eq!(axes[0].values, ["a,b", "c"]);
    }
}

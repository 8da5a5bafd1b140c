//! The plans that are part of the program, from the files in `workloads/`.

use crate::file;
use crate::model::Plan;

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../workloads/", $name, ".toml")))),+]
    };
}

const PLANS: [(&str, &str); 14] = built_in![
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "90read10update",
    "50read50update",
    "30write70read",
    "read",
    "write",
    "gated",
    "pkm",
    "storage-compare",
];

const INDEX_BUILDS: [(&str, &str); 5] = [
    (
        "ordered",
        include_str!("../../../workloads/index-build/ordered.toml"),
    ),
    (
        "shuffled",
        include_str!("../../../workloads/index-build/shuffled.toml"),
    ),
    (
        "concurrent",
        include_str!("../../../workloads/index-build/concurrent.toml"),
    ),
    (
        "churned",
        include_str!("../../../workloads/index-build/churned.toml"),
    ),
    (
        "existing",
        include_str!("../../../workloads/index-build/existing.toml"),
    ),
];

const TAILS: [(&str, &str); 3] = [
    ("tail", include_str!("../../../workloads/tail/tail.toml")),
    (
        "tail-riddle",
        include_str!("../../../workloads/tail/tail-riddle.toml"),
    ),
    (
        "tail-pool",
        include_str!("../../../workloads/tail/tail-pool.toml"),
    ),
];

/// Names of the built-in plans for messages.
pub fn tail_names() -> impl Iterator<Item = &'static str> {
    TAILS.iter().map(|(name, _)| *name)
}

/// The built-in plan of this name for messages.
pub fn find_tail(name: &str) -> Option<Plan> {
    find_in(&TAILS, name)
}

/// Names of the built-in plans for index builds.
pub fn index_build_names() -> impl Iterator<Item = &'static str> {
    INDEX_BUILDS.iter().map(|(name, _)| *name)
}

/// The built-in plan of this name for index builds.
pub fn find_index_build(name: &str) -> Option<Plan> {
    find_in(&INDEX_BUILDS, name)
}

/// Names of the built-in plans.
pub fn names() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|(name, _)| *name)
}

/// The text of a built-in plan.
pub fn text(name: &str) -> Option<&'static str> {
    text_in(&PLANS, name)
}

fn text_in(plans: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let (_, text) = plans.iter().find(|(known, _)| *known == name)?;
    Some(text)
}

fn find_in(plans: &[(&str, &'static str)], name: &str) -> Option<Plan> {
    let plan = file::parse(text_in(plans, name)?, name);
    debug_assert!(plan.is_ok(), "{plan:?}");
    plan.ok()
}

/// The built-in plan of this name.
pub fn find(name: &str) -> Option<Plan> {
    find_in(&PLANS, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_plan_is_read_and_has_its_name_and_a_description() {
        for name in names() {
            let plan = find(name).expect("it is listed");
            assert_eq!(plan.name, name);
            assert!(
                plan.description.len() > 20,
                "{name} does not say what it is for"
            );
        }
    }

    #[test]
    fn ycsb_mixes_are_those_of_the_original() {
        let weights = |name: &str| {
            let w = find(name).expect("it is listed").operations;
            [
                w.read,
                w.update,
                w.insert,
                w.scan,
                w.read_modify_write,
                w.delete,
            ]
        };
        assert_eq!(weights("a"), [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(weights("b"), [0.95, 0.05, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(weights("c"), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(weights("d"), [0.95, 0.0, 0.05, 0.0, 0.0, 0.0]);
        assert_eq!(weights("e"), [0.0, 0.0, 0.05, 0.95, 0.0, 0.0]);
        assert_eq!(weights("f"), [0.5, 0.0, 0.0, 0.0, 0.5, 0.0]);
        assert_eq!(find("e").expect("it is listed").access.max_scan_length, 100);
    }

    #[test]
    fn an_unknown_name_is_none() {
        assert!(find("g").is_none());
    }
}

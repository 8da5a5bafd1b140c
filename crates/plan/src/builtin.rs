//! The built-in plans, from the files in `workloads/`.

use crate::file;
use crate::model::Plan;

/// The built-in plans of one kind of work.
#[derive(Debug)]
pub struct Plans {
    /// What to call one of these plans in messages.
    pub one: &'static str,
    /// What to call several of these plans.
    pub all: &'static str,
    plans: &'static [(&'static str, &'static str)],
}

macro_rules! built_in {
    ($one:literal, $all:literal, $folder:literal: $($name:literal)+) => {
        Plans {
            one: $one,
            all: $all,
            plans: &[$(($name, include_str!(concat!("../../../workloads/", $folder, $name, ".toml")))),+],
        }
    };
}

/// Built-in loads.
pub static LOADS: Plans = built_in! {
    "plan", "plans", "":
    "a" "b" "c" "d" "e" "f"
    "90read10update" "50read50update" "30write70read" "read" "write"
    "gated" "pkm" "storage-compare" "insert-benchmark" "shop" "crud-mix"
};

/// Built-in index builds.
pub static INDEX_BUILDS: Plans = built_in! {
    "index build", "index builds", "index-build/":
    "ordered" "shuffled" "concurrent" "churned" "migrated" "existing"
};

/// Built-in plans for messages.
pub static TAILS: Plans = built_in! {
    "plan for messages", "plans for messages", "tail/":
    "tail" "tail-riddle" "tail-pool"
};

impl Plans {
    /// Names of the plans.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plans.iter().map(|(name, _)| *name)
    }

    /// The plan with this name.
    pub fn find(&self, name: &str) -> Option<Plan> {
        let (_, text) = self.plans.iter().find(|(known, _)| *known == name)?;
        let plan = file::parse(text, name);
        debug_assert!(plan.is_ok(), "{plan:?}");
        plan.ok()
    }
}

/// Suites of several workloads, by name.
const SUITES: [(&str, &str); 3] = [
    ("replica-set-compare", include_str!("../../../workloads/suites/replica-set-compare.toml")),
    (
        "storage-engine-compare",
        include_str!("../../../workloads/suites/storage-engine-compare.toml"),
    ),
    ("version-compare", include_str!("../../../workloads/suites/version-compare.toml")),
];

/// Names of the built-in suites.
pub fn suites() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|(name, _)| *name)
}

/// The file of the built-in suite with this name.
pub(crate) fn suite(name: &str) -> Option<&'static str> {
    SUITES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Names of the built-in loads.
pub fn names() -> impl Iterator<Item = &'static str> {
    LOADS.names()
}

/// The built-in load with this name.
pub fn find(name: &str) -> Option<Plan> {
    LOADS.find(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_plan_has_its_name_and_a_description() {
        for name in names() {
            let plan = find(name).expect("it is listed");
            assert_eq!(plan.name, name);
            assert!(plan.description.len() > 20, "{name} does not say what it is for");
        }
    }

    #[test]
    fn ycsb_mixes_match_the_original() {
        let weights = |name: &str| {
            let w = find(name).expect("it is listed").operations;
            [w.read, w.update, w.insert, w.scan, w.read_modify_write, w.delete]
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
    fn unknown_name_is_none() {
        assert!(find("g").is_none());
    }
}

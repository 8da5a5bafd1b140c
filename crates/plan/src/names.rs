//! Values that are chosen by a name: an option lists the names with their help, and reads one of them.

/// Values, each with its name and a line of help, in the order of a list.
pub type Names<T> = &'static [(T, &'static str, &'static str)];

/// The name of a value; empty for one that is not in the list.
pub fn name_of<T: PartialEq>(names: Names<T>, value: &T) -> &'static str {
    let found = names.iter().find(|(one, ..)| one == value);
    found.map_or("", |(_, name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index_build::Remedy;
    use crate::model::{Backend, ServerKind};
    use crate::request::ScheduleKind;
    use crate::tail::TailMode;
    use serde::Serialize;

    fn check<T: Serialize + PartialEq>(names: Names<T>) {
        for (value, name, help) in names {
            assert_eq!(serde_json::to_value(value).unwrap(), *name);
            assert_eq!(name_of(names, value), *name);
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}: {help}");
        }
    }

    #[test]
    fn names_are_those_of_a_plan_file() {
        check(ServerKind::NAMES);
        check(Backend::NAMES);
        check(ScheduleKind::NAMES);
        check(Remedy::NAMES);
        check(TailMode::NAMES);
    }
}

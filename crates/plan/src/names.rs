//! Values selected by name: an option lists the names with their help, and parses one of them.

/// Values, each with its name and a line of help, in the order of a list.
pub type Names<T> = &'static [(T, &'static str, &'static str)];

/// Declares enums whose variants have the names of a plan, each with a line of help for an option.
macro_rules! choices {
    ($($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident = $text:literal, $help:literal;)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$meaning])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All values with their names.
            pub const NAMES: crate::names::Names<$name> = &[$(($name::$variant, $text, $help)),*];

            /// Its name in a plan.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }
    )*};
}

pub(crate) use choices;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index_build::Remedy;
    use crate::model::{Backend, ServerKind};
    use crate::request::ScheduleKind;
    use crate::storage::FileSystem;
    use crate::tail::TailMode;
    use serde::Serialize;

    fn check<T: Serialize>(names: Names<T>) {
        for (value, name, help) in names {
            assert_eq!(serde_json::to_value(value).unwrap(), *name);
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}: {help}");
        }
    }

    #[test]
    fn names_are_those_of_a_plan_file() {
        check(ServerKind::NAMES);
        check(Backend::NAMES);
        check(ScheduleKind::NAMES);
        check(Remedy::NAMES);
        check(FileSystem::NAMES);
        check(TailMode::NAMES);
    }
}

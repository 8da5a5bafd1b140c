//! Values selected by name: an option lists the names with their help, and parses one of them.

/// Values, each with its name and a line of help, in the order of a list.
pub type Names<T> = &'static [(T, &'static str, &'static str)];

/// Declares enums by the names of their variants, which are also their serialized form.
#[macro_export]
macro_rules! named {
    ($($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident = $text:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$meaning])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All variants in order.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$variant),*];

            /// Name in files and reports.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// Parses a name from files and reports.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }
    )*};
}

/// Declares enums as [`named`] does, with a line of help for each variant as the value of an option.
macro_rules! choices {
    ($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident = $text:literal, $help:literal;)* }) => {
        $crate::names::named! {
            $(#[$about])*
            $name { $($(#[$meaning])* $variant = $text,)* }
        }

        impl $name {
            /// All values with their names.
            pub const NAMES: crate::names::Names<$name> = &[$(($name::$variant, $text, $help)),*];
        }
    };
}

/// Declares a struct whose fields may name their default, as in `pub pairs: u32 = 1`; any other field
/// has the default of its type.
macro_rules! with_defaults {
    (
        $(#[$about:meta])*
        pub struct $name:ident { $($(#[$meaning:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)* }
    ) => {
        $(#[$about])*
        pub struct $name { $($(#[$meaning])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $crate::names::with_defaults!(@default $($default)?),)* }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}

pub(crate) use {choices, named, with_defaults};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index_build::Remedy;
    use crate::model::{Backend, ScheduleKind, ServerKind};
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

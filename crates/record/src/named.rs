//! Enums with names in files and reports: one table defines the variants, their names, and parsing.

/// Declares enums by the names of their variants, which are also their serialized form.
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

pub(crate) use named;

//! Enums that files and reports have by name: one table gives the variants, their names, and the way back.

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
            /// All of them in their order.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$variant),*];

            /// The name in files and reports.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The one with this name in files and reports.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }
    )*};
}

pub(crate) use named;

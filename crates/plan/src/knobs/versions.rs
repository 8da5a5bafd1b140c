//! Ranges of server versions.

use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

/// Major and minor number of a version, such as `(6, 0)`.
pub type Version = (u32, u32);

/// A range of versions, both ends included: `4.4-6.0`, `7.0-`, `-6.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub struct Versions {
    first: Option<Version>,
    last: Option<Version>,
}

impl Versions {
    /// Whether the range contains a version.
    pub fn contains(&self, version: Version) -> bool {
        self.first.is_none_or(|first| version >= first)
            && self.last.is_none_or(|last| version <= last)
    }
}

/// Major and minor number of a version as servers report it, such as `6.0.5`; `None` if it has
/// none.
pub fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

impl FromStr for Versions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a range of versions such as `4.4-6.0`, `7.0-` or `-6.0`");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let end = |text: &str| match text {
            "" => Ok(None),
            text => {
                let is_short = text.split('.').count() == 2;
                let version = version(text).filter(|_| is_short);
                version.map(Some).ok_or_else(wrong)
            }
        };
        Ok(Versions { first: end(first)?, last: end(last)? })
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |end: Option<Version>| {
            let text = end.map(|(major, minor)| format!("{major}.{minor}"));
            text.unwrap_or_default()
        };
        write!(f, "{}-{}", text(self.first), text(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_range_belong_to_it() {
        let has = |range: &str, text: &str| {
            let range: Versions = range.parse().unwrap();
            range.contains(version(text).unwrap())
        };
        assert!(has("4.4-6.0", "4.4.29") && has("4.4-6.0", "6.0.5"));
        assert!(!has("4.4-6.0", "4.2.1") && !has("4.4-6.0", "6.1.0"));
        assert!(has("7.0-", "8.0.3") && !has("7.0-", "6.0.27"));
        assert!(has("-6.0", "3.6.1") && !has("-6.0", "10.0.0"));
        for text in ["4.4-6.0", "7.0-", "-6.0"] {
            assert_eq!(text.parse::<Versions>().unwrap().to_string(), text);
        }
        for wrong in ["6.0", "6-7", "6.0.5-", "a.b-", ""] {
            assert!(wrong.parse::<Versions>().is_err(), "{wrong}");
        }
        assert_eq!(version("master"), None);
    }
}

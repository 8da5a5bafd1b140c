//! A secret that can be compared but is never shown.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq;

/// Minimum length of a token: 16 characters cannot be guessed over a network.
const LEAST_CHARACTERS: usize = 16;

/// Token that requests must send.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// Reason to refuse the token, without showing it.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_visible = self.0.bytes().all(|byte| byte.is_ascii_graphic());
        match self.0.len() {
            _ if !is_visible => Some("must consist of visible ASCII characters".into()),
            length if length < LEAST_CHARACTERS => {
                Some(format!("must have at least {LEAST_CHARACTERS} characters"))
            }
            _ => None,
        }
    }

    /// Compares in constant time, so that the duration does not reveal the position of a difference.
    pub(crate) fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Secret(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        text.parse().expect("every text is a secret")
    }

    #[test]
    fn token_is_long_enough_and_fits_into_a_header() {
        assert_eq!(secret("0123456789abcdef").problem(), None);
        assert!(secret("0123456789abcde").problem().is_some());
        assert!(secret("0123456789 abcdef").problem().is_some());
        assert!(secret("0123456789abcdef\n").problem().is_some());
    }

    #[test]
    fn token_is_compared_as_a_whole_and_not_shown() {
        let token = secret("0123456789abcdef");
        assert!(token.is(b"0123456789abcdef"));
        for other in [&b"0123456789abcdeF"[..], b"0123456789abcde", b""] {
            assert!(!token.is(other));
        }
        assert_eq!(format!("{token:?}"), "***");
        assert!(!secret("short").problem().is_none_or(|text| text.contains("short")));
    }
}

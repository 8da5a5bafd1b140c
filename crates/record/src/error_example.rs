//! The first failure of a kind, in the words of the server or the driver.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum length of the text of an [`ErrorExample`].
const MOST_TEXT_BYTES: usize = 400;

/// Message of the server or driver about a failed operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorExample {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The server's name for the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_name: Option<String>,
    /// At most 400 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl ErrorExample {
    /// A bounded example on one line. The text must not contain secrets.
    pub fn new(code: Option<i32>, code_name: &str, message: &str) -> Self {
        let code_name = one_line(code_name);
        ErrorExample {
            code,
            code_name: Some(code_name).filter(|name| !name.is_empty()),
            message: one_line(message),
        }
    }

    /// Applies the bounds to an example from elsewhere.
    #[must_use]
    pub fn bounded(self) -> Self {
        let code_name = self.code_name.unwrap_or_default();
        ErrorExample::new(self.code, &code_name, &self.message)
    }

    /// Name and number of the code: `DocumentValidationFailure (121)`; `None` without a code.
    pub fn code_text(&self) -> Option<String> {
        let code = self.code?;
        Some(match &self.code_name {
            Some(name) => format!("{name} ({code})"),
            None => format!("code {code}"),
        })
    }
}

impl fmt::Display for ErrorExample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code_text(), self.message.as_str()) {
            (Some(code), "") => formatter.write_str(&code),
            (Some(code), message) => write!(formatter, "{code}: {message}"),
            (None, message) => formatter.write_str(message),
        }
    }
}

fn one_line(text: &str) -> String {
    let text = text.replace(|sign: char| sign.is_control(), " ");
    let text = text.trim();
    if text.len() <= MOST_TEXT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MOST_TEXT_BYTES - '…'.len_utf8());
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_line_of_at_most_400_bytes() {
        let example = ErrorExample::new(Some(2), "Bad\nValue", &"é\u{7}\n".repeat(300));
        assert_eq!(example.code_name.as_deref(), Some("Bad Value"));
        assert!(example.message.len() <= MOST_TEXT_BYTES && example.message.len() > 390);
        assert!(example.message.ends_with('…'));
        assert!(!example.message.contains(char::is_control));
        assert_eq!(example.clone().bounded(), example);
    }

    #[test]
    fn an_example_displays_its_known_parts() {
        let text = |code, name, message| ErrorExample::new(code, name, message).to_string();
        assert_eq!(text(Some(121), "Name", "no"), "Name (121): no");
        assert_eq!(text(Some(121), "", ""), "code 121");
        assert_eq!(text(None, "", "no"), "no");
    }
}

//! How the program speaks: data on standard output, everything else on standard error, in the form
//! `error:`, `caused by:`, `hint:`. No text leaves without its credentials removed.

use dyno_engine::observer::{Level, Notice};
use dyno_engine::{Error, Kind, Observer};
use dyno_plan::uri::redact;
use dyno_report::texts;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// Speaks on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    colour: bool,
    quiet: bool,
}

impl Messages {
    /// Colour only on a terminal, and not if the person does not want it (`NO_COLOR` set and not empty).
    pub(crate) fn new(no_color: bool, quiet: bool) -> Self {
        Messages {
            colour: !no_color && io::stderr().is_terminal(),
            quiet,
        }
    }

    /// Whether standard error may hold colours.
    pub(crate) fn colour(self) -> bool {
        self.colour
    }

    /// Whether only errors and warnings are wanted.
    pub(crate) fn quiet(self) -> bool {
        self.quiet
    }

    /// What went wrong, why, and what to do.
    pub(crate) fn failure(self, failure: &Error) {
        write_line(&self.failure_text(failure));
    }

    /// Something that the person should know, although the work goes on.
    pub(crate) fn warning(self, text: &str) {
        write_line(&format!(
            "{} {}",
            self.label("warning:", YELLOW),
            redact(text)
        ));
    }

    /// What is being done. Not said with `--quiet`.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            write_line(&redact(text));
        }
    }

    fn failure_text(self, failure: &Error) -> String {
        let mut text = format!("{} {}", self.label("error:", RED), failure.cause);
        for cause in failure.cause.chain().skip(1) {
            let _ = write!(text, "\n  caused by: {cause}");
        }
        if !failure.log_tail.is_empty() {
            text.push_str("\n  the server's last output:");
            for line in &failure.log_tail {
                let _ = write!(text, "\n    {line}");
            }
        }
        if let Some(hint) = &failure.hint {
            let _ = write!(text, "\n\n{} {hint}", self.label("hint:", CYAN));
        }
        redact(&text)
    }

    fn label(self, text: &str, colour: &str) -> String {
        if self.colour {
            format!("{colour}{text}{PLAIN}")
        } else {
            text.to_owned()
        }
    }
}

impl Observer for Messages {
    fn notice(&mut self, notice: &Notice) {
        let text = texts::text(&notice.statement);
        match notice.level {
            Level::Note => self.note(&text),
            Level::Warning => self.warning(&text),
        }
    }
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[1;36m";
const PLAIN: &str = "\x1b[0m";

/// Writes to standard error what is an error message already, without its credentials.
pub(crate) fn print_error(text: &str) {
    let _ = write!(io::stderr().lock(), "{}", visible(&redact(text)));
}

/// Nobody can be told that standard error is closed.
fn write_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(text));
}

/// The text with control characters of servers and records made visible: they could move the cursor, set the title of the
/// terminal or overwrite what was said. Lines, tabs and changes of colour stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_harmless = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_of_direction(c));
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if is_harmless(c) {
            c.len_utf8()
        } else if let Some(length) = colour_length(rest) {
            length
        } else {
            shown.extend(c.escape_default());
            rest = &rest[c.len_utf8()..];
            continue;
        };
        shown.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

/// Whether a character changes the direction of writing, so that a text reads as another one.
fn is_of_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Length of a change of colour or weight (ECMA-48, SGR) that the text begins with.
fn colour_length(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let end = codes.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    codes[end..].starts_with('m').then_some(2 + end + 1)
}

/// Writes data to standard output. A reader that has gone (`dyno … | head`) is no fault.
pub(crate) fn print_data(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    // Programs and files get the data as it is.
    let shown = if output.is_terminal() {
        visible(text)
    } else {
        Cow::Borrowed(text)
    };
    let written = output
        .write_all(shown.as_bytes())
        .and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::from_cause(Kind::Environment, error)
                .context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Data as JSON that people can read as well, with a line end.
pub(crate) fn pretty_json(data: &impl Serialize) -> String {
    serde_json::to_string_pretty(data).expect("it is plain data") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN_MESSAGES: Messages = Messages {
        colour: false,
        quiet: false,
    };

    fn failure() -> Error {
        Error::new(Kind::Environment, "found `WiredTiger.lock`")
            .context("cannot start `mongod`")
            .with_hint("pass another `--data-dir`")
    }

    #[test]
    fn an_error_has_its_causes_and_a_hint() {
        assert_eq!(
            PLAIN_MESSAGES.failure_text(&failure()),
            "error: cannot start `mongod`\n  caused by: found `WiredTiger.lock`\n\nhint: pass another `--data-dir`"
        );
    }

    #[test]
    fn the_last_output_of_a_server_is_part_of_the_error() {
        let mut failure = failure();
        failure.log_tail = vec!["no space".into()];
        let text = PLAIN_MESSAGES.failure_text(&failure);
        assert!(
            text.contains("\n  the server's last output:\n    no space\n"),
            "{text}"
        );
    }

    #[test]
    fn colour_changes_the_labels_only() {
        let coloured = Messages {
            colour: true,
            quiet: false,
        }
        .failure_text(&failure());
        let plain: String = [RED, CYAN, PLAIN]
            .iter()
            .fold(coloured.clone(), |text, code| text.replace(code, ""));
        assert_ne!(coloured, plain);
        assert_eq!(plain, PLAIN_MESSAGES.failure_text(&failure()));
    }

    #[test]
    fn control_characters_become_visible_and_colours_stay() {
        assert_eq!(
            visible("a\x1b]0;title\x07b\x1b[2Jc\rd\u{9b}2J\u{202e}e"),
            "a\\u{1b}]0;title\\u{7}b\\u{1b}[2Jc\\rd\\u{9b}2J\\u{202e}e"
        );
        let ours = format!("{RED}error:{PLAIN} ä\tb\n");
        assert_eq!(visible(&ours), ours);
        assert_eq!(visible("\x1b[31"), "\\u{1b}[31");
    }

    #[test]
    fn credentials_are_removed_from_every_part_of_an_error() {
        let uri = "mongodb://user:secret@host/db";
        let mut failure = Error::new(Kind::Environment, format!("cause {uri}"))
            .context(format!("error {uri}"))
            .with_hint(format!("hint {uri}"));
        failure.log_tail = vec![format!("log {uri}")];
        let text = PLAIN_MESSAGES.failure_text(&failure);
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(text.matches("***@host").count(), 4, "{text}");
    }
}

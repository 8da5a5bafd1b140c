//! Output of the program: data on standard output, everything else on standard error in the form
//! `error:`, `caused by:`, `hint:`. Credentials are removed from every text.

use clap::ValueEnum;
use dyno_engine::observer::{Level, Notice};
use dyno_engine::{Error, Kind, Observer};
use dyno_plan::uri::redact;
use dyno_record::visible::{coloured, visible};
use dyno_report::texts;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// Prints messages on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    colour: bool,
    quiet: bool,
}

impl Messages {
    /// Uses colour only on a terminal, and only if `NO_COLOR` is unset or empty.
    pub(crate) fn new(no_color: bool, quiet: bool) -> Self {
        Messages { colour: !no_color && io::stderr().is_terminal(), quiet }
    }

    /// Whether to print only errors and warnings.
    pub(crate) fn quiet(self) -> bool {
        self.quiet
    }

    /// Prints an error with its causes and its hint.
    pub(crate) fn failure(self, failure: &Error) {
        write_line(&self.failure_text(failure));
    }

    /// Prints a warning.
    pub(crate) fn warning(self, text: &str) {
        write_line(&format!("{} {}", self.label("warning:", YELLOW), clean(text)));
    }

    /// Prints a note, unless `--quiet` is given.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            write_line(&clean(text));
        }
    }

    fn failure_text(self, failure: &Error) -> String {
        let shown = clean(&failure.cause.to_string());
        let mut text = format!("{} {shown}", self.label("error:", RED));
        let mut said = shown;
        for cause in failure.cause.chain().skip(1) {
            let cause = clean(&cause.to_string());
            // Some libraries repeat the cause in the text of its effect.
            if !said.contains(&cause) {
                let _ = write!(text, "\n  caused by: {cause}");
                said = cause;
            }
        }
        if !failure.log_tail.is_empty() {
            text.push_str("\n  the server's last output:");
            for line in &failure.log_tail {
                let _ = write!(text, "\n    {}", clean(line));
            }
        }
        if let Some(hint) = &failure.hint {
            let _ = write!(text, "\n\n{} {}", self.label("hint:", CYAN), clean(hint));
        }
        text
    }

    fn label(self, text: &str, colour: &str) -> String {
        if self.colour { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
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

/// Prints a complete error message on standard error, without credentials.
pub(crate) fn print_error(text: &str) {
    let _ = write!(io::stderr().lock(), "{}", clean(text));
}

/// Ignores errors, because a closed standard error cannot be reported anywhere.
fn write_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes the log events of libraries to standard error, one event per call.
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let shown = clean(&String::from_utf8_lossy(event));
        io::stderr().lock().write_all(shown.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Removes credentials and makes control characters visible.
fn clean(text: &str) -> String {
    visible(&redact(text)).into_owned()
}

/// Writes data to standard output, without control characters except colours. A closed pipe (`dyno … | head`) is not an
/// error.
pub(crate) fn print_data(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    let written = output.write_all(coloured(text).as_bytes()).and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::from_cause(Kind::Environment, error)
                .context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Format of a result without a report page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// Text for people
    Human,
    /// One JSON document
    Json,
}

impl DataFormat {
    /// Prints data in this format.
    pub(crate) fn print<T: Serialize + ?Sized>(
        self,
        data: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Error> {
        print_data(&match self {
            DataFormat::Human => text(data),
            DataFormat::Json => pretty_json(data),
        })
    }
}

/// Formats data as indented JSON with a final newline.
pub(crate) fn pretty_json<T: Serialize + ?Sized>(data: &T) -> String {
    serde_json::to_string_pretty(data).expect("it is plain data") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN_MESSAGES: Messages = Messages { colour: false, quiet: false };

    fn failure() -> Error {
        Error::new(Kind::Environment, "found `WiredTiger.lock`")
            .context("cannot start `mongod`")
            .with_hint("pass another `--data-dir`")
    }

    #[test]
    fn error_shows_causes_and_hint() {
        assert_eq!(
            PLAIN_MESSAGES.failure_text(&failure()),
            "error: cannot start `mongod`\n  caused by: found `WiredTiger.lock`\n\nhint: pass another `--data-dir`"
        );
    }

    #[test]
    fn cause_inside_its_effect_is_shown_once() {
        let failure = Error::new(Kind::Environment, "no record")
            .context("DNS error: no record")
            .context("cannot look up `h`");
        assert_eq!(
            PLAIN_MESSAGES.failure_text(&failure),
            "error: cannot look up `h`\n  caused by: DNS error: no record"
        );
    }

    #[test]
    fn error_shows_the_last_output_of_the_server() {
        let mut failure = failure();
        failure.log_tail = vec!["no space".into()];
        let text = PLAIN_MESSAGES.failure_text(&failure);
        assert!(text.contains(":\n    no space\n"), "{text}");
    }

    #[test]
    fn colour_changes_only_the_labels() {
        let coloured = Messages { colour: true, quiet: false }.failure_text(&failure());
        let plain: String =
            [RED, CYAN, PLAIN].iter().fold(coloured.clone(), |text, code| text.replace(code, ""));
        assert_ne!(coloured, plain);
        assert_eq!(plain, PLAIN_MESSAGES.failure_text(&failure()));
    }

    #[test]
    fn control_characters_become_visible() {
        let mut failure = failure().context("\x1b[8mhidden");
        failure.log_tail = vec!["\x1b]0;title\x07".into()];
        let text = Messages { colour: true, quiet: false }.failure_text(&failure);
        let ours = [RED, CYAN, PLAIN].iter().fold(text, |text, code| text.replace(code, ""));
        assert!(!ours.contains('\x1b') && ours.contains("\\u{1b}[8mhidden"), "{ours}");
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

//! Checks before the start that watching programs exist.

use crate::error::{Error, Kind, refuse};
use dyno_plan::model::TracePlan;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Refuses programs that cannot be found. For a shell command, checks its first word if that is
/// plain.
pub(crate) fn check(traces: &[TracePlan], path: Option<&OsStr>) -> Result<(), Error> {
    for trace in traces {
        let program = trace.command.first().map_or("", String::as_str);
        let missing = if can_be_found(program, path) {
            shell_word(&trace.command).filter(|word| !shell_knows(program, word, path))
        } else {
            Some(program)
        };
        if let Some(program) = missing {
            let message = format!("trace `{}`: cannot find the program `{program}`", trace.name);
            return Err(
                Error::new(Kind::Environment, message).with_hint("install it, or give its path")
            );
        }
    }
    Ok(())
}

/// Refuses programs that need the process ids of started servers, for a server that was already running.
pub(crate) fn check_servers(traces: &[TracePlan]) -> Result<(), Error> {
    let needs = |trace: &&TracePlan| trace.command.iter().any(|word| word.contains(SERVERS));
    let Some(trace) = traces.iter().find(needs) else {
        return Ok(());
    };
    let text = format!("trace `{}`: `{SERVERS}` needs a server that dyno starts", trace.name);
    refuse(text, "leave out `--uri`, or name the process: `-p $(pgrep -d, mongod)`")
}

/// The process ids in a shell command.
const SERVERS: &str = "$DYNO_SERVER_PIDS";

fn can_be_found(program: &str, path: Option<&OsStr>) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    path.is_some_and(|path| {
        std::env::split_paths(path).any(|folder| folder.join(program).is_file())
    })
}

/// The first word of a shell command, unless it is not a plain name but an assignment, a quoted
/// text, or a bracket. A relative path refers to the folder of the trace, which does not exist yet.
fn shell_word(command: &[String]) -> Option<&str> {
    let [shell, option, text] = command else {
        return None;
    };
    let is_shell = matches!(shell.as_str(), "sh" | "/bin/sh") && option == "-c";
    let word = text.split([' ', '\t', '\n', ';', '|', '&']).next()?;
    let is_plain =
        word.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-+./".contains(letter));
    let is_relative = word.contains('/') && !word.starts_with('/');
    (is_shell && is_plain && !word.is_empty() && !is_relative).then_some(word)
}

/// Asks the shell itself, which has built-in commands besides the programs.
fn shell_knows(shell: &str, word: &str, path: Option<&OsStr>) -> bool {
    let mut command = Command::new(shell);
    command
        .args(["-c", "command -v -- \"$1\"", "sh", word])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match path {
        Some(path) => command.env("PATH", path),
        None => command.env_remove("PATH"),
    };
    // A shell that cannot be started gives a better error when its window begins.
    command.status().map_or(true, |status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::PhaseKind;
    use dyno_plan::units::Span;

    fn trace(command: &[&str]) -> TracePlan {
        TracePlan {
            name: "t".into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            phase: PhaseKind::Measure,
            from: Span::from_secs(0),
            length: None,
        }
    }

    #[test]
    fn missing_program_is_named_before_the_run() {
        let traces = [trace(&["no-such-program"])];
        let failure = check(&traces, Some(OsStr::new("/usr/bin"))).expect_err("it is missing");
        assert_eq!(failure.kind, Kind::Environment);
        assert!(failure.cause.to_string().contains("no-such-program"));
        assert!(check(&[trace(&["/bin/sh"])], None).is_ok());
    }

    #[test]
    fn first_word_of_a_shell_command_is_checked_when_plain() {
        let path = OsStr::new("/usr/bin:/bin");
        for missing in ["no-such-program -x", "no-such-program|cat", "/no/such", "no-such;ls"] {
            let failure = check(&[trace(&["sh", "-c", missing])], Some(path));
            let text = failure.expect_err(missing).cause.to_string();
            assert!(text.contains("/no/such") || text.contains("`no-such"), "{text}");
        }
        for present in [
            "sleep 1",
            "cd /tmp && sleep 1",
            "FOO=1 no-such-program",
            "./later",
            "for i in 1 2; do sleep 1; done",
            "\"$HOME/x\"",
            "(sleep 1)",
            "trap '' INT; sleep 1",
        ] {
            let traces = [trace(&["sh", "-c", present])];
            assert!(check(&traces, Some(path)).is_ok(), "{present}");
        }
    }
}

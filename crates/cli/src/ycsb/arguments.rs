//! Parser for the command line of `bin/ycsb`: a command, a binding, and long options with a single
//! dash, which clap does not support.

use crate::args::examples;
use crate::args::values::property;
use crate::metrics::listen;
use dyno_engine::{Error, Kind};
use dyno_plan::nearest::nearest;
use dyno_plan::ycsb::{Phase, Properties};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The parsed arguments of `dyno ycsb`.
#[derive(Debug)]
pub(crate) enum Parsed {
    Help,
    Run(YcsbCommand),
}

/// A phase to run, with its properties.
#[derive(Debug)]
pub(crate) struct YcsbCommand {
    pub(crate) phase: Phase,
    /// Merged: later values override earlier ones, and options override files.
    pub(crate) properties: Properties,
    pub(crate) lenient: bool,
    /// Run directory to keep.
    pub(crate) out: Option<PathBuf>,
    /// Address to serve metrics at. The token comes from a variable, because the command line is printed.
    pub(crate) metrics: Option<SocketAddr>,
    /// Notes on options without effect.
    pub(crate) notes: Vec<String>,
}

/// The help text with its examples.
pub(crate) fn help() -> String {
    format!("{HELP}\nExamples:{}\n", examples::plain("ycsb"))
}

const HELP: &str = "\
Replace `bin/ycsb`, with the same options, properties and output

Usage: dyno ycsb load|run mongodb [options]

Options, as in YCSB:
  -P FILE         property file; may be repeated, later files win
  -p NAME=VALUE   property; may be repeated, overrides files
  -s              print a status line every `status.interval` seconds
  -threads N      concurrent connections (`threadcount`, default: 1)
  -target N       offered operations per second over all threads (`target`)
  -l LABEL        text before the status line (`label`)
  -load, -t       load or run, overriding the command
  -db CLASS       checked: `site.ycsb.db.MongoDbClient` is the only binding
  -cp PATH, -jvm-args ARGS
                  ignored, also as -jvm-args=ARGS, because there is no JVM

Options of this program:
  --lenient       accept unknown property names with a warning
  --out DIR       keep the run directory (default: a temporary directory)
  --metrics ADDRESS:PORT
                  serve metrics for Prometheus (docs/prometheus.md)

`mongodb.url` names the server (default: `mongodb://localhost:27017/ycsb?w=1`);
`-p dyno.server=embedded` starts one. docs/ycsb.md lists the differences.
";

/// Options of YCSB's launcher.
const LAUNCHER: [&str; 2] = ["-cp", "-jvm-args"];

/// Parses the command line and its property files. Options may precede the command or the binding.
pub(crate) fn parse(arguments: &[String]) -> Result<Parsed, Error> {
    let mut parsed = YcsbCommand {
        phase: Phase::Run,
        properties: Properties::default(),
        lenient: false,
        out: None,
        metrics: None,
        notes: Vec::new(),
    };
    let (mut plain, mut files) = (Vec::new(), Vec::new());
    let mut chosen = None;
    let mut options: Vec<(String, String)> = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if is_help(word, plain.len()) {
            return Ok(Parsed::Help);
        }
        if !word.starts_with('-') {
            plain.push(word);
            continue;
        }
        let (option, attached) = canonical(word);
        let mut value = |what: &str| {
            let value = attached.or_else(|| words.next());
            value.ok_or_else(|| bad(format!("`{option}` needs {what}"))).map(str::to_owned)
        };
        match option {
            "-P" => files.push(value("a file")?),
            "-p" => options.push(
                property(&value("NAME=VALUE")?).map_err(|error| bad(format!("`-p`: {error}")))?,
            ),
            "-s" => options.push(("status".into(), "true".into())),
            "-threads" => options.push(("threadcount".into(), value("a number")?)),
            "-target" => options.push(("target".into(), value("a number")?)),
            "-l" | "-label" => options.push(("label".into(), value("a text")?)),
            "-db" => options.push(("db".into(), value("a class")?)),
            "-load" => chosen = Some(Phase::Load),
            "-t" => chosen = Some(Phase::Run),
            "-cp" | "-jvm-args" => {
                value("a value")?;
                parsed
                    .notes
                    .push(format!("`{option}` has no effect: this program does not run in a JVM"));
            }
            "--lenient" => parsed.lenient = true,
            "--out" => parsed.out = Some(PathBuf::from(value("a folder")?)),
            "--metrics" => {
                let address = listen::address(&value("an address")?);
                parsed.metrics =
                    Some(address.map_err(|error| bad(format!("`--metrics`: {error}")))?);
            }
            unknown => return Err(unknown_option(unknown)),
        }
    }
    let Some((command, rest)) = plain.split_first() else {
        return match arguments {
            [] => Ok(Parsed::Help),
            _ => Err(bad("missing command, expected `load` or `run`".into())),
        };
    };
    parsed.phase = phase(command)?;
    check_binding(rest.first().copied())?;
    if let Some(more) = rest.get(1) {
        return Err(bad(format!("unexpected argument `{more}`")));
    }
    parsed.phase = chosen.unwrap_or(parsed.phase);
    for file in &files {
        parsed.properties.extend(Properties::read(Path::new(file))?);
    }
    for (name, value) in &options {
        parsed.properties.set(name, value);
    }
    Ok(Parsed::Run(parsed))
}

/// Whether a word asks for help. The plain word `help` does so only before the binding.
fn is_help(word: &str, plain: usize) -> bool {
    ["-h", "-help", "--help"].contains(&word) || (word == "help" && plain < 2)
}

/// Splits a word into its option and the value after `=`. Only options of the launcher and of this program accept
/// such a value, and only options of the launcher may be abbreviated, as in `argparse`.
fn canonical(word: &str) -> (&str, Option<&str>) {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let is_short_for = |option: &&str| name.len() > 1 && option.starts_with(name);
    match LAUNCHER.into_iter().find(is_short_for) {
        Some(option) => (option, value),
        None if name.starts_with("--") => (name, value),
        None => (word, None),
    }
}

fn bad(message: String) -> Error {
    Error::new(Kind::BadInput, message).with_hint("`dyno ycsb --help` lists the options")
}

/// Suggests the nearest long option of the help text.
fn unknown_option(word: &str) -> Error {
    let options = HELP.split([' ', ',', '=', '\n']);
    // Any two one-letter names differ by one change.
    let options = options.filter(|option| option.starts_with('-') && option.len() > 2);
    let text = format!("unknown option `{word}`");
    match nearest(word, options) {
        Some(known) => {
            Error::new(Kind::BadInput, text).with_hint(format!("did you mean `{known}`?"))
        }
        None => bad(text),
    }
}

fn phase(command: &str) -> Result<Phase, Error> {
    match command {
        "load" => Ok(Phase::Load),
        "run" => Ok(Phase::Run),
        "shell" => Err(Error::new(Kind::BadInput, "`shell` is not supported")
            .with_hint("use `mongosh` to inspect single documents")),
        _ => Err(bad(format!("unknown command `{command}`, expected `load` or `run`"))),
    }
}

fn check_binding(binding: Option<&str>) -> Result<(), Error> {
    match binding {
        Some("mongodb") => Ok(()),
        Some(other) if !other.starts_with('-') => {
            let failure =
                Error::new(Kind::BadInput, format!("the binding `{other}` is not supported"));
            Err(failure.with_hint("use `mongodb`, the only binding"))
        }
        _ => Err(bad("missing binding, expected `mongodb`".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Parsed, Error> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        parse(&arguments)
    }

    fn command(arguments: &[&str]) -> YcsbCommand {
        match parsed(arguments) {
            Ok(Parsed::Run(command)) => command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_become_properties() {
        let command = command(&[
            "run",
            "mongodb",
            "-s",
            "-threads",
            "4",
            "-target",
            "100",
            "-l",
            "my ",
            "-db",
            "site.ycsb.db.MongoDbClient",
            "-p",
            "recordcount=5",
            "--lenient",
            "--out",
            "/o",
        ]);
        assert_eq!(command.phase, Phase::Run);
        let get = |name| command.properties.get(name);
        assert_eq!(get("status"), Some("true"));
        assert_eq!(get("threadcount"), Some("4"));
        assert_eq!(get("target"), Some("100"));
        assert_eq!(get("label"), Some("my "));
        assert_eq!(get("recordcount"), Some("5"));
        assert!(command.lenient && command.notes.is_empty());
        assert_eq!(command.out, Some("/o".into()));
    }

    #[test]
    fn later_files_override_earlier_and_options_override_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("the file can be written");
            path.to_string_lossy().into_owned()
        };
        let first = file("first", "recordcount=1\nfieldcount=1\ntable=one\n");
        let second = file("second", "recordcount=2\nfieldcount=2\n");
        let command =
            command(&["load", "mongodb", "-p", "recordcount=3", "-P", &first, "-P", &second]);
        let get = |name| command.properties.get(name);
        assert_eq!(
            (get("recordcount"), get("fieldcount"), get("table")),
            (Some("3"), Some("2"), Some("one"))
        );
    }

    #[test]
    fn phase_can_be_given_by_an_option() {
        assert_eq!(command(&["run", "mongodb", "-load"]).phase, Phase::Load);
        assert_eq!(command(&["load", "mongodb", "-t"]).phase, Phase::Run);
    }

    #[test]
    fn every_form_of_launcher_options_has_no_effect() {
        for arguments in [
            &["run", "mongodb", "-cp", "x.jar", "-jvm-args", "-Xmx1g"][..],
            &["run", "mongodb", "-cp=x.jar", "-jvm-args=-Xms4g -Xmx8g"],
            &["-cp", "x.jar", "-jvm-args=-Da=b", "run", "mongodb"],
            &["run", "-c", "x.jar", "mongodb", "-jvm", "-Xms4g -Xmx8g"],
            &["-cp=", "run", "mongodb", "-jvm-args", ""],
        ] {
            let notes = command(arguments).notes;
            assert_eq!(notes.len(), 2, "{arguments:?}");
            assert!(notes[0].contains("`-cp`") && notes[1].contains("`-jvm-args`"));
        }
    }

    #[test]
    fn options_may_precede_command_and_binding() {
        for arguments in [
            &["-s", "load", "mongodb", "-threads", "4"][..],
            &["load", "-threads", "4", "-s", "mongodb"],
            &["-threads", "4", "-s", "load", "mongodb"],
        ] {
            let command = command(arguments);
            assert_eq!(command.phase, Phase::Load);
            assert_eq!(command.properties.get("threadcount"), Some("4"));
            assert_eq!(command.properties.get("status"), Some("true"));
        }
    }

    #[test]
    fn own_options_accept_a_value_after_an_equals_sign() {
        assert_eq!(command(&["run", "mongodb", "--out=/o=1"]).out, Some("/o=1".into()));
    }

    #[test]
    fn help_works_at_every_position() {
        for arguments in [&[][..], &["--help"], &["run", "-help"], &["run", "mongodb", "-s", "-h"]]
        {
            assert!(matches!(parsed(arguments), Ok(Parsed::Help)), "{arguments:?}");
        }
    }

    #[test]
    fn unknown_arguments_are_bad_input_with_a_hint() {
        for (arguments, expected) in [
            (&["shell", "mongodb"][..], "`shell`"),
            (&["dance", "mongodb"], "`dance`"),
            (&["run"], "binding"),
            (&["-s"], "command"),
            (&["run", "mongodb", "workloada"], "`workloada`"),
            (&["run", "mongodb-async"], "`mongodb-async`"),
            (&["run", "mongodb", "-JVM-ARGS=x"], "`-JVM-ARGS=x`"),
            (&["run", "mongodb", "-threads=4"], "`-threads=4`"),
            (&["run", "mongodb", "-jvm-args"], "`-jvm-args`"),
            (&["run", "jdbc"], "`jdbc`"),
            (&["run", "mongodb", "-thread", "4"], "`-thread`"),
            (&["run", "mongodb", "-threads"], "`-threads`"),
            (&["run", "mongodb", "-p", "x"], "NAME=VALUE"),
        ] {
            let failure = parsed(arguments).expect_err("the arguments are invalid");
            assert_eq!(failure.kind, Kind::BadInput);
            assert!(failure.cause.to_string().contains(expected), "{}", failure.cause);
            assert!(failure.hint.is_some(), "{arguments:?}");
        }
        for (typed, known) in [("-thread", "`-threads`"), ("--metric", "`--metrics`")] {
            let failure = parsed(&["run", "mongodb", typed, "4"]).expect_err("unknown option");
            assert!(failure.hint.unwrap().contains(known), "{typed}");
        }
    }

    #[test]
    fn missing_property_file_is_bad_input() {
        let failure = parsed(&["run", "mongodb", "-P", "/no/such/file"]).expect_err("no such file");
        assert_eq!(failure.kind, Kind::BadInput);
    }
}

//! Hints for words that users of other programs type.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use dyno_plan::builtin::LOADS;
use dyno_plan::nearest::nearest;
use std::ffi::OsString;

/// Words of other programs, the option or argument that is meant, and the hint. The first row whose option the command has
/// applies.
const OPTIONS: &[(&[&str], &str, &str)] = &[
    (
        &["--ops", "--iterations", "--requests", "--operationcount", "--transactions", "-n", "-i"],
        "operations",
        "`--operations 10k` ends the run after 10,000 operations",
    ),
    (RATE_WORDS, "rate", "`--rate 5k` offers 5,000 operations per second"),
    (RATE_WORDS, "rates", "`--rates 1k,2k,4k` offers these operations per second in turn"),
    (
        &[
            "--vus",
            "--connections",
            "--concurrency",
            "--users",
            "--conns",
            "--workers",
            "--jobs",
            "--threadcount",
            "-c",
            "-u",
            "-j",
            "-N",
        ],
        "clients",
        "`--clients 64` keeps 64 connections, each with one operation in flight, like YCSB's threads",
    ),
    (
        &["-t"],
        "clients",
        "`--clients 64` is like YCSB's threads; `--threads` are worker threads that share the connections",
    ),
    (
        &[
            "--time",
            "--runtime",
            "--run-time",
            "--length",
            "--seconds",
            "--maxexecutiontime",
            "-d",
            "-T",
            "-z",
            "-l",
        ],
        "duration",
        "`--duration 30s` sets the length of the measure phase",
    ),
    (
        &["--warm-up", "--warmup-time", "--ramp-up", "--rampup"],
        "warmup",
        "`--warmup 10s` sets the time under load before measuring",
    ),
    (
        &["--recordcount", "--documents", "--docs", "--rows", "--scale", "-s"],
        "records",
        "`--records 1M` sets the number of documents",
    ),
    (
        &["--host", "--hosts", "--port", "--url", "--address", "--connection-string", "-H"],
        "uri",
        "`--uri mongodb://HOST:27017` uses a running server",
    ),
    (
        &["--workload", "--plan", "--scenario", "--config", "--file", "-w", "-W", "-P", "-f"],
        "workload",
        "name the workload or its file without an option, such as `dyno run a`",
    ),
    (&["--runs", "--repeats", "--repetitions"], "repeat", "`--repeat 3` makes three runs"),
    (&["--output", "-o"], "out", "`--out DIR` names the folder of the results"),
    (&["--json"], "format", "`--format json` prints JSON"),
    (&["--markdown", "--md"], "format", "`--format markdown` prints Markdown"),
    (
        &["--html", "--page"],
        "format",
        "the folder of each record has the page `report.html`; `dyno report --format html` prints it",
    ),
    (&["--csv"], "format", "`dyno export RUN --to csv` writes a table"),
    (
        &["--user", "--username", "--password", "--authenticationDatabase"],
        "uri",
        "the connection string has the user before the host, `USER:PASSWORD@HOST`; `DYNO_URI` keeps it out of the process list",
    ),
    (
        &["--set"],
        "set_both",
        "`dyno ab` has `--set-b` for B, `--set-a` for A and `--set-both` for both",
    ),
];

const RATE_WORDS: &[&str] =
    &["--rps", "--qps", "--tps", "--target", "--throughput", "--ops-per-second", "-r", "-R"];

/// Words for commands of other programs, the command that is meant, and the hint.
const COMMANDS: &[(&[&str], &str, &str)] = &[
    (
        &["bench", "benchmark", "test", "measure", "start", "exec"],
        "run",
        "`dyno run a` measures workload A",
    ),
    (&["list", "ls"], "runs", "`dyno runs` lists the recorded runs"),
    (&["plans", "workloads"], "run", "`dyno run --help` lists the built-in plans"),
    (&["show", "open", "view", "html"], "report", "`dyno report RUN` shows the result of a run"),
    (&["diff"], "compare", "`dyno compare RUN_A RUN_B` compares two runs"),
    (&["ps", "top", "watch", "progress"], "status", "`dyno status` lists the runs in progress"),
    (&["kill", "cancel", "abort"], "stop", "`dyno stop` ends a run and keeps its record"),
    (&["check", "verify", "preflight"], "doctor", "`dyno doctor` checks this machine and a server"),
    (&["install"], "server", "`dyno server install` installs a `mongod`"),
    (&["max", "capacity", "saturate"], "xmax", "`dyno xmax a` finds the highest rate"),
    (&["help"], "run", "`dyno --help` lists the commands, `dyno COMMAND --help` the options"),
    (&["version"], "run", "`dyno --version` prints the version"),
];

/// Replaces clap's suggestion by a better one, if the error shows what is meant.
pub(super) fn with_hint(mut error: Error, root: &Command, words: &[OsString]) -> Error {
    let command = command_of(root, words);
    let wrong = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        Some(ContextValue::Strings(words)) => words.concat(),
        _ => String::new(),
    };
    let hint = match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = wrong(ContextKind::InvalidArg);
            option_hint(command, &word).or_else(|| near_option(command, &word))
        }
        ErrorKind::InvalidSubcommand => {
            let word = wrong(ContextKind::InvalidSubcommand);
            command_hint(root, &word).or_else(|| near_command(command, &word))
        }
        ErrorKind::MissingRequiredArgument
            if wrong(ContextKind::InvalidArg).contains("<WORKLOAD>") =>
        {
            let plans: Vec<&str> = LOADS.names().collect();
            let name = command.get_name();
            Some(format!(
                "name a workload, such as `dyno {name} a`; built-in: {}",
                plans.join(", ")
            ))
        }
        _ => None,
    };
    if let Some(hint) = hint {
        if error.remove(ContextKind::SuggestedArg).is_some() {
            // It shows the suggestion.
            let usage = command.clone().render_usage();
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
        error.remove(ContextKind::SuggestedSubcommand);
        let hint = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
        error.insert(ContextKind::Suggested, hint);
    } else if !command.get_positionals().any(Arg::is_last_set) {
        without_dashed_values(&mut error);
    }
    error
}

/// Removes the advice to put `--` before an unknown option, which then names a run or a workload.
fn without_dashed_values(error: &mut Error) {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass "));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
}

/// The command that the words name.
fn command_of<'a>(root: &'a Command, words: &[OsString]) -> &'a Command {
    let words = words.iter().filter_map(|word| word.to_str());
    words.fold(root, |command, word| command.find_subcommand(word).unwrap_or(command))
}

fn option_hint(command: &Command, word: &str) -> Option<String> {
    let word = word.split('=').next().unwrap_or_default();
    let has = |id: &str| command.get_arguments().any(|one| one.get_id() == id);
    let row = OPTIONS.iter().find(|(words, meant, _)| words.contains(&word) && has(meant));
    row.map(|(.., hint)| (*hint).to_owned())
}

fn command_hint(root: &Command, word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    let plan = lower.strip_prefix("workload").unwrap_or(&lower);
    if LOADS.names().any(|name| name == plan) {
        return Some(format!("`dyno run {plan}` measures this workload"));
    }
    let has = |name: &str| root.find_subcommand(name).is_some();
    let row = COMMANDS.iter().find(|(words, meant, _)| words.contains(&&*lower) && has(meant));
    row.map(|(.., hint)| (*hint).to_owned())
}

/// The option nearest to a misspelt one. The parser's measure of likeness misses swapped letters: for `rnu` it
/// suggests `runs`.
fn near_option(command: &Command, word: &str) -> Option<String> {
    let name = word.strip_prefix("--")?;
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let near = nearest(name.split('=').next()?, shown.filter_map(Arg::get_long))?;
    Some(format!("a similar argument exists: '--{near}'"))
}

/// The command nearest to a misspelt one, as for options.
fn near_command(command: &Command, word: &str) -> Option<String> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let near = nearest(word, shown.map(Command::get_name))?;
    Some(format!("a similar subcommand exists: '{near}'"))
}

#[cfg(test)]
mod tests {
    use crate::args;
    use clap::error::ErrorKind;

    /// The error message for a command line.
    fn refused(line: &str) -> String {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        let error = args::parse(&words).expect_err(line);
        assert_ne!(error.kind(), ErrorKind::DisplayHelp, "{line}");
        error.render().to_string()
    }

    #[test]
    fn habits_of_other_programs_get_the_right_hint() {
        for (line, hint) in [
            ("dyno run a --ops 1000", "--operations 10k"),
            ("dyno run a --iterations=1000", "--operations 10k"),
            ("dyno run a --rps 5000", "--rate 5k"),
            ("dyno soak a --rps 5000", "--rate 5k"),
            ("dyno sweep a --rps 5000", "--rates"),
            ("dyno ab a --rps 5000", "--rate 5k"),
            ("dyno run a --vus 5", "--clients 64"),
            ("dyno run a --connections 5", "--clients 64"),
            ("dyno run a -c 5", "--clients 64"),
            ("dyno run a -c5", "--clients 64"),
            ("dyno run a -t 5", "YCSB's threads"),
            ("dyno run a -d 5s", "--duration 30s"),
            ("dyno run --workload a", "dyno run a"),
            ("dyno run a --host db", "--uri mongodb://"),
            ("dyno run", "such as `dyno run a`"),
            ("dyno slo --p99 5ms", "such as `dyno slo a`"),
            ("dyno ab a --set server.cache=1GiB", "--set-b"),
            ("dyno fleet ab a --kubernetes --set server.cache=1GiB", "--set-b"),
            ("dyno a", "dyno run a"),
            ("dyno workloadA", "dyno run a"),
            ("dyno benchmark", "dyno run a"),
            ("dyno help", "dyno COMMAND --help"),
            ("dyno diff x y", "dyno compare"),
            ("dyno rnu a", "'run'"),
            ("dyno fleet rnu a", "'run'"),
            ("dyno run a --uir mongodb://h", "'--uri'"),
            ("dyno run a --user me", "`DYNO_URI`"),
            ("dyno report --html", "`report.html`"),
            ("dyno trace --html", "`report.html`"),
            ("dyno compare x y --markdown", "--format markdown"),
        ] {
            let text = refused(line);
            assert_eq!(text.matches("tip: ").count(), 1, "{line}: {text}");
            assert!(text.contains(hint), "{line}: {text}");
        }
    }

    #[test]
    fn unknown_words_keep_the_suggestion_of_the_parser() {
        assert!(refused("dyno run a --durration 5s").contains("--duration"));
        assert!(refused("dyno swep").contains("sweep"));
        // A value that begins with dashes is seldom meant.
        assert!(!refused("dyno report --zzz").contains("tip: "));
        assert!(refused("dyno trace --zzz").contains("-- --zzz"));
        assert!(!refused("dyno export x --to csv --rps 5").contains("--rate"));
    }

    #[test]
    fn every_row_names_an_argument_or_a_command_that_exists() {
        fn has(command: &clap::Command, id: &str) -> bool {
            command.get_arguments().any(|one| one.get_id() == id)
                || command.get_subcommands().any(|one| has(one, id))
        }
        let root = args::command();
        for (words, meant, _) in super::OPTIONS {
            assert!(has(&root, meant), "{words:?} {meant}");
        }
    }
}

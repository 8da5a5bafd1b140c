//! Examples of every command, for `--help`, the manual pages and `docs/commands.md`.

use clap::Command;
use clap::builder::StyledStr;
use std::fmt::Write as _;

/// The purpose of an example, and its command line.
type Example = (&'static str, &'static str);

/// Commands with their examples; the empty command is the program itself.
const EXAMPLES: &[(&str, [Example; 3])] = &[
    (
        "",
        [
            ("Measure workload A on a server that dyno starts", "dyno run a"),
            ("Measure your own server", "dyno run b --uri mongodb://db.example --rate 5k"),
            ("Which rate keeps a p99 below 5 ms?", "dyno slo b --p99 5ms"),
        ],
    ),
    (
        "run",
        [
            (
                "Workload B at 5,000 operations per second for a minute",
                "dyno run b --rate 5k --duration 1m",
            ),
            (
                "A running server, 64 connections",
                "dyno run a --uri mongodb://db.example --clients 64",
            ),
            (
                "Two workloads with two caches, three times each",
                "dyno run a b --set server.cache=1GiB,2GiB --repeat 3",
            ),
        ],
    ),
    (
        "load",
        [
            (
                "Load a million documents into a running server",
                "dyno load a --uri mongodb://db.example --records 1M",
            ),
            ("Load into a data folder that stays", "dyno load a --data-dir data --records 100k"),
            (
                "Replace the documents, 1,000 per command",
                "dyno load a --uri mongodb://db.example --fresh --batch 1000",
            ),
        ],
    ),
    (
        "ycsb",
        [
            ("Load as YCSB does", "dyno ycsb load mongodb -p recordcount=10000"),
            (
                "Run with 16 threads",
                "dyno ycsb run mongodb -p recordcount=10000 -p operationcount=10000 -threads 16",
            ),
            (
                "Offer 1,000 operations per second, with a status line",
                "dyno ycsb run mongodb -p recordcount=10000 -p operationcount=10000 -target 1000 -s",
            ),
        ],
    ),
    (
        "soak",
        [
            ("Run at a constant rate for a day", "dyno soak b --rate 2k --duration 24h"),
            (
                "Serve metrics for Prometheus during the run",
                "dyno soak b --rate 2k --duration 24h --metrics 127.0.0.1:9464",
            ),
            (
                "End after ten minutes without a connection",
                "dyno soak b --uri mongodb://db.example --duration 8h --give-up 10m",
            ),
        ],
    ),
    (
        "status",
        [
            ("List the runs in progress", "dyno status"),
            ("Follow them until they end", "dyno status --follow"),
            ("Print them as JSON", "dyno status --json"),
        ],
    ),
    (
        "stop",
        [
            ("Stop the only run in progress", "dyno stop"),
            ("Stop one of several", "dyno stop runs/nightly"),
            ("Wait at most 10 seconds for its end", "dyno stop --wait 10s"),
        ],
    ),
    (
        "sweep",
        [
            ("How does the rate grow with the clients?", "dyno sweep b --clients 1,2,4,8,16,32"),
            (
                "How does the response time grow with the rate?",
                "dyno sweep b --rates '1k..8k by 1k'",
            ),
            (
                "Three compressors, five runs each",
                "dyno sweep b --set server.block_compressor=none,snappy,zstd --repeat 5",
            ),
        ],
    ),
    (
        "xmax",
        [
            ("Find the highest rate of workload C", "dyno xmax c"),
            (
                "The same on a running server, with short runs",
                "dyno xmax c --uri mongodb://db.example --duration 10s",
            ),
            ("Try at most 128 clients", "dyno xmax c --max-clients 128"),
        ],
    ),
    (
        "slo",
        [
            ("Which rate keeps a p99 below 5 ms?", "dyno slo b --p99 5ms"),
            (
                "Two limits, random arrivals, 100 clients",
                "dyno slo b --p50 1ms --p99 10ms --schedule poisson --clients 100",
            ),
            (
                "A quick, coarse answer",
                "dyno slo b --p99 5ms --duration 10s --resolution 10% --max-runs 20",
            ),
        ],
    ),
    (
        "ab",
        [
            (
                "Is zstd as fast as snappy, if half of each value can be compressed?",
                "dyno ab a --set-b server.block_compressor=zstd --set-both data.compressible_ratio=0.5",
            ),
            (
                "Compare two versions",
                "dyno ab a --set-a server.mongod=6.0.5 --set-b server.mongod=6.0.27",
            ),
            (
                "Compare at 5,000 operations per second, for at most 20 minutes",
                "dyno ab a --rate 5k --set-b server.cache=1GiB --time-limit 20m",
            ),
        ],
    ),
    (
        "tune",
        [
            ("Search for better settings for two hours", "dyno tune a --budget 2h"),
            (
                "Lower the p99 at a given rate, restarts allowed",
                "dyno tune a --goal p99 --rate 5k --allow restart",
            ),
            ("Show what the search would change", "dyno tune a --allow restart --dry-run"),
        ],
    ),
    (
        "resume",
        [
            ("Continue an experiment", "dyno resume experiments/slo-b"),
            ("On a running server", "dyno resume experiments/slo-b --uri mongodb://db.example"),
            ("Print its answer as JSON", "dyno resume experiments/slo-b --format json"),
        ],
    ),
    (
        "compare",
        [
            (
                "Compare two runs, or two folders with repetitions",
                "dyno compare runs/before runs/after",
            ),
            (
                "Fail if B is certainly slower by more than 10 %",
                "dyno compare runs/before runs/after --fail-if-worse p99=10%",
            ),
            ("As Markdown", "dyno compare runs/before runs/after --format markdown"),
        ],
    ),
    (
        "history",
        [
            ("Has anything become slower?", "dyno history runs"),
            (
                "Only the runs of workload B since August",
                "dyno history runs --workload b --since 2026-08-01",
            ),
            ("Draw the series", "dyno history runs --picture history.svg"),
        ],
    ),
    (
        "trace",
        [
            (
                "Trace a running server for 30 seconds",
                "dyno trace --server mongodb://127.0.0.1:27017 --for 30s",
            ),
            ("Trace a process, only its data files", "dyno trace --pid 4711 --file '*.wt'"),
            (
                "Trace a program from its start",
                "dyno trace -- dd if=/dev/zero of=file bs=1M count=100",
            ),
        ],
    ),
    (
        "index-build",
        [
            ("Build an index on documents in random order", "dyno index-build shuffled"),
            (
                "Rewrite the documents in order, and build it again",
                "dyno index-build churned --remedy rewrite",
            ),
            (
                "An existing collection of a server on this machine",
                "dyno index-build --uri mongodb://127.0.0.1:27017 --collection shop.orders --keys date",
            ),
        ],
    ),
    (
        "tail",
        [
            ("All drivers that can run here", "dyno tail"),
            ("One driver, 1,000 messages per second", "dyno tail --producer python --rate 1000"),
            (
                "Several numbers of unanswered inserts, three times",
                "dyno tail --in-flight 1,10,unbounded --repeat 3",
            ),
        ],
    ),
    (
        "runs",
        [
            ("List recorded runs, the newest first", "dyno runs"),
            ("Delete one run, after a question", "dyno runs b-1603 --prune"),
            (
                "Delete those of workload B older than a month",
                "dyno runs --plan b --until 30d --prune",
            ),
        ],
    ),
    (
        "report",
        [
            ("Print the result of a run again", "dyno report runs/nightly"),
            ("Everything instead of one screen", "dyno report runs/nightly --full"),
            (
                "One HTML file, and its charts as pictures",
                "dyno report runs/nightly --format html --output report.html --pictures charts",
            ),
        ],
    ),
    (
        "export",
        [
            ("All values of a run over time", "dyno export runs/nightly --to csv --output run.csv"),
            ("For data frames", "dyno export runs/nightly --to parquet --output run.parquet"),
            (
                "Latencies for HdrHistogram's tools",
                "dyno export runs/nightly --to hlog --phase measure --output run.hlog",
            ),
        ],
    ),
    (
        "server",
        [
            ("Install MongoDB", "dyno server install"),
            ("Start a replica set that stays", "dyno server start --topology replica-set=3"),
            ("Stop it", "dyno server stop"),
        ],
    ),
    (
        "server plan",
        [
            ("Where would the servers of a plan run?", "dyno server plan plan.toml"),
            (
                "Four servers, one for each NUMA node",
                "dyno server plan --pairs 4 --placement spread",
            ),
            (
                "A server on two CPUs, its clients on the others",
                "dyno server plan --placement 'cores=0-1 client=other'",
            ),
        ],
    ),
    (
        "server start",
        [
            ("One server with an installed `mongod`", "dyno server start"),
            (
                "A secured replica set in a folder that stays",
                "dyno server start --topology replica-set=3 --tls --auth --data-dir data",
            ),
            ("Two deployments side by side", "dyno server start --name second --cache 1GiB"),
        ],
    ),
    (
        "server stop",
        [
            ("Stop the default deployment", "dyno server stop"),
            ("Stop another one", "dyno server stop second"),
            ("Without messages", "dyno server stop second --quiet"),
        ],
    ),
    (
        "server status",
        [
            ("Do the servers answer?", "dyno server status"),
            ("Print the connection strings", "dyno server status --uri"),
            ("Another deployment as JSON", "dyno server status second --format json"),
        ],
    ),
    (
        "server list",
        [
            ("List the deployments", "dyno server list"),
            ("List the installed servers", "dyno server list --installed"),
            ("As JSON", "dyno server list --format json"),
        ],
    ),
    (
        "server install",
        [
            ("Install the version that fits this machine", "dyno server install"),
            ("Install another version", "dyno server install 6.0.27"),
            (
                "Install from a file",
                "dyno server install --from mongodb-linux-x86_64-ubuntu2404-8.0.3.tgz",
            ),
        ],
    ),
    (
        "doctor",
        [
            ("Check this machine", "dyno doctor"),
            ("Check a server on it, too", "dyno doctor --uri mongodb://127.0.0.1:27017"),
            (
                "Make two of the recommended changes; `--revert` reverts them",
                "dyno doctor --apply swappiness,max_map_count",
            ),
        ],
    ),
    (
        "selfcheck",
        [
            ("How fast is the client alone?", "dyno selfcheck"),
            ("Longer, and without storing the result", "dyno selfcheck --duration 10s --no-save"),
            ("As JSON", "dyno selfcheck --format json"),
        ],
    ),
    (
        "responder",
        [
            (
                "Answer every command within 100 µs, one at a time",
                "dyno responder --service-us 100",
            ),
            (
                "Answer nothing for 50 ms in every second",
                "dyno responder --port 27018 --stall-every 1s --stall-length 50ms",
            ),
            ("Close the connection at every 1,000th command", "dyno responder --fault drop:1000"),
        ],
    ),
    (
        "fleet",
        [
            (
                "Run a plan on the hosts of an inventory",
                "dyno fleet run plan.toml --inventory hosts.ini --redis redis://control",
            ),
            ("The same in the current Kubernetes cluster", "dyno fleet run plan.toml --kubernetes"),
            ("Write the manifests only", "dyno fleet render kubernetes plan.toml --out manifests"),
        ],
    ),
    (
        "fleet run",
        [
            (
                "Run a plan on the hosts of an inventory",
                "dyno fleet run plan.toml --inventory hosts.ini --redis redis://control",
            ),
            (
                "Check the hosts' plan without running it",
                "dyno fleet run plan.toml --inventory hosts.ini --redis redis://control --dry-run",
            ),
            (
                "Keep the logs of all hosts",
                "dyno fleet run plan.toml --kubernetes --host-logs logs",
            ),
        ],
    ),
    (
        "fleet render",
        [
            (
                "Write manifests for a plan",
                "dyno fleet render kubernetes plan.toml --out manifests",
            ),
            (
                "With the parameters of the environment",
                "dyno fleet render kubernetes --wsf --out manifests",
            ),
            (
                "With a name for the run",
                "dyno fleet render kubernetes plan.toml --out manifests --fleet-run nightly",
            ),
        ],
    ),
    (
        "agent",
        [
            (
                "Load servers for a controller",
                "dyno agent --run nightly --index 0 --redis redis://control",
            ),
            (
                "Start servers for it",
                "dyno agent --run nightly --index 1 --redis redis://control --serve --mongod /usr/bin/mongod",
            ),
            (
                "Observe a server that is already running",
                "dyno agent --run nightly --index 2 --redis redis://control --watch 27017",
            ),
        ],
    ),
    (
        "completions",
        [
            ("For bash, in this shell", "dyno completions bash"),
            ("For zsh", "dyno completions zsh"),
            ("For fish", "dyno completions fish"),
        ],
    ),
    (
        "man",
        [
            ("Print the page of the program", "dyno man"),
            ("Write one page per command", "dyno man --out man1"),
            ("Without the note about the folder", "dyno man --out man1 --quiet"),
        ],
    ),
];

/// Adds the examples to the help of all commands. The program's own are also in its short help.
pub(super) fn with_examples(mut command: Command) -> Command {
    for (path, examples) in EXAMPLES {
        let text = in_help(&command, examples);
        if path.is_empty() {
            command = command.after_help(text);
        } else {
            let path: Vec<&str> = path.split(' ').collect();
            command = below(command, &path, text);
        }
    }
    command
}

fn below(command: Command, path: &[&str], text: StyledStr) -> Command {
    match path {
        [] => command.after_long_help(text),
        [first, rest @ ..] => command.mut_subcommand(first, |command| below(command, rest, text)),
    }
}

/// Most characters of a line, as in the rest of the help.
const WIDTH: usize = super::groups::WIDTH;

fn in_help(command: &Command, examples: &[Example]) -> StyledStr {
    let header = command.get_styles().get_header();
    format!("{header}Examples:{header:#}{}", listed(examples)).into()
}

/// The examples of a command without a heading.
pub(crate) fn plain(path: &str) -> String {
    listed(of(path))
}

fn listed<'a>(examples: impl IntoIterator<Item = &'a Example>) -> String {
    let lines = |line: &str| broken(line).join("\n      ");
    let examples = examples.into_iter();
    examples.map(|(what, line)| format!("\n  {what}\n    {}", lines(line))).collect()
}

/// Stands for a blank at which no line is broken.
const GLUE: &str = "\u{1f}";

/// The lines of a command line; all but the last end with a backslash.
fn broken(line: &str) -> Vec<String> {
    // An option stays with its value.
    let glued = line.replace(' ', GLUE).replace(&format!("{GLUE}-"), " -");
    // Room for the indent and the backslash.
    let lines = super::groups::wrapped(&glued, WIDTH - 8);
    let last = lines.len() - 1;
    let lines = lines.into_iter().map(|line| line.replace(GLUE, " ")).enumerate();
    lines.map(|(at, line)| if at < last { line + " \\" } else { line }).collect()
}

/// The section of a manual page with the examples of a command, such as `server start`.
pub(crate) fn in_roff(path: &str) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('-', "\\-");
    let mut text = String::new();
    for (what, line) in of(path) {
        let _ = write!(
            text,
            ".PP\n{}\n.RS 4\n.nf\n{}\n.fi\n.RE\n",
            escaped(what),
            escaped(&broken(line).join("\n"))
        );
    }
    if text.is_empty() { text } else { format!(".SH EXAMPLES\n{text}") }
}

fn of(path: &str) -> impl Iterator<Item = &'static Example> {
    EXAMPLES.iter().filter(move |(name, _)| *name == path).flat_map(|(_, examples)| examples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{self, Arguments, Command as Typed};
    use crate::ycsb::arguments;
    use clap::Parser;

    /// Splits a line at blanks outside of single quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for character in line.chars() {
            match character {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                other => words.last_mut().expect("there is one word").push(other),
            }
        }
        words
    }

    #[test]
    fn every_example_is_accepted_by_the_parser_of_its_command() {
        for (path, examples) in EXAMPLES {
            for (what, line) in examples {
                let found = Arguments::try_parse_from(words(line));
                let found = found.unwrap_or_else(|error| panic!("{line}: {error}"));
                assert!(line.starts_with(format!("dyno {path}").trim()), "{path}: {line}");
                assert!(what.chars().count() <= WIDTH - 2, "{what}");
                if let Typed::Ycsb(ycsb) = found.command {
                    assert!(arguments::parse(&ycsb.arguments).is_ok(), "{line}");
                }
            }
        }
    }

    #[test]
    fn every_visible_command_has_examples() {
        /// On a fleet these commands work as on a single host.
        const LIKE_OTHERS: [&str; 7] = ["soak", "sweep", "xmax", "slo", "ab", "tune", "resume"];
        fn check(command: &Command, path: &str) {
            assert_eq!(of(path).count(), 3, "`{path}` has no examples");
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
                let name = sub.get_name();
                if path != "fleet" || !LIKE_OTHERS.contains(&name) {
                    check(sub, format!("{path} {name}").trim());
                }
            }
        }
        check(&args::command(), "");
    }

    #[test]
    fn documentation_has_the_examples() {
        const START: &str = "<!-- examples -->\n";
        const END: &str = "<!-- end of examples -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        let text = std::fs::read_to_string(path).expect("the page exists");
        let (before, rest) = text.split_once(START).expect("the examples have a begin");
        let (found, after) = rest.split_once(END).expect("the examples have an end");
        let mut current = String::new();
        for (path, examples) in EXAMPLES {
            let title = match *path {
                "" => "Where to start".to_owned(),
                path => format!("`dyno {path}`"),
            };
            let _ = write!(current, "\n### {title}\n\n```sh\n");
            for (what, line) in examples {
                let _ = writeln!(current, "# {what}\n{}", broken(line).join("\n  "));
            }
            current.push_str("```\n");
        }
        current.push('\n');
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, format!("{before}{START}{current}{END}{after}"))
                .expect("the page can be written");
        }
        assert!(found == current, "docs/commands.md is out of date: run with `UPDATE_SCHEMA=1`");
    }
}

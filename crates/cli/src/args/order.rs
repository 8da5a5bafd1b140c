//! The order of options in help: the most needed first. clap shows headings and options in the order of their
//! definitions, which follows the groups that commands share.

use clap::{Arg, ArgAction, Command};

/// Headings, the most needed first.
const HEADINGS: [&str; 21] = [
    "Filter",
    "What is traced",
    "How",
    "Goal",
    "Limits",
    "Sweep",
    "Load",
    "Messages",
    "Index",
    "Data",
    "Server",
    "Plan",
    "Comparison",
    "Search",
    "Suite",
    "Output",
    "Of a suite",
    "Of a trace",
    "Client",
    "Watching",
    "Fleet",
];

/// Headings that come last: options for users of other programs, and options of every command.
const LAST: [&str; 2] = ["From other programs", "General"];

/// The most needed options of their headings; the others follow as they are defined.
const FIRST: [&str; 25] = [
    "duration",
    "operations",
    "rate",
    "rates",
    "clients",
    "schedule",
    "warmup",
    "records",
    "fresh",
    "no-load",
    "uri",
    "server",
    "mongod",
    "cache",
    "topology",
    "set",
    "set-b",
    "set-a",
    "set-both",
    "out",
    "format",
    "full",
    "dry-run",
    "show",
    "repeat",
];

/// Puts the options of this command and its subcommands in order.
pub(super) fn in_order(mut command: Command) -> Command {
    let place = |list: &[&str], name: Option<&str>| {
        list.iter().position(|one| Some(*one) == name).unwrap_or(list.len())
    };
    // A positional argument keeps its place.
    let options = command.get_arguments().filter(|one| !one.is_positional());
    let mut options: Vec<_> = options
        .map(|one| {
            let heading = one.get_help_heading();
            let is_last = heading.is_some_and(|heading| LAST.contains(&heading));
            let rank = (is_last, place(&HEADINGS, heading), place(&FIRST, one.get_long()));
            (rank, one.get_id().clone())
        })
        .collect();
    options.sort_by_key(|(rank, _)| *rank);
    for (place, (_, id)) in options.into_iter().enumerate() {
        command = command.mut_arg(id, |one| one.display_order(place));
    }
    let names: Vec<String> =
        command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |one| in_order(with_help_last(one)));
    }
    command
}

/// Moves `--help` from the first heading to the last one.
fn with_help_last(command: Command) -> Command {
    if command.is_disable_help_flag_set() {
        return command;
    }
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .help_heading("General")
        .help("Print help; `--help` has all options and examples");
    command.disable_help_flag(true).arg(help)
}

#[cfg(test)]
mod tests {
    use crate::args;
    use clap::Command;

    fn places(help: &str, parts: &[&str]) -> Vec<usize> {
        parts.iter().map(|part| help.find(part).unwrap_or_else(|| panic!("{part}"))).collect()
    }

    #[test]
    fn needed_options_come_first_and_other_programs_last() {
        let mut command = args::command();
        command.build();
        let run = command.find_subcommand_mut("run").expect("it is a command");
        let help = run.render_long_help().to_string();
        let order = places(
            &help,
            &[
                "--duration <",
                "--rate <",
                "--clients <",
                "--records <",
                "--uri <",
                "--server <",
                "--set <",
                "--out <",
                "--wsf[",
                "--quiet\n",
                "--help\n",
                "Examples:",
            ],
        );
        assert!(order.is_sorted(), "{order:?} {help}");
        let ab = command.find_subcommand_mut("ab").expect("it is a command");
        let help = ab.render_help().to_string();
        let order = places(
            &help,
            &["--duration <", "--set-b <", "--set-a <", "--set-both <", "--margin <"],
        );
        assert!(order.is_sorted(), "{order:?} {help}");
    }

    #[test]
    fn every_heading_has_its_place() {
        fn check(command: &Command) {
            for argument in command.get_arguments() {
                let heading = argument.get_help_heading().unwrap_or("General");
                let is_known = super::HEADINGS.contains(&heading) || super::LAST.contains(&heading);
                assert!(is_known, "{}: {heading}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&args::command());
    }
}

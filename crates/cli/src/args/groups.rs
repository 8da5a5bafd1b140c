//! The command list of `dyno --help`, grouped by purpose. clap does not support groups of commands.

use clap::Command;
use std::fmt::Write as _;

/// Visible commands by group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "load", "soak", "ycsb", "index-build", "tail", "trace"]),
    ("Find a limit or better settings", &["sweep", "xmax", "slo", "tune", "resume"]),
    ("Compare", &["ab", "compare", "history"]),
    ("Look at runs", &["runs", "report", "export", "status", "stop"]),
    (
        "Set up",
        &["doctor", "server", "fleet", "selfcheck", "responder", "agent", "completions", "man"],
    ),
];

/// Maximum line width in columns, as in the rest of the help.
pub(super) const WIDTH: usize = 80;

/// Adds the command groups to the help of the program.
pub(super) fn with_groups(command: Command) -> Command {
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n{{options}}{{after-help}}",
        groups(&command)
    );
    command.help_template(template)
}

fn groups(command: &Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = write!(text, "\n{header}{title}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let mut start = format!("  {literal}{name:width$}{literal:#}  ");
            for line in wrapped(&about, WIDTH - width - 4) {
                let _ = writeln!(text, "{start}{line}");
                start = " ".repeat(width + 4);
            }
        }
    }
    text + &format!("\n{header}Options:{header:#}")
}

/// Wraps the text to lines of at most `width` characters.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("the list starts with one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            *line = format!("{line} {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    #[test]
    fn groups_list_every_visible_command_once() {
        let command = args::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn help_has_groups_and_options() {
        let mut command = args::command();
        let help = command.render_help().to_string() + &command.render_long_help().to_string();
        for part in [
            "\nUsage: dyno [OPTIONS] <COMMAND>\n\nMeasure:\n  run  ",
            "\nCompare:\n  ab  ",
            "\n\nOptions:\n  -q, --quiet",
            "\n\nExamples:\n  ",
            "Exit status: 0 ",
        ] {
            assert!(help.contains(part), "{part}\n{help}");
        }
    }

    #[test]
    fn help_of_every_command_fits_into_80_columns() {
        fn check(command: &mut Command) {
            for help in [command.render_help(), command.render_long_help()] {
                let help = help.to_string();
                let long = help.lines().filter(|line| line.chars().count() > WIDTH);
                let long: Vec<&str> = long.collect();
                assert!(long.is_empty(), "{} {long:#?}", command.get_name());
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut command = args::command();
        command.build();
        check(&mut command);
        assert!(crate::ycsb::arguments::help().lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn run_help_fits_on_a_screen_and_long_help_has_all_options() {
        let mut command = args::command();
        command.build();
        let run = command.find_subcommand_mut("run").expect("it is a command");
        let short = run.render_help().to_string();
        assert!(short.lines().count() <= 50, "{short}");
        for needed in ["--duration", "--rate", "--clients", "--uri", "--set", "--full"] {
            assert!(short.contains(needed), "{needed}\n{short}");
        }
        let long = run.render_long_help().to_string();
        let options = run.get_arguments().filter(|one| !one.is_hide_set());
        for option in options.filter_map(clap::Arg::get_long) {
            assert!(long.contains(&format!("--{option}")), "{option}");
        }
    }
}

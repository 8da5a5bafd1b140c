//! `dyno man` and `dyno completions`: manual pages and shell completions.

use crate::args;
use crate::args::examples;
use crate::args::tools::{CompletionArguments, ManArguments};
use crate::exit::Exit;
use crate::messages::{Messages, print_data};
use clap_mangen::Man;
use dyno_engine::{Error, Kind, OrFault};
use std::path::Path;

/// Executes `dyno completions`.
pub(crate) fn completions(arguments: &CompletionArguments) -> Result<Exit, Error> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut args::command(), "dyno", &mut text);
    print_data(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

/// Executes `dyno man`.
pub(crate) fn man(arguments: &ManArguments, messages: Messages) -> Result<Exit, Error> {
    match &arguments.out {
        None => print_data(&page(args::without_examples(), "")?)?,
        Some(folder) => {
            for (name, text) in pages()? {
                let written = std::fs::create_dir_all(folder)
                    .and_then(|()| std::fs::write(folder.join(&name), text));
                written.map_err(|error| unwritable(folder, error))?;
            }
            messages.note(&format!("manual pages: {}", folder.display()));
        }
    }
    Ok(Exit::Done)
}

fn unwritable(folder: &Path, error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!("cannot write the manual pages to `{}`", folder.display()))
        .with_hint("choose another folder with `--out`")
}

/// Renders all pages, with their file names.
fn pages() -> Result<Vec<(String, String)>, Error> {
    let mut command = args::without_examples();
    command.build();
    let mut pages = vec![("dyno.1".to_owned(), page(command.clone(), "")?)];
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let name = format!("dyno-{}", subcommand.get_name());
        let renamed = subcommand.clone().display_name(&name).bin_name(name.replacen('-', " ", 1));
        let text = page(renamed, subcommand.get_name())?;
        pages.push((format!("{name}.1"), text));
    }
    Ok(pages)
}

/// The page of a command, with the examples of `path`.
fn page(command: clap::Command, path: &str) -> Result<String, Error> {
    let mut text = Vec::new();
    Man::new(command)
        .render(&mut text)
        .or_fault(Kind::Internal, || "cannot render the manual page")?;
    Ok(String::from_utf8_lossy(&text).into_owned() + &examples::in_roff(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_has_a_page_with_its_options() {
        let pages = pages().expect("all pages can be rendered");
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for command in
            ["run", "load", "ycsb", "report", "selfcheck", "responder", "completions", "man"]
        {
            assert!(names.contains(&format!("dyno-{command}.1").as_str()), "{names:?}");
        }
        let (_, run) =
            pages.iter().find(|(name, _)| name == "dyno-run.1").expect("the page exists");
        assert!(run.contains("tolerate\\-errors"), "{run}");
        assert!(
            run.contains(".SH EXAMPLES\n") && run.contains("\ndyno run b \\-\\-rate 5k"),
            "{run}"
        );
    }
}

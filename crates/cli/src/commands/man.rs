//! `dyno man`: manual pages for the program and for each command.

use crate::args::{Arguments, ManArguments};
use crate::exit::Exit;
use crate::messages::{Messages, print_data};
use clap::CommandFactory;
use clap_mangen::Man;
use dyno_engine::{Error, Kind, OrFault};
use std::path::Path;

/// Executes `dyno man`.
pub(crate) fn man(arguments: &ManArguments, messages: Messages) -> Result<Exit, Error> {
    match &arguments.out {
        None => print_data(&page(Arguments::command())?)?,
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
    let mut command = Arguments::command();
    command.build();
    let mut pages = vec![("dyno.1".to_owned(), page(command.clone())?)];
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let name = format!("dyno-{}", subcommand.get_name());
        let text =
            page(subcommand.clone().display_name(&name).bin_name(name.replacen('-', " ", 1)))?;
        pages.push((format!("{name}.1"), text));
    }
    Ok(pages)
}

fn page(command: clap::Command) -> Result<String, Error> {
    let mut text = Vec::new();
    Man::new(command)
        .render(&mut text)
        .or_fault(Kind::Internal, || "cannot render the manual page")?;
    Ok(String::from_utf8_lossy(&text).into_owned())
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
    }
}

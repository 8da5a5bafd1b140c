//! The reference of the language, made from the tables of generators and laws.

use super::generators::GENERATORS;
use super::laws::LAWS;
use std::fmt::Write;

/// The reference in Markdown: each generator and law with its meaning, an example, and a marked place for values that the
/// example generates.
pub fn reference() -> String {
    let mut text = String::from("## Generators\n");
    for generator in GENERATORS {
        section(&mut text, &format!("%{}", generator.name), generator.meaning, generator.example);
        let options =
            generator.options.iter().map(|option| format!("`{option}`")).collect::<Vec<_>>();
        if !options.is_empty() {
            let _ = writeln!(text, "\nOptions: {}.", options.join(", "));
        }
    }
    text.push_str("\n## Laws\n");
    for law in LAWS {
        section(&mut text, law.name, law.meaning, law.example);
    }
    text
}

fn section(text: &mut String, name: &str, meaning: &str, example: &str) {
    let _ = write!(text, "\n### `{name}`\n\n{meaning}\n\n```js\n{example}\n```\n");
    let _ = write!(text, "\n<!-- output of {name} -->\n<!-- end of output -->\n");
}

//! Templates of documents and commands: values whose parts are generated.
//!
//! A generated value is a pure function of the plan's seed, the template, the place in it and a number: the number of the
//! document in its collection, or of the operation. So a query can ask for a value that exists by computing it again.

mod arguments;
mod call;
mod command;
mod constant;
mod error;
mod generators;
mod interpret;
mod laws;
mod lexical;
mod model;
mod nodes;
mod piece;
mod print;
mod reference;
mod syntax;
#[cfg(test)]
mod tests;
mod tree;

pub use command::CommandNames;
pub use error::{Place, TemplateError, TemplateErrorKind};
pub use generators::{Form, GENERATORS, GeneratorEntry};
pub(crate) use interpret::{Mention, Template};
pub use laws::{LAWS, LawEntry};
pub(crate) use model::MAX_DOCUMENT_BYTES;
pub use model::{Choice, Function, Generator, Law, MAX_PAD_WIDTH, Size, Value};
pub use reference::reference;

use nodes::ReadFile;

/// Reads a template that does not name files.
///
/// # Errors
/// The first mistake, with its place.
pub fn parse(text: &str) -> Result<Value, TemplateError> {
    read(text, &|_| Err("this template cannot name files".into())).map(|template| template.value)
}

/// Reads a template. `read_file` returns the text of a file that the template names.
pub(crate) fn read(text: &str, read_file: ReadFile<'_>) -> Result<Template, TemplateError> {
    syntax::read(text)
        .and_then(|node| interpret::template(text, &node, read_file))
        .map_err(|mistake| mistake.in_text(text))
}

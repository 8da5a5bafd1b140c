//! Compiled templates: documents and commands of a user's own workload, written as BSON without being interpreted by name.
//!
//! A generated value is a function of the seed, its owner (collection or operation), its path and a number, in whatever order
//! values are computed. Three things depend on the course of a run: the documents that exist (`%from` in operations), new
//! documents (`%new`) and replies (`%reply`). They come from the [`Context`].
//!
//! - `compile.rs` turns a template into constant bytes and instructions (`node.rs`)
//! - `from.rs` computes values of other documents; `node.rs` and `from.rs` use each other, and the files below use neither
//! - `scalar.rs`, `text.rs` and `array.rs` write generated values, `function.rs` and `raw.rs` read values that are written
//! - `stream.rs` is the source of randomness, `law.rs` and `zipf.rs` draw from it
//!
//! Powers and logarithms come from the system's mathematical library. The golden test fails if another library rounds
//! differently.

mod array;
mod compile;
mod context;
mod error;
mod from;
mod function;
mod law;
mod node;
mod raw;
mod scalar;
mod stream;
mod text;
mod zipf;

pub use context::{Context, Documents, Misses, NewDocument};
pub use error::ProgramError;

use dyno_plan::workload::template::{Law, Value};
use node::{Node, Scope, Variables};

/// The templates that a program may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Templates<'a> {
    pub seed: u64,
    pub collections: &'a [Collection],
    /// Law of `%from` without a law of its own.
    pub keys: &'a Law,
    /// Time that replaces the clock in `%now`, in milliseconds since 1970.
    pub now_ms: Option<i64>,
}

/// A collection and its documents.
#[derive(Clone, Debug)]
pub struct Collection {
    pub name: String,
    /// Documents before the run. `%from` in documents chooses from these.
    pub records: u64,
    /// `let`: names and values.
    pub variables: Vec<(String, Value)>,
    pub document: Value,
}

/// The template that a program is compiled from. Equal templates of different owners generate different values.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    /// Documents of a collection, by its index.
    Collection(usize),
    /// A step of an operation. All steps share the values of `let`.
    Step { operation: &'a str, step: usize, variables: &'a [(String, Value)] },
}

/// A document or command, compiled. It is not changed by writing, so all workers can share it.
#[derive(Debug)]
pub struct Program {
    variables: Variables,
    root: Node,
}

/// A command needs a new document, and none is available until others are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitsDocument;

impl Program {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`ProgramError`] if the template is not a document, or a value in it cannot be generated.
    pub fn compile(
        template: &Value,
        owner: Owner<'_>,
        templates: &Templates<'_>,
    ) -> Result<Self, ProgramError> {
        compile::program(template, owner, templates)
    }

    /// Compiles the documents of a collection, by its index.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn of_collection(
        collection: usize,
        templates: &Templates<'_>,
    ) -> Result<Self, ProgramError> {
        let document = &templates.collections[collection].document;
        Self::compile(document, Owner::Collection(collection), templates)
    }

    /// Appends the document of the context's current number to `out`.
    ///
    /// # Errors
    /// [`AwaitsDocument`] if a new document is needed and not available: nothing is appended, and the command can be written
    /// again later.
    #[inline]
    pub fn write(&self, context: &mut Context, out: &mut Vec<u8>) -> Result<(), AwaitsDocument> {
        let (start, before) = (out.len(), context.begin_command());
        let scope = Scope { variables: &self.variables, place: context.place() };
        self.root.write(scope, context, out);
        if !context.awaits_document {
            return Ok(());
        }
        out.truncate(start);
        context.undo_command(before);
        Err(AwaitsDocument)
    }
}

#[cfg(test)]
mod tests;

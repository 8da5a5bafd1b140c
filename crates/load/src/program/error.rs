//! Why a template cannot be compiled. The checks of the plan find most problems earlier, and with line and column.

use thiserror::Error;

/// A template that cannot be compiled. `at` is the path of the value in its template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// Documents and commands are documents, whatever their values.
    #[error("template of `{owner}` is not a document")]
    NotADocument { owner: String },
    #[error("name of a field in `{at}` contains a zero byte")]
    ZeroInName { at: String },
    #[error("cannot encode the constant at `{at}`: {reason}")]
    Constant { at: String, reason: String },
    #[error("impossible parameters of the law at `{at}`: {reason}")]
    Law { at: String, reason: &'static str },
    /// The law has ranks, and the range does not.
    #[error("law at `{at}` draws integers only")]
    IntegersOnly { at: String },
    #[error("range at `{at}` is empty")]
    EmptyRange { at: String },
    #[error("unknown collection `{collection}` at `{at}`")]
    UnknownCollection { at: String, collection: String },
    #[error("documents of `{collection}` have no field `{path}`")]
    UnknownPath { collection: String, path: String },
    #[error("unknown variable `{name}` at `{at}`")]
    UnknownVariable { at: String, name: String },
    /// A value would need itself.
    #[error("value at `{at}` depends on itself")]
    Recursion { at: String },
    /// A document must be the same whenever it is computed, so it cannot contain `%new`, `%reply` or the clock.
    #[error("value at `{at}` would not be the same if the document is computed again")]
    NotRepeatable { at: String },
    /// Arithmetic with Decimal128 is not supported.
    #[error("functions do not support the Decimal128 at `{at}`")]
    DecimalArgument { at: String },
    #[error("function at `{at}` takes {expected} arguments but has {found}")]
    ArgumentCount { at: String, expected: &'static str, found: usize },
}

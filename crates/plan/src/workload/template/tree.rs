//! A template as a tree of nodes with their places. Knows nothing of generators, which are documents and texts at this stage.

use super::error::{Mistake, TemplateErrorKind, shortened};
use super::piece::of_constant;
use bson::Bson;

/// A value and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Bytes from the start of the text.
    pub(super) offset: usize,
    pub(super) kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Document(Vec<Entry>),
    Array(Vec<Node>),
    Text(String),
    /// Any other value, which is neither a document, an array nor a text.
    Constant(Bson),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Offset of the key.
    pub(super) offset: usize,
    pub(super) key: String,
    pub(super) value: Node,
}

impl Node {
    /// The value in the words of an error.
    pub(super) fn found(&self) -> String {
        match &self.kind {
            NodeKind::Document(_) => "a document".into(),
            NodeKind::Array(_) => "an array".into(),
            NodeKind::Text(text) => format!("`\"{}\"`", shortened(text)),
            NodeKind::Constant(constant) => format!("`{}`", of_constant(constant).line()),
        }
    }

    /// The mistake that the value has another form or type.
    pub(super) fn misfit(&self, expected: impl Into<String>) -> Mistake {
        Mistake::new(self.offset, TemplateErrorKind::Form, self.found(), expected)
    }
}

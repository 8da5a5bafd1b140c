//! The names in a command, without an interpretation of its generators.

use super::syntax;
use super::tree::{Entry, Node, NodeKind};

/// Names in the template of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandNames {
    /// Name of the command, which is its first key.
    pub command: String,
    /// Stages of its `pipeline`.
    pub stages: Vec<String>,
}

impl CommandNames {
    /// Reads the names; `None` if the template is not a document with a key.
    pub fn read(template: &str) -> Option<Self> {
        let root = syntax::read(template).ok()?;
        let entries = entries(&root)?;
        let pipeline = entries.iter().find(|entry| entry.key == "pipeline");
        let stages = match pipeline.map(|entry| &entry.value.kind) {
            Some(NodeKind::Array(stages)) => stages.iter().filter_map(first_key).collect(),
            _ => Vec::new(),
        };
        Some(CommandNames { command: first_key(&root)?, stages })
    }
}

fn entries(node: &Node) -> Option<&[Entry]> {
    match &node.kind {
        NodeKind::Document(entries) => Some(entries),
        _ => None,
    }
}

fn first_key(node: &Node) -> Option<String> {
    Some(entries(node)?.first()?.key.clone())
}

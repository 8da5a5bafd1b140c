//! The operations of a run: the names under which it counts, in one order for all its parts.
//!
//! The names and the order come from the plan. How an operation is performed is not known here: the load maps each operation to
//! an action.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, Index};
use std::sync::Arc;

/// Find one document by key.
pub const READ: &str = "read";
/// Set fields of one document.
pub const UPDATE: &str = "update";
/// Insert one document.
pub const INSERT: &str = "insert";
/// Find a range of documents in key order.
pub const SCAN: &str = "scan";
/// Read a document, then update it.
pub const READ_MODIFY_WRITE: &str = "read_modify_write";
/// Delete one document by key.
pub const DELETE: &str = "delete";
/// Insert several documents by one command; only in the load phase.
pub const INSERT_BATCH: &str = "insert_batch";

/// Effect of an operation on documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Read,
    Update,
    Insert,
    Delete,
}

/// An operation with its own statistics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Name in files and reports.
    pub name: String,
    pub effect: Effect,
    /// Names of the operations as which its commands also count, in their order; empty for a single command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// Name of the operation that it is a step of. A step has statistics of its own, and is not an operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_of: Option<String>,
}

impl Operation {
    /// An operation of a single command.
    pub fn new(name: &str, effect: Effect) -> Self {
        Operation { name: name.into(), effect, parts: Vec::new(), step_of: None }
    }
}

/// Index of an operation in the [`Operations`] of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationId(u16);

impl OperationId {
    /// Index into tables by operation.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The operation that is `count` places behind it.
    #[inline]
    pub const fn plus(self, count: u16) -> Self {
        OperationId(self.0 + count)
    }
}

/// The operations of a run, in one order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<Operation>", into = "Vec<Operation>")]
pub struct Operations(Arc<[Operation]>);

impl Operations {
    /// Index of the operation with this name.
    pub fn id(&self, name: &str) -> Option<OperationId> {
        let place = self.iter().position(|one| one.name == name)?;
        u16::try_from(place).ok().map(OperationId)
    }

    /// The operation with this name.
    pub fn find(&self, name: &str) -> Option<&Operation> {
        self.iter().find(|one| one.name == name)
    }

    /// Whether sums over all operations include the one with this name. They leave out operations that also count as
    /// their parts, and steps.
    pub fn is_summed(&self, name: &str) -> bool {
        self.find(name).is_none_or(|one| one.parts.is_empty() && one.step_of.is_none())
    }

    /// Whether the operation with this name also counts as its parts.
    pub fn has_parts(&self, name: &str) -> bool {
        self.find(name).is_some_and(|one| !one.parts.is_empty())
    }
}

impl From<Vec<Operation>> for Operations {
    fn from(operations: Vec<Operation>) -> Self {
        Operations(operations.into())
    }
}

impl From<Operations> for Vec<Operation> {
    fn from(operations: Operations) -> Self {
        operations.to_vec()
    }
}

impl Deref for Operations {
    type Target = [Operation];

    fn deref(&self) -> &[Operation] {
        &self.0
    }
}

impl Index<OperationId> for Operations {
    type Output = Operation;

    fn index(&self, id: OperationId) -> &Operation {
        &self.0[id.index()]
    }
}

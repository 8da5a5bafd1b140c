//! Workloads of the user's own: collections, operations and checks, whose documents and commands are templates.

mod check;
mod expected;
mod folder;
mod model;
mod read;
pub mod template;

pub use check::{check, largest_document_bytes};
pub use expected::{Expected, ExpectedError};
pub use model::{BuildTime, Check, Collection, Data, Each, Index, Operation, Step, When, Workload};
pub use read::{
    ReadCollection, ReadEach, ReadOperation, ReadStep, ReadWhen, ReadWorkload, constant_document,
};

// WRITERS: read crates/plan/WRITERS-NOTE.md first.
//! From what a person typed to what will be done: plan files, YCSB property files, connection
//! strings and options become one validated [`Plan`]. No I/O but reading the named files.

pub mod builtin;
pub mod file;
pub mod model;
mod nearest;
pub mod problem;
pub mod units;
pub mod uri;
pub mod validate;

pub use model::Plan;

//! Turns user input into a task: plan files, YCSB property files, connection strings and options
//! become one validated [`Plan`]. The only I/O is reading the named files.

pub mod axis;
pub mod builtin;
pub mod command_words;
mod counted_operations;
pub mod error;
pub mod file;
pub mod fleet;
pub mod host;
pub mod host_setting;
pub mod index_build;
pub mod io_trace;
pub mod knobs;
pub mod model;
pub mod names;
pub mod nearest;
pub mod operation;
pub mod placement;
pub mod price;
pub mod problem;
mod redact;
pub mod request;
pub mod resolve;
pub mod storage;
pub mod strangers;
pub mod suite;
pub mod tail;
pub mod task;
mod text;
pub mod topology;
pub mod units;
pub mod uri;
pub mod validate;
pub mod workload;
pub mod wsf;
pub mod ycsb;

pub use error::PlanError;
pub use host::{Host, HostFacts};
pub use model::Plan;
pub use request::Request;
pub use resolve::resolve;
pub use task::Task;

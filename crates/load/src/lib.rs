//! Turns a plan into traffic: schedules, keys, operations and the workers that perform them.
//!
//! [`run`] performs a [`Job`](job::Job) and hands over recording windows; it does not print, judge or store.

pub mod backend;
mod clients;
pub mod clock;
mod collector;
pub mod connect;
mod core;
pub mod data;
pub mod error;
mod generator;
pub mod job;
pub mod keys;
mod mix;
pub mod operation;
pub mod own;
pub mod pace;
pub mod prepare;
pub mod probe;
pub mod program;
mod recorder;
pub mod responder;
pub mod schedule;
pub mod standstill;
mod start_latch;
mod workers;
pub mod workload;

pub use collector::{Sink, WINDOW_NS, Window};
pub use error::LoadError;
pub use workers::run;

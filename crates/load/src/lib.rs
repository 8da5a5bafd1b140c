//! Turns a plan into traffic: schedules, keys, operations and the workers that perform them.
//!
//! The engine measures and hands over recording windows; it does not print, judge or store.

mod awake;
pub mod backend;
pub mod clock;
pub mod connect;
mod core;
pub mod data;
pub mod engine;
pub mod error;
pub mod keys;
pub mod operation;
pub mod prepare;
pub mod probe;
mod recorder;
pub mod responder;
pub mod schedule;
pub mod workload;

pub use error::LoadError;

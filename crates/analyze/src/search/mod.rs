//! Searches that say what to measure next and when to stop. They measure nothing themselves: the
//! caller asks for a step, measures, and records the outcome, so that a search can be resumed from
//! its recorded outcomes and tested against simulated servers.

pub mod clients;
pub mod objective;
pub mod tuning;

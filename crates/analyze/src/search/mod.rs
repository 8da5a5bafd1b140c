//! Searches that choose the next measurement and decide when to stop. They measure nothing themselves: the
//! caller requests a step, measures, and records the outcome, so that a search can be resumed from its recorded
//! outcomes and tested against simulated servers.

pub mod clients;
pub mod objective;
pub mod tuning;

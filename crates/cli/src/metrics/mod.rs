//! Metrics for Prometheus, served during a run: the figures of the load and of the sources.
//!
//! The recording thread adds up the recording windows, so the workers have no extra work. Counters continue over all runs of an
//! experiment.

pub(crate) mod buckets;
#[cfg(test)]
mod encode;
pub(crate) mod families;
pub(crate) mod family;
mod feed;
mod http;
pub(crate) mod listen;
pub(crate) mod observed;
pub(crate) mod text;
pub(crate) mod totals;
pub(crate) mod window;

pub(crate) use listen::{Endpoint, Metrics};

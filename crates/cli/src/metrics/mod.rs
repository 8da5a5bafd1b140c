//! What a run does, for Prometheus: the figures of the load and of what is watched, as families of metrics, served
//! while the run goes on.
//!
//! The figures are added up from the recording windows, in the thread that records them, so that the workers do
//! nothing for them. They count over all runs of an experiment.

pub(crate) mod buckets;
mod encode;
pub(crate) mod families;
pub(crate) mod family;
mod feed;
mod http;
pub(crate) mod listen;
pub(crate) mod observed;
mod secret;
pub(crate) mod text;
pub(crate) mod totals;
pub(crate) mod window;

pub(crate) use listen::{Endpoint, Metrics};
pub(crate) use secret::Secret;

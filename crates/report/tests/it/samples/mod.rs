//! Sample results of each kind.

pub(crate) mod experiment;
pub(crate) mod index_build;
pub(crate) mod trace;
pub(crate) mod tune;
pub(crate) mod watched;

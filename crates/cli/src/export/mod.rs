//! Exports records to formats that other programs read.

pub(crate) mod annotations;
pub(crate) mod csv;
pub(crate) mod experiment;
pub(crate) mod index_build;
pub(crate) mod openmetrics;
pub(crate) mod output;
pub(crate) mod parquet;
pub(crate) mod rows;
pub(crate) mod table;
pub(crate) mod tail;
pub(crate) mod trace;
pub(crate) mod wsf_logs;

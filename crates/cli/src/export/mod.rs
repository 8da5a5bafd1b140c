//! A recorded run in the forms that other programs read.

pub(crate) mod annotations;
pub(crate) mod csv;
pub(crate) mod openmetrics;
pub(crate) mod output;
pub(crate) mod parquet;
pub(crate) mod rows;

//! Context of the machine checks: server facts and tracing support.

pub mod subject;
pub mod tracing;

//! What `dyno doctor` and a run need around the checks: finding out what the server is, keeping
//! what was changed, and the table.

pub(crate) mod journal;
pub(crate) mod subject;
pub(crate) mod text;
pub(crate) mod tracing;

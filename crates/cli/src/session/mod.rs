//! A measured session with its servers, from the resolved task to the saved run: what `dyno run`,
//! `dyno load` and `dyno ycsb` have in common. How results look is left to the callers.

pub(crate) mod analysis;
pub(crate) mod choice;
pub(crate) mod collection;
pub(crate) mod commander;
pub(crate) mod directory;
pub(crate) mod document;
pub(crate) mod execute;
pub(crate) mod guard;
#[cfg(test)]
mod hour;
pub(crate) mod instance;
pub(crate) mod lab;
pub(crate) mod live;
pub(crate) mod locality;
pub(crate) mod observation;
pub(crate) mod output;
pub(crate) mod place;
pub(crate) mod preflight;
pub(crate) mod recorder;
pub(crate) mod server;
pub(crate) mod steering;
pub(crate) mod task;
pub(crate) mod trace;

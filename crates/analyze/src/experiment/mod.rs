//! Combined results of several runs that answer one question: the answers of [`dyno_record::experiment`] and
//! the findings from them.

pub mod ab;
pub mod blocks;
pub mod caveats;
pub mod comparable;
pub mod conditions;
pub mod demands;
mod disks;
pub mod figures;
pub mod findings;
pub mod history;
pub mod limits;
pub mod machines;
pub mod outages;
pub mod queueing;
pub mod relative;
pub mod run;
mod saturation;
pub mod slo;
mod stations;
pub mod suite;
pub mod sweep;
pub mod tune;
pub mod xmax;

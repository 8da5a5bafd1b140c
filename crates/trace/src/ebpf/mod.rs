//! The tracer: programs in the kernel, and their reader.

mod caveats;
mod collect;
mod cost;
mod devices;
mod layout;
mod load;
mod maps;
mod mounts;
mod names;
mod object;
mod totals;
mod tracer;
mod tree;
pub(crate) mod trial;
mod types;

pub use tracer::Tracer;
pub(crate) use types::Types;

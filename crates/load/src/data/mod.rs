//! The bytes of a document's values: random as YCSB makes them, compressible on request, or computed
//! from key and field so that every read can be checked.
//!
//! Everything is written into slices of the caller; nothing allocates per value.

pub mod integrity;
pub mod values;

//! The bytes of a document's values: random as in YCSB, optionally compressible, or computed from key and field so that
//! every read can be checked.
//!
//! Everything is written into slices of the caller; nothing allocates per value.

pub mod integrity;
pub mod values;

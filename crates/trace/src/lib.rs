//! Traces the file I/O of running processes in the kernel by eBPF: every read, write, sync and page fault of a mapped
//! file, with file, offset, size and time, and the resulting block device requests. Works for any process, independent
//! of databases, and draws no conclusions.
//!
//! The tracer needs the feature `ebpf`, which requires clang at build time. Without the feature, everything else is
//! available, and [`Tracer::start`] returns an error.

pub mod error;
pub mod hooks;
pub mod kernel;
pub mod possibilities;
pub mod settings;
pub mod targets;
pub mod traced;

#[cfg(feature = "ebpf")]
mod ebpf;
mod probes;
#[cfg(not(feature = "ebpf"))]
mod unbuilt;

#[cfg(feature = "ebpf")]
use ebpf as built;
#[cfg(not(feature = "ebpf"))]
use unbuilt as built;

pub use built::Tracer;
pub use error::TraceError;
pub use kernel::LiveKernel;
pub use possibilities::possibilities;
pub use settings::{Filter, Settings};
pub use traced::{Sink, Traced};

//! Looks at the file I/O of running processes from inside the kernel, by eBPF: every read, write, sync
//! and page fault of a mapped file, with file, offset, size and time, and what of it reached the
//! block devices. Works on any process; knows nothing of databases, and draws no conclusions.
//!
//! The tracer is the feature `ebpf`, which needs clang when it is built. Without it everything is
//! there but the tracer itself, and [`Tracer::start`] says so.

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

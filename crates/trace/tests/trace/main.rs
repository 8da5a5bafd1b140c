//! The tracer against programs whose I/O is known. Needs root and a kernel that allows tracing: where
//! that is not so each test says it and is left out, and with `DYNO_REQUIRE_TRACE` it fails.
#![cfg(feature = "ebpf")]
#![allow(
    clippy::unwrap_used,
    reason = "a failure in a helper is a failure of the test"
)]
#![allow(clippy::print_stdout, reason = "figures for who runs a test alone")]

mod block;
mod calls;
mod files;
mod fio;
mod limits;
mod mapped;
mod processes;
mod support;

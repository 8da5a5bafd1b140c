//! Tests the tracer with programs whose I/O is known. The tests need root and a kernel that allows tracing. Otherwise
//! they are skipped with a message, or fail with `DYNO_REQUIRE_TRACE`.
#![cfg(feature = "ebpf")]
#![allow(clippy::unwrap_used, reason = "a failure in a helper is a failure of the test")]
#![allow(clippy::print_stdout, reason = "figures for running a single test")]

mod block;
mod calls;
mod files;
mod fio;
mod limits;
mod mapped;
mod processes;
mod support;

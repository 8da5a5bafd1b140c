//! Test infrastructure for all crates: a real `mongod`, the embedded server, a fake `mongod` for deployments, simulated queues for
//! the analysis, and tables of findings. It is never part of the product, so it is the only library that may read the
//! environment.
//!
//! If a server is not installed, the test is skipped, with a message on standard error and in the file named by
//! `DYNO_SKIP_LOG`. With `DYNO_REQUIRE_SERVERS=1`, as set by `make test`, a skip is a failure, unless
//! `scripts/skips-allowed.txt` allows it:
//!
//! ```no_run
//! let Some(server) = dyno_testkit::or_skip(dyno_testkit::embedded()) else {
//!     return;
//! };
//! println!("{}", server.address());
//! ```

pub mod fake_mongod;
pub mod fault;
pub mod findings;
pub mod network;
mod pages;
mod port;
mod priority;
pub mod scripted;
mod server;
pub mod simulate;
mod skip;
mod sources;
mod wire;

pub use pages::without_term_links;
pub use port::free_port;
pub use priority::go_before_others;
pub use server::{
    TestServer, embedded, embedded_program, embedded_with, mongod, mongod_program, mongod_with,
    mongos_program, percona_program,
};
pub use skip::{Skip, or_skip, skip, skip_tracing};
pub use sources::sources;

/// The folder of the whole project.
pub fn project_dir() -> std::path::PathBuf {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).expect("the crate is two folders below the project").to_owned()
}

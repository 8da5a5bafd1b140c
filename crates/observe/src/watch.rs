//! Watches sources while the load runs: each has a thread of its own, is read on a fixed beat, and tells
//! metrics of the run, so that one that hangs holds up no other.

mod board;
mod exporter;
mod host;
mod intake;
mod rates;
mod relay;
mod server;
mod source;
mod watcher;

pub use board::{Board, Latest};
pub use exporter::{AccessError, Address, Credentials, exporter};
pub use host::{Host, HostSubject};
pub use relay::{Account, Relay};
pub use server::{Ask, AskError, ServerSubject, collection_statistics, server};
pub use source::{Description, Source, Told};
pub use watcher::{Keep, Now, Watcher, thread_cpu_s};

//! Watches sources while the load runs. Each source has its own thread, is read at a fixed interval
//! and reports metrics of the run, so a source that hangs does not delay the others.

mod board;
mod exporter;
mod host;
mod intake;
mod rates;
mod remote_source;
mod server;
mod source;
mod watcher;

pub use board::{Board, Latest};
pub use exporter::{DataPlace, ExporterReader, exporter};
pub use host::{Host, HostSubject};
pub(crate) use host::{cpu_quota, memory_limit};
pub use remote_source::{ReadingStatus, RemoteSource};
pub(crate) use server::fields::Fields;
pub use server::{Ask, AskError, ServerSubject, collection_statistics, server};
pub use source::{Description, Reported, Source};
pub use watcher::{Now, OutputOptions, Watcher, thread_cpu_s};

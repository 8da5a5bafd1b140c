//! Observes the machine while the load runs: its hardware and settings, the storage of the server's
//! data, and this process's resource use. Only reads and reports; other crates decide what a
//! setting means for a result.

mod allowed_cpus;
pub mod busy;
pub mod clock;
pub mod consumption;
mod cpu_settings;
pub mod doctor;
pub mod elsewhere;
pub mod environment;
pub mod grafana;
pub mod health;
mod host;
pub mod host_setting;
pub mod http;
pub mod process;
pub mod reported_use;
mod stat;
pub mod steering;
mod storage;
pub mod usage;
pub mod watch;

pub use storage::devices::{Device, DeviceCounters, devices_at_end, devices_of_file_system};

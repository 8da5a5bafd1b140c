//! Environment of an experiment.

use crate::driver::Found;
use crate::host::Host;
use dyno_engine::run::consumption::WorkMeter;
use dyno_record::model::Environment;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// Descriptions of other hosts' machines by name; `None` if one could not be examined.
pub struct Machines<'a> {
    pub(crate) known: RefCell<BTreeMap<String, Option<Environment>>>,
    warn: &'a dyn Fn(&str),
}

impl<'a> Machines<'a> {
    /// Starts without machines. `warn` gets the error of each failed examination.
    pub fn new(warn: &'a dyn Fn(&str)) -> Self {
        Machines { known: RefCell::default(), warn }
    }

    /// Examines a host's machine once. An experiment does not need it.
    pub(super) fn look_at(&self, host: &Host) {
        let mut known = self.known.borrow_mut();
        if !known.contains_key(host.name()) {
            let found = host.environment();
            if let Err(error) = &found {
                (self.warn)(&format!("{error}; the record will not describe this machine"));
            }
            known.insert(host.name().to_owned(), found.ok());
        }
    }
}

/// Environment of an experiment.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// Connection string of the server, with credentials if needed.
    pub uri: &'a str,
    pub found: &'a Found,
    /// Server processes on this machine to sample.
    pub server: &'a [u32],
    /// Measures the servers' resource use.
    pub meter: Option<&'a WorkMeter<'a>>,
    /// Folder of the drivers on other hosts.
    pub host_drivers: &'a Path,
    /// Examines the machines of other hosts, each once.
    pub machines: Option<&'a Machines<'a>>,
    /// Whether drivers poll heartbeats instead of having the server stream them.
    pub polls_heartbeats: bool,
    /// Polled; `true` ends the experiment and keeps its results so far.
    pub interrupted: &'a dyn Fn() -> bool,
}

//! What an experiment is made with.

use crate::driver::Found;
use crate::host::Host;
use dyno_engine::run::consumption::WorkMeter;
use dyno_record::model::Environment;
use dyno_record::tail::{Judgement, Timeline};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// The machines of other hosts that were looked at, by their names; `None` of one that could not be.
pub struct Machines<'a> {
    pub(crate) known: RefCell<BTreeMap<String, Option<Environment>>>,
    warn: &'a dyn Fn(&str),
}

impl<'a> Machines<'a> {
    /// None yet. `warn` is told why one is not known.
    pub fn new(warn: &'a dyn Fn(&str)) -> Self {
        Machines {
            known: RefCell::default(),
            warn,
        }
    }

    /// Looks at the machine of this host, unless that was done before. An experiment does not need it.
    pub(super) fn look_at(&self, host: &Host) {
        let mut known = self.known.borrow_mut();
        if !known.contains_key(host.name()) {
            let found = host.environment();
            if let Err(error) = &found {
                (self.warn)(&format!("{error}; it is not part of the record"));
            }
            known.insert(host.name().to_owned(), found.ok());
        }
    }
}

/// What an experiment is made with.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The server, with credentials if it asks for some.
    pub uri: &'a str,
    /// The drivers that there are.
    pub found: &'a Found,
    /// Processes of the server on this machine that are looked at, too.
    pub server: &'a [u32],
    /// Counts what the servers use.
    pub meter: Option<&'a WorkMeter<'a>>,
    /// Folder of the drivers on other hosts.
    pub host_drivers: &'a Path,
    /// Looks at the machines of other hosts, each once.
    pub machines: Option<&'a Machines<'a>>,
    /// Whether drivers ask for each heartbeat, in place of having the server stream them.
    pub polls_heartbeats: bool,
    /// Says whether the latency of a producer grows, and why: measuring leaves that to the analysis.
    pub judge: fn(&Timeline) -> Judgement,
    /// Asked now and then: whether it shall end, and keep what was measured until then.
    pub interrupted: &'a dyn Fn() -> bool,
}

//! What an experiment is made with.

use crate::driver::Found;
use dyno_engine::run::consumption::WorkMeter;
use dyno_record::model::Environment;
use dyno_record::tail::{Course, Judgement};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

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
    /// Machines of other hosts that were looked at, by their names.
    pub machines: Option<&'a RefCell<BTreeMap<String, Environment>>>,
    /// Whether drivers ask for each heartbeat, in place of having the server stream them.
    pub polls_heartbeats: bool,
    /// Says whether the latency of a producer grows, and why: measuring leaves that to the analysis.
    pub judge: fn(&Course) -> Judgement,
    /// Asked now and then: whether it shall end, and keep what was measured until then.
    pub interrupted: &'a dyn Fn() -> bool,
}

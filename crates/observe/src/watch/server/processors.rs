//! Number of CPUs of a server's machine, which turns its CPU time into a share.

use super::ask::{Ask, AskError, refusal};
use super::fields::Fields;
use crate::watch::source::Reported;
use bson::{Document, doc};
use dyno_record::names::server_cpu;

/// CPUs that the process may use, which only newer versions report, and CPUs of the machine.
const PATHS: [&str; 2] = ["system.numCoresAvailableToProcess", "system.numCores"];

/// The CPUs that a server reported; it is asked once.
#[derive(Debug, Default)]
pub(super) struct Processors {
    is_asked: bool,
    count: Option<f64>,
}

impl Processors {
    /// Adds the number of CPUs if the server reports its CPU time; otherwise it asks nothing.
    ///
    /// # Errors
    /// The connection was lost: [`AskError::Lost`]; a refusal is reported as missing.
    pub(super) fn read(
        &mut self,
        status: &Document,
        instance: &str,
        ask: &mut dyn Ask,
        reported: &mut Reported,
    ) -> Result<(), AskError> {
        if status.number("extra_info.user_time_us").is_none() {
            return Ok(());
        }
        if !self.is_asked {
            match ask.ask("admin", doc! { "hostInfo": 1 }) {
                Ok(answer) => self.count = count(&answer),
                Err(AskError::Refused { code, message }) => {
                    reported.miss(server_cpu::GROUP, refusal("hostInfo", code, &message));
                }
                Err(lost @ AskError::Lost { .. }) => return Err(lost),
            }
            self.is_asked = true;
        }
        reported.put_if_known(server_cpu::CPUS_COUNT.of(instance), self.count);
        Ok(())
    }
}

fn count(answer: &Document) -> Option<f64> {
    let mut reported = PATHS.iter().filter_map(|path| answer.number(path));
    reported.find(|count| *count >= 1.0)
}

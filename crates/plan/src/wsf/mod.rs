//! Converts parameters of the workload `Mongo-ycsb` of Intel's Workload Services Framework, which
//! its scripts read from the environment, to keys of a plan and YCSB properties.
//!
//! Every parameter in [`VARIABLES`] is supported, accepted with a warning about its missing effect,
//! or refused by name. The caller reads the environment.

mod mapping;
mod numactl;
mod parameters;
pub(crate) mod placement;
mod pods;
mod read;
mod table;

#[cfg(test)]
mod tests;

pub use parameters::Parameters;
pub use table::{Form, Treatment, VARIABLES, Variable, find};

use crate::model::PhaseKind;
use crate::problem::Problem;
use crate::units::Span;
use crate::ycsb;
use mapping::Mapping;

/// A value for the plan, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub variable: &'static str,
    /// Whether it is given; otherwise it is the workload's default.
    pub given: bool,
    /// YCSB property or dotted key of the plan.
    pub name: &'static str,
    /// In the form of the plan or the property.
    pub value: String,
}

/// The window in which another program observes the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceWindow {
    pub phase: PhaseKind,
    /// From the start of the phase.
    pub from: Span,
    /// Length; until the end of the phase if absent.
    pub length: Option<Span>,
}

/// Settings derived from the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsfSettings {
    /// Name of a built-in plan, or path of a plan or property file.
    pub workload: String,
    /// The parameter that names it; absent if the workload is named elsewhere or not at all.
    pub workload_variable: Option<&'static str>,
    /// Keys of the plan, in the form of [`crate::file::set`].
    pub keys: Vec<Setting>,
    /// YCSB properties.
    pub properties: Vec<Setting>,
    /// Window for an observing program, if given.
    pub trace: Option<TraceWindow>,
    /// Values that servers in pods do not support.
    pub refused_by_pods: Vec<Problem>,
    /// Deviations from the request, one sentence each.
    pub warnings: Vec<String>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// Maps parameters to settings. `workload` is the workload that the user named separately, which
/// takes precedence. Missing parameters that shape the load get the workload's defaults, unless the
/// workload is a plan file (`.toml`), which sets all of that itself.
///
/// # Errors
/// All problems: malformed and unsupported values, each with the parameter's name.
pub fn apply(parameters: &Parameters, workload: Option<&str>) -> Result<WsfSettings, Vec<Problem>> {
    Mapping::new(parameters, workload).finish()
}

impl WsfSettings {
    /// Adds to each problem of the plan the parameters that set its keys.
    pub fn explain(&self, problems: &mut [Problem]) {
        for problem in problems {
            let is_named = |name: &str| problem.keys.iter().any(|key| key == name);
            let mut causes: Vec<String> = (self.keys.iter().chain(&self.properties))
                .filter(|setting| is_named(setting.name) || is_named(plan_key(setting.name)))
                .map(|setting| {
                    let default = if setting.given { "" } else { ", by default" };
                    let (name, variable) = (setting.name, setting.variable);
                    format!("`{name}` comes from `{variable}`{default}")
                })
                .collect();
            let is_window =
                |key: &String| matches!(key.split(['.', '[']).next(), Some("trace" | "traces"));
            if self.trace.is_some() && problem.keys.iter().any(is_window) {
                causes.push("the window comes from `EVENT_TRACE_PARAMS`".into());
            }
            if !causes.is_empty() {
                let message = format!("{}; {}", problem.message, causes.join(", "));
                problem.message = message;
            }
        }
    }
}

/// The key of the plan that a YCSB property sets, or the name itself.
fn plan_key(name: &'static str) -> &'static str {
    match ycsb::find(name).map(|property| property.treatment) {
        Some(ycsb::Treatment::Plan(key)) => key,
        _ => name,
    }
}

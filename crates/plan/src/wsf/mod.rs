//! Parameters of the workload `Mongo-ycsb` of Intel's Workload Services Framework, as its scripts read
//! them from the environment, become keys of a plan and YCSB properties.
//!
//! Every parameter of [`VARIABLES`] is honoured, accepted with a warning that says why it has no
//! effect, or refused by name. The environment itself is read elsewhere.

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

use crate::model::TracePhase;
use crate::problem::Problem;
use crate::units::Span;
use crate::ycsb;
use mapping::Mapping;

/// A value for the plan, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The parameter.
    pub variable: &'static str,
    /// Whether it is given; otherwise this is that workload's default.
    pub given: bool,
    /// YCSB property or dotted key of the plan.
    pub name: &'static str,
    /// Value, in the form that the plan or the property has.
    pub value: String,
}

/// The window in which another program watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceWindow {
    /// Phase that it is in.
    pub phase: TracePhase,
    /// Time from the start of the phase.
    pub from: Span,
    /// Length; to the end of the phase when absent.
    pub length: Option<Span>,
}

/// What the parameters mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsfSettings {
    /// Name of a built-in plan, or path of a plan or property file.
    pub workload: String,
    /// The parameter that names it; absent if it is named elsewhere, or by nothing.
    pub workload_variable: Option<&'static str>,
    /// Keys of the plan, in the form of [`crate::file::set`].
    pub keys: Vec<Setting>,
    /// YCSB properties.
    pub properties: Vec<Setting>,
    /// Window for a program that watches, if one is given.
    pub trace: Option<TraceWindow>,
    /// Values that servers in pods cannot have.
    pub refused_by_pods: Vec<Problem>,
    /// What is done differently from what was asked for, one sentence each.
    pub warnings: Vec<String>,
    /// What is good to know, one sentence each.
    pub notes: Vec<String>,
}

/// Maps parameters to settings. `workload` is what a person
/// has named besides them, which counts more. What is not given has that workload's default where it
/// shapes the load, unless the workload is a plan file (`.toml`), which says all of that itself.
///
/// # Errors
/// All problems: values of a wrong form, and what is not supported here, each with the parameter's name.
pub fn apply(parameters: &Parameters, workload: Option<&str>) -> Result<WsfSettings, Vec<Problem>> {
    Mapping::new(parameters, workload).finish()
}

impl WsfSettings {
    /// Adds to each problem of the plan which parameters set what it is about.
    pub fn explain(&self, problems: &mut [Problem]) {
        for problem in problems {
            let is_named = |name: &str| problem.message.contains(&format!("`{name}`"));
            let mut causes: Vec<String> = (self.keys.iter().chain(&self.properties))
                .filter(|setting| is_named(setting.name) || is_named(plan_key(setting.name)))
                .map(|setting| {
                    let default = if setting.given { "" } else { ", by default" };
                    let (name, variable) = (setting.name, setting.variable);
                    format!("`{name}` comes from `{variable}`{default}")
                })
                .collect();
            let is_window = problem.message.starts_with("`trace");
            if self.trace.is_some() && is_window {
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

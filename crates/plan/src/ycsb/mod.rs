//! YCSB's properties: converts property files and `-p name=value` to a plan and options of the
//! client.
//!
//! Every property in [`PROPERTIES`] is supported, accepted with a reason for its missing effect, or
//! refused by name; an unknown name is a problem with the nearest known one. Where YCSB silently
//! deviates from its properties, the plan follows the properties and a warning explains this.

mod address;
mod client;
mod convert;
mod field_length;
mod properties;
mod reader;
mod table;
mod words;

#[cfg(test)]
mod tests;

pub use client::{Exporter, MeasurementInterval, MeasurementType, YcsbClientOptions};
pub use properties::Properties;
pub use table::{PROPERTIES, Property, Treatment, find};
pub use words::in_ycsb_words;

use crate::file;
use crate::model::{
    ClientPlan, DataPlan, KeyDistribution, OperationWeights, PhasePlan, Plan, ServerKind,
    ServerPlan,
};
use crate::problem::Problem;
use crate::units::Span;
use crate::validate::validate;
use address::Address;
pub use address::property_of_option;
use reader::Reader;
use std::fmt;
use std::path::Path;

/// The command of YCSB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `ycsb load`: insert the documents.
    Load,
    /// `ycsb run`: operate on them.
    Run,
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Phase::Load => "load",
            Phase::Run => "run",
        })
    }
}

/// Plan and options derived from properties. It has neither `Debug` nor `Serialize`, because `uri`
/// may contain credentials.
pub struct YcsbPlan {
    /// The valid plan. `phases.operations` is the number of operations of the requested phase, or
    /// the number of documents for [`Phase::Load`].
    pub plan: Plan,
    /// Connection string with the options of all properties merged into it. May contain
    /// credentials.
    pub uri: String,
    /// Options of `uri` that the wire backend does not support.
    pub unsupported_by_wire: Vec<Problem>,
    /// Options of the client that are not part of the plan.
    pub client: YcsbClientOptions,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
}

/// Results of [`apply`] in addition to the changed plan. Without `Debug` and `Serialize`, like
/// [`YcsbPlan`].
pub struct Applied {
    /// Connection string, if `mongodb.url` was given. May contain credentials.
    pub uri: Option<String>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
}

/// Resolves properties like `bin/ycsb`: missing properties have YCSB's defaults. `lenient` makes
/// unknown names warnings.
///
/// # Errors
/// All problems: unknown names, malformed and unsupported values, contradictions, and problems of
/// the plan under the names of the properties.
pub fn resolve(
    properties: &Properties,
    phase: Phase,
    lenient: bool,
) -> Result<YcsbPlan, Vec<Problem>> {
    let mut reader = Reader::new(properties, lenient);
    let mut plan = defaults(properties);
    convert::apply(&mut plan, &mut reader);
    check_classes(&mut reader);
    if !reader.is_given("recordcount") {
        let hint =
            "set the number of documents in the whole data set, for example `-p recordcount=1000`";
        reader.problem("recordcount", "`recordcount` is missing", hint);
    }
    convert::finish_phase(&mut plan, &mut reader, phase);
    let address = address::read(&mut reader, Some(address::DEFAULT_URL));
    if let Some(address) = &address {
        aim(&mut plan, address);
    }
    let client = client::read(&mut reader);
    if reader.problems.is_empty() {
        let problems: Vec<_> =
            validate(&plan).iter().map(|problem| reader.translate(problem)).collect();
        reader.problems = problems;
    }
    match address {
        Some(address) if reader.problems.is_empty() => Ok(YcsbPlan {
            plan,
            unsupported_by_wire: address.unsupported_by_wire(&reader),
            uri: address.text,
            client,
            warnings: reader.warnings,
        }),
        _ => Err(reader.problems),
    }
}

/// Applies properties to a plan; other values stay unchanged. The changed plan is not validated.
///
/// # Errors
/// All problems of the properties themselves; the plan may then be partly changed.
pub fn apply(
    plan: &mut Plan,
    properties: &Properties,
    lenient: bool,
) -> Result<Applied, Vec<Problem>> {
    let mut reader = Reader::new(properties, lenient);
    convert::apply(plan, &mut reader);
    check_classes(&mut reader);
    let address = address::read(&mut reader, None);
    if let Some(address) = &address {
        plan.server = ServerPlan { kind: ServerKind::Uri, ..Default::default() };
        aim(plan, address);
    }
    client::read(&mut reader);
    for property in PROPERTIES.iter().filter(|one| matches!(one.treatment, Treatment::Client(_))) {
        reader.warn_unused(property.name, "it belongs to `dyno ycsb`");
    }
    if reader.problems.is_empty() {
        Ok(Applied { uri: address.map(|address| address.text), warnings: reader.warnings })
    } else {
        Err(reader.problems)
    }
}

/// YCSB's defaults. `recordcount` has no usable default.
fn defaults(properties: &Properties) -> Plan {
    let client = ClientPlan { clients: 1, threads: 1, batch: 1, ..Default::default() };
    let phases = PhasePlan { warmup: Span::from_secs(0), duration: None, operations: None };
    Plan {
        name: name(properties),
        server: ServerPlan { kind: ServerKind::Uri, ..Default::default() },
        data: DataPlan { records: 0, ..Default::default() },
        operations: OperationWeights { read: 0.95, update: 0.05, ..Default::default() },
        keys: KeyDistribution::Uniform {},
        client,
        phases,
        ..file::default_plan()
    }
}

/// The name of the last property file, reduced to valid characters of a plan's name, or `ycsb`.
fn name(properties: &Properties) -> String {
    let file =
        properties.origins().last().and_then(|origin| Path::new(origin).file_name()?.to_str());
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = file.unwrap_or_default().chars().filter(allowed).take(64).collect();
    match name.trim_start_matches('.') {
        "" => "ycsb".into(),
        name => name.into(),
    }
}

/// Aims the plan at a running server, and uses the database of the connection string. YCSB ignores
/// `admin`, which is usually there for authentication.
fn aim(plan: &mut Plan, address: &Address) {
    if plan.server.kind == ServerKind::Uri {
        plan.server.uri = Some(address.target.to_string());
    }
    if let Some(database) = address.target.database.as_ref().filter(|database| *database != "admin")
    {
        plan.data.database = database.clone();
    }
}

/// Checks for the only existing classes, under the package names of all versions of YCSB.
fn check_classes(reader: &mut Reader<'_>) {
    let last = |class: &str| class.rsplit('.').next().unwrap_or_default().to_owned();
    if reader.text("workload").is_some_and(|class| last(class) != "CoreWorkload") {
        reader.refuse("workload", "`site.ycsb.workloads.CoreWorkload`, the only workload class");
    }
    let is_mongodb = |class: &str| class == "mongodb" || last(class) == "MongoDbClient";
    if reader.text("db").is_some_and(|class| !is_mongodb(class)) {
        reader.refuse("db", "`site.ycsb.db.MongoDbClient`, the only binding");
    }
}

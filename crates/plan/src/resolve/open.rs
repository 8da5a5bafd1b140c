//! Opens the plan that a request names, and applies the YCSB properties to it.

use crate::builtin::{self, Plans};
use crate::error::PlanError;
use crate::file;
use crate::model::Plan;
use crate::nearest::nearest;
use crate::request::{Request, Work};
use crate::suite;
use crate::text;
use crate::ycsb::{self, Phase, Properties};
use std::path::Path;

/// An unfinished task.
pub(super) struct Draft {
    pub(super) plan: Plan,
    /// The connection string in the properties. May contain credentials.
    pub(super) uri: Option<String>,
    pub(super) warnings: Vec<String>,
}

/// A built-in plan whose servers are the default ones.
const USUAL_LOAD: &str = "a";
const USUAL_INDEX_BUILD: &str = "churned";
const USUAL_TAIL: &str = "tail";
/// The built-in index build for an existing collection.
const EXISTING: &str = "existing";

/// Name of a built-in plan or path of a file.
pub(super) fn source<'a>(request: &'a Request, framework: Option<&'a str>) -> &'a str {
    let usual = match &request.work {
        Work::IndexBuild { collection: Some(_) } => return EXISTING,
        Work::IndexBuild { collection: None } => USUAL_INDEX_BUILD,
        Work::Tail => USUAL_TAIL,
        Work::Run | Work::Soak { .. } | Work::Load | Work::Experiment | Work::Servers => USUAL_LOAD,
    };
    framework.or(request.source.as_deref()).unwrap_or(usual)
}

/// Opens the plan of the work. `properties` are the request's properties and lower-priority ones.
pub(super) fn open(
    request: &Request,
    source: &str,
    properties: &[(String, String)],
) -> Result<Draft, PlanError> {
    let plans = match request.work {
        Work::IndexBuild { .. } => &builtin::INDEX_BUILDS,
        Work::Tail => &builtin::TAILS,
        _ => &builtin::LOADS,
    };
    match (plans.find(source), &request.work) {
        (Some(plan), Work::IndexBuild { .. }) => return index_build(plan, request, properties),
        (Some(plan), _) => return with_properties(plan, request, properties),
        (None, _) => {}
    }
    let mut draft = load(request, source, properties, plans)?;
    match request.work {
        Work::IndexBuild { .. } => drop(draft.plan.index_build.get_or_insert_default()),
        Work::Tail => drop(draft.plan.tail.get_or_insert_default()),
        _ => {}
    }
    Ok(draft)
}

/// Opens an index build. A built-in plan sets how its server is started.
fn index_build(
    mut plan: Plan,
    request: &Request,
    properties: &[(String, String)],
) -> Result<Draft, PlanError> {
    let server = plan.server.clone();
    if request.uri.is_some() {
        plan.server = Default::default();
    }
    let is_ignored = server != plan.server;
    let mut draft = with_properties(plan, request, properties)?;
    if is_ignored {
        let text = "the plan's cache and compressor apply to a server that dyno starts; the \
            running server keeps its own";
        draft.warnings.push(text.into());
    }
    Ok(draft)
}

fn load(
    request: &Request,
    source: &str,
    properties: &[(String, String)],
    plans: &'static Plans,
) -> Result<Draft, PlanError> {
    if let Some(plan) = builtin::find(source) {
        return with_properties(plan, request, properties);
    }
    let is_suite = || PlanError::IsSuite { name: source.to_owned() };
    if builtin::suite(source).is_some() {
        return Err(is_suite());
    }
    let path = Path::new(source);
    if !path.exists() {
        return Err(PlanError::Unknown {
            plans,
            name: source.into(),
            nearest: ycsb_workload(source, plans).or_else(|| nearest(source, plans.names())),
        });
    }
    let unreadable = PlanError::unreadable(path);
    let bytes = std::fs::read(path).map_err(&unreadable)?;
    let text = text::utf8_or_latin1(&bytes).map_err(&unreadable)?;
    if is_property_file(path, &text) {
        return from_properties(&text, source, request, properties);
    }
    let text = text::utf8(&bytes).map_err(&unreadable)?;
    if suite::is_suite(text) {
        return Err(is_suite());
    }
    let plan = file::parse_in(path.parent(), text, source)?;
    with_properties(plan, request, properties)
}

/// The built-in plan of one of YCSB's workload files, such as `workloads/workloada`.
fn ycsb_workload(source: &str, plans: &Plans) -> Option<&'static str> {
    let file = source.rsplit('/').next()?.to_lowercase();
    let letter = file.strip_prefix("workload")?.trim_start_matches(['-', '_', ' ']);
    plans.names().find(|name| *name == letter)
}

/// Property files have no fixed suffix, but each of them names a workload class.
pub(super) fn is_property_file(path: &Path, text: &str) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => false,
        Some("properties") => true,
        _ => text.lines().any(|line| {
            let line = line.trim_start();
            ["workload=", "workload:", "workload ", "recordcount", "readproportion"]
                .iter()
                .any(|start| line.starts_with(start))
        }),
    }
}

fn from_properties(
    text: &str,
    origin: &str,
    request: &Request,
    more: &[(String, String)],
) -> Result<Draft, PlanError> {
    let mut properties = Properties::parse(text, origin).map_err(PlanError::Properties)?;
    for (name, value) in more {
        properties.set(name, value);
    }
    // The options replace properties that the file would need otherwise.
    for (name, value) in [
        ("recordcount", request.overrides.records),
        ("operationcount", request.overrides.operations),
    ] {
        if let Some(value) = value {
            properties.set(name, &value.to_string());
        }
    }
    let gives_uri = properties.get("mongodb.url").is_some();
    let gives_server = properties.get("dyno.server").is_some();
    let resolved =
        ycsb::resolve(&properties, Phase::Run, request.lenient).map_err(PlanError::Properties)?;
    let mut plan = resolved.plan;
    if !gives_uri && !gives_server {
        // The tool's own server, unless the properties name one.
        plan.server = Default::default();
    }
    Ok(Draft { plan, uri: gives_uri.then_some(resolved.uri), warnings: resolved.warnings })
}

fn with_properties(
    mut plan: Plan,
    request: &Request,
    given: &[(String, String)],
) -> Result<Draft, PlanError> {
    if given.is_empty() {
        return Ok(Draft { plan, uri: None, warnings: Vec::new() });
    }
    let mut properties = Properties::default();
    for (name, value) in given {
        properties.set(name, value);
    }
    let applied =
        ycsb::apply(&mut plan, &properties, request.lenient).map_err(PlanError::Properties)?;
    if properties.get("recordcount").is_some() {
        plan.data.times_cache = None;
    }
    Ok(Draft { plan, uri: applied.uri, warnings: applied.warnings })
}

//! Applies parameters of the Workload Services Framework with a lower priority than the request.
//! Overridden parameters are reported.

use super::options;
use crate::builtin;
use crate::error::PlanError;
use crate::file;
use crate::model::{Plan, ServerKind};
use crate::problem::Problem;
use crate::request::{self, Request};
use crate::wsf::placement::OF_CLIENTS;
use crate::wsf::{self, Setting, WsfSettings};

/// Keys for the location of the servers' data.
const FOLDERS: [&str; 3] = ["server.data_dir", "server.data_dirs", "server.disk_mapping"];

/// Reads the parameters if they are requested.
pub(super) fn read(request: &Request) -> Result<Option<WsfSettings>, PlanError> {
    let settings =
        request.wsf.as_ref().map(|parameters| wsf::apply(parameters, request.source.as_deref()));
    settings.transpose().map_err(PlanError::Framework)
}

/// The properties of the parameters, followed by the request's properties, which override them.
pub(super) fn properties(
    settings: Option<&WsfSettings>,
    request: &Request,
) -> Vec<(String, String)> {
    let below = settings.map_or(&[][..], |settings| &settings.properties);
    let below = below.iter().map(|setting| (setting.name.to_owned(), setting.value.clone()));
    below.chain(request.properties.iter().cloned()).collect()
}

/// The keys of the parameters, without those that have no effect. `plan` is the plan to change.
pub(super) fn keys(
    settings: &mut WsfSettings,
    request: &Request,
    plan: &Plan,
) -> Result<Vec<request::Setting>, PlanError> {
    let refused = std::mem::take(&mut settings.refused_by_pods);
    if is_aimed(request, plan) {
        leave_out_clients(settings, request);
        let reason = "the server is already running";
        leave_out(settings, |key| key.starts_with("server."), reason);
        // All client hosts load it together.
        let mut mappings = settings.keys.iter_mut();
        if let Some(mapping) = mappings.find(|setting| setting.name == "fleet.mapping") {
            mapping.value = "deployment".into();
        }
    } else if !refused.is_empty() {
        return Err(PlanError::Framework(refused));
    }
    if request.data_dir.is_some() {
        let reason = "`--data-dir` overrides it";
        leave_out(settings, |key| FOLDERS.contains(&key), reason);
    }
    if request.overrides.pairs.is_some() {
        let reason = "`--pairs` overrides it";
        leave_out(settings, |key| key == "server.topology", reason);
    }
    let is_typed_topology = |setting: &request::Setting| {
        setting.key == "server.topology" && matches!(setting.value, request::SettingValue::Typed(_))
    };
    if request.settings.iter().any(is_typed_topology) {
        let reason = "`--topology` overrides it";
        let says_how_many = |key: &str| key == "server.topology" || key == "server.pairs";
        leave_out(settings, says_how_many, reason);
    }
    let keys = settings.keys.iter();
    let mut keys: Vec<request::Setting> = keys
        .map(|setting| request::Setting::from_text(setting.name, setting.value.clone()))
        .collect();
    keys.extend(load_one_by_one(settings, request));
    Ok(keys)
}

/// The framework's clients load one document per command. The latency of larger commands would not
/// be comparable under the same name.
fn load_one_by_one(settings: &mut WsfSettings, request: &Request) -> Option<request::Setting> {
    let is_batch = |name: &str| ["client.batch", "batchsize", "mongodb.batchsize"].contains(&name);
    let mut typed = (request.settings.iter().map(|setting| &setting.key))
        .chain(request.properties.iter().map(|(name, _)| name));
    let is_given = typed.any(|name| is_batch(name));
    // Plan and property files set it themselves.
    if is_given || !builtin::names().any(|name| name == settings.workload) {
        return None;
    }
    let note = "documents are loaded one by one, as in that workload; `--batch 100` is faster";
    settings.notes.push(note.into());
    Some(request::Setting::new("client.batch", 1))
}

/// Whether the run uses a running server.
fn is_aimed(request: &Request, plan: &Plan) -> bool {
    let mut plan = plan.clone();
    request.uri.is_some()
        || file::set(&mut plan, &request.settings).is_ok()
            && options::apply_server(&mut plan, &request.overrides, None).is_ok()
            && plan.server.kind == ServerKind::Uri
}

/// Removes keys that have no effect, with a warning for explicitly given ones.
fn leave_out(settings: &mut WsfSettings, has_no_effect: impl Fn(&str) -> bool, reason: &str) {
    let keys = std::mem::take(&mut settings.keys);
    let (gone, left): (Vec<Setting>, Vec<Setting>) =
        keys.into_iter().partition(|key| has_no_effect(key.name));
    for setting in gone.iter().filter(|setting| setting.given) {
        let text = format!("`{}` has no effect: {reason}", setting.variable);
        settings.warnings.push(text);
    }
    settings.keys = left;
}

/// Reports why the parameters that place clients have no effect; the reason differs from the
/// servers' reason.
fn leave_out_clients(settings: &mut WsfSettings, request: &Request) {
    let Some(at) = settings.keys.iter().position(|key| key.name == "server.placement") else {
        return;
    };
    let Setting { variable, value, .. } = &settings.keys[at];
    let note = wsf::placement::note(variable, value);
    settings.notes.retain(|one| *one != note);
    if OF_CLIENTS.contains(variable) {
        settings.keys.remove(at);
    }
    for variable in OF_CLIENTS {
        let reported = format!("`{variable}` has no effect: ");
        let is_reported = settings.warnings.iter().any(|one| one.starts_with(&reported));
        if is_given(request, variable) && !is_reported {
            let reason = "clients of running servers are not placed";
            settings.warnings.push(reported + reason);
        }
    }
}

/// Whether the parameter has a value; an empty one counts as absent.
fn is_given(request: &Request, variable: &str) -> bool {
    let parameters = request.wsf.as_ref();
    let text = parameters.and_then(|parameters| parameters.given.get(variable));
    text.is_some_and(|text| !text.trim().is_empty())
}

/// Adds the parameters that cause problems of the plan.
pub(super) fn explain(error: PlanError, settings: &WsfSettings) -> PlanError {
    let named = |mut problems: Vec<Problem>| {
        settings.explain(&mut problems);
        problems
    };
    match (error, settings.workload_variable) {
        (PlanError::Properties(problems), _) => PlanError::Properties(named(problems)),
        (PlanError::Invalid(problems), _) => PlanError::Invalid(named(problems)),
        (
            error @ (PlanError::Unknown { .. } | PlanError::Unreadable { .. } | PlanError::File(_)),
            Some(variable),
        ) => PlanError::NoWorkload { variable, source: Box::new(error) },
        (error, _) => error,
    }
}

//! Available hooks, and the reasons why others are unavailable.

use crate::error::TraceError;
use crate::hooks;
use crate::kernel::Kernel;
use crate::targets::{HookMethod, HookTarget};
use dyno_record::io_trace::document::HookKind;

/// Available hooks of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possibilities {
    /// Why nothing can be traced; `None` if tracing is possible.
    pub refusal: Option<TraceError>,
    /// Each target with its best hook, or the reasons against all hooks.
    pub targets: Vec<Possibility>,
    /// Each method to observe calls, with the reason if it is unavailable.
    pub methods: Vec<(HookMethod, Result<(), String>)>,
}

/// Availability of hooks for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possibility {
    pub target: HookTarget,
    /// Kind and name of the best hook, or the reasons against all hooks.
    pub hook: Result<(HookKind, String), String>,
}

/// Determines the available hooks. If tracing is impossible, returns only the reason.
pub fn possibilities(kernel: &dyn Kernel) -> Possibilities {
    if let Err(refusal) = kernel.admits() {
        return Possibilities { refusal: Some(refusal), targets: Vec::new(), methods: Vec::new() };
    }
    let possibility = |target| Possibility {
        target,
        hook: hooks::find(kernel, target, None, false).map(|hook| (hook.kind, hook.name)),
    };
    let method = |method| {
        let found = hooks::find(kernel, HookTarget::Transfers, Some(method), false);
        (method, found.map(drop).map_err(|reasons| own_reason(&reasons, method)))
    };
    let choice = hooks::choose(kernel, &crate::Filter::default(), true, None);
    Possibilities {
        refusal: choice.err(),
        targets: HookTarget::ALL.iter().copied().map(possibility).collect(),
        methods: HookMethod::ALL.iter().copied().map(method).collect(),
    }
}

/// Extracts the reason against one method from the reasons against all.
fn own_reason(reasons: &str, method: HookMethod) -> String {
    let prefix = format!("{}: ", method.as_str());
    reasons
        .split("; ")
        .find_map(|reason| reason.strip_prefix(&prefix))
        .unwrap_or(reasons)
        .to_owned()
}

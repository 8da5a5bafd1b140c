//! What could be traced here, and why the rest could not: for those who want to know before they try.

use crate::error::TraceError;
use crate::hooks;
use crate::kernel::Kernel;
use crate::targets::{HookMethod, HookTarget};
use dyno_record::io_trace::document::HookKind;

/// What could be traced here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possibilities {
    /// Why nothing can be traced; `None` if tracing is possible.
    pub refusal: Option<TraceError>,
    /// Each thing that can be observed, with the best hook or the reasons against all.
    pub targets: Vec<Possibility>,
    /// Each method to observe calls, with the reason if it is not possible.
    pub methods: Vec<(HookMethod, Result<(), String>)>,
}

/// Whether and how something can be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possibility {
    /// What.
    pub target: HookTarget,
    /// Kind and name of the best hook, or the reasons against all.
    pub hook: Result<(HookKind, String), String>,
}

/// Finds out what could be traced. Where nothing can, only the reason is reported.
pub fn possibilities(kernel: &dyn Kernel) -> Possibilities {
    if let Err(refusal) = kernel.admits() {
        return Possibilities {
            refusal: Some(refusal),
            targets: Vec::new(),
            methods: Vec::new(),
        };
    }
    let possibility = |target| Possibility {
        target,
        hook: hooks::find(kernel, target, None, false).map(|hook| (hook.kind, hook.name)),
    };
    let method = |method| {
        let found = hooks::find(kernel, HookTarget::Transfers, Some(method), false);
        (
            method,
            found
                .map(drop)
                .map_err(|reasons| own_reason(&reasons, method)),
        )
    };
    let choice = hooks::choose(kernel, &crate::Filter::default(), true, None);
    Possibilities {
        refusal: choice.err(),
        targets: HookTarget::ALL.iter().copied().map(possibility).collect(),
        methods: HookMethod::ALL.iter().copied().map(method).collect(),
    }
}

/// The reason against one method, out of the reasons against all.
fn own_reason(reasons: &str, method: HookMethod) -> String {
    let prefix = format!("{}: ", method.as_str());
    reasons
        .split("; ")
        .find_map(|reason| reason.strip_prefix(&prefix))
        .unwrap_or(reasons)
        .to_owned()
}

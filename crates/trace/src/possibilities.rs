//! What could be traced here, and why the rest could not: for those who want to know before they try.

use crate::error::TraceError;
use crate::hooks::{self, Watched, Way};
use crate::kernel::Kernel;
use dyno_record::io_trace::document::HookKind;

/// What could be traced here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possibilities {
    /// Why nothing can be traced; `None` if tracing is possible.
    pub refusal: Option<TraceError>,
    /// Each thing that can be observed, with the best hook or the reasons against all.
    pub watched: Vec<Possibility>,
    /// Each way to observe calls, with the reason if it is not possible.
    pub ways: Vec<(Way, Result<(), String>)>,
}

/// Whether and how something can be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possibility {
    /// What.
    pub watched: Watched,
    /// Kind and name of the best hook, or the reasons against all.
    pub hook: Result<(HookKind, String), String>,
}

/// Finds out what could be traced. Where nothing can, only the reason is told.
pub fn possibilities(kernel: &dyn Kernel) -> Possibilities {
    if let Err(refusal) = kernel.admits() {
        return Possibilities {
            refusal: Some(refusal),
            watched: Vec::new(),
            ways: Vec::new(),
        };
    }
    let look = |watched| Possibility {
        watched,
        hook: hooks::find(kernel, watched, None, false).map(|hook| (hook.kind, hook.name)),
    };
    let way = |way| {
        let found = hooks::find(kernel, Watched::Transfers, Some(way), false);
        (
            way,
            found.map(drop).map_err(|reasons| own_reason(&reasons, way)),
        )
    };
    let settled = hooks::choose(kernel, &crate::Filter::default(), true, None);
    Possibilities {
        refusal: settled.err(),
        watched: Watched::ALL.into_iter().map(look).collect(),
        ways: Way::ALL.into_iter().map(way).collect(),
    }
}

/// The reason against one way out of those against all.
fn own_reason(reasons: &str, way: Way) -> String {
    let prefix = format!("{}: ", way.as_str());
    reasons
        .split("; ")
        .find_map(|reason| reason.strip_prefix(&prefix))
        .unwrap_or(reasons)
        .to_owned()
}

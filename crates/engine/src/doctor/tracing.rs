//! Support for tracing on this machine.

use dyno_trace::kernel::Kernel;
use dyno_trace::possibilities;
use serde::Serialize;
use std::fmt::Write as _;

/// Tracing support.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tracing {
    /// Whether `dyno trace` works here.
    possible: bool,
    /// Why it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Trace targets and their hooks.
    watched: Vec<Watched>,
    /// Tracing methods, best first, each with the reason if it is unavailable.
    ways: Vec<WayHere>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Watched {
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct WayHere {
    way: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Queries the kernel.
pub fn tracing(kernel: &dyn Kernel) -> Tracing {
    let found = possibilities(kernel);
    let watched = found.targets.iter().map(|each| Watched {
        what: each.target.as_str().to_owned(),
        hook: each.hook.as_ref().ok().map(|(_, name)| name.clone()),
        reason: each.hook.as_ref().err().cloned(),
    });
    let ways = found.methods.iter().map(|(method, result)| WayHere {
        way: method.as_str().to_owned(),
        reason: result.as_ref().err().cloned(),
    });
    Tracing {
        possible: found.refusal.is_none(),
        reason: found.refusal.as_ref().map(ToString::to_string),
        hint: found.refusal.as_ref().and_then(|refusal| refusal.hint()),
        watched: watched.collect(),
        ways: ways.collect(),
    }
}

/// Text form, shown after the checks.
pub fn human(tracing: &Tracing) -> String {
    let mut text = String::from("\ntracing of file I/O (`dyno trace`): ");
    if let Some(reason) = &tracing.reason {
        let _ = writeln!(text, "not possible: {reason}");
        if let Some(hint) = &tracing.hint {
            let _ = writeln!(text, "  do: {hint}");
        }
        return text;
    }
    let best = tracing.ways.iter().find(|way| way.reason.is_none());
    let _ = writeln!(text, "possible, by {}", best.map_or("other hooks", |way| &way.way));
    for way in &tracing.ways {
        if let Some(reason) = &way.reason {
            let _ = writeln!(text, "  not by {}: {reason}", way.way);
        }
    }
    for each in &tracing.watched {
        if let Some(reason) = &each.reason {
            let _ = writeln!(text, "  cannot see {}: {reason}", each.what);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_trace::TraceError;
    use dyno_trace::targets::HookMethod;

    /// A kernel with known answers.
    struct Known(Option<TraceError>);

    impl Kernel for Known {
        fn admits(&self) -> Result<(), TraceError> {
            self.0.clone().map_or(Ok(()), Err)
        }
        fn fentry(&self) -> Result<(), String> {
            Err("trampolines are refused".into())
        }
        fn kprobe(&self) -> Result<(), String> {
            Err("there are none".into())
        }
        fn function(&self, _: &str) -> bool {
            false
        }
        fn tracepoint(&self, _: &str) -> Result<usize, String> {
            Ok(3)
        }
        fn tracefs(&self) -> Result<(), String> {
            Ok(())
        }
        fn point(&self, _: &str, _: &str) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn missing_kernel_types_are_reported_with_the_remedy() {
        let error = TraceError::NoTypes { path: "/sys/kernel/btf/vmlinux".into() };
        let tracing = tracing(&Known(Some(error.clone())));
        assert!(!tracing.possible);
        assert_eq!(tracing.reason, Some(error.to_string()));
        let text = human(&tracing);
        for part in [error.to_string().as_str(), "CONFIG_DEBUG_INFO_BTF"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn tracing_method_is_shown_with_reasons_against_better_ones() {
        let tracing = tracing(&Known(None));
        assert!(tracing.possible);
        let text = human(&tracing);
        let mut lines = text.lines();
        let mut names = |parts: &[&str]| {
            let is_there = lines.any(|line| parts.iter().all(|part| line.contains(part)));
            assert!(is_there, "{parts:?}: {text}");
        };
        names(&[HookMethod::SyscallPair.as_str()]);
        names(&["fentry", &Known(None).fentry().unwrap_err()]);
    }
}

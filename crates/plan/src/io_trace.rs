//! `trace` in a plan: whether the servers' files are traced during a run, in which window, and
//! which operations. `trace = true` is the table with its defaults.

use crate::model::PhaseKind;
use crate::names::with_defaults;
use crate::units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Operations that can be traced.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TracedOperation {
    /// Reads, and first accesses to pages of mapped files.
    Read,
    /// Writes.
    Write,
    /// Flushes of files: `fsync`, `fdatasync` and the like.
    Sync,
}

/// Level of detail of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceMode {
    /// Each call with its offset, size and latency.
    #[default]
    Events,
    /// Counts and histograms of each file, made in the kernel: cheaper, and small even after days.
    Aggregated,
}

with_defaults! {
    /// The I/O trace of a run: its window, operations and files.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct IoTracePlan {
        /// Phase of the trace window.
        pub phase: PhaseKind = PhaseKind::Measure,
        /// Time from the start of the phase to the start of the trace.
        pub from: Span = Span::from_secs(0),
        /// Longest duration; until the end of the phase when absent.
        #[serde(rename = "for")]
        pub length: Option<Span>,
        /// Whether each call is stored, or only counts and histograms.
        pub mode: TraceMode = TraceMode::Events,
        /// Operations to trace.
        pub operations: Vec<TracedOperation> =
            vec![TracedOperation::Read, TracedOperation::Write, TracedOperation::Sync],
        /// Patterns of file names, such as `*.wt`; a pattern with `/` matches whole paths. All
        /// files when empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub files: Vec<String>,
        /// Calls with fewer bytes are omitted.
        pub smallest: Option<Bytes>,
    }
}

/// Form of `trace` in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Switch {
    /// The defaults, or no trace.
    OnOff(bool),
    /// A trace in detail.
    Table(IoTracePlan),
}

/// `true`, `false` or a table.
pub(crate) fn switch<'de, D: Deserializer<'de>>(from: D) -> Result<Option<IoTracePlan>, D::Error> {
    Ok(match Option::<Switch>::deserialize(from)? {
        None | Some(Switch::OnOff(false)) => None,
        Some(Switch::OnOff(true)) => Some(IoTracePlan::default()),
        Some(Switch::Table(table)) => Some(table),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::file;
    use crate::request::Setting;

    fn trace_of(text: &str) -> Option<IoTracePlan> {
        plan_of(text).trace
    }

    fn plan_of(text: &str) -> Plan {
        file::parse(text, "t").unwrap_or_else(|error| panic!("{error}"))
    }

    fn problem_of(text: &str) -> String {
        file::parse(text, "t").expect_err("it is wrong").to_string()
    }

    #[test]
    fn trace_is_switched_on_and_off_by_one_word() {
        assert_eq!(trace_of("base = \"a\"\n"), None);
        assert_eq!(trace_of("base = \"a\"\ntrace = false\n"), None);
        let on = trace_of("base = \"a\"\ntrace = true\n");
        assert_eq!(on, Some(IoTracePlan::default()));
    }

    #[test]
    fn table_changes_only_the_keys_that_it_names() {
        let text = "base = \"a\"\n[trace]\nphase = \"load\"\nfrom = \"2s\"\nfor = \"30s\"\n\
                    mode = \"aggregated\"\noperations = [\"read\"]\nfiles = [\"*.wt\"]\nsmallest = \"4KiB\"\n";
        let trace = trace_of(text).expect("there is one");
        assert_eq!(trace.phase, PhaseKind::Load);
        assert_eq!(trace.length, Some(Span::from_secs(30)));
        assert_eq!(trace.mode, TraceMode::Aggregated);
        assert_eq!(trace.operations, [TracedOperation::Read]);
        let empty = trace_of("base = \"a\"\n[trace]\nfrom = \"2s\"\n").expect("there is one");
        assert_eq!(empty.operations, IoTracePlan::default().operations);
    }

    #[test]
    fn plan_with_a_trace_survives_its_own_file() {
        let plan = plan_of("base = \"a\"\n[trace]\nfor = \"30s\"\nfiles = [\"*.wt\"]\n");
        assert_eq!(plan_of(&file::to_toml(&plan)), plan);
    }

    #[test]
    fn wrong_values_are_reported_with_their_key() {
        let unknown = problem_of("base = \"a\"\n[trace]\nfore = \"2s\"\n");
        assert!(unknown.contains("line 3"), "{unknown}");
        assert!(unknown.contains("`trace.fore`"), "{unknown}");
        let kind = problem_of("base = \"a\"\ntrace = 3\n");
        assert!(kind.contains("`trace`") && kind.contains("integer"), "{kind}");
        let none = problem_of("base = \"a\"\n[trace]\noperations = []\n");
        assert!(none.contains("`trace.operations`"), "{none}");
        let word = problem_of("base = \"a\"\n[trace]\noperations = [\"reads\"]\n");
        assert!(word.contains("`read`"), "{word}");
        let zero = problem_of("base = \"a\"\n[trace]\nfor = \"0s\"\n");
        assert!(zero.contains("`trace.for`"), "{zero}");
    }

    #[test]
    fn option_enables_the_trace_of_a_table() {
        let mut plan = plan_of("base = \"a\"\n[trace]\nfor = \"30s\"\n");
        let set = |plan: &mut Plan, key: &str, value: &str| {
            file::set(plan, &[Setting::from_text(key, value)]).expect("it fits");
        };
        set(&mut plan, "trace.mode", "aggregated");
        assert_eq!(plan.trace.as_ref().map(|trace| trace.mode), Some(TraceMode::Aggregated));
        set(&mut plan, "trace", "false");
        assert_eq!(plan.trace, None);
    }
}

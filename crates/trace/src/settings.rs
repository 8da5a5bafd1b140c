//! What to trace, and how.

use crate::error::TraceError;
use crate::targets::{HookMethod, HookTarget};
use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::Operation;
use glob::{MatchOptions, Pattern};

/// What is let through. Everything else is left out in the kernel, before it costs more than a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Processes. Their children and threads belong to them, those that follow too.
    pub processes: Vec<u32>,
    /// Patterns of file names, see [`FilePatterns`]; all files if there are none.
    pub files: Vec<String>,
    /// Operations; all if there are none.
    pub operations: Vec<Operation>,
    /// Calls that ask for fewer bytes are left out. Syncs are not.
    pub smallest_bytes: u64,
}

impl Filter {
    /// Whether an operation is let through.
    pub fn has(&self, operation: Operation) -> bool {
        self.operations.is_empty() || self.operations.contains(&operation)
    }

    /// Whether it asks for a target. `block` says whether requests of the block layer are recorded.
    pub(crate) fn wants(&self, target: HookTarget, block: bool) -> bool {
        let transfers = self.has(Operation::Read) || self.has(Operation::Write);
        match target {
            HookTarget::Processes | HookTarget::Names => true,
            HookTarget::Transfers | HookTarget::Vectors | HookTarget::Unseen => transfers,
            HookTarget::Syncs | HookTarget::SyncRanges => self.has(Operation::Sync),
            HookTarget::IoUring => transfers || self.has(Operation::Sync),
            HookTarget::Faults => self.has(Operation::Fault),
            HookTarget::Block => block,
        }
    }
}

/// How to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What is let through.
    pub filter: Filter,
    /// Single events, or totals made in the kernel.
    pub mode: TraceMode,
    /// Whether requests of the block layer are recorded too.
    pub block: bool,
    /// Size of the buffer between kernel and reader; a power of two, 4 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// Zero of all times on the monotonic clock; `None` for the start of the trace.
    pub zero_monotonic_ns: Option<u64>,
    /// Whether the kernel counts runs and run time of the probes, which makes each of them slower by
    /// two looks at its clock.
    pub measure_cost: bool,
    /// The only method by which calls may be observed; `None` for the best one. For tests and comparisons.
    pub method: Option<HookMethod>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            filter: Filter::default(),
            mode: TraceMode::Events,
            block: true,
            ring_bytes: 16 << 20,
            zero_monotonic_ns: None,
            measure_cost: false,
            method: None,
        }
    }
}

impl Settings {
    /// Whether they make sense by themselves.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), TraceError> {
        FilePatterns::new(&self.filter.files)?;
        if !self.ring_bytes.is_power_of_two() || !(4096..=1 << 30).contains(&self.ring_bytes) {
            return Err(TraceError::Setting {
                setting: "the size of the buffer",
                expected: "a power of two from 4 KiB to 1 GiB".to_owned(),
            });
        }
        Ok(())
    }
}

/// Patterns of file names. One with a `/` is held against the whole path, where `*` does not go beyond
/// a folder and `**/` stands for any folders; one without is held against the name alone.
#[derive(Clone, Debug, Default)]
pub struct FilePatterns {
    patterns: Vec<(Pattern, bool)>,
}

impl FilePatterns {
    /// Reads patterns.
    ///
    /// # Errors
    /// A pattern that cannot be read.
    pub fn new(patterns: &[String]) -> Result<FilePatterns, TraceError> {
        let read = |text: &String| match Pattern::new(text) {
            Ok(pattern) => Ok((pattern, text.contains('/'))),
            Err(error) => Err(TraceError::Pattern {
                pattern: text.clone(),
                reason: error.to_string(),
            }),
        };
        let patterns = patterns.iter().map(read).collect::<Result<_, _>>()?;
        Ok(FilePatterns { patterns })
    }

    /// Whether there are none, and every file matches.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a path matches one of them.
    pub fn matches(&self, path: &str) -> bool {
        const OPTIONS: MatchOptions = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        self.is_empty()
            || self.patterns.iter().any(|(pattern, whole)| {
                pattern.matches_with(if *whole { path } else { name }, OPTIONS)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> FilePatterns {
        FilePatterns::new(
            &texts
                .iter()
                .map(|&text| text.to_owned())
                .collect::<Vec<_>>(),
        )
        .unwrap()
    }

    #[test]
    fn a_pattern_without_a_folder_is_held_against_the_name() {
        let some = patterns(&["*.wt", "journal-?"]);
        assert!(some.matches("/data/db/collection-7.wt"));
        assert!(some.matches("/data/journal-1"));
        assert!(!some.matches("/data/a.wt/other"));
        assert!(!some.matches("/data/journal-12"));
    }

    #[test]
    fn a_pattern_with_a_folder_is_held_against_the_whole_path() {
        let some = patterns(&["/data/*.wt", "**/base/*"]);
        assert!(some.matches("/data/a.wt"));
        assert!(!some.matches("/data/db/a.wt"));
        assert!(some.matches("/var/lib/base/1234"));
        assert!(!some.matches("/var/lib/base/1234/5"));
    }

    #[test]
    fn without_patterns_every_file_matches() {
        assert!(patterns(&[]).matches("/anything"));
    }

    #[test]
    fn a_pattern_that_cannot_be_read_is_named() {
        let filter = Filter {
            files: vec!["[a".to_owned()],
            ..Filter::default()
        };
        let settings = Settings {
            filter,
            ..Settings::default()
        };
        let error = settings.check().unwrap_err();
        assert!(
            matches!(&error, TraceError::Pattern { pattern, .. } if pattern == "[a"),
            "{error}"
        );
    }

    #[test]
    fn a_buffer_that_the_kernel_would_refuse_is_refused_before() {
        for ring_bytes in [0, 2048, 5000, 3 << 20, 1 << 31] {
            let settings = Settings {
                ring_bytes,
                ..Settings::default()
            };
            let refused = settings.check();
            assert!(
                matches!(refused, Err(TraceError::Setting { .. })),
                "{ring_bytes}"
            );
        }
        assert_eq!(Settings::default().check(), Ok(()));
    }
}

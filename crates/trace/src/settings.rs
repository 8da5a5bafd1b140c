//! Settings of a trace.

use crate::error::TraceError;
use crate::targets::{HookMethod, HookTarget};
use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::Operation;
use glob::{MatchOptions, Pattern};

/// Filter for calls. The kernel drops all others at a low cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Processes. Their children and threads are included, even future ones.
    pub processes: Vec<u32>,
    /// Patterns of file names, see [`FilePatterns`]; empty for all files.
    pub files: Vec<String>,
    /// Operations; empty for all.
    pub operations: Vec<Operation>,
    /// Minimum number of requested bytes; does not apply to syncs.
    pub smallest_bytes: u64,
}

impl Filter {
    /// Whether an operation passes.
    pub fn has(&self, operation: Operation) -> bool {
        self.operations.is_empty() || self.operations.contains(&operation)
    }

    /// Whether the filter needs a target. `block` enables requests of the block layer.
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

/// Settings of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub filter: Filter,
    /// Single events, or totals computed in the kernel.
    pub mode: TraceMode,
    /// Whether requests of the block layer are traced.
    pub block: bool,
    /// Size of the buffer between kernel and reader; a power of two, 4 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// Time zero on the monotonic clock; `None` for the start of the trace.
    pub zero_monotonic_ns: Option<u64>,
    /// Whether the kernel measures runs and run time of the probes, which adds two clock readings to each run.
    pub measure_cost: bool,
    /// The only allowed method to observe calls; `None` for the best one. For tests and comparisons.
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
    /// Validates the settings.
    ///
    /// # Errors
    /// The first invalid setting.
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

/// Patterns of file names. A pattern with a `/` is matched with the whole path, where `*` stays within a folder and
/// `**/` matches any folders; a pattern without one is matched with the file name.
#[derive(Clone, Debug, Default)]
pub struct FilePatterns {
    patterns: Vec<(Pattern, bool)>,
}

impl FilePatterns {
    /// Parses patterns.
    ///
    /// # Errors
    /// A pattern is invalid.
    pub fn new(patterns: &[String]) -> Result<FilePatterns, TraceError> {
        let read = |text: &String| match Pattern::new(text) {
            Ok(pattern) => Ok((pattern, text.contains('/'))),
            Err(error) => {
                Err(TraceError::Pattern { pattern: text.clone(), reason: error.to_string() })
            }
        };
        let patterns = patterns.iter().map(read).collect::<Result<_, _>>()?;
        Ok(FilePatterns { patterns })
    }

    /// Whether the list is empty, so that every file matches.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a path matches a pattern.
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
        FilePatterns::new(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_pattern_without_a_folder_matches_the_name() {
        let some = patterns(&["*.wt", "journal-?"]);
        assert!(some.matches("/data/db/collection-7.wt"));
        assert!(some.matches("/data/journal-1"));
        assert!(!some.matches("/data/a.wt/other"));
        assert!(!some.matches("/data/journal-12"));
    }

    #[test]
    fn a_pattern_with_a_folder_matches_the_whole_path() {
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
    fn an_invalid_pattern_is_named() {
        let filter = Filter { files: vec!["[a".to_owned()], ..Filter::default() };
        let settings = Settings { filter, ..Settings::default() };
        let error = settings.check().unwrap_err();
        assert!(
            matches!(&error, TraceError::Pattern { pattern, .. } if pattern == "[a"),
            "{error}"
        );
    }

    #[test]
    fn an_invalid_buffer_size_is_refused_before_the_kernel_does() {
        for ring_bytes in [0, 2048, 5000, 3 << 20, 1 << 31] {
            let settings = Settings { ring_bytes, ..Settings::default() };
            let refused = settings.check();
            assert!(matches!(refused, Err(TraceError::Setting { .. })), "{ring_bytes}");
        }
        assert_eq!(Settings::default().check(), Ok(()));
    }
}

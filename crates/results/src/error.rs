//! Errors of opening and analysing a directory.

use dyno_record::RecordError;

/// Why a directory cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The directory cannot be read or holds no such record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A time range or slices were requested of a trace without single calls.
    #[error("an aggregated trace has no single calls, so parts of it cannot be analysed")]
    Aggregated,
    /// The requested slices are too many for a report.
    #[error("`--slices` would make {count} pieces; at most {most} are shown")]
    TooManySlices {
        /// Slices of the requested length.
        count: i64,
        /// Upper limit of slices.
        most: i64,
    },
}

impl ResultsError {
    /// Advice to the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ResultsError::Record(_) => None,
            ResultsError::Aggregated => Some("record it without `--aggregated`"),
            ResultsError::TooManySlices { .. } => {
                Some("give a greater length, or a shorter part with `--window`")
            }
        }
    }
}

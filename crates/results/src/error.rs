//! What can go wrong when a directory is opened and analysed.

use dyno_record::RecordError;

/// Why a directory cannot be analysed as asked.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The directory cannot be read, or is none of ours.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A part of a trace is asked for that holds sums alone.
    #[error("an aggregated trace has no single calls, so nothing can be said of parts of it")]
    Aggregated,
    /// More pieces of time than a report can show.
    #[error("`--slices` would make {count} pieces; at most {most} are shown")]
    TooManySlices {
        /// Pieces of the length that was asked for.
        count: i64,
        /// Most pieces.
        most: i64,
    },
}

impl ResultsError {
    /// What to do about it.
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

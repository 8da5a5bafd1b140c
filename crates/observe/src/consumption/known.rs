//! A value or the reason why it is unknown.

/// A counter, or why it is not known.
pub type Known<T> = Result<T, String>;

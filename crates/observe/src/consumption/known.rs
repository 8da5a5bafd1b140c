//! What may not be known.

/// A counter, or why it is not known.
pub type Known<T> = Result<T, String>;

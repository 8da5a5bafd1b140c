//! The analysis against inputs whose answer is known.

mod access_pattern;
mod json;
mod recorded_faults;

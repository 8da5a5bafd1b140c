//! Experiments, comparisons and histories as text and pictures.

pub mod comparison;
pub mod history;

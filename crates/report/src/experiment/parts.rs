//! What each kind of answer contributes to the page.

use crate::page::{Definition, Fact, Figure, Section};
use dyno_record::experiment::Experiment;
use serde_json::Value;

/// The parts of a page that depend on the kind of answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// The answer in a few numbers.
    pub(super) headline: Vec<Figure>,
    /// How it was done, besides what is the same for all.
    pub(super) facts: Vec<Fact>,
    /// Charts and tables.
    pub(super) sections: Vec<Section>,
    /// What the words mean.
    pub(super) definitions: Vec<Definition>,
}

/// An option of the experiment by its name.
pub(super) fn option<'a>(experiment: &'a Experiment, name: &str) -> Option<&'a Value> {
    experiment.options.get(name)
}

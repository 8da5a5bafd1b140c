//! The parts that each kind of answer adds to the page.

use crate::page::{Definition, Fact, Figure, Section};

/// The parts of a page that depend on the kind of answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// The answer in a few numbers.
    pub(super) headline: Vec<Figure>,
    /// Method facts specific to the kind of answer.
    pub(super) facts: Vec<Fact>,
    pub(super) sections: Vec<Section>,
    /// Terms used.
    pub(super) definitions: Vec<Definition>,
}

//! What the parts of the engine have at hand.

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::load_source::LoadSource;
use crate::observer::SharedObserver;
use dyno_record::statement::Statement;

/// What work is done with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The place that it is done in.
    pub environment: &'a Environment,
    /// Ends it early.
    pub cancel: &'a Cancel,
    /// Is told what happens.
    pub observer: &'a dyn SharedObserver,
    /// Where the load comes from, if not from this process.
    pub source: Option<&'a dyn LoadSource>,
}

impl Context<'_> {
    /// Tells a person what is good to know.
    pub fn note(&self, text: impl AsRef<str>) {
        self.observer.note(text.as_ref());
    }

    /// Tells a person what should be looked at.
    pub fn warning(&self, text: impl AsRef<str>) {
        self.observer.warning(text.as_ref());
    }

    /// Tells a person of a reason to doubt what is measured.
    pub fn doubt(&self, doubt: &Statement) {
        self.observer.doubt(doubt);
    }
}

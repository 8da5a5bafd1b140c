//! What all topics of a machine have in common.

use crate::health::Reading;
use crate::watch::source::Reported;

/// A topic of a machine, with what it remembers of the reading before.
pub(super) trait Part: Send {
    /// What it is called among the missing parts.
    fn name(&self) -> &'static str;

    /// Reads it and reports its values.
    ///
    /// # Errors
    /// The part is missing as a whole, and why. Values that were reported before are good.
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()>;
}

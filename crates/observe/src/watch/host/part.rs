//! Common interface of all topics of a machine.

use crate::health::Reading;
use crate::watch::source::Reported;

/// A topic of a machine, with its state from the previous reading.
pub(super) trait Part: Send {
    /// Reads the topic and reports its values.
    ///
    /// # Errors
    /// Why the part is missing as a whole. Values reported before the error are valid.
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()>;
}

//! The order of a collection's documents on disk: loading in several orders, and remedies that change the order without losing a
//! document.
//!
//! Uses commands over a few blocking connections; their duration is not measured.

mod collection;
mod contents;
mod documents;
mod error;
mod loading;
mod remedies;
mod share;

pub use collection::{Collection, Held, Shape};
pub use contents::{ContentHash, Contents, contents};
pub use documents::Units;
pub use error::LayoutError;
pub use loading::{Load, load};
pub use remedies::{Applied, apply, check, check_place, copy_prefix};
pub use share::Share;

use dyno_load::connect::Control;

/// Connections and callbacks of loading and remedies.
pub struct Access<'a> {
    /// Opens a connection on which commands end at an interruption.
    pub connect: &'a (dyn Fn() -> Result<Control, LayoutError> + Sync),
    /// Opens a connection on which commands finish despite an interruption, for cleaning up.
    pub patient: &'a (dyn Fn() -> Result<Control, LayoutError> + Sync),
    /// Polled; `true` ends the work in order.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Receives the current action, and the number of processed and of all documents.
    pub progress: &'a (dyn Fn(&str, u64, u64) + Sync),
}

impl Access<'_> {
    fn check(&self) -> Result<(), LayoutError> {
        if (self.interrupted)() { Err(LayoutError::Interrupted) } else { Ok(()) }
    }
}

//! How the documents of a collection come to lie on the disk as they do, and what can be done about it: loading in
//! several orders, and remedies that give a collection another order without losing a document.
//!
//! Everything is done by commands over a few blocking connections; how long it takes is not what is measured.

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

/// What loading and remedies work with.
pub struct Access<'a> {
    /// Makes a connection on which commands end once it is asked to end.
    pub connect: &'a (dyn Fn() -> Result<Control, LayoutError> + Sync),
    /// Makes a connection on which commands come to their end all the same, to leave things in order.
    pub patient: &'a (dyn Fn() -> Result<Control, LayoutError> + Sync),
    /// Asked again and again; what goes on ends in order once it says so.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Told what is done and how many documents of how many it has been done to.
    pub progress: &'a (dyn Fn(&str, u64, u64) + Sync),
}

impl Access<'_> {
    fn check(&self) -> Result<(), LayoutError> {
        if (self.interrupted)() {
            Err(LayoutError::Interrupted)
        } else {
            Ok(())
        }
    }
}

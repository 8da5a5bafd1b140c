//! Many client hosts and many servers, one result.
//!
//! Redis is the meeting point: agents come to it, take their shares, wait at barriers, and send one window per interval;
//! the controller hands out, waits with deadlines, merges, and takes everything away again. What an agent does between
//! barriers is left to its caller, as are starting programs on hosts and writing run directories.

pub mod agent;
pub mod clock;
pub mod controller;
pub mod endpoint;
pub mod error;
pub mod inventory;
pub mod kubernetes;
pub mod limits;
pub mod merge;
pub mod names;
pub mod protocol;
pub mod readings;
pub mod shares;
pub mod window;

pub use error::FleetError;

//! The two ways to perform operations: our own protocol path and the official driver. Both are
//! driven by the same core and record in the same way.

pub mod driver;
pub(crate) mod poller;
pub(crate) mod reconnect;
pub(crate) mod wire;

use crate::connect::Connector;

/// What performs the operations, and on which deployment.
pub enum Backend {
    /// Our own protocol path.
    Wire(Connector),
    /// The official driver.
    Driver(Box<driver::DriverTarget>),
}

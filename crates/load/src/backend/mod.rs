//! The two ways to perform operations: dyno's own protocol implementation and the official driver. The same core drives
//! both, and they record in the same way.

pub mod driver;
pub(crate) mod poller;
pub(crate) mod reconnect;
pub(crate) mod wire;

use crate::connect::Connector;

/// Backend with its deployment.
pub enum Backend {
    /// dyno's own protocol implementation.
    Wire(Connector),
    /// The official driver.
    Driver(Box<driver::DriverTarget>),
}

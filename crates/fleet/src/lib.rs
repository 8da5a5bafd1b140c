//! Load from many client hosts on many servers, with one result.
//!
//! Redis is the meeting point: agents join, take their shares, wait at barriers, and send one window per interval. The controller
//! distributes the shares, waits with deadlines, merges, and cleans up.
//!
//! [`Fleet`] is a [`LoadSource`](dyno_engine::load_source::LoadSource) of the engine: it starts agents on hosts by Ansible or in
//! pods by `kubectl`, lets them load servers together, and passes on their results. [`worker`] is such an agent. [`agent`] and
//! [`controller`] are the two ends of the protocol.

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
pub mod options;
pub mod permits;
pub mod program;
pub mod protocol;
pub mod readings;
mod secrets;
pub mod shares;
pub mod source;
pub mod window;
pub mod worker;

pub use error::FleetError;
pub use source::Fleet;

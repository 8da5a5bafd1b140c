//! Many client hosts and many servers, one result.
//!
//! Redis is the meeting point: agents come to it, take their shares, wait at barriers, and send one window per interval;
//! the controller hands out, waits with deadlines, merges, and takes everything away again.
//!
//! [`Fleet`] is a [`LoadSource`](dyno_engine::load_source::LoadSource) of the engine: it brings agents to hosts by Ansible or
//! to pods by `kubectl`, lets them load servers together, and passes on what they measured. [`worker`] is such an agent.
//! [`agent`] and [`controller`] are the two ends of the messages.

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
pub mod protocol;
pub mod readings;
mod secrets;
pub mod shares;
pub mod source;
pub mod window;
pub mod worker;

pub use error::FleetError;
pub use source::Fleet;

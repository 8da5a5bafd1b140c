//! Starting, placing, securing and stopping servers.

mod deployment;
mod embedded;
mod placement;
mod scripted;
mod secured;

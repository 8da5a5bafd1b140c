//! Starting, placing, securing and stopping servers.

// First, for its macro.
#[macro_use]
mod one_server;

mod deployment;
mod placement;
mod real;
mod scripted;
mod secured;

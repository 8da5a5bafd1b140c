//! The load against responders and servers whose behaviour is known.

// First, for its macro.
#[macro_use]
mod both;

mod backends;
mod connect;
mod pairs;
mod prepare;
mod truth;

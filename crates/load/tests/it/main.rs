//! The load against responders and servers whose behaviour is known.

mod backends;
mod connect;
mod pairs;
mod prepare;
mod truth;

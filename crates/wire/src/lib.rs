//! The MongoDB wire protocol as pure functions on bytes: framing, BSON, pre-encoded commands,
//! replies, authentication, compression and the handshake.
//!
//! Nothing here does I/O, reads a clock or draws random numbers: functions take bytes and return incomplete (`None`), a
//! value or an error. The load generator, test servers and benchmarks share it. Encoding a command and reading its
//! reply do not allocate once the buffers have grown.

pub mod aws;
pub mod bson;
pub mod code;
pub mod command;
pub mod compress;
pub mod frame;
pub mod handshake;
pub mod reply;
pub mod scram;

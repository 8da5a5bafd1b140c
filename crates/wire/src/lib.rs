//! The MongoDB wire protocol as pure functions on bytes: framing, BSON, pre-encoded commands,
//! replies, authentication, compression and the handshake.
//!
//! Nothing here does I/O, reads a clock or draws random numbers: bytes go in, and `Incomplete`
//! (`None`), a value or an error comes out. Load generator, stub servers, benches and tests share it.
//! Encoding a command and reading its reply allocate nothing once the buffers have grown.

pub mod bson;
pub mod code;
pub mod command;
pub mod compress;
pub mod frame;
pub mod handshake;
pub mod reply;
pub mod scram;

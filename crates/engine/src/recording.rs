//! Traces of file I/O on their way from the kernel into a folder, and what their files hold. What is traced, and when,
//! is left to the callers.

pub mod child;
pub mod roles;
pub mod settings;
pub mod trace;

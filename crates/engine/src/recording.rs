//! Records traces of file I/O from the kernel into a folder, and names the roles of the traced
//! files. Callers choose the targets and times.

pub mod child;
pub mod roles;
pub mod settings;
pub mod trace;

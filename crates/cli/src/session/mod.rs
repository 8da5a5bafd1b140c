//! What was typed, as a task.

<<<<<<< HEAD
=======
pub(crate) mod admin_client;
pub(crate) mod analysis;
pub(crate) mod choice;
pub(crate) mod collection;
pub(crate) mod directory;
pub(crate) mod document;
pub(crate) mod execute;
>>>>>>> 55d2e6b0e4bc73577f7ca33cdb14d79d48e0f4a4
pub(crate) mod framework;
pub(crate) mod task;

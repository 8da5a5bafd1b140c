//! Messages through the database: their document, their handling, a whole experiment.

mod document;
mod experiment;
mod handling;

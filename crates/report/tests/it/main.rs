//! Reports of known runs in every format.

mod analyses;
mod existing_runs;
mod experiments;
mod index_builds;
mod messages;
mod pages;
mod samples;
mod support;
mod texts;
mod traces;
mod watched;

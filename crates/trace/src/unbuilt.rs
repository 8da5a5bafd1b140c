//! Stands in for the tracer where it was not built.

use crate::error::TraceError;
use crate::settings::Settings;
use crate::traced::{Sink, Traced};
use dyno_record::io_trace::document::FileEntry;
use std::convert::Infallible;
use std::process::{Child, Command};
use std::time::Duration;

/// A trace that goes on. There is none without the feature `ebpf`.
#[derive(Debug)]
pub struct Tracer(Infallible);

impl Tracer {
    /// Begins a trace.
    ///
    /// # Errors
    /// Always: the tracer was not built.
    pub fn start(_settings: Settings) -> Result<Tracer, TraceError> {
        Err(TraceError::NotBuilt)
    }

    /// Starts a command and traces it from its first instruction.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn spawn(&mut self, _command: &mut Command) -> Result<Child, TraceError> {
        match self.0 {}
    }

    /// Traces one more process.
    ///
    /// # Errors
    /// There is no such process.
    pub fn follow(&mut self, _process: u32) -> Result<(), TraceError> {
        match self.0 {}
    }

    /// Hands over what has happened, waiting for something to happen for at most `timeout`.
    ///
    /// # Errors
    /// The kernel does not give it.
    pub fn poll(&mut self, _sink: &mut dyn Sink, _timeout: Duration) -> Result<(), TraceError> {
        match self.0 {}
    }

    /// The files that were met so far.
    pub fn files(&self) -> Vec<FileEntry> {
        match self.0 {}
    }

    /// Ends the trace and hands over the rest.
    ///
    /// # Errors
    /// The kernel does not give it.
    pub fn stop(self, _sink: &mut dyn Sink) -> Result<Traced, TraceError> {
        match self.0 {}
    }
}

/// Types of the kernel, which nobody can read here.
#[derive(Debug)]
pub(crate) struct Types;

impl Types {
    pub(crate) fn of_kernel() -> Types {
        Types
    }

    pub(crate) fn function(&self, _name: &str) -> bool {
        false
    }

    pub(crate) fn tracepoint(&self, _name: &str) -> Option<usize> {
        None
    }
}

pub(crate) mod trial {
    //! Hooks cannot be tried here.

    use crate::error::TraceError;

    pub(crate) fn fentry() -> Result<(), String> {
        Err(TraceError::NotBuilt.to_string())
    }

    pub(crate) fn kprobe() -> Result<(), String> {
        fentry()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LiveKernel, possibilities};

    #[test]
    fn build_without_tracer_says_how_to_get_it() {
        let refusal = Tracer::start(Settings::default()).unwrap_err();
        assert_eq!(refusal, TraceError::NotBuilt);
        assert!(refusal.hint().unwrap().contains("--features ebpf"));
        assert_eq!(possibilities(&LiveKernel::new()).refusal, Some(refusal));
    }
}

//! Replacement for the tracer in builds without it.

use crate::error::TraceError;
use crate::settings::Settings;
use crate::traced::{Sink, Traced};
use dyno_record::io_trace::document::FileEntry;
use std::convert::Infallible;
use std::process::{Child, Command};
use std::time::Duration;

/// A running trace, which cannot exist without the feature `ebpf`.
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

    /// Traces another process.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn follow(&mut self, _process: u32) -> Result<(), TraceError> {
        match self.0 {}
    }

    /// Passes new events to `sink`, waiting for at most `timeout`.
    ///
    /// # Errors
    /// The kernel refuses to provide the events.
    pub fn poll(&mut self, _sink: &mut dyn Sink, _timeout: Duration) -> Result<(), TraceError> {
        match self.0 {}
    }

    /// Files so far.
    pub fn files(&self) -> Vec<FileEntry> {
        match self.0 {}
    }

    /// Ends the trace and passes the remaining events.
    ///
    /// # Errors
    /// The kernel refuses to provide the events.
    pub fn stop(self, _sink: &mut dyn Sink) -> Result<Traced, TraceError> {
        match self.0 {}
    }
}

/// Types of the kernel, which cannot be read without the tracer.
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
    //! Without the tracer, hooks cannot be tried.

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
    fn start_without_tracer_hints_at_the_feature() {
        let refusal = Tracer::start(Settings::default()).unwrap_err();
        assert_eq!(refusal, TraceError::NotBuilt);
        assert!(refusal.hint().unwrap().contains("--features ebpf"));
        assert_eq!(possibilities(&LiveKernel::new()).refusal, Some(refusal));
    }
}

//! What a trace means: analysed from its folder, and put into words and pictures.

use crate::exit::Failure;
use crate::session::output::{HTML, MARKDOWN, write_file};
use dyno_analyze::access_pattern::{AccessPatterns, Activity, Settings, analyze};
use dyno_record::io_trace::document::{TraceDocument, TraceTarget};
use dyno_record::io_trace::reader::TraceReader;
use dyno_report::RenderOptions;
use dyno_report::experiment::ExperimentFormat;
use dyno_report::io_trace::{TraceView, render};
use std::path::Path;

/// A trace with what follows from it.
pub(crate) struct Analysed {
    pub(crate) document: TraceDocument,
    pub(crate) patterns: AccessPatterns,
    pub(crate) activity: Activity,
}

impl Analysed {
    /// Reads and analyses the trace in a folder; without a gap with that of the analysis.
    pub(crate) fn of(folder: &Path, gap_bytes: Option<u64>) -> Result<Analysed, Failure> {
        let reader = TraceReader::open(folder)?;
        let document = reader.document().clone();
        let mut settings = Settings::default();
        settings.gap_bytes = gap_bytes.unwrap_or(settings.gap_bytes);
        let patterns = analyze(settings, &document, reader.calls()?, reader.block()?)?;
        let activity = Activity {
            subject: subject(&document.target),
            scans_records: false,
        };
        Ok(Analysed {
            document,
            patterns,
            activity,
        })
    }

    /// In one of the forms.
    pub(crate) fn render(
        &self,
        format: ExperimentFormat,
        options: &RenderOptions,
    ) -> Result<String, Failure> {
        Ok(render(&self.view(), format, options)?)
    }

    /// As the reports take it.
    pub(crate) fn view(&self) -> TraceView<'_> {
        TraceView {
            document: &self.document,
            patterns: &self.patterns,
            activity: &self.activity,
        }
    }

    /// Writes the reports into the folder of the trace.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        for (name, format) in [
            (HTML, ExperimentFormat::Html),
            (MARKDOWN, ExperimentFormat::Markdown),
        ] {
            let text = self.render(format, &RenderOptions::default())?;
            write_file(&folder.join(name), &text)?;
        }
        Ok(())
    }
}

/// What was traced, as the subject of sentences.
fn subject(target: &TraceTarget) -> String {
    if let Some(name) = &target.name {
        return name.clone();
    }
    if let Some(program) = target.command.as_ref().and_then(|words| words.first()) {
        let name = program.rsplit('/').next().unwrap_or(program);
        return format!("`{name}`");
    }
    match target.processes.as_slice() {
        [] => "nobody".to_owned(),
        [only] => format!("process {only}"),
        several => format!("{} processes", several.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_traced_has_a_name_for_people() {
        let of = |processes: &[u32], command: Option<&str>, name: Option<&str>| {
            subject(&TraceTarget {
                processes: processes.to_vec(),
                command: command.map(|word| vec![word.to_owned(), "-x".to_owned()]),
                name: name.map(str::to_owned),
            })
        };
        assert_eq!(of(&[7], None, None), "process 7");
        assert_eq!(of(&[7, 8], None, None), "2 processes");
        assert_eq!(of(&[7], Some("/usr/bin/fio"), None), "`fio`");
        assert_eq!(of(&[7], None, Some("server `h:1`")), "server `h:1`");
    }
}

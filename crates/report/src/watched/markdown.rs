//! The verdict and the changes as Markdown.

use super::{ChangesModel, MissingParts, VerdictModel};
use crate::markdown::{Page, escape_around_code};

impl Page {
    /// What held the run up.
    pub(crate) fn verdict(&mut self, verdict: &VerdictModel) {
        self.heading("Verdict");
        self.line(&format!("**{}**", escape_around_code(&verdict.headline)));
        if !verdict.causes.is_empty() {
            self.line("");
        }
        for (number, cause) in verdict.causes.iter().enumerate() {
            let text = cause.text.as_deref().unwrap_or_default();
            let text = format!("{text} {}", cause.sureness_and_time());
            self.line(&format!(
                "{}. {}",
                number + 1,
                escape_around_code(text.trim_start())
            ));
            for evidence in &cause.evidence {
                self.line(&format!("   - {}", escape_around_code(&evidence.text)));
            }
            for advice in &cause.advice {
                self.line(&format!("   - **Try:** {}", escape_around_code(advice)));
            }
        }
        if !verdict.not_watched.is_empty() {
            self.line(&format!("\n{}", escape_around_code(&verdict.not_watched)));
        }
    }

    /// What changed over the measured time.
    pub(crate) fn changes(&mut self, changes: &ChangesModel) {
        self.heading("What changed over the measured time");
        for (number, entry) in changes.entries.iter().enumerate() {
            let text = escape_around_code(&entry.text);
            self.line(&format!("{}. {text}", number + 1));
        }
        if !changes.entries.is_empty() && !changes.others.is_empty() {
            self.line("");
        }
        for text in &changes.others {
            self.line(&format!("- {}", escape_around_code(text)));
        }
    }

    /// What is missing of the sources: the parts of those that are not well, and how many of the others.
    pub(crate) fn missing(&mut self, missing: &[MissingParts]) {
        for one in missing {
            let source = escape_around_code(&one.source);
            let end = if one.is_fault { ":" } else { "." };
            self.line(&format!("- Of source {source} {}{end}", one.count));
            for part in one.parts.iter().filter(|_| one.is_fault) {
                self.line(&format!("  - {}", escape_around_code(part)));
            }
        }
    }
}

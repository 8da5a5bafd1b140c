//! The verdict and the changes for a terminal.

use super::{CauseModel, ChangesModel, MissingParts, VerdictModel};
use crate::layout::Style;
use crate::terminal::Page;

impl Page {
    /// What held the run up.
    pub(crate) fn verdict(&mut self, verdict: &VerdictModel) {
        self.heading("Verdict");
        self.paragraph(&verdict.headline, 2, 2, Style::Bold);
        for (number, cause) in verdict.causes.iter().enumerate() {
            self.cause(number + 1, cause);
        }
        self.paragraph(&verdict.not_watched, 2, 2, Style::Dim);
    }

    fn cause(&mut self, number: usize, cause: &CauseModel) {
        let text = cause.text.as_deref().unwrap_or_default();
        let text = format!("{number}. {text} {}", cause.sureness_and_time());
        let column = 3 + number.to_string().len() + 1;
        self.paragraph(&text, 2, column, Style::Plain);
        for evidence in &cause.evidence {
            self.paragraph(
                &format!("- {}", evidence.text),
                column,
                column + 2,
                Style::Dim,
            );
        }
        for advice in &cause.advice {
            self.paragraph(&format!("try: {advice}"), column, column + 5, Style::Plain);
        }
    }

    /// What changed over the measured time.
    pub(crate) fn changes(&mut self, changes: &ChangesModel) {
        self.heading("What changed over the measured time");
        for (number, entry) in changes.entries.iter().enumerate() {
            let number = number + 1;
            let column = 3 + number.to_string().len() + 1;
            self.paragraph(
                &format!("{number}. {}", entry.text),
                2,
                column,
                Style::Plain,
            );
        }
        for text in &changes.others {
            self.paragraph(&format!("- {text}"), 2, 4, Style::Plain);
        }
    }

    /// What is missing of the sources: the parts of those that are not well, and how many of the others.
    pub(crate) fn missing(&mut self, missing: &[MissingParts]) {
        for one in missing {
            let text = format!("Of source {} {}", one.source, one.count);
            match one.is_fault {
                true => {
                    self.paragraph(&format!("{text}:"), 2, 4, Style::Dim);
                    for part in &one.parts {
                        self.paragraph(&format!("- {part}"), 4, 6, Style::Dim);
                    }
                }
                false => self.paragraph(&format!("{text}."), 2, 4, Style::Dim),
            }
        }
    }
}

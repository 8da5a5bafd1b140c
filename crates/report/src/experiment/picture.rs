//! A series of values over time, with its level shifts, as SVG. In a page it has the colours of the page; a file has
//! colours for light and dark backgrounds.

use crate::page::rows::round_step;
use dyno_record::quantity::Quantity;
use minijinja::HtmlEscape;
use std::fmt::Write as _;

/// Size in SVG units.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
/// Space for value labels on the left, run labels below, and changes above.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 28.0;
/// Space for the title in a file.
const TITLE: f64 = 28.0;
/// A label that begins further to the right would leave the picture.
const LAST_START: f64 = WIDTH - 110.0;
/// Largest number of run labels.
const MOST_LABELS: usize = 8;
/// Approximate number of value labels.
const LABELS: f64 = 4.0;
/// The axis shows at least this share of the values, so that noise does not look like a change.
const LEAST_SPAN_RATIO: f64 = 0.2;

/// Data of a picture.
#[derive(Clone, Debug)]
pub(super) struct SeriesPicture {
    pub(super) title: String,
    /// Format of the values.
    pub(super) quantity: fn(f64) -> Quantity,
    /// At least one value.
    pub(super) runs: Vec<PictureRun>,
    /// Level shifts in order of time.
    pub(super) changes: Vec<PictureChange>,
}

/// One value.
#[derive(Clone, Debug)]
pub(super) struct PictureRun {
    pub(super) value: f64,
    /// Its time in a few characters.
    pub(super) label: String,
    /// Tooltip text.
    pub(super) what: String,
}

/// A level shift.
#[derive(Clone, Debug)]
pub(super) struct PictureChange {
    /// Position of the first value after it.
    pub(super) position: usize,
    pub(super) is_worse: bool,
    /// Its size.
    pub(super) label: String,
}

impl SeriesPicture {
    /// The SVG element for a page.
    pub(super) fn inline(&self) -> String {
        let mut text = format!(
            "<svg class=\"series\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            HtmlEscape(&self.in_words())
        );
        self.draw(&mut text);
        text.push_str("</svg>");
        text
    }

    fn in_words(&self) -> String {
        let changes: Vec<&str> = self.changes.iter().map(|change| change.label.as_str()).collect();
        if changes.is_empty() {
            format!("{}: {} runs without a change", self.title, self.runs.len())
        } else {
            format!(
                "{}: {} runs, changes of {}",
                self.title,
                self.runs.len(),
                changes.join(" and ")
            )
        }
    }

    fn draw(&self, text: &mut String) {
        let axis = ValueAxis::of(self.runs.iter().map(|run| run.value));
        self.draw_axes(&axis, text);
        for (from, to, level) in self.levels() {
            let y = axis.y(level);
            line("level", (self.edge(from), y), (self.edge(to), y), text);
        }
        for change in &self.changes {
            self.draw_change(change, text);
        }
        let radius = if self.runs.len() > 200 { 2 } else { 3 };
        for (place, run) in self.runs.iter().enumerate() {
            let _ = write!(
                text,
                "<circle class=\"run\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"><title>{}: {}</title></circle>",
                self.middle(place),
                axis.y(run.value),
                HtmlEscape(&run.what),
                (self.quantity)(run.value),
            );
        }
    }

    fn draw_axes(&self, axis: &ValueAxis, text: &mut String) {
        for value in axis.labels() {
            let y = axis.y(value);
            line("mesh", (LEFT, y), (WIDTH - RIGHT, y), text);
            let label = (self.quantity)(value).to_string();
            write_text("", "end", (LEFT - 8.0, y + 4.0), &label, text);
        }
        let step = self.runs.len().div_ceil(MOST_LABELS);
        for (place, run) in self.runs.iter().enumerate().step_by(step) {
            let x = self.middle(place);
            let anchor = if x > WIDTH - 48.0 { "end" } else { "middle" };
            write_text("", anchor, (x, HEIGHT - 8.0), &run.label, text);
        }
    }

    fn draw_change(&self, change: &PictureChange, text: &mut String) {
        let class = if change.is_worse { "worse" } else { "better" };
        let x = self.edge(change.position);
        line(class, (x, TOP), (x, HEIGHT - BOTTOM), text);
        let (anchor, x) = if x > LAST_START { ("end", x - 6.0) } else { ("start", x + 6.0) };
        let label = format!("{}, {class}", change.label);
        write_text(class, anchor, (x, TOP - 8.0), &label, text);
    }

    /// Mean levels between the changes: start, end (exclusive), level.
    fn levels(&self) -> Vec<(usize, usize, f64)> {
        let mut edges: Vec<usize> = vec![0];
        edges.extend(self.changes.iter().map(|change| change.position));
        edges.push(self.runs.len());
        edges
            .windows(2)
            .filter(|edge| edge[1] > edge[0])
            .map(|edge| {
                let part = &self.runs[edge[0]..edge[1]];
                let sum: f64 = part.iter().map(|run| run.value).sum();
                (edge[0], edge[1], sum / part.len() as f64)
            })
            .collect()
    }

    /// Left edge of a run's place.
    fn edge(&self, place: usize) -> f64 {
        LEFT + place as f64 / self.runs.len() as f64 * (WIDTH - LEFT - RIGHT)
    }

    fn middle(&self, place: usize) -> f64 {
        self.edge(place).midpoint(self.edge(place + 1))
    }
}

/// All pictures in one SVG file, one below the other.
pub(super) fn file(pictures: &[SeriesPicture]) -> String {
    let height = (HEIGHT + TITLE) * pictures.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\
         <style>{STYLE}</style><rect class=\"background\" width=\"{WIDTH}\" height=\"{height}\"/>"
    );
    for (place, picture) in pictures.iter().enumerate() {
        let down = (HEIGHT + TITLE) * place as f64;
        let _ = write!(text, "<g transform=\"translate(0 {down})\">");
        write_text("title", "start", (LEFT, TITLE - 8.0), &picture.title, &mut text);
        let _ = write!(text, "<g transform=\"translate(0 {TITLE})\">");
        picture.draw(&mut text);
        text.push_str("</g></g>");
    }
    text.push_str("</svg>\n");
    text
}

/// Colours of a file, the same as on pages.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#5b6775}.title{font-size:15px;font-weight:600;fill:#1b2430}\
.background{fill:#fff}.mesh{stroke:#e9ecf0}.run{fill:#0072b2}.level{stroke:#1b2430;stroke-width:2}\
.worse,.better{stroke-dasharray:4 3}line.worse{stroke:#b3261e}line.better{stroke:#1c6b48}\
text.worse{fill:#b3261e}text.better{fill:#1c6b48}\
@media(prefers-color-scheme:dark){text{fill:#9aa7b5}.title{fill:#e7ebf0}.background{fill:#12161c}\
.mesh{stroke:#252d37}.run{fill:#56b4e9}.level{stroke:#e7ebf0}line.worse{stroke:#ff8a80}\
line.better{stroke:#6fd0a3}text.worse{fill:#ff8a80}text.better{fill:#6fd0a3}}";

fn line(class: &str, from: (f64, f64), to: (f64, f64), text: &mut String) {
    let _ = write!(
        text,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn write_text(class: &str, anchor: &str, at: (f64, f64), label: &str, text: &mut String) {
    let _ = write!(
        text,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        at.0,
        at.1,
        HtmlEscape(label)
    );
}

/// Maps values to heights. It begins at 0 unless all values are far from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ValueAxis {
    low: f64,
    high: f64,
}

impl ValueAxis {
    fn of(values: impl Iterator<Item = f64> + Clone) -> ValueAxis {
        let highest = values.clone().fold(0.0, f64::max);
        let lowest = values.fold(highest, f64::min);
        let span = (highest - lowest).max(highest * LEAST_SPAN_RATIO);
        let middle = lowest.midpoint(highest);
        let (low, high) = (middle - span * 0.75, middle + span * 0.75);
        let (low, high) = if highest <= 0.0 {
            (0.0, 1.0)
        } else if low < highest / 3.0 {
            (0.0, high.max(highest * 1.05))
        } else {
            (low, high)
        };
        ValueAxis { low, high }
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn labels(&self) -> Vec<f64> {
        let step = round_step((self.high - self.low) / LABELS);
        let first = (self.low / step).ceil();
        (0..)
            .map(|place| (first + f64::from(place)) * step)
            .take_while(|value| *value <= self.high)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(values: &[f64], changes: Vec<PictureChange>) -> SeriesPicture {
        let runs = values.iter().map(|value| PictureRun {
            value: *value,
            label: "2026-01-01".into(),
            what: "<run>".into(),
        });
        SeriesPicture {
            title: "rate".into(),
            quantity: Quantity::per_second,
            runs: runs.collect(),
            changes,
        }
    }

    fn attribute(element: &str, name: &str) -> f64 {
        let start = element.split(&format!(" {name}=\"")).nth(1).unwrap();
        start.split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn every_run_is_a_point_and_every_part_has_its_level() {
        let change = PictureChange { position: 2, is_worse: true, label: "-50 %".into() };
        let text = picture(&[100.0, 110.0, 50.0, 60.0], vec![change]).inline();
        let points: Vec<&str> = text.split("<circle").skip(1).collect();
        assert_eq!(points.len(), 4);
        let heights: Vec<f64> = points.iter().map(|point| attribute(point, "cy")).collect();
        assert!(heights[1] < heights[0] && heights[0] < heights[3] && heights[3] < heights[2]);
        let levels: Vec<&str> = text.split("class=\"level\"").skip(1).collect();
        assert_eq!(levels.len(), 2);
        let level = attribute(levels[0], "y1");
        assert!((level - heights[0].midpoint(heights[1])).abs() < 0.2);
        // The change lies between the runs, and where the levels meet.
        let at = attribute(text.split("<line class=\"worse\"").nth(1).unwrap(), "x1");
        assert!(attribute(points[1], "cx") < at && at < attribute(points[2], "cx"));
        assert_eq!(attribute(levels[0], "x2"), at);
        assert!(text.contains("-50 %, worse"), "{text}");
    }

    #[test]
    fn names_cannot_leave_the_picture() {
        let text = picture(&[1.0], Vec::new()).inline();
        assert!(text.contains("&lt;run&gt;") && !text.contains("<run>"), "{text}");
    }

    #[test]
    fn noise_is_not_stretched_over_the_whole_height() {
        let axis = ValueAxis::of([1000.0, 1005.0, 995.0].into_iter());
        assert!((axis.y(995.0) - axis.y(1005.0)).abs() < HEIGHT / 10.0);
        assert!(axis.low > 500.0);
        let wide = ValueAxis::of([1000.0, 200.0].into_iter());
        assert_eq!(wide.low, 0.0);
        assert!(wide.labels().len() >= 3, "{:?}", wide.labels());
    }

    #[test]
    fn a_file_has_all_pictures_and_its_own_colours() {
        let text = file(&[picture(&[1.0, 2.0], Vec::new()), picture(&[3.0], Vec::new())]);
        assert_eq!(text.matches("class=\"title\"").count(), 2);
        assert!(text.contains("prefers-color-scheme:dark"));
        assert!(text.starts_with("<svg xmlns") && text.ends_with("</svg>\n"));
    }
}

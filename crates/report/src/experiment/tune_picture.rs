//! Parallel coordinates of a search for settings: one axis per knob, and one line per tried setting.

use crate::page::Picture;
use dyno_record::experiment::{Knob, TuneAnswer, TuneGoal, TunePurpose, TuneTrial};
use minijinja::HtmlEscape;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Size in SVG units.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
/// Space for value labels on the sides, and for names below.
const SIDE: f64 = 70.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 44.0;
/// Longest label in characters.
const MOST_CHARACTERS: usize = 16;

/// The picture of all comparisons and the answer.
pub(super) fn parallel(knobs: &[Knob], answer: &TuneAnswer, goal: TuneGoal) -> Picture {
    let mut svg = format!(
        "<svg class=\"parallel\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Settings that were tried\">"
    );
    for (place, knob) in knobs.iter().enumerate() {
        draw_axis(&mut svg, knobs.len(), place, knob);
    }
    // Refused settings were not measured. Later elements are drawn on top, so the worst come first.
    let made = answer.trials.iter().filter(|trial| !trial.is_refused);
    let mut tried: Vec<&TuneTrial> = made.collect();
    let is_rising = goal.larger_is_better();
    let value = |trial: &TuneTrial| {
        let better = |ratio: f64| if is_rising { ratio } else { 1.0 / ratio };
        trial.ratio.map_or(f64::NEG_INFINITY, |ratio| better(ratio.value))
    };
    tried.sort_by(|one, other| value(one).total_cmp(&value(other)));
    for trial in tried {
        let (class, what) = match (&trial.ratio, &trial.problem) {
            (Some(ratio), _) => {
                let is_certain = |end: Option<f64>, beyond: fn(&f64) -> bool| {
                    end.is_some_and(|end| beyond(&end))
                };
                let is_above = is_certain(ratio.low, |low| *low > 1.0);
                let is_below = is_certain(ratio.high, |high| *high < 1.0);
                let class = match (is_above, is_below) {
                    (false, false) => "same",
                    (above, _) if above == is_rising => "better",
                    _ => "worse",
                };
                let beside = format!("{:.3} of the settings it was compared with", ratio.value);
                (class, beside)
            }
            (None, problem) => ("harm", problem.clone().unwrap_or_default()),
        };
        let (class, what) = match trial.purpose {
            TunePurpose::Search => (class.to_owned(), what),
            purpose => (format!("{class} after"), format!("{}: {what}", purpose.as_str())),
        };
        draw_line(&mut svg, knobs, trial.subject(), &class, &what);
    }
    if !answer.settings.is_empty() {
        draw_line(&mut svg, knobs, &answer.settings, "answer", "the answer");
    }
    svg.push_str("</svg>");
    Picture {
        title: "Settings that were tried".to_owned(),
        caption: "A line for each comparison, through its value of each knob: solid if it was certainly better than the settings \
                  it was compared with, faint if worse, dashed if undecided, dotted if the settings \
                  did harm. Thick lines are comparisons after the search, such as confirmations and comparisons with a change \
                  undone; the broad line is the answer."
            .to_owned(),
        svg,
    }
}

fn x(knobs: usize, place: usize) -> f64 {
    let gaps = knobs.saturating_sub(1).max(1) as f64;
    SIDE + (WIDTH - 2.0 * SIDE) * place as f64 / gaps
}

/// The first value is at the bottom.
fn y(knob: &Knob, value: usize) -> f64 {
    let gaps = knob.values.len().saturating_sub(1).max(1) as f64;
    HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value as f64 / gaps
}

fn draw_axis(svg: &mut String, knobs: usize, place: usize, knob: &Knob) {
    let x = x(knobs, place);
    let bottom = HEIGHT - BOTTOM;
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
    );
    for (number, value) in knob.values.iter().enumerate() {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 4.0,
            y(knob, number) - 3.0,
            HtmlEscape(&short(value))
        );
    }
    // Names of neighbours must not overlap.
    let below = bottom + if place.is_multiple_of(2) { 18.0 } else { 34.0 };
    let _ = write!(
        svg,
        "<text class=\"name\" x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{}</text>",
        HtmlEscape(&short(&knob.name))
    );
}

fn draw_line(
    svg: &mut String,
    knobs: &[Knob],
    settings: &BTreeMap<String, String>,
    class: &str,
    what: &str,
) {
    let point = |(place, knob): (usize, &Knob)| {
        let own = settings.get(&knob.name);
        let number = own.and_then(|own| knob.values.iter().position(|value| value == own));
        let y = y(knob, number.unwrap_or(knob.default));
        format!("{:.1},{y:.1}", x(knobs.len(), place))
    };
    let points: Vec<String> = knobs.iter().enumerate().map(point).collect();
    let _ = write!(
        svg,
        "<polyline class=\"{class}\" points=\"{}\"><title>{}</title></polyline>",
        points.join(" "),
        HtmlEscape(what)
    );
}

fn short(text: &str) -> String {
    if text.chars().count() <= MOST_CHARACTERS {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MOST_CHARACTERS - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::experiment::KnobReach;

    fn knob(name: &str, values: &[&str]) -> Knob {
        Knob {
            name: name.into(),
            group: "own".into(),
            key: format!("server.runtime_parameters.{name}"),
            text: None,
            values: values.iter().map(ToString::to_string).collect(),
            default: 0,
            ordered: true,
            reach: KnobReach::RunTime,
            needs_start: false,
            files: Vec::new(),
            versions: None,
            less_durable: Vec::new(),
            risk: None,
            documentation: None,
        }
    }

    #[test]
    fn a_line_goes_through_the_values_and_defaults() {
        let knobs = [knob("a", &["1", "2", "3"]), knob("b", &["<x>", "y"])];
        let mut svg = String::new();
        let settings = BTreeMap::from([("a".to_owned(), "3".to_owned())]);
        draw_line(&mut svg, &knobs, &settings, "better", "1.2");
        assert!(svg.contains("points=\"70.0,16.0 890.0,256.0\""), "{svg}");
        draw_axis(&mut svg, 2, 1, &knobs[1]);
        assert!(svg.contains("&lt;x&gt;"), "{svg}");
        assert_eq!(short("0123456789abcdefgh"), "0123456789abcde…");
    }
}

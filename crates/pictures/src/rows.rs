//! Charts of rows as SVG, with the geometry and colours of the page's styles.

use dyno_report::bundle::colour;
use dyno_report::page::rows::{Row, RowsChart, Span};
use std::fmt::Write as _;

/// The width of the other pictures.
const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 16.0;
const FAMILY: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
/// Height of the title and of each row.
const TITLE: f64 = 36.0;
const ROW: f64 = 26.0;
/// Width of the values, and largest width of the labels.
const VALUES: f64 = 230.0;
const MOST_LABEL: f64 = 400.0;
/// Width of a letter, with a margin.
const LETTER: f64 = 7.2;
const GAP: f64 = 14.0;
const BAR: f64 = 12.0;
/// Half the height of the end caps of an interval.
const CAP: f64 = 4.0;
/// Distance from a value to its detail.
const DETAIL: f64 = 72.0;

/// The area of the values.
#[derive(Clone, Copy)]
struct Track {
    left: f64,
    width: f64,
}

impl Track {
    fn x(&self, percent: f64) -> f64 {
        self.left + self.width * percent / 100.0
    }

    fn rect(&self, span: Span, (y, height): (f64, f64), fill: &str) -> String {
        format!(
            "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height}\" {fill}/>",
            self.x(span.from_percent),
            (self.width * span.width_percent / 100.0).max(1.0)
        )
    }

    fn line(&self, percent: f64, (from, to): (f64, f64), stroke: &str) -> String {
        let x = self.x(percent);
        format!("<path d=\"M{x:.1} {from:.1}V{to:.1}\" fill=\"none\" {stroke}/>")
    }
}

/// The SVG document of a chart.
pub(crate) fn svg(chart: &RowsChart) -> String {
    let longest = chart.rows.iter().map(|row| row.label.chars().count()).max();
    let label = (longest.unwrap_or(0) as f64 * LETTER).min(MOST_LABEL);
    let left = MARGIN + label + GAP;
    let track = Track { left, width: WIDTH - MARGIN - VALUES - left };
    let bottom = TITLE + chart.rows.len() as f64 * ROW;
    let height = bottom + 48.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"{FAMILY}\" font-size=\"12\"><rect width=\"{WIDTH}\" height=\"{height}\" fill=\"{}\"/>",
        colour("--background")
    );
    let strong = format!("fill=\"{}\" font-weight=\"600\"", colour("--text"));
    let title = format!("{strong} font-size=\"15\"");
    // A page shows text in backticks as code.
    svg += &text((MARGIN, 22.0), &title, &chart.title.replace('`', ""));
    for tick in &chart.ticks {
        let grid = format!("stroke=\"{}\"", colour("--grid"));
        svg += &track.line(tick.at_percent, (TITLE, bottom), &grid);
    }
    if let Some(band) = chart.band {
        let fill = format!("fill=\"{}\" fill-opacity=\"0.14\"", colour("--text-soft"));
        svg += &track.rect(band, (TITLE, bottom - TITLE), &fill);
    }
    if let Some(reference) = chart.reference_percent {
        let stroke = format!("stroke=\"{}\" stroke-width=\"2\"", colour("--text-soft"));
        svg += &track.line(reference, (TITLE, bottom), &stroke);
    }
    for (place, row) in chart.rows.iter().enumerate() {
        draw_row(row, track, TITLE + place as f64 * ROW, &mut svg);
    }
    let soft = format!("fill=\"{}\" text-anchor=\"middle\"", colour("--text-soft"));
    for tick in &chart.ticks {
        svg += &text((track.x(tick.at_percent), bottom + 16.0), &soft, &tick.label);
    }
    svg += &text((track.x(50.0), bottom + 36.0), &soft, &chart.axis);
    svg + "</svg>\n"
}

fn draw_row(row: &Row, track: Track, top: f64, svg: &mut String) {
    let middle = top + ROW / 2.0;
    let words = |soft: &'static str| {
        if row.is_strong {
            format!("fill=\"{}\" font-weight=\"600\"", colour("--text"))
        } else {
            format!("fill=\"{}\"", colour(soft))
        }
    };
    let label = format!("{} text-anchor=\"end\"", words("--text-soft"));
    *svg += &text((track.left - GAP, middle + 4.0), &label, &row.label);
    if let Some(bar) = row.bar {
        let opacity = if row.is_strong { 1.0 } else { 0.6 };
        let fill = format!("fill=\"{}\" fill-opacity=\"{opacity}\"", colour("--operation-0"));
        *svg += &track.rect(bar, (middle - BAR / 2.0, BAR), &fill);
    }
    if let Some(interval) = row.interval {
        let from = track.x(interval.from_percent);
        let to = track.x(interval.from_percent + interval.width_percent);
        let (above, below) = (middle - CAP, middle + CAP);
        // A cap, or an arrow where the interval does not fit on the chart.
        let [start, end] =
            [(from, row.is_cut[0], 1.0), (to, row.is_cut[1], -1.0)].map(|(x, is_cut, inward)| {
                match is_cut {
                    false => format!("M{x:.1} {above:.1}V{below:.1}"),
                    true => {
                        let back = x + inward * 2.0 * CAP;
                        format!("M{back:.1} {above:.1}L{x:.1} {middle:.1}L{back:.1} {below:.1}")
                    }
                }
            });
        let _ = write!(
            svg,
            "<path d=\"{start}{end}M{from:.1} {middle:.1}H{to:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>",
            colour("--text")
        );
    }
    if let Some(point) = row.point_percent {
        let _ = write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"5\" fill=\"{}\" stroke=\"{}\"/>",
            track.x(point),
            colour("--operation-0"),
            colour("--background")
        );
    }
    let right = WIDTH - MARGIN - VALUES + GAP;
    *svg += &text((right, middle + 4.0), &words("--text"), &row.value);
    let detail = format!("fill=\"{}\" font-size=\"11\"", colour("--text-soft"));
    *svg += &text((right + DETAIL, middle + 4.0), &detail, &row.detail);
}

/// Text at a place with these attributes.
fn text((x, y): (f64, f64), attributes: &str, words: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{words}</text>")
}

//! Draws a page with one chart of each kind with the code of the page.

#![allow(clippy::unwrap_used, reason = "tests")]

use dyno_pictures::{Picture, pictures, png};
use dyno_record::model::PhaseKind;
use dyno_report::page::density::{DensityAxis, DensityChart, DensityPanel, Edges};
use dyno_report::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use dyno_report::page::rows::{RowValue, RowsChart, Scale};
use dyno_report::page::scatter::{ScatterChart, panel};
use dyno_report::page::time::{
    ChangeMark, LatencySeries, OperationSeries, PhaseSpan, TimeChart, TimeCharts, TimeSeries,
};
use dyno_report::page::{Chart, Page, Section};

fn page(charts: Vec<Chart>) -> Page {
    Page { sections: vec![Section { charts, ..Section::default() }], ..Page::default() }
}

fn plot() -> Plot {
    let points = [(1.0, 100.0), (2.0, 180.0), (4.0, 240.0)];
    let mut measured = PlotSeries::curve(
        "measured <&>",
        Role::Measured,
        Stroke::LineAndPoints,
        points.into_iter(),
    );
    measured.low = vec![Some(90.0), None, Some(230.0)];
    measured.high = vec![Some(110.0), None, Some(250.0)];
    let bound = PlotSeries::curve("bound", Role::Bound, Stroke::Dashed, points.into_iter());
    Plot {
        id: "rates".into(),
        title: "Rate of `a`, by clients".into(),
        caption: String::new(),
        x: PlotAxis::linear("clients", Measure::Count),
        y: PlotAxis::linear("operations", Measure::Rate),
        series: vec![measured, bound],
        marks: vec![PlotMark::vertical("knee at 2".into(), 2.0)],
    }
}

fn scatter(panels: usize) -> ScatterChart {
    let times: Vec<Option<i64>> = (0..2000).map(|n| Some(100_000 + n * 1000)).collect();
    let panel = |number: usize| panel(format!("driver {number}"), String::new(), &times, 10_000);
    ScatterChart {
        id: "messages".into(),
        title: "Latency against message number".into(),
        caption: String::new(),
        x_label: "message",
        y_label: "intended → received",
        panels: (0..panels).map(panel).collect(),
    }
}

fn density() -> DensityChart {
    let axis = |label, end| DensityAxis { label, measure: Measure::Count, start: 0.0, end };
    let edges = |count| Edges { start: 0.0, step: 1.0, count };
    DensityChart {
        id: "reads".into(),
        title: "Reads".into(),
        caption: String::new(),
        counted: "reads",
        x: axis("time", 2.0),
        y: axis("place", 2.0),
        most: 7,
        panels: vec![DensityPanel {
            label: String::new(),
            words: String::new(),
            x_edges: edges(2),
            y_edges: edges(2),
            // A level, two empty cells, a level.
            cells: "/wACgA==".into(),
        }],
    }
}

fn rows() -> RowsChart {
    let row = |label: &str, value: f64| RowValue {
        label: label.into(),
        value_text: format!("{value} ms"),
        value,
        interval: Some((value * 0.9, value * 1.1)),
        ..RowValue::default()
    };
    RowsChart {
        title: "Medians".into(),
        axis: "latency".into(),
        ..RowsChart::from_zero(vec![row("c & d", 10.0), row("node", 20.0)], Scale::point, |value| {
            value.to_string()
        })
    }
}

fn time() -> TimeCharts {
    let values = || (1..=4).map(|n| Some(f64::from(n) * 100.0)).collect::<Vec<_>>();
    let latencies = LatencySeries { p50: values(), p99: values(), p99_9: values(), max: values() };
    TimeCharts {
        phases: vec![PhaseSpan { name: PhaseKind::Measure, start_s: 0.0, end_s: 4.0 }],
        operations: vec!["read".into()],
        time: TimeSeries {
            start_s: vec![0.0, 1.0, 2.0, 3.0],
            end_s: vec![1.0, 2.0, 3.0, 4.0],
            offered_per_s: None,
            achieved_per_s: values(),
            failed_per_s: None,
            operations: vec![OperationSeries {
                rate_per_s: values(),
                errors_per_s: None,
                response_us: latencies.clone(),
                service_us: latencies,
            }],
        },
        distributions: Vec::new(),
        windows_per_point: 1,
        downsampling: None,
        panels: Vec::new(),
        changes: vec![ChangeMark { at_s: 2.0, label: "1: it rises".into() }],
    }
}

/// Checks that the SVG is well formed and the PNG twice as wide, and returns the size of the PNG.
fn checked(picture: &Picture) -> usize {
    let file = png(&picture.svg).unwrap_or_else(|error| panic!("{}: {error}", picture.name));
    assert_eq!(file[16..20], 2000u32.to_be_bytes(), "{}", picture.name);
    file.len()
}

#[test]
fn every_kind_of_chart_is_a_picture_in_the_order_of_the_page() {
    let chart = |id: &str, title: &str| TimeChart {
        id: id.into(),
        title: title.into(),
        ..TimeChart::default()
    };
    let mut page = page(vec![
        chart("rate", "Rate").into(),
        rows().into(),
        plot().into(),
        scatter(1).into(),
        density().into(),
        chart("latency", "Latency").into(),
    ]);
    page.time = Some(time());
    let found = pictures(&page).unwrap();
    let names: Vec<&str> = found.iter().map(|picture| picture.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "01-rate",
            "02-medians",
            "03-rate-of-a-by-clients",
            "04-latency-against-message-number",
            "05-reads",
            "06-latency"
        ]
    );
    for (picture, parts) in found.iter().zip([
        &["achieved", ">measure<", "1: it rises", "300"][..],
        &["c &amp; d", "20 ms", "latency"],
        &[
            "Rate of a, by clients",
            "measured &lt;&amp;&gt;",
            "knee at 2",
            "clients",
            "rgb(0,114,178)",
        ],
        &["intended → received", "1,500", "data:image/png;base64,"],
        &["7 reads in a cell", "data:image/png;base64,", "linearGradient"],
        // The code of the page writes its description.
        &["Response time of read", "p99.9", "200 µs"],
    ]) {
        for part in parts {
            assert!(picture.svg.contains(part), "{}: {part}\n{}", picture.name, picture.svg);
        }
        assert!(checked(picture) > 2_000, "{}", picture.name);
    }
    // Without its curves the picture is smaller.
    let mut empty = plot();
    empty.series.truncate(1);
    let fewer = pictures(&self::page(vec![empty.into()])).unwrap();
    assert!(!fewer[0].svg.contains("bound"));
    assert!(checked(&fewer[0]) < checked(&found[2]));
}

#[test]
fn panels_stand_beside_each_other_with_their_names() {
    let svg = &pictures(&page(vec![scatter(3).into()])).unwrap()[0].svg;
    assert_eq!(svg.matches("data:image/png").count(), 3);
    for (name, place) in
        [("driver 0", "x=\"16\""), ("driver 1", "x=\"510\""), ("driver 2", "x=\"16\"")]
    {
        let at = svg.find(&format!(">{name}<")).unwrap();
        let start = svg[..at].rfind("<text").unwrap();
        assert!(svg[start..at].contains(place), "{}", &svg[start..at]);
    }
}

#[test]
fn a_page_without_charts_has_no_pictures() {
    assert_eq!(pictures(&page(Vec::new())).unwrap(), []);
}

//! The builds of an index as one long table: a row is one figure of one build.

use crate::export::table::{Cell, Column, Kind, Table, unit};
use dyno_engine::Error;
use dyno_record::index_build::{BuildRecord, IndexBuildDocument, IoFigures};

/// The columns.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::new("build", Kind::Text),
        Column::new("source", Kind::Text),
        Column::new("metric", Kind::Text),
        Column::new("value", Kind::Number),
        Column::new("unit", Kind::Text),
    ]
}

/// Writes the figures of all builds in their order.
pub(crate) fn fill(document: &IndexBuildDocument, table: &mut dyn Table) -> Result<(), Error> {
    for build in &document.builds {
        each(build, &mut |source, metric, value| {
            table.row(&[
                Cell::Text(&build.name),
                Cell::Text(source),
                Cell::Text(metric),
                Cell::Number(value),
                Cell::Text(unit(metric)),
            ])
        })?;
    }
    Ok(())
}

type Put<'p> = dyn FnMut(&str, &str, f64) -> Result<(), Error> + 'p;

fn each(build: &BuildRecord, put: &mut Put<'_>) -> Result<(), Error> {
    put("build", "duration_s", build.duration_s)?;
    for (metric, value) in [
        ("cached_bytes", build.cached_bytes),
        ("read_at_start_bytes", build.read_at_start_bytes),
        ("data_bytes", build.data_bytes),
    ] {
        if let Some(value) = value {
            put("build", metric, value as f64)?;
        }
    }
    for (source, figures) in [("process", build.process), ("device", build.device)] {
        if let Some(figures) = figures {
            of_io(source, figures, put)?;
        }
    }
    for (name, value) in &build.server {
        put("server", name, *value)?;
    }
    for member in &build.members {
        let name = &member.name;
        put(name, "duration_s", member.duration_s)?;
        for (source, figures) in [
            (name.clone(), member.process),
            (format!("{name} device"), member.device),
        ] {
            if let Some(figures) = figures {
                of_io(&source, figures, put)?;
            }
        }
    }
    for pair in &build.tracing {
        put("tracing", "traced_s", pair.traced_s)?;
        put("tracing", "untraced_s", pair.untraced_s)?;
    }
    Ok(())
}

fn of_io(source: &str, figures: IoFigures, put: &mut Put<'_>) -> Result<(), Error> {
    for (metric, value) in [
        ("reads_count", figures.reads),
        ("read_bytes", figures.read_bytes),
        ("writes_count", figures.writes),
        ("written_bytes", figures.written_bytes),
    ] {
        put(source, metric, value as f64)?;
    }
    match figures.busy_ratio {
        Some(ratio) => put(source, "busy_ratio", ratio),
        None => Ok(()),
    }
}

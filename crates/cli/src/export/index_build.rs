//! The builds of an index as one long table, with a row per figure of a build.

use crate::export::table::{Cell, Column, Kind, Table, unit};
use dyno_engine::Error;
use dyno_record::index_build::{BuildRecord, IoFigures};
use dyno_report::index_build::{BuiltOn, IndexBuildView, built_on};

/// The columns.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::new("build", Kind::Text),
        Column::optional("configuration", Kind::Text),
        Column::optional("remedy", Kind::Text),
        Column::new("source", Kind::Text),
        Column::new("metric", Kind::Text),
        Column::new("value", Kind::Number),
        Column::new("unit", Kind::Text),
    ]
}

/// Writes the figures of all builds in order.
pub(crate) fn fill(view: &IndexBuildView<'_>, table: &mut dyn Table) -> Result<(), Error> {
    let all = built_on(view);
    for build in &view.document.builds {
        let on = all.iter().find(|on| on.build == build.name);
        let configuration = on.and_then(|on| on.configuration.as_deref());
        let remedy = on.and_then(|on| Some(on.remedy.as_ref()?.kind.as_str()));
        let mut put = |source: &str, metric: &str, value: f64| {
            table.row(&[
                Cell::Text(&build.name),
                configuration.into(),
                remedy.into(),
                Cell::Text(source),
                Cell::Text(metric),
                Cell::Number(value),
                Cell::Text(unit(metric)),
            ])
        };
        each(build, &mut put)?;
        on.map_or(Ok(()), |on| documents(on, &mut put))?;
    }
    Ok(())
}

type Put<'p> = dyn FnMut(&str, &str, f64) -> Result<(), Error> + 'p;

/// Writes the figures of the documents, the remedy and each server.
fn documents(on: &BuiltOn, put: &mut Put<'_>) -> Result<(), Error> {
    let collection = &on.collection;
    put("collection", "servers_count", on.servers.len() as f64)?;
    put("collection", "documents_count", collection.documents as f64)?;
    put("collection", "documents_bytes", collection.bytes as f64)?;
    if let Some(load_s) = collection.load_s {
        put("collection", "load_s", load_s)?;
    }
    if let Some(remedy) = &on.remedy {
        put("remedy", "duration_s", remedy.duration_s)?;
    }
    for server in &on.servers {
        for (metric, value) in [
            ("documents_count", Some(server.documents as f64)),
            ("documents_bytes", Some(server.bytes as f64)),
            ("share_ratio", server.share_ratio),
            ("score", server.score),
            ("sequential_ratio", server.sequential_ratio),
            ("amplification", server.amplification),
        ] {
            if let Some(value) = value {
                put(&server.name, metric, value)?;
            }
        }
    }
    Ok(())
}

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
        for (source, figures) in
            [(name.clone(), member.process), (format!("{name} device"), member.device)]
        {
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

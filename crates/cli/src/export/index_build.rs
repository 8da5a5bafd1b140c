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
        let mut put = |source: &str, metric: &str, value: Option<f64>| {
            let Some(value) = value else {
                return Ok(());
            };
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

type Put<'p> = dyn FnMut(&str, &str, Option<f64>) -> Result<(), Error> + 'p;

/// Writes the figures of the documents, the remedy and each server.
fn documents(on: &BuiltOn, put: &mut Put<'_>) -> Result<(), Error> {
    let collection = &on.collection;
    put("collection", "servers_count", Some(on.servers.len() as f64))?;
    put("collection", "documents_count", Some(collection.documents as f64))?;
    put("collection", "documents_bytes", Some(collection.bytes as f64))?;
    put("collection", "load_s", collection.load_s)?;
    put("remedy", "duration_s", on.remedy.as_ref().map(|remedy| remedy.duration_s))?;
    for server in &on.servers {
        for (metric, value) in [
            ("documents_count", Some(server.documents as f64)),
            ("documents_bytes", Some(server.bytes as f64)),
            ("share_ratio", server.share_ratio),
            ("score", server.score),
            ("sequential_ratio", server.sequential_ratio),
            ("amplification", server.amplification),
        ] {
            put(&server.name, metric, value)?;
        }
    }
    Ok(())
}

fn each(build: &BuildRecord, put: &mut Put<'_>) -> Result<(), Error> {
    put("build", "duration_s", Some(build.duration_s))?;
    for (metric, bytes) in [
        ("cached_bytes", build.cached_bytes),
        ("read_at_start_bytes", build.read_at_start_bytes),
        ("data_bytes", build.data_bytes),
    ] {
        put("build", metric, bytes.map(|bytes| bytes as f64))?;
    }
    of_io("process", build.process, put)?;
    of_io("device", build.device, put)?;
    for (name, value) in &build.server {
        put("server", name, Some(*value))?;
    }
    for member in &build.members {
        put(&member.name, "duration_s", Some(member.duration_s))?;
        of_io(&member.name, member.process, put)?;
        of_io(&format!("{} device", member.name), member.device, put)?;
    }
    for pair in &build.tracing {
        put("tracing", "traced_s", Some(pair.traced_s))?;
        put("tracing", "untraced_s", Some(pair.untraced_s))?;
    }
    Ok(())
}

fn of_io(source: &str, figures: Option<IoFigures>, put: &mut Put<'_>) -> Result<(), Error> {
    let Some(figures) = figures else {
        return Ok(());
    };
    for (metric, value) in [
        ("reads_count", figures.reads),
        ("read_bytes", figures.read_bytes),
        ("writes_count", figures.writes),
        ("written_bytes", figures.written_bytes),
    ] {
        put(source, metric, Some(value as f64))?;
    }
    put(source, "busy_ratio", figures.busy_ratio)
}

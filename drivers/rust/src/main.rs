//! Producer and consumer of `dyno tail` on the official Rust driver: a task for each insert in flight.

mod common;
mod consumer;
mod producer;
mod reception;
mod seen;
mod sight;

use common::{Control, Options, PINGS, Stamps, emit, end, fail};
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection};
use std::time::Duration;

fn version() {
    emit(&serde_json::json!({
        "contract": 1, "language": "rust", "driver": "mongodb", "driver_version": env!("DYNO_MONGODB_VERSION"),
        "runtime": "tokio", "runtime_version": env!("DYNO_TOKIO_VERSION"), "roles": ["produce", "consume"],
        "in_flight": ["one", "bounded", "unbounded"], "unbounded": "driver",
        "modes": ["tailable", "change-stream", "poll"], "pool": true,
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
    }));
}

/// Connects with at least `least` connections in the pool.
async fn connect(options: &Options, least: u32) -> mongodb::error::Result<Collection<Document>> {
    let mut settings = ClientOptions::parse(&options.uri).await?;
    settings.max_pool_size = Some(least.max(options.whole("pool") as u32));
    settings.app_name = Some("dyno".to_owned());
    if settings.server_selection_timeout.is_none() {
        settings.server_selection_timeout = Some(Duration::from_secs(5));
    }
    let client = Client::with_options(settings)?;
    for _ in 0..PINGS {
        client.database("admin").run_command(doc! { "ping": 1 }).await?;
    }
    Ok(client.database(options.text("database")).collection(options.text("collection")))
}

/// The code of an error, if the server reported it.
fn code(error: &mongodb::error::Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(error) => Some(error.code),
        ErrorKind::Write(mongodb::error::WriteFailure::WriteError(error)) => Some(error.code),
        ErrorKind::Write(mongodb::error::WriteFailure::WriteConcernError(error)) => {
            Some(error.code)
        }
        _ => None,
    }
}

async fn run(role: String, arguments: Vec<String>) -> Result<i32, (i32, String)> {
    let usage = |error| (2, error);
    let options = Options::parse(&role, &arguments).map_err(usage)?;
    let schedule = options.schedule().map_err(usage)?;
    let stamps = Stamps::create(options.text("output")).map_err(usage)?;
    let control = Control::new();
    let unusable = |error| (4, format!("cannot use the server: {error}"));
    // A consumer queries for missing messages while its cursor waits for the server on a separate connection.
    let least = if role == "consume" { 2 } else { 1 };
    let collection = connect(&options, least).await.map_err(unusable)?;
    let done = if role == "produce" {
        producer::run(&options, &control, &stamps, &collection, schedule).await
    } else {
        let mut consumer = consumer::Consumer::new(&options, &control, &stamps, collection);
        consumer.open(false).await.map_err(unusable)?;
        consumer.run().await
    };
    stamps.flush();
    emit(&done);
    Ok(control.exit_code())
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map_or("", String::as_str) {
        "version" => version(),
        role @ ("produce" | "consume") => {
            // Run on a runtime thread, so that answers need not wake another thread.
            let running = tokio::spawn(run(role.to_owned(), arguments[1..].to_vec()));
            match running.await {
                Ok(Ok(code)) => end(code),
                Ok(Err((code, message))) => fail(code, &message),
                Err(error) => fail(1, &error.to_string()),
            }
        }
        role => fail(2, &format!("`{role}` is not one of version, produce, consume")),
    }
}

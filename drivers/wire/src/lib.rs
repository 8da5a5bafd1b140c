//! Producer and consumer of `dyno tail` on mongodyno's own wire protocol code: the lower bound. Threads, each with
//! one command in flight. An insert without acknowledgement still waits for its answer.
//!
//! `dyno` is also this driver's program: it calls [`main`] if it is started as `dyno driver-wire`.

#[path = "../../rust/src/common.rs"]
mod common;
mod consumer;
mod producer;
#[path = "../../rust/src/reception.rs"]
mod reception;
#[path = "../../rust/src/seen.rs"]
mod seen;
#[path = "../../rust/src/sight.rs"]
mod sight;

use bson::doc;
use common::{Control as Run, Options, PINGS, Stamps, emit, end, fail};
use dyno_load::connect::{Connector, Control, ControlError};
use std::error::Error;

fn version() {
    let version = env!("CARGO_PKG_VERSION");
    emit(&serde_json::json!({
        "contract": 1, "language": "rust", "driver": "dyno-wire", "driver_version": version,
        "runtime": "threads", "runtime_version": version, "roles": ["produce", "consume"],
        "in_flight": ["one", "bounded", "unbounded"], "unbounded": "program",
        "modes": ["tailable", "change-stream", "poll"], "pool": true, "monitors": false,
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
    }));
}

/// An error with its causes, in one line.
fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Resending a command on a new connection could execute it twice, so connections are made only here.
fn connect(connector: &Connector) -> Result<Control, (Option<i32>, String)> {
    connector.control().map_err(|error| (None, text(&error)))
}

fn described(error: &ControlError) -> (Option<i32>, String) {
    (error.code(), text(error))
}

fn run(role: &str, arguments: &[String]) -> Result<i32, (i32, String)> {
    let usage = |error| (2, error);
    let options = Options::parse(role, arguments).map_err(usage)?;
    let schedule = options.schedule().map_err(usage)?;
    let stamps = Stamps::create(options.text("output")).map_err(usage)?;
    let run = Run::new();
    let unusable = |error: String| (4, format!("cannot use the server: {error}"));
    let (target, credentials) =
        dyno_plan::uri::parse(&options.uri).map_err(|error| unusable(text(&error)))?;
    let connector = Connector::new(&target, credentials).map_err(|error| unusable(text(&error)))?;
    let mut first = connect(&connector).map_err(|(_, message)| unusable(message))?;
    for _ in 0..PINGS {
        let answer = first.run("admin", doc! { "ping": 1 });
        answer.map_err(|error| unusable(described(&error).1))?;
    }
    let done = if role == "produce" {
        producer::run(options, &run, &stamps, connector, first, schedule)
    } else {
        let mut consumer = consumer::Consumer::new(&options, &run, &stamps, connector, first);
        consumer.open(false).map_err(|(_, message)| unusable(message))?;
        consumer.run()
    };
    stamps.flush();
    emit(&done);
    Ok(run.exit_code())
}

/// Executes `version`, `produce …` or `consume …` as `drivers/README.md` describes, and ends the process.
pub fn main(arguments: &[String]) -> ! {
    match arguments.first().map_or("", String::as_str) {
        "version" => {
            version();
            end(0)
        }
        role @ ("produce" | "consume") => match run(role, &arguments[1..]) {
            Ok(code) => end(code),
            Err((code, message)) => fail(code, &message),
        },
        role => fail(2, &format!("`{role}` is not one of version, produce, consume")),
    }
}

//! Log folders in the format of the Workload Services Framework's clients, for its script `kpi.sh`. The folder of each server
//! has `output.logs` with YCSB's output, and `ycsb_output.json` with the sizes of the collection.
//!
//! The script detects the phases by the markers `[LOAD_PHASE]` and `[RUN_PHASE]` (with a space in older versions), and fails if
//! no folder has sizes. A size that a server did not report is `null`, which the script counts as 0.

use crate::messages::{Messages, pretty_json};
use crate::reports::{open_for_programs, refused};
use dyno_engine::files::{make_folder, write_file};
use dyno_engine::{Error, Kind};
use dyno_plan::ycsb::{MeasurementInterval, YcsbClientOptions};
use dyno_record::Document;
use dyno_record::model::{CollectionRecord, PhaseEdge, PhaseKind, RunDocument, RunStatus};
use dyno_record::reader::Run;
use dyno_report::ycsb::YcsbOptions;
use dyno_report::{Format, RenderOptions};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Writes a folder for each server of a run, or nothing if a server does not have figures.
pub(crate) fn write(run: &Run, folder: &Path, messages: Messages) -> Result<(), Error> {
    refuse_instance(&run.directory)?;
    let whole = &run.document;
    let mut servers = Vec::new();
    for instance in &whole.instances {
        let own = open_for_programs(&run.directory.join(&instance.directory), messages)?;
        let name = format!("pair-{}", instance.number);
        servers.push((instance.number, log(whole, &own, instance.number)?, name));
    }
    if servers.is_empty() {
        servers.push((0, log(whole, run, 0)?, "server".to_owned()));
    }
    for (number, log, name) in &servers {
        let folder = folder.join(format!("benchmark-{number}"));
        make_folder(&folder)?;
        write_file(&folder.join("output.logs"), log)?;
        let sizes = pretty_json(&sizes(whole, name));
        write_file(&folder.join("ycsb_output.json"), &sizes)?;
    }
    Ok(())
}

/// Refuses the record of a single server, because only the whole run has its number and its collection sizes.
fn refuse_instance(folder: &Path) -> Result<(), Error> {
    let Some(run) = run_above(folder) else {
        return Ok(());
    };
    let folder = folder.display();
    let text = format!("cannot export `{folder}` alone: it is the record of one server of a run");
    let hint = format!("export the whole run `{}`", run.display());
    Err(Error::new(Kind::BadInput, text).with_hint(hint))
}

/// The run that this record of a server belongs to.
fn run_above(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let servers = folder.parent()?;
    let run = servers.parent()?;
    let is_instance = servers.file_name()? == "instances" && RunDocument::is_in(run);
    is_instance.then(|| run.to_owned())
}

/// Formats the log of the client of a server.
fn log(whole: &RunDocument, own: &Run, number: u64) -> Result<String, Error> {
    let mut text = dyno_report::incomplete(whole) + &format!("JOB_INDEX is {number}\n");
    let printed = |phase| {
        let printed = ycsb(own, phase);
        printed.map_err(|error| error.context(format!("no figures for server {number}")))
    };
    let mut phases = own.document.phases.iter();
    if phases.any(|phase| phase.name == PhaseKind::Load) {
        text += "[LOAD_PHASE] [LOAD PHASE]\n";
        text += &loaded(printed(PhaseKind::Load)?, own);
        text += "YCSB load succeeded\n";
    }
    text += "[RUN_PHASE] [RUN PHASE]\n";
    text += &printed(PhaseKind::Measure)?;
    text += match whole.status {
        RunStatus::Complete => "YCSB run succeeded\n",
        _ => "YCSB run failed\n",
    };
    Ok(text)
}

/// Formats YCSB's output at the end of a phase, with response times, as in the key figures.
fn ycsb(run: &Run, phase: PhaseKind) -> Result<String, Error> {
    let client = YcsbClientOptions {
        measurement_interval: MeasurementInterval::Intended,
        ..YcsbClientOptions::default()
    };
    let options = RenderOptions {
        ycsb: YcsbOptions { phase: Some(phase), client },
        ..RenderOptions::default()
    };
    dyno_report::render(run, None, Format::Ycsb, &options).map_err(refused)
}

/// Renames inserts in batches, so that the script does not read the time of a batch as the time of an insert.
fn loaded(text: String, run: &Run) -> String {
    match run.document.recorded_plan().client.map(|client| client.batch) {
        Some(batch) if batch > 1 => text.replace("[INSERT]", &format!("[INSERT BATCH OF {batch}]")),
        _ => text,
    }
}

/// Sizes of a server's collection at the end, with the names of `collStats`.
fn sizes(whole: &RunDocument, server: &str) -> Value {
    let is_own = |one: &&CollectionRecord| one.at == PhaseEdge::End && one.instance == server;
    let found = whole.collections.iter().rfind(is_own);
    let (storage, indexes) = found.map_or((None, None), |found| {
        let statistics = &found.statistics;
        (statistics.storage_bytes, statistics.indexes_bytes)
    });
    json!({
        "storageSize": storage,
        "totalIndexSize": indexes,
        "totalSize": storage.zip(indexes).map(|(storage, indexes)| storage + indexes),
    })
}

//! Recorded runs for the tests of the rules: what the verdict reads, and nothing that tells of the machine that they were
//! recorded on.

use anyhow::{Context, Result};
use dyno_record::model::{Environment, RunDocument, SourceKind};
use std::fs;
use std::path::Path;

/// What the verdict reads of a run directory.
const FOLDERS: [&str; 2] = ["metrics", "series"];
/// The largest of their files, of which no rule reads anything.
const NOT_READ: &str = "sub-second.csv";
/// Where the truth is written: a cause in each line, none of a run without a fault.
const TRUTH: &str = "truth.txt";

/// Copies a run with the causes that are true for it into a folder, under the name that it has.
pub(super) fn keep(run: &Path, into: &Path, truth: &[&str]) -> Result<()> {
    let name = run.file_name().context("a run has a name")?;
    let folder = into.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for part in FOLDERS {
        fs::create_dir_all(folder.join(part))?;
        for file in fs::read_dir(run.join(part))? {
            let file = file?;
            if file.file_name() == NOT_READ {
                continue;
            }
            fs::copy(file.path(), folder.join(part).join(file.file_name()))?;
        }
    }
    fs::copy(run.join("latency.hlog"), folder.join("latency.hlog"))?;
    let mut document: RunDocument = serde_json::from_slice(&fs::read(run.join("run.json"))?)?;
    make_anonymous(&mut document);
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    fs::write(folder.join("run.json"), text)?;
    let lines: Vec<String> = truth.iter().map(|cause| format!("{cause}\n")).collect();
    fs::write(folder.join(TRUTH), lines.concat())?;
    Ok(())
}

fn make_anonymous(document: &mut RunDocument) {
    document.environment = Environment {
        cpus: document.environment.cpus,
        allowed_cpus: document.environment.allowed_cpus.clone(),
        machine_cpus: document.environment.machine_cpus,
        memory_bytes: document.environment.memory_bytes,
        ..Environment::default()
    };
    for source in &mut document.sources {
        if source.kind == SourceKind::Host {
            source.subject = "bench".to_owned();
        }
    }
    document.server.settings.clear();
    document.server.members.clear();
    document.caveats.clear();
    document.placement = None;
    document.selfcheck = None;
    for key in ["data_dir", "data_dirs"] {
        if let Some(server) = document
            .plan
            .get_mut("server")
            .and_then(|one| one.as_object_mut())
        {
            server.remove(key);
        }
    }
}

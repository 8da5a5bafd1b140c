//! Saves recorded runs as test cases of the verdict rules: only the files that the verdict reads, and nothing that identifies the
//! machine.

use anyhow::{Context, Result};
use dyno_record::model::{Environment, RunDocument, SourceKind};
use std::fs;
use std::path::Path;

/// Folders of a run directory that the verdict reads.
const FOLDERS: [&str; 2] = ["metrics", "series"];
/// The largest file in them, which no rule reads.
const NOT_READ: &str = "sub-second.csv";
/// File with the true causes, one per line; empty for a run without a fault.
const TRUTH: &str = "truth.txt";

/// Copies a run with its true causes into a folder, under the run's name.
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
        if let Some(server) = document.plan.get_mut("server").and_then(|one| one.as_object_mut()) {
            server.remove(key);
        }
    }
}

//! Puts the bundled charts where the HTML renderer includes them from.
//!
//! `web/dist` is used as it is if it is newer than its sources, so that neither Node nor npm is
//! needed for a second build. Otherwise it is made by `npm run build`, after `npm ci` if the
//! packages are missing or older than the lock file.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Files of `web/` that the bundle depends on, besides everything in `web/src`.
const INPUTS: [&str; 5] = [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "build.mjs",
    ".npmrc",
];

/// What the bundle consists of.
const OUTPUTS: [&str; 2] = ["report.js", "report.css"];

fn main() {
    if let Err(message) = bundle() {
        println!("cargo::error=cannot bundle the charts of the HTML report");
        for line in message.lines().filter(|line| !line.trim().is_empty()) {
            println!("cargo::error={line}");
        }
    }
}

fn bundle() -> Result<(), String> {
    // Asked for when it runs: a target folder may be used by several checkouts.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo did not set its folder")?;
    let web = Path::new(&own).join("../../web");
    let out_dir = std::env::var_os("OUT_DIR").ok_or("cargo did not set `OUT_DIR`")?;
    let inputs = inputs(&web)?;
    for path in &inputs {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    // The folder itself, so that a new file is noticed too.
    println!("cargo::rerun-if-changed={}", web.join("src").display());
    println!("cargo::rerun-if-changed=build.rs");
    let dist = web.join("dist");
    if !is_fresh(&dist, &inputs)? {
        build(&web)?;
    }
    for name in OUTPUTS {
        let (from, to) = (dist.join(name), Path::new(&out_dir).join(name));
        fs::copy(&from, &to)
            .map_err(|error| format!("cannot copy `{}`: {error}", from.display()))?;
    }
    Ok(())
}

fn inputs(web: &Path) -> Result<Vec<PathBuf>, String> {
    let source = web.join("src");
    let entries = fs::read_dir(&source).and_then(|entries| {
        entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<PathBuf>>>()
    });
    let mut files =
        entries.map_err(|error| format!("cannot read `{}`: {error}", source.display()))?;
    files.extend(INPUTS.iter().map(|name| web.join(name)));
    files.sort();
    Ok(files)
}

/// Whether every output exists and is no older than every input.
fn is_fresh(dist: &Path, inputs: &[PathBuf]) -> Result<bool, String> {
    let newest_input = inputs
        .iter()
        .map(|path| required_time(path))
        .try_fold(SystemTime::UNIX_EPOCH, |newest, time| {
            time.map(|time| newest.max(time))
        })?;
    let fresh = |name: &str| modified(&dist.join(name)).is_some_and(|time| time >= newest_input);
    Ok(OUTPUTS.iter().all(|name| fresh(name)))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn required_time(path: &Path) -> Result<SystemTime, String> {
    modified(path).ok_or_else(|| format!("`{}` is missing", path.display()))
}

fn build(web: &Path) -> Result<(), String> {
    // npm writes this file at the end of an installation.
    let installed = modified(&web.join("node_modules/.package-lock.json"));
    let wanted = required_time(&web.join("package-lock.json"))?;
    if installed.is_none_or(|installed| installed < wanted) {
        npm(web, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    }
    npm(web, &["run", "--silent", "build"])
}

fn npm<S: AsRef<OsStr> + std::fmt::Display>(web: &Path, arguments: &[S]) -> Result<(), String> {
    let output = Command::new("npm")
        .args(arguments)
        .current_dir(web)
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                "`npm` is not installed\n\nhint: install Node.js 18 or later \
                 with npm (Debian: `apt-get install nodejs npm`), or run `make`"
                    .to_owned()
            }
            _ => format!("cannot start `npm`: {error}"),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let command: Vec<String> = arguments.iter().map(|word| word.to_string()).collect();
    Err(format!(
        "`npm {}` failed in `{}` ({})\n{}{}",
        command.join(" "),
        web.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

//! Tells `dyno --version` which commit it was built from.
//!
//! Only in optimised builds: so that a commit rebuilds nothing while the program is worked on. An archive that `git
//! archive` made names its commit in `commit.txt`; without that and without git the version stands alone.

#![allow(clippy::print_stdout, reason = "a build script speaks by printing")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Placeholder in `commit.txt` until `git archive` replaces it.
const NOT_REPLACED: &str = "$Format";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=commit.txt");
    let own = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let commit = if variable("PROFILE") == "release" {
        of_archive(&own).or_else(|| of_repository(&own))
    } else {
        None
    };
    let version = variable("CARGO_PKG_VERSION");
    match commit {
        Some(commit) => println!("cargo:rustc-env=DYNO_VERSION={version} ({commit})"),
        None => println!("cargo:rustc-env=DYNO_VERSION={version}"),
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn of_archive(own: &Path) -> Option<String> {
    let text = std::fs::read_to_string(own.join("commit.txt")).ok()?;
    let text = text.trim();
    (!text.is_empty() && !text.starts_with(NOT_REPLACED)).then(|| text.to_owned())
}

fn of_repository(own: &Path) -> Option<String> {
    // Sources without a repository may lie in the repository of another project.
    git(own, &["ls-files", "--error-unmatch", "build.rs"])?;
    // Every commit and checkout of this worktree is written there; without it HEAD says most.
    let watched = ["logs/HEAD", "HEAD"]
        .iter()
        .filter_map(|name| git(own, &["rev-parse", "--git-path", name]))
        .map(|path| own.join(path))
        .find(|path| path.exists())?;
    println!("cargo:rerun-if-changed={}", watched.display());
    git(own, &["log", "-1", "--format=%h %cs"])
}

fn git(own: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(own).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

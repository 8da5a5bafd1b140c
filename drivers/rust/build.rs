//! Versions of the driver and the runtime, from the lock file.

use std::path::Path;

fn main() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(&lock).expect("the workspace has a lock file");
    for (name, variable) in [("mongodb", "DYNO_MONGODB_VERSION"), ("tokio", "DYNO_TOKIO_VERSION")] {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let version = text.split_once(&entry).and_then(|(_, rest)| rest.split_once('"'));
        let (version, _) = version.expect("the lock file names all dependencies");
        println!("cargo::rustc-env={variable}={version}");
    }
}

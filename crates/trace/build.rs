//! Compiles the probes with clang, when the feature `ebpf` asks for them.

#![allow(
    clippy::print_stderr,
    clippy::exit,
    reason = "a build script speaks by printing"
)]
#![allow(clippy::print_stdout, reason = "so it speaks to cargo")]

use std::path::{Path, PathBuf};
use std::process::Command;

const PROBES: &str = "src/probes";

fn main() {
    println!("cargo:rerun-if-changed={PROBES}");
    println!("cargo:rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_EBPF").is_none() {
        return;
    }
    let out = PathBuf::from(variable("OUT_DIR")).join("tracer.bpf.o");
    if let Err(reason) = compile(&out) {
        eprintln!("error: the probes of the tracer cannot be compiled: {reason}");
        eprintln!(
            "hint: `scripts/setup.sh` installs clang; without the feature `ebpf` it is not needed"
        );
        std::process::exit(1);
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn compile(out: &Path) -> Result<(), String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let architecture = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("they do not know the registers of `{other}`")),
    };
    // The headers for programs in the kernel come with libbpf, whose crate tells where they are.
    let headers = variable("DEP_BPF_INCLUDE");
    let status = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c", "-Wall", "-Werror",
        ])
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .arg(format!("-I{headers}"))
        // Paths of the machine that builds it have no place in the object.
        .arg("-fdebug-compilation-dir=.")
        .arg(format!("{PROBES}/tracer.bpf.c"))
        .arg("-o")
        .arg(out)
        .status()
        .map_err(|error| format!("cannot start `{clang}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{clang}` ended with {status}"))
    }
}

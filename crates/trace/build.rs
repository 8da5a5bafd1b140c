//! Compiles the probes with clang if the feature `ebpf` is enabled.

#![allow(clippy::print_stderr, clippy::exit, reason = "build scripts print their output")]
#![allow(clippy::print_stdout, reason = "cargo reads the output")]

use std::path::{Path, PathBuf};
use std::process::Command;

const PROBES: &str = "src/probes";

/// Oldest version of clang that supports the atomic operations of the programs; a test compares it with
/// `scripts/setup.sh`.
const OLDEST_CLANG: u32 = 12;

fn main() {
    println!("cargo:rerun-if-changed={PROBES}");
    println!("cargo:rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_EBPF").is_none() {
        return;
    }
    let out = PathBuf::from(variable("OUT_DIR")).join("tracer.bpf.o");
    if let Err(reason) = compile(&out) {
        eprintln!("error: cannot compile the probes of the tracer: {reason}");
        eprintln!(
            "hint: install clang with `scripts/setup.sh`, or build without the feature `ebpf`"
        );
        std::process::exit(1);
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The program named by `CLANG`, or the first one that is new enough: Debian 11 has a newer one under another name.
fn clang() -> Result<String, String> {
    if let Ok(named) = std::env::var("CLANG") {
        return Ok(named);
    }
    let names = (OLDEST_CLANG..=30).rev().map(|major| format!("clang-{major}"));
    std::iter::once("clang".to_owned())
        .chain(names)
        .find(|name| major(name).is_some_and(|major| major >= OLDEST_CLANG))
        .ok_or_else(|| format!("cannot find `clang` {OLDEST_CLANG} or later"))
}

/// Major version in the output of `NAME --version`, such as `Debian clang version 14.0.6`.
fn major(name: &str) -> Option<u32> {
    let output = Command::new(name).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let digits = text.trim_start_matches(|character: char| !character.is_ascii_digit());
    let end = digits.find(|character: char| !character.is_ascii_digit())?;
    digits[..end].parse().ok()
}

fn compile(out: &Path) -> Result<(), String> {
    let clang = clang()?;
    let architecture = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("the registers of `{other}` are not supported")),
    };
    // The headers for kernel programs come with libbpf, whose crate reports their folder.
    let headers = variable("DEP_BPF_INCLUDE");
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c", "-Wall", "-Werror"])
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .arg(format!("-I{headers}"))
        // Keep paths of the build machine out of the object.
        .arg("-fdebug-compilation-dir=.")
        .arg(format!("{PROBES}/tracer.bpf.c"))
        .arg("-o")
        .arg(out)
        .status()
        .map_err(|error| format!("cannot start `{clang}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{clang}` ended with {status}")) }
}

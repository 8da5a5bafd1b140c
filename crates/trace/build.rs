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

/// The first version of clang that knows the atomic operations of the kernel's programs; a test compares it with
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

/// The program that `CLANG` names, else the first that is not too old: Debian 11 has a newer one under another name.
fn clang() -> Result<String, String> {
    if let Ok(named) = std::env::var("CLANG") {
        return Ok(named);
    }
    let names = (OLDEST_CLANG..=30)
        .rev()
        .map(|major| format!("clang-{major}"));
    std::iter::once("clang".to_owned())
        .chain(names)
        .find(|name| major(name).is_some_and(|major| major >= OLDEST_CLANG))
        .ok_or_else(|| format!("there is no `clang` of version {OLDEST_CLANG} or later"))
}

/// The first number of what `NAME --version` prints, as in `Debian clang version 14.0.6`.
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

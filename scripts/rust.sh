#!/usr/bin/env bash
# Installs the toolchain that rust-toolchain.toml pins into .cache/rust, with the `rustup` on PATH or else with Rust's own installer.
# Nothing outside of this folder changes, so Rust in the user's folder is safe.
#
#   scripts/rust.sh [TARGET ...]    also the standard library for other targets
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
wanted=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
RUSTUP=1.28.2
machine=$(uname -m)
# As published next to the installer.
case $machine in
x86_64) sha256=20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c ;;
aarch64) sha256=e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c ;;
esac
export RUSTUP_HOME=$PWD/.cache/rust/rustup CARGO_HOME=$PWD/.cache/rust/cargo
unset RUSTUP_TOOLCHAIN

say() { echo "rust: $*" >&2; }

# fail MESSAGE
fail() {
    say "error: $1"
    printf '\nhint: check the network; or install Rust %s yourself, from https://rustup.rs: rustup toolchain install %s\n' \
        "$wanted" "$wanted" >&2
    exit 3
}

has() { command -v "$1" >/dev/null; }

# download ADDRESS FILE
download() {
    if has curl; then
        curl --proto '=https' --tlsv1.2 --silent --show-error --fail --location --retry 2 --output "$2" "$1"
    elif has wget; then
        wget --https-only --quiet --tries 3 --output-document "$2" "$1"
    else
        say "neither curl nor wget is installed"
        return 1
    fi
}

install_rustup() {
    local address=https://static.rust-lang.org/rustup/archive/$RUSTUP/$machine-unknown-linux-gnu/rustup-init
    local file=.cache/rust/rustup-init
    say "fetching Rust's installer: $address (20 MB)"
    mkdir -p .cache/rust
    download "$address" "$file" || fail "cannot fetch Rust's installer"
    if [ "$(sha256sum "$file" | cut -d ' ' -f 1)" != "$sha256" ]; then
        rm "$file"
        fail "the SHA-256 of Rust's installer is not $sha256; the file was removed"
    fi
    chmod +x "$file"
    "$file" -y --quiet --no-modify-path --profile minimal --default-toolchain none >/dev/null || fail "Rust's installer failed"
    rm "$file"
}

if has rustup; then
    rustup=rustup
else
    rustup=$CARGO_HOME/bin/rustup
    [ -x "$rustup" ] || install_rustup
fi
say "installing Rust $wanted into .cache/rust (fetches 130 MB from static.rust-lang.org, takes 650 MB)"
options=(--profile minimal --component rustfmt --component clippy --no-self-update)
for target in "$@"; do options+=(--target "$target"); done
"$rustup" --quiet toolchain install "$wanted" "${options[@]}" >/dev/null || fail "cannot install Rust $wanted"

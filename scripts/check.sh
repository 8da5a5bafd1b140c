#!/usr/bin/env bash
# Checks an edit: formatting, circles of files, clippy, and the unit tests of the crates that changed since BASE (default: HEAD,
# thus uncommitted changes; the last commit if there are none).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/steps.sh

changed_files() {
    git diff --name-only "${BASE:-HEAD}"
    git ls-files --others --exclude-standard
}

# Cargo options for the packages that contain these files.
packages() {
    local folder
    sed -n 's#^\(crates/[^/]*\|drivers/rust\|drivers/wire\)/.*#\1#p' | sort -u | while read -r folder; do
        [ ! -f "$folder/Cargo.toml" ] ||
            echo "--package=$(sed -n '/^\[package\]/,/^\[/s/^name = "\(.*\)"$/\1/p' "$folder/Cargo.toml")"
    done
}

unit_tests() {
    scripts/cargo test --locked --quiet "$@" --lib --bins
}

mapfile -t changed < <(changed_files | packages)
[ ${#changed[@]} -gt 0 ] || mapfile -t changed < <(git diff --name-only HEAD~1 | packages)
step "formatting" scripts/cargo fmt --all --check
step "circles of files" scripts/circles
step "prose" scripts/prose
step "clippy" scripts/cargo clippy --locked --workspace --all-targets -- -D warnings
[ ${#changed[@]} -eq 0 ] || step "unit tests (${changed[*]#--package=})" unit_tests "${changed[@]}"

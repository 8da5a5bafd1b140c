#!/usr/bin/env bash
# What an edit needs: formatting, no circles of files, clippy, and the unit tests of the crates that changed since BASE
# (default: HEAD, thus what is not committed; the last commit where everything is).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/steps.sh

changed_files() {
    git diff --name-only "${BASE:-HEAD}"
    git ls-files --others --exclude-standard
}

# The packages of the folders that hold them, as options of cargo.
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
step "clippy" scripts/cargo clippy --locked --workspace --all-targets -- -D warnings
[ ${#changed[@]} -eq 0 ] || step "unit tests (${changed[*]#--package=})" unit_tests "${changed[@]}"

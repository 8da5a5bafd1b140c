#!/usr/bin/env bash
# Builds all or the named drivers of `dyno tail`, and prints for each whether it was built or skipped, and why.
#
#   scripts/drivers.sh [NAME ...]
#
# NAME@VERSION, such as node@6.8, is another version of a driver with a program `at-version`. It is built from a copy of its folder,
# drivers/NAME@VERSION, which `dyno tail` treats as a separate driver.
#
# As root on Debian, the drivers' packages are installed first; DYNO_NO_APT=1 prevents this.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../drivers"

missing_packages() {
    pkg-config --exists libmongoc-1.0 2>/dev/null || echo libmongoc-dev
    ruby -e 'require "mongo"' 2>/dev/null || echo ruby ruby-mongo
}

install_packages() {
    local packages
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && [ -z "${DYNO_NO_APT:-}" ] || return 0
    read -r -a packages <<<"$(missing_packages | paste -s -d ' ')"
    [ ${#packages[@]} -gt 0 ] || return 0
    echo "drivers: installing Debian packages: ${packages[*]}" >&2
    # A driver without its package is skipped, and the others are built.
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}"; } \
        >/dev/null || echo "drivers: the installation failed" >&2
}

# Copies a driver to a separate folder and locks the version there. Leaves nothing if that version is not available.
at_version() {
    local name=$1 base=${1%%@*} version=${1#*@} said code=0
    if [ ! -x "$base/at-version" ]; then
        echo "$name: drivers/$base has no other versions; these have: $(echo */at-version | sed 's,/at-version,,g')" >&2
        exit 2
    fi
    if ! [[ $version =~ ^[0-9]+(\.[0-9]+)*$ ]]; then
        echo "$name: \`$version\` is no version, such as 6.8 or 6.8.0" >&2
        exit 2
    fi
    [ ! -x "$name/run" ] || return 0
    # Built under another name first, so that a folder with this name is complete.
    rm -rf ".$name.new"
    mkdir ".$name.new"
    tar -C "$base" --exclude=./node_modules --exclude=./.built --exclude=__pycache__ -cf - . | tar -C ".$name.new" -xf -
    said=$(".$name.new/at-version" "$version" 2>&1 >/dev/null) || code=$?
    if [ $code -ne 0 ]; then
        rm -rf ".$name.new"
        echo "$name: failed ($(tail -n 1 <<<"$said"))"
        return 1
    fi
    rm ".$name.new/at-version"
    mv ".$name.new" "$name"
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for run in */run; do names+=("${run%/run}"); done
fi
install_packages
failed=0
for name in "${names[@]}"; do
    if [[ $name == *@* ]] && ! at_version "$name"; then
        failed=1
        continue
    fi
    if [ ! -x "$name/run" ]; then
        echo "$name: there is no drivers/$name/run" >&2
        exit 2
    fi
    code=0
    if [ -x "$name/build" ]; then
        said=$("$name/build" 2>&1 >/dev/null) || code=$?
    fi
    case $code in
        0) echo "$name: built" ;;
        3) echo "$name: skipped ($(tail -n 1 <<<"$said"))" ;;
        *)
            echo "$name: failed"
            echo "$said" >&2
            failed=1
            ;;
    esac
done
exit $failed

#!/usr/bin/env bash
# Builds the drivers of `dyno tail`, all or those named, and says of each whether it is built or skipped, and why.
#
#   scripts/drivers.sh [NAME ...]
#
# As root on Debian the packages that drivers need are installed before; set DYNO_NO_APT=1 to leave the system alone.
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
    # Without a package its driver is skipped, and the others are built.
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}"; } \
        >/dev/null || echo "drivers: the installation failed" >&2
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for run in */run; do names+=("${run%/run}"); done
fi
install_packages
failed=0
for name in "${names[@]}"; do
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

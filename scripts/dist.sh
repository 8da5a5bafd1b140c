#!/usr/bin/env bash
# Builds the release files in target/dist: one static program with eBPF, for any Linux on this processor, as a tarball, a Debian
# package and a Python wheel, and separate debug symbols.
#
# The program is linked against musl: it runs without a C library, and resolves names without plug-ins.
# libelf and zlib are compiled from the sources in the crate libbpf-sys.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
machine=$(uname -m)
target=$machine-unknown-linux-musl
name=mongodyno-$version-$machine-linux
out=$PWD/target/dist
# C libraries and the folders that are packed.
parts=$out/parts

say() { echo "dist: $*" >&2; }

# fail MESSAGE HINT
fail() {
    say "error: $1"
    printf '\nhint: %s\n' "$2" >&2
    exit 3
}

# need PROGRAM DEBIAN_PACKAGE
need() { command -v "$1" >/dev/null || fail "\`$1\` is not installed" "the Debian package $2 has it"; }

metadata() { scripts/cargo metadata --locked --format-version 1 --filter-platform "$target"; }

# library FOLDER NAME OPTION...: lib/NAME of all C files of a folder.
library() {
    local objects=$parts/objects/$2
    mkdir -p "$objects"
    (cd "$objects" && printf '%s\0' "$1"/*.c | xargs -0 -n 1 -P "$(nproc)" musl-gcc -c -O2 -fPIC -w "${@:3}")
    ar rcs "$parts/lib/$2" "$objects"/*.o
}

build_libraries() {
    local crate elfutils
    crate=$(metadata | python3 -c 'import json, os, sys
[found] = [p for p in json.load(sys.stdin)["packages"] if p["name"] == "libbpf-sys"]
print(os.path.dirname(found["manifest_path"]))')
    elfutils=$crate/elfutils
    mkdir -p "$parts/lib" "$parts/include"
    # The kernel's headers, which are independent of the C library.
    ln -s /usr/include/linux /usr/include/asm-generic "$parts/include/"
    ln -s "/usr/include/$machine-linux-gnu/asm" "$parts/include/asm"
    cp "$crate"/zlib/{zlib,zconf}.h "$elfutils"/libelf/{libelf,gelf,elf,nlist}.h "$parts/include/"
    # The configuration of elfutils for musl, limited to the values that libelf uses.
    printf '#define %s 1\n' HAVE_ERR_H HAVE_VISIBILITY HAVE_FALLTHROUGH HAVE_DECL_MEMPCPY HAVE_DECL_REALLOCARRAY \
        >"$parts/config.h"
    echo '#include <eu-config.h>' >>"$parts/config.h"
    library "$crate/zlib" libz.a -DHAVE_UNISTD_H
    library "$elfutils/libelf" libelf.a -std=gnu99 -D_GNU_SOURCE -DHAVE_CONFIG_H \
        -I"$parts" -I"$elfutils/libelf" -I"$elfutils/lib" -I"$parts/include"
}

build_program() {
    local underscored=${target//-/_}
    env "CFLAGS_$underscored=-I$parts/include" "LIBBPF_SYS_LIBRARY_PATH_$underscored=$parts/lib" \
        CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_SPLIT_DEBUGINFO=off \
        scripts/cargo build --release --locked --package mongodyno --target "$target" ||
        fail "cannot build for $target" "if Rust's part for it is missing: rustup target add $target, or scripts/rust.sh $target"
}

# The program without symbols, and the link by which debuggers and profilers find them.
split_symbols() {
    local built=target/$target/release/dyno
    mkdir -p "$parts/$name" "$parts/$name-debug"
    scripts/split-symbols.sh "$built" "$parts/$name/dyno" "$parts/$name-debug/dyno.debug"
}

add_documents() {
    local folder=$parts/$name dyno=$parts/$name/dyno
    "$dyno" --quiet man --out "$folder/man/man1"
    mkdir -p "$folder/completions"
    "$dyno" completions bash >"$folder/completions/dyno.bash"
    "$dyno" completions zsh >"$folder/completions/_dyno"
    "$dyno" completions fish >"$folder/completions/dyno.fish"
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/"
    metadata | python3 scripts/third_party.py >"$folder/THIRD-PARTY.md"
}

pack() {
    tar --directory "$parts" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$1" |
        gzip -n -9 >"$out/$1.tar.gz"
}

pack_debian() {
    local from=$parts/$name root=$parts/debian architecture
    case $machine in
    x86_64) architecture=amd64 ;;
    aarch64) architecture=arm64 ;;
    esac
    install -D -m 755 "$from/dyno" "$root/usr/bin/dyno"
    install -D -m 644 -t "$root/usr/share/man/man1" "$from"/man/man1/*
    gzip -n -9 "$root"/usr/share/man/man1/*
    install -D -m 644 "$from/completions/dyno.bash" "$root/usr/share/bash-completion/completions/dyno"
    install -D -m 644 "$from/completions/_dyno" "$root/usr/share/zsh/vendor-completions/_dyno"
    install -D -m 644 "$from/completions/dyno.fish" "$root/usr/share/fish/vendor_completions.d/dyno.fish"
    install -D -m 644 -t "$root/usr/share/doc/mongodyno" "$from/README.md" "$from/CHANGELOG.md" "$from/THIRD-PARTY.md"
    gzip -n -9 "$root"/usr/share/doc/mongodyno/{CHANGELOG,THIRD-PARTY}.md
    {
        echo "mongodyno is under MIT or Apache-2.0, at your choice. THIRD-PARTY.md.gz lists the licences of linked software."
        echo
        cat LICENSE-MIT
        echo
        cat LICENSE-APACHE
    } | install -D -m 644 /dev/stdin "$root/usr/share/doc/mongodyno/copyright"
    mkdir -p "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<CONTROL
Package: mongodyno
Version: $version
Architecture: $architecture
Maintainer: The mongodyno authors
Section: database
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Description: dynamometer for MongoDB
 dyno puts a MongoDB server on the bench, drives a workload against it, watches
 machine and server, and reports rates, latencies and what held them up.
CONTROL
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/mongodyno_${version}_$architecture.deb" >&2
}

EBPF=1 scripts/setup.sh build
need musl-gcc musl-tools
need python3 python3
need dpkg-deb dpkg
# Reproducible: the same commit gives the same files at any time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) || SOURCE_DATE_EPOCH=$(stat --format=%Y Cargo.toml)
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] ||
    say "some files differ from the commit that \`dyno --version\` will name"

rm -rf "$out"
build_libraries
build_program
split_symbols
add_documents
pack "$name"
pack "$name-debug"
pack_debian
scripts/wheel.py "$parts/$name" "$version" "$machine" "$out"
# For the roles of deploy/ansible; a release has only packed files.
cp "$parts/$name/dyno" target/dyno
rm -rf "$parts"
(cd "$out" && sha256sum ./* >SHA256SUMS && ls -l >&2)

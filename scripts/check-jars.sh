#!/bin/sh
# Checks the libraries in a Maven folder against a list of hashes: none may differ or be missing from the list.
#
#   scripts/check-jars.sh FOLDER LIST OWN    OWN is the archive built here
set -eu
folder=$1 list=$(realpath "$2") own=$3
cd "$folder"
sha256sum --quiet --strict --check "$list" >&2 || {
    echo "check-jars: error: a library in $folder is not the one that $list names" >&2
    exit 3
}
for jar in *.jar; do
    [ "$jar" = "$own" ] || grep -q "  $jar\$" "$list" || {
        echo "check-jars: error: $folder/$jar is not in $list" >&2
        exit 3
    }
done

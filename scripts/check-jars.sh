#!/bin/sh
# Checks the libraries that Maven has put into a folder against a list of their hashes: none differs, and none is unknown.
#
#   scripts/check-jars.sh FOLDER LIST OWN    OWN is the archive that was built itself
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

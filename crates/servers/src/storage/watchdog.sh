# Removes storage after a process that was killed before it could do so. It runs in the process's mount namespace.
# Standard input, a line each: `mount PATH`, `array DEVICE`, `wipe DEVICE`, `group PATH`, with paths encoded for `printf %b`;
# `done` when there is nothing left to do. Its end without `done` means that the other side is dead.
trap '' HUP INT TERM
# Encoded paths are split at blanks, and are not patterns.
set -f

mounted=
array=
devices=
groups=
while read -r word value; do
    case $word in
        mount) mounted=$value ;;
        array) array=$value ;;
        wipe) devices="$devices $value" ;;
        group) groups="$groups $value" ;;
        done) exit 0 ;;
    esac
done

# Decodes a path into `path`. The letter after it keeps line breaks at its end.
decode() {
    path=$(printf '%b.' "$1")
    path=${path%.}
}

# The servers have their own watchdog, which ends them.
rounds=0
decode "$mounted"
mounted=$path
while [ -n "$mounted" ] && mountpoint -q "$mounted" && ! umount "$mounted" 2>/dev/null && [ "$rounds" -lt 1200 ]; do
    sleep 0.1
    rounds=$((rounds + 1))
done
if [ -n "$array" ]; then
    decode "$array"
    mdadm --quiet --stop "$path" 2>/dev/null || :
fi
for device in $devices; do
    decode "$device"
    wipefs --quiet --all "$path" || :
done
for group in $groups; do
    decode "$group"
    rmdir -- "$path" 2>/dev/null || :
done
# Last, because its absence shows that nothing is left.
if [ -n "$mounted" ]; then
    rmdir -- "$mounted" 2>/dev/null || :
fi

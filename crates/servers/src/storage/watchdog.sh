# Takes storage away after a process that was killed together with its chance to do so. It runs in the mount namespace of
# that process.
# Standard input, a line each: `mount PATH`, `array DEVICE`, `wipe DEVICE`, `group PATH`, with paths as `printf %b` takes them;
# `done` when there is nothing left to do. Its end without `done` means that the other side is dead.
trap '' HUP INT TERM
# Encoded paths are split at blanks, and are no patterns.
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

# Leaves the path of an encoded one in `path`. The letter behind it keeps line breaks at its end.
decode() {
    path=$(printf '%b.' "$1")
    path=${path%.}
}

# The servers have a watchdog of their own, which ends them.
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
# The last of all, by which it is seen that nothing is left.
if [ -n "$mounted" ]; then
    rmdir -- "$mounted" 2>/dev/null || :
fi

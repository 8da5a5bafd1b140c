# Takes storage away after a process that was killed together with its chance to do so. It runs in the mount namespace of
# that process.
# Standard input, a line each: `mount PATH`, `array DEVICE`, `wipe DEVICE`, `group PATH`; `done` when there is nothing left
# to do. Its end without `done` means that the other side is dead.
trap '' HUP INT TERM

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

# The servers have a watchdog of their own, which ends them.
rounds=0
while [ -n "$mounted" ] && mountpoint -q "$mounted" && ! umount "$mounted" 2>/dev/null && [ "$rounds" -lt 1200 ]; do
    sleep 0.1
    rounds=$((rounds + 1))
done
if [ -n "$array" ]; then
    mdadm --quiet --stop "$array" 2>/dev/null || :
fi
for device in $devices; do
    wipefs --quiet --all "$device" || :
done
for group in $groups; do
    rmdir -- "$group" 2>/dev/null || :
done
# The last of all, by which it is seen that nothing is left.
if [ -n "$mounted" ]; then
    rmdir -- "$mounted" 2>/dev/null || :
fi

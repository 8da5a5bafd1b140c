# Cleans up after a process that was killed before it could do so.
# $1: temporary folder to remove, empty for none. $2: seconds that the server has to end.
# $3: folder to remove after that if it is empty by then, empty for none.
# Standard input: `server PID` once it runs, or `group PID` with the first process of a group that must
# end as a whole; `done` when there is nothing left to do. Its end without `done` means that the other
# side is dead.
trap '' HUP INT TERM

# Start time of a live process, which distinguishes it from a later one with the same number.
identity() {
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -- ${stat##*) }
    case $1 in Z | X) return 1 ;; esac
    echo "${20}"
}

alive() {
    [ -n "$server" ] && [ "$(identity "$server")" = "$born" ]
}

server=
born=
group=
while read -r word value; do
    case $word in
        server)
            server=$value
            # Without an identity the server has already ended.
            born=$(identity "$server") || server=
            ;;
        group)
            group=$value
            server=$value
            born=$(identity "$server") || server=
            ;;
        done) exit 0 ;;
    esac
done

# The first process of a group gets time to finish its work, and the others live as long as it does.
if [ -n "$group" ]; then
    kill -s INT -- "-$group" 2>/dev/null || :
fi
# The kernel has sent the server its death signal; this is for a server that ignores it.
rounds=0
while alive && [ "$rounds" -lt "$(($2 * 10))" ]; do
    sleep 0.1
    rounds=$((rounds + 1))
done
if [ -n "$group" ]; then
    # The group's number is not reused while any of its processes is left.
    kill -s KILL -- "-$group" 2>/dev/null || :
elif alive; then
    kill -KILL "$server"
fi
while alive; do
    sleep 0.1
done
if [ -n "$1" ]; then
    rm -rf -- "$1"
fi
if [ -n "$3" ]; then
    rmdir -- "$3" 2>/dev/null || :
fi

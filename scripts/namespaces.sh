#!/usr/bin/env bash
# Hosts on one machine, for fleet tests: each is a set of namespaces (network, processes, mounts, name) with its own sshd. Files
# that a host writes to /etc, /opt, /var and /run stay in FOLDER. Needs root, openssh-server and iproute2.
#
#   scripts/namespaces.sh up FOLDER NAME...     makes hosts, and FOLDER/inventory.yml, FOLDER/ssh_config, FOLDER/controller
#   scripts/namespaces.sh cut FOLDER NAME       takes the link of a host down
#   scripts/namespaces.sh mend FOLDER NAME      brings the link up again
#   scripts/namespaces.sh down FOLDER           ends all processes of the hosts, and removes the hosts and FOLDER
#
# Hosts named `server*` are servers in the inventory, `observer*` are observers, all others are clients.
set -euo pipefail

fail() {
    echo "namespaces: error: $1" >&2
    exit "${2:-3}"
}

[ $# -ge 2 ] || fail "usage: scripts/namespaces.sh up|cut|mend|down FOLDER [NAME...]" 2
verb=$1
folder=$(realpath -m "$2")
shift 2
[ "$(id -u)" -eq 0 ] || fail "only root can make network namespaces"
sshd=$(command -v sshd || echo /usr/sbin/sshd)

# Short, because names of network interfaces have at most 15 characters, and always the same for a folder.
tag=$(sha256sum <<<"$folder" | cut -c 1-6)
bridge=dy$tag

group_of() {
    case $1 in
    server*) echo servers ;;
    observer*) echo observers ;;
    *) echo clients ;;
    esac
}

# The first of 200 networks that this machine has no route to.
free_network() {
    local number start=$((16#${tag:0:4} % 200))
    for ((i = 0; i < 200; i++)); do
        number=$(((start + i) % 200))
        if [ -z "$(ip -4 route show root "10.213.$number.0/24" 2>/dev/null)" ]; then
            echo "10.213.$number"
            return
        fi
    done
    fail "all networks of 10.213.0.0/16 are in use"
}

# Script of a host's first process.
write_init() {
    cat >"$folder/init.sh" <<'INIT'
# init.sh FOLDER NAME SSHD
set -eu
own=$1/$2
hostname "$2"
for place in etc opt var run; do
    mkdir -p "/$place" "$own/$place" "$own/.work-$place"
    mount -t overlay overlay -o "lowerdir=/$place,upperdir=$own/$place,workdir=$own/.work-$place" "/$place"
done
mkdir -p /run/sshd
rm -f /run/nologin
ip link set lo up
"$3" -D -e -f "$own/sshd_config" >"$own/sshd.log" 2>&1 &
# The first process has to wait for all orphans.
while :; do
    wait || true
    sleep 1
done
INIT
}

write_sshd_config() {
    local own=$1 address=$2
    ssh-keygen -q -t ed25519 -N '' -f "$own/host_key"
    cat >"$own/sshd_config" <<CONFIG
ListenAddress $address:22
HostKey $own/host_key
AuthorizedKeysFile $folder/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
CONFIG
}

make_host() {
    local name=$1 address=$2 number=$3 own=$folder/$1
    mkdir -p "$own"
    write_sshd_config "$own" "$address"
    ip netns add "dy$tag-$name"
    ip link add "v$tag$number" type veth peer name eth0 netns "dy$tag-$name"
    ip link set "v$tag$number" master "$bridge" up
    ip -n "dy$tag-$name" address add "$address/24" dev eth0
    ip -n "dy$tag-$name" link set eth0 up
    echo "v$tag$number" >"$own/link"
    echo "$address" >"$own/address"
    # If `unshare` dies, the first process dies, and with it everything on the host.
    setsid --fork ip netns exec "dy$tag-$name" unshare --mount --propagation private --uts --pid --fork --kill-child \
        --mount-proc bash "$folder/init.sh" "$folder" "$name" "$sshd" </dev/null >"$own/init.log" 2>&1
    echo "$name $address $(cut -d ' ' -f 1,2 "$own/host_key.pub")" >>"$folder/hosts"
    echo "$address $(cut -d ' ' -f 1,2 "$own/host_key.pub")" >>"$folder/known_hosts"
}

write_inventory() {
    local group name
    {
        echo "all:"
        echo "  vars:"
        echo "    ansible_user: root"
        echo "    ansible_ssh_private_key_file: $folder/key"
        echo "    ansible_ssh_common_args: -F $folder/ssh_config"
        # The system's Python, as on a host without another one.
        echo "    ansible_python_interpreter: /usr/bin/python3"
        echo "    dyno_services: false"
        # All hosts share the kernel of this machine.
        echo "    dyno_server_sysctl: {}"
        echo "  children:"
        for group in clients servers observers; do
            echo "    $group:"
            echo "      hosts:"
            for name in "$@"; do
                [ "$(group_of "$name")" = "$group" ] || continue
                echo "        $name:"
                echo "          ansible_host: $(cat "$folder/$name/address")"
            done
        done
    } >"$folder/inventory.yml"
    cat >"$folder/ssh_config" <<CONFIG
Host *
    User root
    IdentityFile $folder/key
    IdentitiesOnly yes
    UserKnownHostsFile $folder/known_hosts
    StrictHostKeyChecking yes
    ConnectTimeout 5
CONFIG
    local host
    for host in "$@"; do
        printf 'Host %s\n    HostName %s\n' "$host" "$(cat "$folder/$host/address")" >>"$folder/ssh_config"
    done
}

wait_for_ssh() {
    local name until=$((SECONDS + 30))
    for name in "$@"; do
        until ssh -F "$folder/ssh_config" "$name" true 2>"$folder/$name/ssh.log"; do
            [ "$SECONDS" -lt "$until" ] || fail "$name does not answer: $(cat "$folder/$name/ssh.log" "$folder/$name/init.log")"
            sleep 0.2
        done
    done
}

up() {
    [ $# -gt 0 ] || fail "no host is named" 2
    [ $# -le 200 ] || fail "at most 200 hosts" 2
    [ ! -e "$folder" ] || fail "$folder exists; remove it with \`down\`"
    [ -x "$sshd" ] || fail "there is no sshd: install openssh-server"
    local name
    for name in "$@"; do
        [[ $name =~ ^[a-z][a-z0-9-]{0,20}$ ]] || fail "\`$name\` is not a valid host name here" 2
    done
    mkdir -p "$folder"
    chmod 711 "$folder"
    # Leave nothing half made.
    trap '[ $? -eq 0 ] || down' EXIT
    local network number=10
    network=$(free_network)
    ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
    write_init
    ip link add "$bridge" type bridge
    ip address add "$network.1/24" dev "$bridge"
    ip link set "$bridge" up
    echo "$network.1" >"$folder/controller"
    for name in "$@"; do
        number=$((number + 1))
        make_host "$name" "$network.$number" "$number"
    done
    write_inventory "$@"
    wait_for_ssh "$@"
}

link_of() {
    [ -r "$folder/$1/link" ] || fail "there is no host \`$1\`" 2
    cat "$folder/$1/link"
}

down() {
    local space pid
    for space in $(ip netns list | awk '{print $1}'); do
        [[ $space == "dy$tag-"* ]] || continue
        # First its processes, which are ours because only this script uses the name.
        for pid in $(ip netns pids "$space"); do
            kill -KILL "$pid" 2>/dev/null || true
        done
        ip netns delete "$space"
    done
    # `unshare` is in the namespace too; a host without its network is gone.
    ip link delete "$bridge" 2>/dev/null || true
    rm -rf "$folder"
}

case $verb in
up) up "$@" ;;
cut) ip link set "$(link_of "${1:-}")" down ;;
mend) ip link set "$(link_of "${1:-}")" up ;;
down) down ;;
*) fail "usage: scripts/namespaces.sh up|cut|mend|down FOLDER [NAME...]" 2 ;;
esac

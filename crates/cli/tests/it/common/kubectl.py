"""Fake `kubectl` and cluster for tests: the parts of a run are processes on this machine, and service names come from a hosts
table that only the agents see. Needs root. DYNO_TEST_CLUSTER is the folder with its state."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import yaml

STATE = os.environ["DYNO_TEST_CLUSTER"]
DYNO = os.environ["DYNO_TEST_PROGRAM"]
SERVER = os.environ["DYNO_EMBEDDED_SERVER"]
# A real `mongod` for the pods, which takes the arguments of the manifest as they are; the embedded server has others.
MONGOD = os.environ.get("DYNO_TEST_POD_MONGOD")
# A separate network on this machine for each test.
NETWORK = "127.%d.%d" % (100 + int(os.environ["DYNO_TEST_NUMBER"]) % 100, int(os.environ["DYNO_TEST_NUMBER"]) // 100 % 250)
REDIS, DATABASE = NETWORK + ".2", NETWORK + ".3"
# Port of a pod's first server; the other servers have the following ports.
PORT = 27017


def at(name):
    return os.path.join(STATE, name)


def read(name):
    with open(at(name)) as file:
        return file.read()


def write(name, text):
    """Atomic, because the test and other calls read the file at any time."""
    new = at("%s.%d.new" % (name, os.getpid()))
    with open(new, "w") as file:
        file.write(text)
    os.replace(new, at(name))


def start(name, command, text="", **variables):
    with open(at(name + ".log"), "wb") as log:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                                 env=dict(os.environ, **variables))
    child.stdin.write(text.encode())
    child.stdin.close()
    write(name + ".pid", str(child.pid))


def is_running(process):
    try:
        with open("/proc/%s/stat" % process) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def stop(prefix):
    names = [name for name in os.listdir(STATE) if name.startswith(prefix) and name.endswith(".pid")]
    processes = [read(name) for name in names]
    for process in filter(is_running, processes):
        os.kill(int(process), signal.SIGTERM)
    # Like the real `kubectl`, deleting waits.
    for _ in range(600):
        if not any(map(is_running, processes)):
            break
        time.sleep(0.05)
    for name in names:
        os.remove(at(name))


def answers(place):
    for _ in range(600):
        try:
            socket.create_connection(place, 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("it does not answer")


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    target.close()


def forward(place):
    # The port's process is visibly a forwarder.
    with open("/proc/self/comm", "w") as name:
        name.write("kubectl")
    own = socket.create_server(("127.0.0.1", 0))
    print("Forwarding from 127.0.0.1:%d -> %d" % (own.getsockname()[1], place[1]), flush=True)
    while True:
        near, _ = own.accept()
        far = socket.create_connection(place)
        for pair in ((near, far), (far, near)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def agent(name, container, index, host):
    """Starts the command of a container with `dyno`, with the cluster's names and a data folder on this machine."""
    write("hosts", "%s dyno-redis\n%s dyno-server-0.dyno-server.dyno.svc\n" % (REDIS, DATABASE))
    write("url", json.loads(read("secret.json"))["url"])
    folder = at("work-" + name)
    os.makedirs(folder, exist_ok=True)
    script = 'mount --bind "$0" /etc/hosts && cd "$1" && shift && exec "$@"'
    words = located(container["args"])
    start(name, ["unshare", "--mount", "sh", "-c", script, at("hosts"), folder, DYNO] + words,
          DYNO_AGENT_INDEX=str(index), DYNO_AGENT_HOST=host, DYNO_REDIS_FILE=at("url"))


def located(words):
    """Arguments with folders on this machine instead of container folders."""
    for folder, own in (("/data/disk-0", "data"), ("/run/dyno-agents", "secrets/dyno-agents"), ("/run/dyno-servers", "secrets/dyno-servers")):
        words = [word.replace(folder, at(own)) for word in words]
    return words


def server(container):
    words = located(container["args"])
    port, folder = (words[words.index(name) + 1] for name in ("--port", "--dbpath"))
    name = "server" if int(port) == PORT else "server-%d" % (int(port) - PORT)
    os.makedirs(folder, exist_ok=True)
    if MONGOD:
        position = words.index("--bind_ip_all")
        words[position:position + 1] = ["--bind_ip", DATABASE, "--nounixsocket"]
        start(name, [MONGOD] + words)
        return
    write("empty.toml", "")
    own = [SERVER, "--config", at("empty.toml"), "--host", DATABASE, "--port", port, "--storage-path", folder, "--standalone"]
    if "--auth" in words:
        own.append("--auth")
    if "--tlsMode" in words:
        pem, ca = (words[words.index(name) + 1] for name in ("--tlsCertificateKeyFile", "--tlsCAFile"))
        own += ["--tls-cert-file", pem, "--tls-key-file", pem]
        if "--tlsAllowConnectionsWithoutCertificates" not in words:
            own += ["--tls-ca-file", ca, "--tls-require-client-cert"]
    start(name, own)


def keep(secret):
    """Files like in a pod: they are read-only."""
    name, data = secret["metadata"]["name"], secret["stringData"]
    if name == "dyno-redis":
        write("secret.json", json.dumps(data))
        return
    folder = at("secrets/" + name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for key, text in data.items():
        with open(os.path.join(folder, key), "w", opener=lambda path, flags: os.open(path, flags, 0o400)) as file:
            file.write(text)


def apply(path):
    if path == "-":
        keep(json.load(sys.stdin))
        return
    with open(path) as file:
        text = file.read()
    name = os.path.basename(path)
    if name == "redis.yaml":
        password = json.loads(read("secret.json"))["password"]
        start("redis", ["redis-server", "-"], "bind %s\nport 6379\nrequirepass %s\nsave \"\"\ndir %s\n" % (REDIS, password, STATE))
    parts = {part["kind"]: part["spec"] for part in yaml.safe_load_all(text) if "spec" in part}
    if name == "servers.yaml":
        # Each set of servers gets new volumes.
        shutil.rmtree(at("data"), ignore_errors=True)
        os.makedirs(at("data"))
        for container in parts["StatefulSet"]["template"]["spec"]["containers"]:
            if container["name"] == "dyno":
                agent("server-watch", container, 0, "node-9/dyno-server-0")
            else:
                server(container)
    if name == "clients.yaml":
        container = parts["Job"]["template"]["spec"]["containers"][0]
        for pod in range(parts["Job"]["completions"]):
            agent("client-%d" % pod, container, pod, "node-%d/%d" % (pod, pod))


def main(words):
    with open(at("calls"), "a") as calls:
        calls.write(" ".join(words) + "\n")
    words = words[2:]
    part = {"clients": "client", "servers": "server", "redis": "redis"}
    if words[0] == "apply":
        path = words[words.index("-f") + 1]
        if path == "-" and "--server-side" not in words:
            sys.exit("an annotation would show the `Secret`")
        apply(path)
    elif words[:2] == ["rollout", "status"]:
        started = [name for name in os.listdir(STATE) if name.endswith(".pid") and name.split(".")[0] != "server-watch"]
        servers = range(sum(name.startswith("server") for name in started))
        for place in [(REDIS, 6379)] if "redis" in words[2] else [(DATABASE, PORT + server) for server in servers]:
            answers(place)
    elif words[0] == "port-forward":
        forward((REDIS if "redis" in words[1] else DATABASE, int(words[2].lstrip(":"))))
    elif words[:2] == ["delete", "-f"]:
        stop(part.get(os.path.basename(words[2]).split(".")[0], "nothing"))
    elif words[:2] == ["delete", "secret"]:
        for name in words[2:]:
            shutil.rmtree(at("secrets/" + name), ignore_errors=True)
    elif words[0] == "logs":
        prefix = words[2].rsplit("=", 1)[1]
        for name in sorted(os.listdir(STATE)):
            if name.startswith(prefix) and name.endswith(".log"):
                print("[pod/%s] %s" % (name, read(name)))


main(sys.argv[1:])

"""Servers to check against, and a relay that counts and cuts connections and makes cursors blind."""

import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

from .wire import MESSAGE, Client, Int32, Refused, decode, encode

PROJECT = pathlib.Path(__file__).resolve().parents[2]


START_S = 60


def environment(program):
    """Environment for a server installed by `dyno`, with its libraries in its folder."""
    installed = pathlib.Path(program).absolute().parents[1]
    own = {"LD_LIBRARY_PATH": str(installed / "lib")} if (installed / "origin.json").is_file() else {}
    return os.environ | own


class Server:
    """A replica set with one member, so that change streams work, in a separate folder."""

    def __init__(self):
        # In memory, if possible: a busy disk can delay the server for longer than a case waits.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="conformance-", dir=memory)
        self.data, self.log = os.path.join(self.folder, "data"), os.path.join(self.folder, "log")
        os.mkdir(self.data)

    def start(self, command):
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment(command[0])
            )

    def until(self, look):
        """Polls `look` until it returns something."""
        deadline = time.monotonic() + START_S
        while not (found := look()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                text = pathlib.Path(self.log).read_text(errors="replace")
                self.close()
                raise SystemExit(f"{self.process.args[0]} does not start:\n{text[-4000:]}")
            time.sleep(0.05)
        return found

    @staticmethod
    def uri_of(port):
        return f"mongodb://127.0.0.1:{port}/?directConnection=true"

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Embedded(Server):
    def __init__(self):
        built = PROJECT / ".cache/secantus/bin/secantusd-rs"
        program = os.environ.get("DYNO_EMBEDDED_SERVER") or str(built)
        if not os.access(program, os.X_OK):
            raise SystemExit(f"no embedded server at {program}: run `scripts/setup.sh embedded`, or give --uri or --mongod")
        super().__init__()
        config = os.path.join(self.folder, "empty.toml")
        open(config, "w").close()
        arguments = ["--config", config, "--host", "127.0.0.1", "--port", "0", "--cache-size", "256M"]
        self.start([program, *arguments, "--storage-path", self.data])
        self.uri = self.uri_of(self.until(self._port))

    def _port(self):
        text = pathlib.Path(self.log).read_text(errors="replace")
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)\n", text)
        return found and int(found[1])


class Mongod(Server):
    def __init__(self, program):
        if not os.access(program, os.X_OK):
            raise SystemExit(f"no mongod at {program}: set another one by --mongod or DYNO_TEST_MONGOD")
        super().__init__()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.uri = self.uri_of(port)
        arguments = ["--bind_ip", "127.0.0.1", "--port", str(port), "--dbpath", self.data, "--replSet", "conformance"]
        self.start([program, *arguments, "--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "64"])
        self.until(lambda: self._initiated(port))
        self.until(lambda: self._said({"hello": Int32(1)}).get("isWritablePrimary"))

    def _initiated(self, port):
        members = [{"_id": Int32(0), "host": f"127.0.0.1:{port}"}]
        return self._said({"replSetInitiate": {"_id": "conformance", "members": members}})

    def _said(self, command):
        """The server's answer; None if it does not answer yet."""
        try:
            client = Client(self.uri)
        except OSError:
            return {}
        try:
            return client.run("admin", command)
        except (OSError, Refused):
            return {}
        finally:
            client.close()


class Relay:
    """Passes bytes between drivers and the server, and inspects commands."""

    def __init__(self, uri):
        address = re.search(r"//([^/:]+):(\d+)", uri)
        self.server = (address[1], int(address[2]))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = uri.replace(address[0], f"//127.0.0.1:{self.listener.getsockname()[1]}")
        self.open = []
        self.with_inserts = set()
        self.unanswered = set()
        self.inserts, self.pings, self.awaits, self.get_mores = [], 0, set(), 0
        self.finds = []
        # Requests for streamed heartbeats.
        self.streamed = 0
        self.reading = threading.Event()
        self.reading.set()
        self.answering = threading.Event()
        self.answering.set()
        self.skipped = None
        self.tailing = set()
        # Cursors still to be made blind; blind ones, with the rest of their answers; pending opening requests.
        self.to_blind, self.blind, self.opening = 0, {}, set()
        self.tailable_finds, self.queries = 0, []
        self.closed = threading.Event()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def uri_with(self, option):
        return f"{self.uri}{'&' if '?' in self.uri else '/?'}{option}"

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.server)
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.open += [client, server]
            threading.Thread(target=self._pass, args=(client, server, self._asked), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, self._answered), daemon=True).start()

    def _asked(self, client, data):
        if b"\x02insert\0" in data:
            self.with_inserts.add(client)
            self.unanswered.add(client)
            self.inserts.append(data)
        is_get_more, is_tailable = b"\x12getMore\0" in data, b"\x08tailable\0\x01" in data
        is_find = b"\x02find\0" in data
        if is_get_more or is_tailable:
            self.tailing.add(client)
        else:
            self.tailing.discard(client)
        with self.lock:
            self.get_mores += is_get_more
            self.streamed += b"maxAwaitTimeMS\0" in data
            if is_find:
                self.finds.append(time.monotonic())
            if is_tailable:
                self.tailable_finds += 1
                if self.to_blind:
                    self.opening.add(client)
            elif is_find or b"\x02aggregate\0" in data:
                self.queries.append(time.monotonic())
            self.pings += len(re.findall(rb"[\x01\x10\x12]ping\0", data))
        self.awaits.update(self._limits(data))
        if is_find and not self.reading.is_set():
            raise ConnectionError("nothing can be read")

    @staticmethod
    def _limits(data):
        """All `maxTimeMS` in a command."""
        forms = {b"\x01": "<d", b"\x10": "<i", b"\x12": "<q"}
        found = re.findall(rb"([\x01\x10\x12])maxTimeMS\0(.{8})", data, re.DOTALL)
        return [struct.unpack_from(forms[kind], value)[0] for kind, value in found]

    def _answered(self, client):
        if client in self.unanswered:
            self.answering.wait()
            self.unanswered.discard(client)

    def skip(self, n):
        """In the next reply of a tailable cursor, or of any getMore, with message `n`, its number is replaced by `n -
        2`: a consumer gets that message twice, and `n` not at all. Two processes that share the messages treat both
        as theirs. Immediate query results are not changed."""
        self.skipped = n

    def _without_skipped(self, data):
        this, before = (b"\x12n\0" + struct.pack("<q", n) for n in (self.skipped, self.skipped - 2))
        if this not in data:
            return data
        self.skipped = None
        return data.replace(this, before)

    def make_blind(self, cursors):
        """The next live tailable cursors stay alive and return nothing, not even when opened."""
        self.to_blind = cursors

    def _opened(self, client, data):
        """The answer that opens a cursor; without messages if the cursor is to be blind."""
        request = struct.unpack_from("<i", data, 8)[0]
        cursor = decode(data[21:])["cursor"]
        with self.lock:
            if not cursor["id"] or not self.to_blind:
                return data
            self.to_blind -= 1
            self.opening.discard(client)
            self.blind[cursor["id"]] = cursor["ns"]
        return self._answer(request, cursor["id"], "firstBatch")

    def _answer(self, request, cursor, batch):
        reply = {"cursor": {batch: [], "id": cursor, "ns": self.blind[cursor]}, "ok": 1.0}
        body = struct.pack("<iB", 0, 0) + encode(reply)
        return struct.pack("<iiii", 16 + len(body), 1, request, MESSAGE) + body

    def _answered_blind(self, client, data):
        """Answers a blind cursor's getMore as if nothing were new; false for other commands."""
        if b"\x02killCursors\0" in data:
            # The server itself reports closed cursors.
            self.blind = {cursor: ns for cursor, ns in self.blind.items() if struct.pack("<q", cursor) not in data}
        asked = re.search(rb"\x12getMore\0(.{8})", data, re.DOTALL)
        cursor = asked and struct.unpack("<q", asked[1])[0]
        if cursor not in self.blind:
            return False
        answer = self._answer(struct.unpack_from("<i", data, 4)[0], cursor, "nextBatch")
        self.closed.wait(max(self._limits(data), default=1000) / 1000)
        if cursor not in self.blind:
            return False
        client.sendall(answer)
        return True

    def hold(self):
        """From now on, inserts get no answer; other commands do."""
        self.answering.clear()

    def release(self):
        self.answering.set()

    def refuse_reading(self):
        """Breaks every connection, and from now on each connection that requests messages."""
        self.reading.clear()
        self.cut()

    def allow_reading(self):
        self.reading.set()

    def _pass(self, source, target, look):
        try:
            while data := source.recv(1 << 16):
                if look == self._asked:
                    look(source, data)
                    if self._answered_blind(source, data):
                        continue
                else:
                    look(target)
                    if target in self.opening:
                        data = self._opened(target, data)
                    if self.skipped is not None and target in self.tailing:
                        data = self._without_skipped(data)
                target.sendall(data)
        except OSError:
            pass
        self._cut([source, target])

    def _cut(self, ends):
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Breaks every connection; new ones are accepted."""
        with self.lock:
            ends, self.open = self.open, []
        self._cut(ends)

    def close(self):
        self.closed.set()
        self.release()
        self.listener.close()
        self.cut()

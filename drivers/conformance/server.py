"""The embedded server, and a relay that counts connections and can cut them."""

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

PROJECT = pathlib.Path(__file__).resolve().parents[2]


class Embedded:
    """A replica set of one, so that change streams work."""

    def __init__(self):
        built = PROJECT / ".cache/secantus/bin/secantusd-rs"
        program = os.environ.get("DYNO_EMBEDDED_SERVER") or str(built)
        if not os.access(program, os.X_OK):
            raise SystemExit(f"there is no embedded server at {program}: run `make setup`, or give --uri")
        # In memory, if possible: a disk that others keep busy can hold the server up for longer than a case waits.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="conformance-", dir=memory)
        config = os.path.join(self.folder, "empty.toml")
        open(config, "w").close()
        log = os.path.join(self.folder, "log")
        arguments = ["--config", config, "--host", "127.0.0.1", "--port", "0", "--cache-size", "256M"]
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [program, *arguments, "--storage-path", os.path.join(self.folder, "data")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + 60
        while True:
            text = pathlib.Path(log).read_text(errors="replace")
            if found := re.search(r"listening on 127\.0\.0\.1:(\d+)\n", text):
                break
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise SystemExit(f"the embedded server does not start:\n{text}")
            time.sleep(0.05)
        self.uri = f"mongodb://127.0.0.1:{found[1]}/?directConnection=true"

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Relay:
    """Passes bytes between drivers and the server, and looks at commands as they go by."""

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
        # Requests for heartbeats that the server shall stream.
        self.streamed = 0
        self.reading = threading.Event()
        self.reading.set()
        self.answering = threading.Event()
        self.answering.set()
        self.skipped = None
        self.tailing = set()
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
        is_get_more = b"\x12getMore\0" in data
        if is_get_more or b"\x08tailable\0\x01" in data:
            self.tailing.add(client)
        else:
            self.tailing.discard(client)
        with self.lock:
            self.get_mores += is_get_more
            self.streamed += b"maxAwaitTimeMS\0" in data
            is_find = b"\x02find\0" in data
            if is_find:
                self.finds.append(time.monotonic())
            self.pings += len(re.findall(rb"[\x01\x10\x12]ping\0", data))
        for kind, value in re.findall(rb"([\x01\x10\x12])maxTimeMS\0(.{8})", data, re.DOTALL):
            form = {b"\x01": "<d", b"\x10": "<i", b"\x12": "<q"}[kind]
            self.awaits.add(struct.unpack_from(form, value)[0])
        if is_find and not self.reading.is_set():
            raise ConnectionError("nothing can be read")

    def _answered(self, client):
        if client in self.unanswered:
            self.answering.wait()
            self.unanswered.discard(client)

    def skip(self, n):
        """In the next reply of a tailable cursor, or of any getMore, with message `n`, its number is that of two before: to a
        consumer, that one is there twice and `n` is not. Two processes that share the messages take the same one for both.
        What a query finds at once is as it is."""
        self.skipped = n

    def _without_skipped(self, data):
        this, before = (b"\x12n\0" + struct.pack("<q", n) for n in (self.skipped, self.skipped - 2))
        if this not in data:
            return data
        self.skipped = None
        return data.replace(this, before)

    def hold(self):
        """From now on no insert is answered; all else is."""
        self.answering.clear()

    def release(self):
        self.answering.set()

    def refuse_reading(self):
        """Breaks every connection, and from now on each that asks for messages."""
        self.reading.clear()
        self.cut()

    def allow_reading(self):
        self.reading.set()

    def _pass(self, source, target, look):
        try:
            while data := source.recv(1 << 16):
                if look == self._asked:
                    look(source, data)
                else:
                    look(target)
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
        self.release()
        self.listener.close()
        self.cut()

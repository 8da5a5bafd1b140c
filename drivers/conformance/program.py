"""One run of a driver's program, as in `dyno tail`."""

import json
import os
import queue
import signal
import struct
import subprocess
import threading
import time

READY_S = 30
# Number of processes of a driver with several, the same on all machines.
WORKERS = 2
END_S = 30


class Wrong(AssertionError):
    """The program violates the contract."""


class Program:
    def __init__(self, run, role, uri, options, folder):
        self.output = os.path.join(folder, "stamps")
        self.role = role
        arguments = [str(part) for pair in options.items() for part in (f"--{pair[0]}", pair[1])]
        self.process = subprocess.Popen(
            [run, role, *arguments, "--output", self.output],
            env=os.environ | {"DYNO_URI": uri, "DYNO_DRIVER_WORKERS": str(WORKERS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines, self.errors = queue.Queue(), []
        self.events = []
        self.readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.lines.put), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors.append), daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(stream, take):
        for line in stream:
            take(line)
        take("")

    def ready(self):
        try:
            line = self.lines.get(timeout=READY_S)
        except queue.Empty:
            line = "(nothing)"
        if line != "ready\n":
            self.kill()
            raise Wrong(f"not ready but {line!r}; on stderr: {''.join(self.errors)}")
        return self

    def start(self, clock=time.monotonic_ns, delay_ns=50_000_000):
        self.start_ns = clock() + delay_ns
        self.say(f"start {self.start_ns}")
        return self

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end_of_input(self):
        self.process.stdin.close()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def wait(self):
        """The exit code, after all events and errors were read."""
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong(f"does not end; on stderr: {''.join(self.errors)}") from None
        for reader in self.readers:
            reader.join(5)
        while not self.lines.empty():
            if line := self.lines.get():
                self.events.append(json.loads(line) if line.startswith("{") else line)
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass

    def written(self, records, seconds=20):
        """Waits until this many stamps are on disk."""
        deadline = time.monotonic() + seconds
        while os.path.getsize(self.output) < 32 * records:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise Wrong(f"{os.path.getsize(self.output) // 32} stamps, {records} expected; {''.join(self.errors)}")
            time.sleep(0.01)
        return self

    def stamps(self):
        with open(self.output, "rb") as file:
            data = file.read()
        if len(data) % 32:
            raise Wrong(f"{len(data)} bytes of stamps are not whole records")
        return list(struct.iter_unpack("<Qqqq" if self.role == "produce" else "<QqqII", data))

    def named(self, name):
        return [event for event in self.events if isinstance(event, dict) and event.get("event") == name]

    def done(self):
        """The last event."""
        last = self.events[-1] if self.events else None
        if not isinstance(last, dict) or last.get("event") != "done" or len(self.named("done")) != 1:
            raise Wrong(f"the last line is not the one `done` event: {last!r}; stderr: {''.join(self.errors)}")
        return last

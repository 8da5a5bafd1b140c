"""`python3 -m conformance [--driver NAME …]`: all drivers, or those named, four at a time."""

import argparse
import concurrent.futures
import io
import os
import pathlib
import signal
import sys
import time
import unittest

from .cases import Cases
from .server import Embedded, Mongod
from .wire import Client, Refused

JOBS = 4
DRIVERS = pathlib.Path(__file__).resolve().parents[1]


def supports_change_streams(uri):
    client = Client(uri)
    try:
        client.capped("conformance", "streams", 4096)
    except Refused:
        pass
    try:
        pipeline = [{"$changeStream": {}}]
        client.run("conformance", {"aggregate": "streams", "pipeline": pipeline, "cursor": {}})
        return True
    except Refused:
        return False
    finally:
        client.run("conformance", {"drop": "streams"})
        client.close()


class Result(unittest.TextTestResult):
    """Prints skipped cases, once for each cause."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reasons = getattr(self, "reasons", set()) | {reason}


def check(name, uri, change_streams, words):
    """Runs the cases of one driver; returns success, output, and a line of figures."""
    members = {"name": name, "run_path": str(DRIVERS / name / "run"), "uri": uri, "change_streams": change_streams}
    case = type(name, (Cases,), members)
    names = unittest.defaultTestLoader.getTestCaseNames(case)
    suite = unittest.TestSuite(case(test) for test in names if words in test)
    said = io.StringIO()
    print(f"== {name}", file=said)
    started = time.monotonic()
    result = unittest.TextTestRunner(said, resultclass=Result).run(suite)
    for reason in sorted(getattr(result, "reasons", ())):
        print(f"skipped: {reason}", file=said)
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    passed = result.testsRun - bad - skipped
    seconds = time.monotonic() - started
    figures = f"{name:16} {passed:3} passed {bad:3} failed {skipped:3} skipped {seconds:6.1f} s"
    return result.wasSuccessful(), said.getvalue(), figures


def main():
    found = sorted(path.parent.name for path in DRIVERS.glob("*/run"))
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--driver", action="append", choices=found, help="again for more; default: all")
    servers = parser.add_mutually_exclusive_group()
    servers.add_argument("--uri", help="a running server")
    mongod = os.environ.get("DYNO_TEST_MONGOD")
    servers.add_argument("--mongod", default=mongod, help="program of a server to start; default: DYNO_TEST_MONGOD")
    servers.add_argument("--embedded", action="store_true", help="start the embedded server; default without --mongod")
    parser.add_argument("--case", default="", help="only cases with this in their name")
    arguments = parser.parse_args()
    # A shell starts background programs with SIGINT ignored, and child processes inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    server = None
    if not arguments.uri:
        server = Mongod(arguments.mongod) if arguments.mongod and not arguments.embedded else Embedded()
    try:
        uri = arguments.uri or server.uri
        change_streams = supports_change_streams(uri)
        good, figures = True, []
        # Most of the time is spent waiting for a start or a limit, or for something that must not happen.
        with concurrent.futures.ThreadPoolExecutor(JOBS) as jobs:
            names = arguments.driver or found
            running = [jobs.submit(check, name, uri, change_streams, arguments.case) for name in names]
            for each in running:
                is_good, said, line = each.result()
                print(said, end="", file=sys.stderr, flush=True)
                good &= is_good
                figures.append(line)
        print("\n".join(figures))
    finally:
        if server:
            server.close()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

"""`python3 -m conformance [--driver NAME …] [--uri URI]`: all drivers, or those named, in sequence."""

import argparse
import pathlib
import sys
import time
import unittest

from .cases import Cases
from .server import Embedded
from .wire import Client, Refused

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
    """Names what was skipped, once for each cause."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reasons = getattr(self, "reasons", set()) | {reason}


def main():
    found = sorted(path.parent.name for path in DRIVERS.glob("*/run"))
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--driver", action="append", choices=found, help="again for more; default: all")
    parser.add_argument("--uri", help="server to use; without it the embedded one is started")
    parser.add_argument("--case", default="", help="only cases with this in their name")
    arguments = parser.parse_args()
    server = None if arguments.uri else Embedded()
    try:
        uri = arguments.uri or server.uri
        change_streams = supports_change_streams(uri)
        good, figures = True, []
        for name in arguments.driver or found:
            run_path = str(DRIVERS / name / "run")
            members = {"name": name, "run_path": run_path, "uri": uri, "change_streams": change_streams}
            case = type(name, (Cases,), members)
            suite = unittest.TestSuite(
                case(test)
                for test in unittest.defaultTestLoader.getTestCaseNames(case)
                if arguments.case in test
            )
            print(f"== {name}", file=sys.stderr, flush=True)
            started = time.monotonic()
            runner = unittest.TextTestRunner(resultclass=Result)
            result = runner.run(suite)
            for reason in sorted(getattr(result, "reasons", ())):
                print(f"skipped: {reason}", file=sys.stderr)
            good &= result.wasSuccessful()
            bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
            passed = result.testsRun - bad - skipped
            seconds = time.monotonic() - started
            figures.append(f"{name:16} {passed:3} passed {bad:3} failed {skipped:3} skipped {seconds:6.1f} s")
        print("\n".join(figures))
    finally:
        if server:
            server.close()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

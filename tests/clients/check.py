"""Checks for tests that are scripts: a failure is printed and counted, and the test continues."""
import json
import sys

failures = []
checks = 0


def check(condition, what, shown=None):
    """`what` describes the expectation; `shown` is a value to print with it."""
    global checks
    checks += 1
    if not condition:
        failures.append(what)
        print("FAIL", what, "" if shown is None else json.dumps(shown)[:3000], flush=True)


def run_parts(server, parts):
    """Runs each part; a failure in one is reported and the others still run."""
    for part in parts:
        try:
            part(server)
        except (AssertionError, KeyError, IndexError, TypeError, ValueError) as problem:
            check(False, f"{part.__name__}: {problem!r}")
        else:
            check(True, part.__name__)


def finish():
    """Ends the test: it has passed if every check has, and if there were any."""
    passed = checks > 0 and not failures
    print("passed" if passed else "failed", f"({checks} checks, {len(failures)} failures)")
    sys.exit(0 if passed else 1)

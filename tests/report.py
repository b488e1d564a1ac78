#!/usr/bin/env python3
"""The table at the end of ./dev test: report.py [--status N] [--problem TEXT]... RESULTS.xml [RETRIES.xml]
With --skipped: only prints the names of the tests that were skipped as a whole, one per line.

RESULTS.xml is what `ctest --output-junit` wrote, RETRIES.xml the same for the tests that were tried twice, whose second result
counts. Lists what failed and what was skipped: whole tests, and parts of tests that passed. Exits with 1 if anything failed,
or if ctest itself did (--status).

Parts are recognised in the output of a test by `skipped part: NAME: REASON` (needs.py), by the lines that unittest
(verbosity=2) and GoogleTest print, and by their totals. Each --problem counts as one more failure.
"""
import argparse
import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

PART = re.compile(r"^skipped part: (.+?): (.*)$")
# With a docstring, or with output in between, the reason is not on the line that names the case.
UNITTEST_CASE = re.compile(r"^(\w+) \(([\w.]+)\)")
UNITTEST_SKIP = re.compile(r"(?:^|\.\.\. )skipped (['\"])(.*)\1$")
UNITTEST_TOTAL = re.compile(r"^(?:OK|FAILED) \(.*?\bskipped=(\d+)")
GTEST_SKIP = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)")
GTEST_REASON = re.compile(r"^\S+:\d+: Skipped$")
GTEST_DISABLED = re.compile(r"^\s*YOU HAVE (\d+) DISABLED TESTS?")
WHOLE = re.compile(r"^skipped: (.*?)(?:; to run it: (.*))?$")


def skipped_parts(output):
    """[(name, reason)] of the parts of a test that were skipped."""
    parts, case, reason, unnamed, counted = [], "", "", 0, 0
    lines = output.splitlines()
    for at, line in enumerate(lines):
        if found := UNITTEST_CASE.match(line):
            case = found[1]
        if found := PART.match(line):
            parts.append((found[1], found[2]))
        elif found := UNITTEST_SKIP.search(line):
            parts.append((case, found[2]))
            unnamed += 1
        elif found := UNITTEST_TOTAL.match(line):
            counted += int(found[1])
        elif GTEST_REASON.match(line):
            reason = lines[at + 1].strip() if at + 1 < len(lines) else ""
        elif found := GTEST_SKIP.match(line):
            parts.append((found[1], reason or "no reason given"))
            reason = ""
        elif found := GTEST_DISABLED.match(line):
            parts.append((f"{found[1]} disabled cases", "disabled in the source"))
    if counted > unnamed:
        parts.append((f"{counted - unnamed} cases", "unittest names no reason; run it with verbosity=2"))
    return parts


class Result:
    """`state`: passed, failed or skipped."""

    def __init__(self, case):
        self.name = case.get("name")
        self.output = case.findtext("system-out") or ""
        status = case.get("status")
        if case.find("failure") is not None or status == "fail":
            self.state = "failed"
            failure = case.find("failure")
            self.why = (failure.get("message") if failure is not None else "") or "failed"
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            said = [found for line in self.output.splitlines() if (found := WHOLE.match(line))]
            # A test whose program is missing has not run either, and that is a failure.
            self.state = "skipped" if said else "failed"
            self.why = said[-1][1] if said else ("did not run: " + (case.find("skipped").get("message", "") if case.find("skipped") is not None else "")).strip()
            self.command = said[-1][2] if said else None
        else:
            self.state = "passed" if status == "run" else "failed"
            self.why = f"status {status}"
        self.parts = skipped_parts(self.output) if self.state == "passed" else []


def results(path):
    return {case.get("name"): Result(case) for case in ElementTree.parse(path).iter("testcase")}


def grouped(parts):
    """One row for the parts of a test that were skipped for one reason."""
    groups = collections.defaultdict(list)
    for name, part, why in parts:
        groups[name, why].append(part)
    return [(name, members[0] if len(members) == 1 else f"{len(members)} parts, such as {members[0]}", why) for (name, why), members in groups.items()]


def report(found, problems, retried=(), out=sys.stdout):
    by_state = collections.defaultdict(list)
    for result in sorted(found.values(), key=lambda r: r.name):
        by_state[result.state].append(result)
    parts = [(result.name, *part) for result in by_state["passed"] for part in result.parts]
    rows = [("failed", result.name, result.why, f"./dev test '^{result.name}$'") for result in by_state["failed"]]
    rows += [("failed", "-", problem, "") for problem in problems]
    rows += [("skipped", result.name, result.why, result.command or "./dev test --all") for result in by_state["skipped"]]
    rows += [("skipped", f"{name}: {part}", why, f"./dev test --all '^{name}$'") for name, part, why in grouped(parts)]
    rows += [("retried", name, f"failed, then {found[name].state}", "") for name in retried]
    print("\n" + "=" * 40, file=out)
    widths = [max(len(row[i]) for row in rows) for i in range(3)] if rows else []
    for row in rows:
        print("  ".join(cell.ljust(min(width, 60)) for cell, width in zip(row, widths)) + "  " + row[3], file=out)
    if by_state["skipped"] or parts:
        print("./dev test --all installs what the skipped ones need and runs everything.", file=out)
    failed = len(by_state["failed"]) + len(problems)
    if parts:
        print(f"{len(parts)} skipped part{'s' * (len(parts) > 1)} of tests that passed count as skipped.", file=out)
    print(f"\n{len(by_state['passed'])} passed, {failed} failed, {len(by_state['skipped']) + len(parts)} skipped", file=out)
    return 1 if failed or not found else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("retries", nargs="?")
    parser.add_argument("--status", type=int, default=0)
    parser.add_argument("--problem", action="append", default=[])
    parser.add_argument("--skipped", action="store_true")
    args = parser.parse_args()
    found = results(args.results)
    if args.skipped:
        for result in found.values():
            if result.state == "skipped":
                print(result.name)
        return 0
    if args.status and all(result.state != "failed" for result in found.values()):
        args.problem.append(f"ctest ended with {args.status}")
    retried = results(args.retries) if args.retries else {}
    found.update(retried)
    return report(found, args.problem, sorted(retried))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Decides the outcome of a failed ctest run: second_try.py BUILD_DIR

Tests listed in second_try.txt, with the reason why they are flaky, are retried once, and the summary reports it. Every other
failure is final."""
import pathlib
import re
import subprocess
import sys


def main():
    build = pathlib.Path(sys.argv[1])
    listed = {}
    for line in (pathlib.Path(__file__).parent / "second_try.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(maxsplit=1)
            listed[name] = reason
    log = build / "Testing" / "Temporary" / "LastTestsFailed.log"
    failed = [line.split(":", 1)[1] for line in log.read_text().splitlines() if ":" in line] if log.exists() else []
    final = [name for name in failed if name not in listed]
    again = [name for name in failed if name in listed]
    if not again or final:
        print("failed:", ", ".join(failed) or "ctest itself")
        return 1
    pattern = "^(" + "|".join(re.escape(name) for name in again) + ")$"
    code = subprocess.run(["ctest", "--test-dir", str(build), "--output-on-failure", "-R", pattern], check=False).returncode
    for name in again:
        print(f"retried: {name} ({listed[name]})")
    return code


if __name__ == "__main__":
    sys.exit(main())

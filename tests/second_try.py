#!/usr/bin/env python3
"""Retries flaky tests after a failed ctest run: second_try.py BUILD_DIR RETRIES.xml

Tests listed in second_try.txt, with the reason why they are flaky, are retried once if nothing else has failed. Their second
results are written to RETRIES.xml, which report.py reads. Every other failure is final."""
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
        return
    pattern = "^(" + "|".join(re.escape(name) for name in again) + ")$"
    for name in again:
        print(f"retrying {name} ({listed[name]})", flush=True)
    subprocess.run(["ctest", "--test-dir", str(build), "--output-on-failure", "--output-junit", sys.argv[2], "-R", pattern], check=False)


if __name__ == "__main__":
    main()

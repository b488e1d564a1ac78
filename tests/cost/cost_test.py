#!/usr/bin/env python3
"""cost_test.py COST_DRIVER: checks that cost grows linearly with the input, not quadratically.

Each case of the driver runs on an input that is doubled five times. Instructions are counted by callgrind instead of
measuring time: twice the input may take at most 2.5 times as many, after subtracting those of an empty input.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import needs  # noqa: E402

DRIVER = os.path.abspath(sys.argv[1])
SMALLEST = 500
DOUBLINGS = 5
MOST = 2.5


def instructions(case, size):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", DRIVER, case, str(size)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stdout)
    assert done.returncode == 0 and found, f"{case} {size}:\n{done.stdout[-2000:]}"
    return int(found.group(1))


def check(case):
    empty = instructions(case, 1)
    counts = [instructions(case, SMALLEST << i) - empty for i in range(DOUBLINGS + 1)]
    ratios = [after / before for before, after in zip(counts, counts[1:])]
    shown = f"{case:45} {counts[-1] / 1e6:8.0f} M  " + " ".join(f"{ratio:.2f}" for ratio in ratios)
    return max(ratios) <= MOST, shown


def main():
    if shutil.which("valgrind") is None:
        needs.skip("valgrind is not installed", "./dev test '^cost$'")
    cases = subprocess.run([DRIVER], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for good, shown in pool.map(check, sys.argv[2:] or cases):
            print("ok  " if good else "FAIL", shown, flush=True)
            failed += not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

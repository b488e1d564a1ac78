"""plan.py DRIVER [--json]: see plan.sh."""
import concurrent.futures
import json
import os
import subprocess
import sys

import check

# Dictionaries are trained on the first 128 field sets: a fixed cost of a server, paid before the first count.
FEW, MANY = 150, 400
# The least of so many runs: hash tables are seeded randomly, which makes a difference of up to 3% for small objects.
RUNS = 5
LIMIT = 0.01


def measure(driver):
    """{(operation, mechanism): instructions per operation}"""
    cases = subprocess.run([driver, "--plan"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()

    def least(case, count):
        return min(check.total(driver, case, count) for _ in range(RUNS))

    def each(case):
        return (least(case, MANY) - least(case, FEW)) // (MANY - FEW)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return {tuple(case.rsplit(": ", 1)): count for case, count in zip(cases, pool.map(each, cases))}


def main():
    found = measure(sys.argv[1])
    if "--json" in sys.argv:
        return print(json.dumps([[*case, count] for case, count in found.items()]))
    for (operation, mechanism), count in found.items():
        more = count / found[operation, "nothing"] - 1
        print(f"{operation:34}{mechanism:20}{count:12,}  {more:+6.1%}{'  FAIL' if more > LIMIT else ''}")


if __name__ == "__main__":
    main()

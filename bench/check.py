"""check.py DRIVER [--record] [CASE...]: see check.sh."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "check.json"
FEW, MANY = 100, 300
FEW_LISTS, MANY_LISTS = 10, 30
MOST = 1.05
NOISE = 1.02


def total(driver, case, count):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", driver, case, str(count), str(HERE / "data" / "pod.json")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stdout)
    assert done.returncode == 0 and found, f"{case}:\n{done.stdout[-2000:]}"
    return int(found.group(1))


def each(driver, case):
    """Instructions per additional repetition."""
    few, many = (FEW_LISTS, MANY_LISTS) if case.startswith("LIST") else (FEW, MANY)
    return (total(driver, case, many) - total(driver, case, few)) // (many - few)


def unfair(found):
    """Reads without managedFields that cost more than full reads, and full reads that cost more than with the gate off."""
    for case, count in found.items():
        dropped, off = found.get(case + ", without managedFields"), found.get(case + ", gate off")
        if dropped is not None and dropped > count * NOISE:
            yield f"{case}: {dropped:,} without managedFields, {count:,} with them"
        if off is not None and count > off * NOISE:
            yield f"{case}: {count:,} with the gate ManagedFieldsOptOut on, {off:,} with it off"


def main():
    record = "--record" in sys.argv
    driver, *chosen = [argument for argument in sys.argv[1:] if argument != "--record"]
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: ./dev setup installs it")
        return 1
    cases = subprocess.run([driver], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    found, worse = dict(recorded), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wanted = [case for case in cases if not chosen or case in chosen]
        for case, count in zip(wanted, pool.map(lambda case: each(driver, case), wanted)):
            # Hash tables are seeded randomly and threads share work, so a second measurement decides.
            if not record and case in recorded and count > MOST * recorded[case]:
                count = min(count, each(driver, case))
            found[case] = count
            before = recorded.get(case)
            if before is None:
                worse += [] if record else [case]
                print(f"{case:50} {count:12,}  not recorded yet", flush=True)
            else:
                bad = count > MOST * before
                worse += [case] if bad and not record else []
                print(f"{case:50} {count:12,}  {(count / before - 1) * 100:+6.1f}%{'  WORSE' if bad else ''}", flush=True)
    if record:
        RECORDED.write_text(json.dumps({case: found[case] for case in cases if case in found}, indent=2) + "\n")
    elif worse:
        print(f"{len(worse)} of {len(wanted)} take more instructions than recorded in bench/check.json. If that is meant: ./dev bench check --record")
    wrong = list(unfair({case: found[case] for case in wanted}))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if worse or wrong else 0


if __name__ == "__main__":
    sys.exit(main())

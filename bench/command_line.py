"""command_line.py HOLDFAST: the figures of command_line.sh, from the server in KUBECONFIG."""
import os
import statistics
import subprocess
import sys
import time

HOLDFAST, RUNS = os.path.abspath(sys.argv[1]), 15


def milliseconds(times):
    return f"{min(times) * 1000:7.1f} {statistics.median(times) * 1000:7.1f}"


def get(*arguments, whole):
    """-> seconds to the first line, total seconds, lines, peak memory in MB, CPU seconds"""
    started = time.monotonic()
    process = subprocess.Popen([HOLDFAST, "get", "pods", "-A", *arguments], stdout=subprocess.PIPE)
    process.stdout.readline()
    first = time.monotonic() - started
    lines = 1 + sum(1 for _ in process.stdout) if whole else 0
    if not whole:
        process.kill()
    process.stdout.close()
    _, _, usage = os.wait4(process.pid, 0)
    return first, time.monotonic() - started, lines, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def ready():
    """Seconds until the command run by `with` has started, with a responding server."""
    started = time.monotonic()
    process = subprocess.Popen([HOLDFAST, "with", "--", "sh", "-c", "echo ready"], stdout=subprocess.PIPE)
    process.stdout.readline()
    seconds = time.monotonic() - started
    process.wait()
    return seconds


get(whole=False)  # Warms up the discovery cache.
print("                                     best  median ms")
print("get pods -A, first line          ", milliseconds([get(whole=False)[0] for _ in range(RUNS)]))
print("with, ready                      ", milliseconds([ready() for _ in range(RUNS)]))
print("\n                                    lines  seconds  CPU s  peak MB")
for form in ((), ("-o", "name"), ("-o", "yaml")):
    first, seconds, lines, memory, cpu = get(*form, whole=True)
    print(f"{'get pods -A ' + ' '.join(form):33} {lines:8} {seconds:8.1f} {cpu:6.1f} {memory:8.0f}")

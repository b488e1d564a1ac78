"""Repeatedly starts a server on an empty data directory: milliseconds to ready, CPU until then, idle memory."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

binary, count = sys.argv[1], int(sys.argv[2])
ticks = os.sysconf("SC_CLK_TCK")
waits, cpus, memories = [], [], []
for _ in range(count):
    directory = tempfile.mkdtemp(prefix="holdfast-start-")
    begin = time.monotonic()
    server = subprocess.Popen([binary, "serve", "--data-dir", directory, "--listen", "127.0.0.1:0"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists(directory + "/kubeconfig"):
        if server.poll() is not None:
            sys.exit("start: the server exited")
        time.sleep(0.0005)
    waits.append((time.monotonic() - begin) * 1000)
    fields = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
    cpus.append((int(fields[11]) + int(fields[12])) * 1000 / ticks)
    time.sleep(0.5)
    memories.append(int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{server.pid}/status").read()).group(1)) / 1024)
    server.terminate()
    server.wait()
    shutil.rmtree(directory)


def middle(values):
    return sorted(values)[len(values) // 2]


print(f"{count} starts: ready after {middle(waits):.0f} ms ({min(waits):.0f}-{max(waits):.0f}), "
      f"CPU {middle(cpus):.0f} ms, idle memory {middle(memories):.1f} MB")

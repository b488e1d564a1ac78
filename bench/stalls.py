#!/usr/bin/env python3
"""stalls.py HOLDFAST [SECONDS]: how long the event loops keep their other connections waiting under a mixed load.

Clients read and write small objects while others send the most expensive requests we know (tests/attacks.py) and list
everything, compressed. Prints the longest stall of each loop in each second, and the latency of the small requests.
"""
import os
import pathlib
import re
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import access_helper  # noqa: E402
import attacks  # noqa: E402

BINARY = os.path.abspath(sys.argv[1])
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 30
CONFIGMAPS = "/api/v1/namespaces/mine/configmaps"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    server = access_helper.start(BINARY)
    try:
        users = access_helper.Users(server)
        users.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})
        for preserve in (True, False):
            users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", attacks.definition(preserve))
        users.when(lambda: users.admin("GET", attacks.THINGS).code == 200)
        for i in range(500):
            users.made(CONFIGMAPS, {"metadata": {"name": f"c{i}"}, "data": {"text": "x" * 2000}})
        end = time.monotonic() + SECONDS
        latencies = []

        def small():
            i = 0
            while time.monotonic() < end:
                begin = time.monotonic()
                users.admin("GET", f"{CONFIGMAPS}/c{i % 500}")
                latencies.append(time.monotonic() - begin)
                i += 1

        def expensive():
            json_patch, strategic = ({"Content-Type": f"application/{kind}+json"} for kind in ("json-patch", "strategic-merge-patch"))
            while time.monotonic() < end:
                users.admin("GET", CONFIGMAPS, headers={"Accept-Encoding": "gzip"})
                users.admin("POST", attacks.THINGS + "?dryRun=All", attacks.owner_references(10_000))
                users.admin("POST", attacks.THINGS + "?dryRun=All", attacks.value_keys(50_000))
                users.admin("POST", attacks.THINGS + "?dryRun=All", attacks.thing("deep", attacks.nested(990)))
                users.admin("PATCH", f"{CONFIGMAPS}/c1?dryRun=All", attacks.doubling_patch(16), headers=json_patch)
                users.admin("PATCH", f"{CONFIGMAPS}/c1?dryRun=All", {"data": {f"k{i}": "v" for i in range(20_000)}}, headers=strategic)
                users.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", attacks.repeated_members(20_000), token="plain-token")

        threads = [threading.Thread(target=work) for work in (small, small, expensive)]
        for thread in threads:
            thread.start()
        stalls = []
        while time.monotonic() < end:
            time.sleep(1)
            text = users.admin("GET", "/metrics").text
            stalls += [float(value) for value in re.findall(r'^holdfast_loop_longest_stall_seconds\{.*\} (\S+)$', text, re.M)]
        for thread in threads:
            thread.join()
        print(f"longest stall of a loop in a second: median {percentile(stalls, 0.5) * 1e3:.1f} ms, 99% {percentile(stalls, 0.99) * 1e3:.1f} ms, most {max(stalls) * 1e3:.1f} ms")
        print(f"{len(latencies)} small requests (with a connection each): p50 {percentile(latencies, 0.5) * 1e3:.1f} ms, p99 {percentile(latencies, 0.99) * 1e3:.1f} ms, "
              f"p99.9 {percentile(latencies, 0.999) * 1e3:.1f} ms")
    finally:
        server.stop()
        server.folder.cleanup()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""stalls.py HOLDFAST [SECONDS]: how long event loops are blocked for their other connections.

First, each of the most expensive known requests on its own: its CPU time on event loops (an upper bound for stalls, whatever
else runs on the machine) and elsewhere. Then a mixed load: clients read and write small objects while others send all of
these. Prints the longest stall of each loop in each second and the latency of the small requests, together with the share of
time in which the threads of the server were runnable and waited for a processor.
"""
import json
import multiprocessing
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import access_helper  # noqa: E402
import attacks  # noqa: E402

BINARY = os.path.abspath(sys.argv[1])
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 30
MAPS = "/api/v1/namespaces/mine/configmaps"
LARGE_BYTES = 1_000_000
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Client:
    """A persistent connection."""

    def __init__(self, users):
        self.users, self.connection = users, users.connect()

    def ask(self, method, path, body=None, kind="application/json", token=access_helper.ADMIN, **headers):
        sent = {"Authorization": "Bearer " + token, "Content-Type": kind, **{key.replace("_", "-"): value for key, value in headers.items()}}
        self.connection.request(method, path, body, sent)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status


class Requests:
    """The expensive requests, each built once, so that building them is not measured."""

    def __init__(self):
        dry, patch = "?dryRun=All", lambda kind: f"application/{kind}-patch+json"
        many = {f"k{i}": "v" for i in range(20_000)}
        large = {"a": "x" * LARGE_BYTES}
        members = {f"m{i:05}": f"value {i}" for i in range(30_000)}
        apply = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wide"}, "data": {"m00001": "other"}}
        review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        self.large = {"metadata": {"name": "large"}, "data": large}
        self.wide = {"metadata": {"name": "wide"}, "data": members}
        roles = f"{access_helper.RBAC}/namespaces/mine/roles"
        self.all = {
            "list of 500 small objects, gzip": ("GET", MAPS + "?labelSelector=small", None, {"Accept_Encoding": "gzip"}),
            "list of 500 small objects, Table": ("GET", MAPS + "?labelSelector=small", None, {"Accept": TABLE}),
            "list with a selector that few match": ("GET", MAPS + "?labelSelector=few", None, {}),
            "read 1 MB in one string": ("GET", MAPS + "/large", None, {}),
            "read 1 MB in one string, gzip": ("GET", MAPS + "/large", None, {"Accept_Encoding": "gzip"}),
            "read 30,000 members, with managedFields": ("GET", MAPS + "/wide", None, {}),
            "read 30,000 members, Protobuf": ("GET", MAPS + "/wide", None, {"Accept": "application/vnd.kubernetes.protobuf"}),
            "read 30,000 members, YAML": ("GET", MAPS + "/wide", None, {"Accept": "application/yaml"}),
            "small patch of 30,000 members": ("PATCH", MAPS + "/wide" + dry, json.dumps({"data": {"m00001": "new"}}), {"kind": patch("merge")}),
            "small patch of 1 MB in one string": ("PATCH", MAPS + "/large" + dry, json.dumps({"data": {"b": "new"}}), {"kind": patch("merge")}),
            "small apply to 30,000 members": ("PATCH", MAPS + "/wide" + dry + "&fieldManager=m&force=true", json.dumps(apply), {"kind": "application/apply-patch+yaml"}),
            "create 30,000 members": ("POST", MAPS + dry, json.dumps({**self.wide, "metadata": {"name": "another"}}), {}),
            "strategic patch of 20,000 members": ("PATCH", MAPS + "/c1" + dry, json.dumps({"data": many}), {"kind": patch("strategic-merge")}),
            "10,000 ownerReferences": ("POST", attacks.THINGS + dry, attacks.owner_references(10_000), {}),
            "50,000 v: keys": ("POST", attacks.THINGS + dry, attacks.value_keys(50_000), {}),
            "object of 990 levels": ("POST", attacks.THINGS + dry, attacks.thing("deep", attacks.nested(990)), {}),
            "JSON patch that doubles its depth": ("PATCH", MAPS + "/c1" + dry, attacks.doubling_patch(16), {"kind": patch("json")}),
            "20,000 repeats of a member": ("POST", review, attacks.repeated_members(20_000), {"token": "plain-token"}),
            "40,000 unknown fields": ("POST", f"/apis/{attacks.GROUP}/v1/namespaces/mine/stricts" + dry, attacks.unknown_fields(40_000), {}),
            "Role of 100 x 100 x 100": ("POST", roles, json.dumps(attacks.large_role(100)), {"token": "tenant-token"}),
            "token of 0.5 MB that collides": ("GET", "/healthz", None, {"token": attacks.colliding_token(30_000)}),
            "OpenAPI v2, gzip": ("GET", "/openapi/v2", None, {"Accept_Encoding": "gzip"}),
            "/metrics": ("GET", "/metrics", None, {}),
        }


class Threads:
    """Scheduling of the server's threads, from /proc: nanoseconds running, and nanoseconds runnable but waiting."""

    def __init__(self, process):
        self.folder = pathlib.Path(f"/proc/{process.pid}/task")

    def times(self):
        found = {}
        for task in self.folder.iterdir():
            try:
                found[task.name] = tuple(map(int, (task / "schedstat").read_text().split()[:2]))
            except OSError:
                pass
        return found

    def loops(self, client):
        """Event loops are the threads that serve a small request."""
        loops = set()
        while True:
            before = self.times()
            for _ in range(50):
                client.ask("GET", MAPS + "/c1")
            after = self.times()
            most = max(after, key=lambda name: after[name][0] - before.get(name, (0, 0))[0])
            if most in loops:
                return loops
            loops.add(most)


def prepare(users, requests):
    users.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})
    for preserve in (True, False):
        users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", attacks.definition(preserve))
    users.when(lambda: users.admin("GET", attacks.THINGS).code == 200)
    access_helper.grant(users, "writer", [access_helper.rule("create", ["rbac.authorization.k8s.io"], "roles")], "tenant", "mine")
    client = Client(users)
    for i in range(10_000):
        labels = {"few": "x"} if i % 5000 == 0 else {"small": "x"} if i < 500 else {}
        made = {"metadata": {"name": f"c{i}", "labels": labels}, "data": {"text": "x" * (2000 if i < 500 else 10)}}
        assert client.ask("POST", MAPS, json.dumps(made)) == 201
    for made in (requests.large, requests.wide):
        assert client.ask("POST", MAPS, json.dumps(made)) == 201


def alone(users, threads, requests):
    """-> {name: the most CPU milliseconds on one loop}"""
    print(f"{'request, alone':42} {'code':>5} {'loop ms':>8} {'other ms':>8}   (CPU time, median of 5)")
    client = Client(users)
    loops = threads.loops(client)
    for name, (method, path, body, more) in requests.all.items():
        spent = []
        for _ in range(6):
            before = threads.times()
            code = client.ask(method, path, body, **more)
            time.sleep(0.02)
            after = threads.times()
            used = {thread: (after[thread][0] - before.get(thread, (0, 0))[0]) / 1e6 for thread in after}
            spent.append((max(used.get(thread, 0) for thread in loops), sum(ms for thread, ms in used.items() if thread not in loops)))
        spent = sorted(spent[1:])
        print(f"{name:42} {code:>5} {spent[2][0]:8.1f} {sorted(ms for _, ms in spent)[2]:8.1f}", flush=True)


def small(users, end, results):
    client, latencies = Client(users), []
    i = 0
    while time.monotonic() < end:
        begin = time.monotonic()
        if i % 10:
            client.ask("GET", f"{MAPS}/c{i % 500}")
        else:
            client.ask("PATCH", f"{MAPS}/c{i % 500}", '{"data":{"i":"%d"}}' % i, kind="application/merge-patch+json")
        latencies.append(time.monotonic() - begin)
        i += 1
    results.put(latencies)


def expensive(users, requests, end):
    client = Client(users)
    while time.monotonic() < end:
        for method, path, body, more in requests.all.values():
            client.ask(method, path, body, **more)


def mixed(users, threads, requests):
    end, results = time.monotonic() + SECONDS, multiprocessing.Queue()
    before, load = threads.times(), os.getloadavg()[0]
    workers = [multiprocessing.Process(target=small, args=(users, end, results)) for _ in range(2)]
    workers.append(multiprocessing.Process(target=expensive, args=(users, requests, end)))
    for worker in workers:
        worker.start()
    stalls = []
    users.admin("GET", "/metrics")
    while time.monotonic() < end:
        time.sleep(1)
        text = users.admin("GET", "/metrics").text
        stalls += [float(value) for value in re.findall(r'^holdfast_loop_longest_stall_seconds\{.*\} (\S+)$', text, re.M)]
    latencies = results.get() + results.get()
    for worker in workers:
        worker.join()
    after = threads.times()
    ran = sum(after[thread][0] - before.get(thread, (0, 0))[0] for thread in after)
    waited = sum(after[thread][1] - before.get(thread, (0, 0))[1] for thread in after)
    ms = lambda values, share: f"{percentile(values, share) * 1e3:.1f} ms"
    print(f"\nmixed load, {SECONDS} s, load average {load:.0f} on {os.cpu_count()} processors; the server ran {ran / 1e9:.1f} s and waited "
          f"{waited / 1e9:.1f} s for a processor ({100 * waited / (ran + waited):.0f}%)")
    print(f"longest stall of a loop in a second: median {ms(stalls, 0.5)}, 99% {ms(stalls, 0.99)}, most {max(stalls) * 1e3:.1f} ms")
    print(f"{len(latencies)} small requests: p50 {ms(latencies, 0.5)}, p99 {ms(latencies, 0.99)}, p99.9 {ms(latencies, 0.999)}")


def main():
    requests = Requests()
    server = access_helper.start(BINARY)
    try:
        users = access_helper.Users(server)
        prepare(users, requests)
        threads = Threads(server.process)
        alone(users, threads, requests)
        mixed(users, threads, requests)
    finally:
        server.stop()
        server.folder.cleanup()


if __name__ == "__main__":
    main()

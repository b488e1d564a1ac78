#!/usr/bin/env python3
"""attacks.py HOLDFAST: what requests that are made to be expensive cost the server, in CPU seconds and in memory.

Each attack has a server of its own. A server that ends is reported as such.
"""
import http.client
import os
import pathlib
import socket
import ssl
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import access_helper  # noqa: E402
import attacks  # noqa: E402

BINARY = os.path.abspath(sys.argv[1])
ADMIN = access_helper.ADMIN


def status(process, name):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def prepare(users):
    users.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})
    for preserve in (True, False):
        users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", attacks.definition(preserve))
    users.when(lambda: users.admin("GET", attacks.THINGS).code == 200)


def patch_depth(users):
    users.made(attacks.THINGS, attacks.thing("doubled", '{"a":{}}'))
    return users.admin("PATCH", attacks.THINGS + "/doubled", attacks.doubling_patch(16), headers={"Content-Type": "application/json-patch+json"})


def poison(users):
    users.admin("POST", attacks.THINGS, attacks.thing("poison", attacks.nested(1001)))
    return users.admin("GET", attacks.THINGS)


def repeats(users):
    return users.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", attacks.repeated_members(20_000), token="plain-token")


def metric_labels(users):
    for i in range(100):
        long = f"x{i}" * 5000
        users.call("GET", f"/apis/{long}/v1/{long}?timeout=nonsense")
        users.call(f"METHOD{i}", "/healthz")
    return users.admin("GET", "/metrics")


def owners(users):
    return users.admin("POST", attacks.THINGS, attacks.owner_references(10_000))


def value_keys(users):
    return users.admin("POST", attacks.THINGS, attacks.value_keys(150_000))


def unknown_fields(users):
    return users.admin("POST", f"/apis/{attacks.GROUP}/v1/namespaces/mine/stricts?fieldValidation=Warn", attacks.unknown_fields(40_000))


def role(users):
    access_helper.grant(users, "writer", [access_helper.rule("create", ["rbac.authorization.k8s.io"], "roles")], "tenant", "mine")
    path = f"{access_helper.RBAC}/namespaces/mine/roles"
    users.when(lambda: users.call("POST", path, {}, token="tenant-token").code != 403)
    return users.call("POST", path, attacks.large_role(100), token="tenant-token")


def strategic(users):
    users.made("/api/v1/namespaces/mine/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"name": "p0", "port": 1}]}})
    kind = {"Content-Type": "application/strategic-merge-patch+json"}
    return users.admin("PATCH", "/api/v1/namespaces/mine/services/s?dryRun=All", attacks.service_ports(10_000), headers=kind)


def token(users):
    return users.call("GET", "/healthz", token="eyJhbGciOiJFUzI1NiJ9." + "A" * 800_000 + ".AAAA")


ATTACKS = {"JSON patch that doubles its depth": patch_depth, "object of 1,001 levels": poison, "20,000 repeats of a member": repeats,
           "labels of metrics": metric_labels, "10,000 ownerReferences": owners, "150,000 v: keys": value_keys,
           "40,000 unknown fields": unknown_fields, "Role of 100 x 100 x 100": role, "strategic patch of 10,000 items": strategic,
           "token of 0.8 MB": token}


def main():
    chosen = sys.argv[2:] or ATTACKS
    print(f"{'attack':36} {'answer':>7} {'CPU s':>8} {'peak MB':>8} {'kept MB':>8}")
    for name in chosen:
        server = access_helper.start(BINARY)
        try:
            users = access_helper.Users(server)
            prepare(users)
            cpu, memory, kept = cpu_seconds(server.process), status(server.process, "VmHWM"), status(server.process, "VmRSS")
            try:
                answer = str(ATTACKS[name](users).code)
            except (OSError, http.client.HTTPException, ssl.SSLError, socket.timeout) as error:
                answer = type(error).__name__[:7]
            time.sleep(0.2)
            if server.process.poll() is not None:
                print(f"{name:36} {'ended':>7}")
                continue
            # A client that gave up does not end the work.
            last = None
            while last != (last := cpu_seconds(server.process)) and last - cpu < 60:
                time.sleep(0.5)
            print(f"{name:36} {answer:>7} {cpu_seconds(server.process) - cpu:8.2f} {status(server.process, 'VmHWM') - memory:8.0f} "
                  f"{status(server.process, 'VmRSS') - kept:8.0f}", flush=True)
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
            server.folder.cleanup()


if __name__ == "__main__":
    main()

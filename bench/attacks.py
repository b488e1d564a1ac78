#!/usr/bin/env python3
"""attacks.py HOLDFAST [WORD...]: responses of the server to known attacks, and their cost in CPU seconds and memory.

Each attack gets its own server; a server that exits is reported. WORDs select attacks whose name contains one of them.
"""
import base64
import contextlib
import http.client
import os
import pathlib
import resource
import socket
import ssl
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "api")]
import access_helper  # noqa: E402
import attacks  # noqa: E402
from access_helper import grant, rule  # noqa: E402
from hook_server import HookServer  # noqa: E402

BINARY = os.path.abspath(sys.argv[1])
MAPS = "/api/v1/namespaces/mine/configmaps"
SECRETS = "/api/v1/namespaces/mine/secrets"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def status(process, name):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def code(call):
    """The response, or that there is none."""
    try:
        return str(call().code)
    except (OSError, http.client.HTTPException, ssl.SSLError) as error:
        return type(error).__name__


def tls(users, **more):
    context = ssl.create_default_context(cafile=str(users.pki / "ca.crt"))
    for name, value in more.items():
        setattr(context, name, value)
    return context


def raw(users, text):
    with socket.create_connection((users.host, users.port), timeout=10) as plain:
        with tls(users).wrap_socket(plain, server_hostname="127.0.0.1") as stream:
            stream.sendall(text.encode())
            return stream.recv(65536).decode(errors="replace")


@contextlib.contextmanager
def aggregated(users, group, handler):
    """Version v1 of a group served by another server."""
    with tempfile.TemporaryDirectory() as folder:
        hooks = HookServer(folder)
        resources = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": []}
        hooks.on("*", lambda seen: resources if seen["path"].split("?")[0] == f"/apis/{group}/v1" else handler(seen))
        try:
            users.made("/api/v1/namespaces/default/services", {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
            users.made("/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": f"v1.{group}"}, "spec": {
                "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, "caBundle": base64.b64encode(hooks.ca).decode(),
                "service": {"namespace": "default", "name": "hook", "port": hooks.port}}})
            users.when(lambda: users.admin("GET", f"/apis/{group}/v1/answers").code == 200, 30)
            yield hooks
        finally:
            hooks.stop()


# --- 1: served request differs from the authorized one


def two_selectors(users):
    for name in ("mine", "a", "b"):
        users.made(SECRETS, {"metadata": {"name": name}})
    grant(users, "named", [rule("list watch deletecollection", [""], "secrets", ["mine"]), rule("list", [""], "configmaps")], "plain", "mine")
    plain = lambda method, path: users.call(method, path, token="plain-token")
    users.when(lambda: plain("GET", SECRETS + "?fieldSelector=metadata.name%3Dmine").code == 200)
    query = "?fieldSelector=&fieldSelector=metadata.name%3Dmine"
    listed = plain("GET", SECRETS + query)
    watched = plain("GET", MAPS + "?watch=1&watch=0&timeoutSeconds=1")
    deleted = plain("DELETE", SECRETS + query)
    left = len(users.admin("GET", SECRETS).json["items"])
    return f"list {listed.code} with {listed.text.count('resourceVersion') - 1 if listed.code == 200 else 0} of 3, delete {deleted.code} leaves {left}, watch {watched.code}"


# --- 2 to 6: memory, tables, metrics, depth


def repeats(users):
    return code(lambda: users.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", attacks.repeated_members(20_000), token="plain-token"))


def colliding_token(users):
    return code(lambda: users.call("GET", "/healthz", token=attacks.colliding_token(47_000)))


def metric_labels(users):
    for i in range(150):
        long = f"x{i}" * 20_000
        code(lambda: users.call("GET", f"/apis/{long}/v1/{long}?timeout=nonsense"))
        code(lambda: users.call(f"METHOD{i}", "/healthz"))
    page = users.admin("GET", "/metrics")
    return f"{page.code}, a page of {len(page.text) / 1e6:.1f} MB"


def patch_depth(users):
    users.made(attacks.THINGS, attacks.thing("doubled", '{"a":{}}'))
    return code(lambda: users.admin("PATCH", attacks.THINGS + "/doubled", attacks.doubling_patch(16), headers={"Content-Type": "application/json-patch+json"}))


def poison(users):
    stored = code(lambda: users.admin("POST", attacks.THINGS, attacks.thing("poison", attacks.nested(1001))))
    return f"stored {stored}, list " + code(lambda: users.admin("GET", attacks.THINGS))


# --- 7: seats


def seats(users):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    go_on, group = threading.Event(), "hung.example.com"

    def hang(seen):
        if not seen["path"].endswith("/answers"):
            go_on.wait(600)
        return {}

    grant(users, "all", [rule("get list", ["", group], "things configmaps")], "plain")
    grant(users, "maps", [rule("get list", [""], "configmaps")], "tenant")
    with aggregated(users, group, hang):
        users.when(lambda: users.call("GET", f"/apis/{group}/v1/things/answers", token="plain-token").code == 200, 30)
        with contextlib.ExitStack() as held:
            for _ in range(700):
                plain = socket.create_connection((users.host, users.port), timeout=20)
                stream = held.enter_context(tls(users).wrap_socket(plain, server_hostname="127.0.0.1"))
                stream.sendall(f"GET /apis/{group}/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer plain-token\r\n\r\n".encode())
        time.sleep(5)
        others = code(lambda: users.call("GET", MAPS, token="tenant-token"))
        go_on.set()
        return f"5 s after the clients have left others get {others}"


# --- 8: headers


def header_injection(users):
    group = "forwarded.example.com"
    with aggregated(users, group, lambda seen: {}) as hooks:
        target = f"/apis/{group}/v1/bent\tHTTP/1.1\nX-Remote-User:\tintruder\nX-A:"
        said = raw(users, f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {access_helper.ADMIN}\r\n\r\n")
        seen = [seen["all_headers"].get_all("X-Remote-User")[0] for seen in hooks.seen if "bent" in seen["path"]]
    hook = {"metadata": {"name": "h"}, "webhooks": [{"name": "h.example.com", "clientConfig": {"url": "https://a:b@host/\r\nX-Remote-User: admin"},
                                                    "admissionReviewVersions": ["v1"], "sideEffects": "None"}]}
    return f"{said.split()[1] if said else 'closed'}, the aggregated server sees {seen[0] if seen else 'nothing'}; webhook URL {code(lambda: users.admin('POST', HOOKS, hook))}"


# --- 9: files (created with an open umask, see main)


def files(users):
    folder = users.server.data_dir
    secrets = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".crt", ".pub", ".csv") and path.name != "server.log"]
    readable = sum(1 for path in secrets if path.stat().st_mode & 0o077)
    return f"folder {folder.stat().st_mode & 0o777:o}, {readable} of {len(secrets)} files for everybody"


# --- 10 and 11: connections


def descriptors(users):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with attacks.idle_connections(users, 1200) as idle_ones:
        before = cpu_seconds(users.server.process)
        write = code(lambda: users.admin("POST", MAPS, {"metadata": {"name": "among-many"}}))
        time.sleep(5)
        idle = cpu_seconds(users.server.process) - before
    return f"{len(idle_ones)} stay open, others get {write}, {idle:.1f} CPU s in 5 s"


def pings(users):
    """Hand-written frames: the preface, SETTINGS, and a PING every five seconds."""
    frame = lambda kind, flags, payload=b"": len(payload).to_bytes(3, "big") + bytes([kind, flags]) + bytes(4) + payload
    context = tls(users)
    context.set_alpn_protocols(["h2"])
    begin = time.monotonic()
    with socket.create_connection((users.host, users.port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
            stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0) + frame(4, 1))
            stream.settimeout(5)
            while time.monotonic() - begin < 120:
                try:
                    stream.sendall(frame(6, 0, b"12345678"))
                    end = time.monotonic() + 5
                    while time.monotonic() < end:
                        if not stream.recv(1000):
                            return f"closed after {time.monotonic() - begin:.0f} s"
                except (socket.timeout, ssl.SSLWantReadError):
                    pass
                except (OSError, ssl.SSLError):
                    return f"closed after {time.monotonic() - begin:.0f} s"
    return "still open after 120 s"


# --- 12: work


def owners(users):
    return code(lambda: users.admin("POST", attacks.THINGS, attacks.owner_references(10_000)))


def value_keys(users):
    return code(lambda: users.admin("POST", attacks.THINGS, attacks.value_keys(150_000)))


def unknown_fields(users):
    return code(lambda: users.admin("POST", f"/apis/{attacks.GROUP}/v1/namespaces/mine/stricts?fieldValidation=Warn", attacks.unknown_fields(40_000)))


def role(users):
    grant(users, "writer", [rule("create", ["rbac.authorization.k8s.io"], "roles")], "tenant", "mine")
    path = f"{access_helper.RBAC}/namespaces/mine/roles"
    users.when(lambda: users.call("POST", path, {}, token="tenant-token").code != 403)
    return code(lambda: users.call("POST", path, attacks.large_role(100), token="tenant-token"))


def strategic(users):
    users.made("/api/v1/namespaces/mine/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"name": "p0", "port": 1}]}})
    kind = {"Content-Type": "application/strategic-merge-patch+json"}
    return code(lambda: users.admin("PATCH", "/api/v1/namespaces/mine/services/s?dryRun=All", attacks.service_ports(10_000), headers=kind))


# --- 13 and 14


def component_statuses(users):
    return code(lambda: users.admin("GET", "/api/v1/componentstatuses"))


def expired_certificate(users):
    end = time.time() + 3
    identity = access_helper.make_certificate(users.server.data_dir / "brief", "/O=system:masters/CN=brief", (users.pki / "ca.crt", users.pki / "ca.key"),
                                              "20200101000000Z", time.strftime("%Y%m%d%H%M%SZ", time.gmtime(end)))
    connection = users.connect(identity)
    while time.time() < end + 70:
        connection.request("GET", "/api/v1/secrets")
        answer = connection.getresponse()
        answer.read()
        if answer.status == 401:
            return f"refused {max(0, time.time() - int(end)):.0f} s after its end"
        time.sleep(0.2)
    return "let in for 70 s after its end"


def weak_suite(users):
    context = tls(users, maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers("ECDHE-ECDSA-AES128-SHA")
    try:
        with socket.create_connection((users.host, users.port), timeout=10) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
            return "agreed on " + stream.cipher()[0]
    except ssl.SSLError:
        return "refused"


def critical_extension(users):
    users.made("/api/v1/namespaces/mine/serviceaccounts", {"metadata": {"name": "robot"}})
    token = users.made("/api/v1/namespaces/mine/serviceaccounts/robot/token", {"spec": {}})["status"]["token"]
    header = {**access_helper.header_of(token), "crit": ["b64"], "b64": True}
    return code(lambda: users.call("GET", "/apis", token=access_helper.make_token(access_helper.claims_of(token), users.pki / "sa.key", header)))


def everybody(users):
    server = access_helper.start(BINARY, "--authorization-mode=AlwaysAllow")
    try:
        return "Secrets for unauthenticated clients: " + code(lambda: access_helper.Users(server).call("GET", "/api/v1/secrets"))
    finally:
        server.stop()
        server.folder.cleanup()


ATTACKS = {
    "1 two selectors, two watches": two_selectors, "2 20,000 repeats of a member": repeats, "3 token of 0.8 MB that collides": colliding_token,
    "4 labels of metrics": metric_labels, "5 JSON patch that doubles its depth": patch_depth, "6 object of 1,001 levels": poison,
    "7 700 requests to a hung server": seats, "8 headers in targets and URLs": header_injection, "9 files": files,
    "10 1,200 idle connections": descriptors, "11 PINGs without requests": pings, "12 150,000 v: keys": value_keys, "12 10,000 ownerReferences": owners,
    "12 40,000 unknown fields": unknown_fields, "12 strategic patch of 10,000 items": strategic, "12 Role of 100 x 100 x 100": role,
    "13 componentstatuses": component_statuses, "14 certificate that expires": expired_certificate, "14 CBC suite": weak_suite,
    "14 token with crit": critical_extension, "14 AlwaysAllow": everybody}


def start(open_files):
    """Starts with the usual umask of services and a soft limit of open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, open_files), hard))
    mask = os.umask(0o022)
    try:
        folder = tempfile.TemporaryDirectory(prefix="holdfast-attacks-")
        server = access_helper.Server(BINARY, data_dir=folder.name + "/data")
        server.folder = folder
        server.data_dir.mkdir()
        (server.data_dir / "tokens.csv").write_text(access_helper.TOKENS)
        server.flags += ["--token-auth-file", str(server.data_dir / "tokens.csv")]
        server.start()
        return server
    finally:
        os.umask(mask)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def prepare(users):
    users.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})
    for preserve in (True, False):
        users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", attacks.definition(preserve))
    users.when(lambda: users.admin("GET", attacks.THINGS).code == 200)


def main():
    chosen = [name for name in ATTACKS if not sys.argv[2:] or any(word in name for word in sys.argv[2:])]
    print(f"{'attack':36} {'CPU s':>7} {'peak MB':>8} {'kept MB':>8}  outcome")
    for name in chosen:
        server = start(open_files=1024 if name.startswith("10 ") else 8192)
        try:
            users = access_helper.Users(server)
            prepare(users)
            cpu, memory, kept = cpu_seconds(server.process), status(server.process, "VmHWM"), status(server.process, "VmRSS")
            try:
                outcome = ATTACKS[name](users)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                outcome = f"{type(error).__name__} {error}"[:80]
            time.sleep(0.2)
            if server.process.poll() is not None:
                print(f"{name:36} {'':>7} {'':>8} {'':>8}  the server has ended ({outcome})", flush=True)
                continue
            # The work continues after the client has given up.
            last = None
            while last != (last := cpu_seconds(server.process)) and last - cpu < 60:
                time.sleep(0.5)
            print(f"{name:36} {cpu_seconds(server.process) - cpu:7.2f} {status(server.process, 'VmHWM') - memory:8.0f} "
                  f"{status(server.process, 'VmRSS') - kept:8.0f}  {outcome}", flush=True)
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
            server.folder.cleanup()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Faults between the client and a server, after which the client's copy must be correct:

  faults_test.py HOLDFAST FOLLOW
"""
import http.server
import json
import os
import pathlib
import random
import select
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "clients"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from peer import Peer  # noqa: E402
from server import Holdfast, Kubectl, Server  # noqa: E402
import needs  # noqa: E402

HOLDFAST, FOLLOW = (os.path.abspath(path) for path in sys.argv[1:3])
PEER = needs.peer("kube-apiserver", "etcd")


class Follower:
    """The C++ informer in a separate process."""

    def __init__(self, kubeconfig, *arguments):
        self.process = subprocess.Popen([FOLLOW, *arguments], env=dict(os.environ, KUBECONFIG=str(kubeconfig)),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def state(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def until(self, condition, what):
        deadline = time.monotonic() + 90
        while True:
            state = self.state()
            assert state["withManagedFields"] == 0, f"{what}: managedFields were seen"
            if condition(state):
                return state
            assert time.monotonic() < deadline, f"{what}: {state}"
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(30) == 0


class Script(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """An API server for ConfigMaps in one namespace that misbehaves on demand."""

    daemon_threads = True

    def __init__(self, seed):
        super().__init__(("127.0.0.1", 0), Handler)
        self.random = random.Random(seed)
        self.lock = threading.Condition()
        self.version, self.oldest = 100, 100
        self.objects, self.events = {}, []
        self.faults = False         # Anything may happen to an answer.
        self.streaming_lists = True
        self.tokens = None          # Accepted tokens; None disables authentication.
        self.acceptable = True      # Otherwise 406, as Kubernetes 1.38 has it for fields that it cannot drop.
        self.requests = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def put(self, name, value):
        with self.lock:
            self.version += 1
            known = name in self.objects
            self.objects[name] = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": value}, "metadata": {
                "name": name, "namespace": "default", "resourceVersion": str(self.version),
                "managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]}}
            self.events.append((self.version, "MODIFIED" if known else "ADDED", self.objects[name]))
            self.lock.notify_all()

    def remove(self, name):
        with self.lock:
            self.version += 1
            gone = json.loads(json.dumps(self.objects.pop(name)))
            gone["metadata"]["resourceVersion"] = str(self.version)
            self.events.append((self.version, "DELETED", gone))
            self.lock.notify_all()

    def forget_history(self):
        with self.lock:
            self.oldest, self.events = self.version, []

    def wanted(self):
        with self.lock:
            return {"default/" + name: item["data"]["x"] for name, item in self.objects.items()}

    def kubeconfig(self, folder, user="{}"):
        path = pathlib.Path(folder) / "kubeconfig"
        path.write_text(f"""current-context: x
clusters: [{{name: x, cluster: {{server: "http://127.0.0.1:{self.server_port}"}}}}]
users: [{{name: x, user: {user}}}]
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
""")
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


# The response of a server without aggregated discovery.
OLD_DISCOVERY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "shortNames": ["cm"],
         "verbs": ["get", "list", "watch"]},
        {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace", "verbs": ["get"]},
        {"name": "namespaces/status", "singularName": "", "namespaced": False, "kind": "Namespace", "verbs": ["get"]}]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "example.com", "versions": [
        {"groupVersion": "example.com/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "example.com/v1", "version": "v1"}}]},
    "/apis/example.com/v1": {"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [
        {"name": "widgets", "singularName": "widget", "namespaced": True, "kind": "Widget", "verbs": ["get", "list"]}]},
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body, **headers):
        data = json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"content_type": "application/json", "content_length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def fail(self, code, reason, **headers):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code}, **headers)

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def shown(self, item):
        """Alternates between a server with and one without the parameter, as behind a load balancer."""
        if self.knows and "drop=metadata.managedFields" in self.headers["Accept"]:
            return {**item, "metadata": {k: v for k, v in item["metadata"].items() if k != "managedFields"}}
        return item

    def do_GET(self):  # pylint: disable=invalid-name
        script = self.server
        script.requests += 1
        self.knows = script.requests % 2 == 0
        try:
            self.get(script)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def get(self, script):
        if script.tokens is not None and self.headers.get("Authorization", "").removeprefix("Bearer ") not in script.tokens:
            return self.fail(401, "Unauthorized")
        if script.faults:
            fault = script.random.randrange(6)
            if fault == 0:
                return self.fail(429, "TooManyRequests", retry_after="0")
            if fault == 1:
                return self.fail(500, "InternalError")
            if fault == 2:
                self.close_connection = True
                return self.connection.close()
        if not script.acceptable:
            return self.fail(406, "NotAcceptable")
        if self.path in OLD_DISCOVERY:
            return self.answer(200, OLD_DISCOVERY[self.path])
        query = dict(part.partition("=")[::2] for part in self.path.partition("?")[2].split("&"))
        if "watch" not in query:
            with script.lock:
                body = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": str(script.version)},
                        "items": [self.shown(item) for item in script.objects.values()]}
            return self.answer(200, body)
        return self.watch(script, query)

    def watch(self, script, query):
        initial = "sendInitialEvents" in query
        if initial and not script.streaming_lists:
            return self.fail(422, "Invalid")
        with script.lock:
            first = script.version if initial else int(query["resourceVersion"])
            told = list(script.objects.values()) if initial else []
            expired = not initial and first < script.oldest
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if expired:
            gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old resource version", "code": 410}
            self.chunk(json.dumps({"type": "ERROR", "object": gone}, separators=(",", ":")) + "\n")
            return self.chunk("")
        left = script.random.randrange(1, 12) if script.faults else 10**9
        lines = [("ADDED", item) for item in told]
        if initial:
            lines.append(("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
                "resourceVersion": str(first), "annotations": {"k8s.io/initial-events-end": "true"}}}))
        while True:
            for kind, item in lines:
                text = json.dumps({"type": kind, "object": self.shown(item)}, separators=(",", ":")) + "\n"
                left -= 1
                if left <= 0:
                    # Cut off in the middle of an event: the rest must be discarded.
                    self.chunk(text[:script.random.randrange(len(text))])
                    self.close_connection = True
                    return self.connection.close()
                if script.faults and script.random.randrange(4) == 0:
                    half = script.random.randrange(len(text))  # Slow: an event in two chunks.
                    if half:
                        self.chunk(text[:half])
                    time.sleep(0.01)
                    text = text[half:]
                self.chunk(text)
            with script.lock:
                script.lock.wait_for(lambda: script.version > first or script.oldest > first, timeout=1)
                if script.oldest > first and not any(version > first for version, _, _ in script.events):
                    return self.chunk("")  # End of the watch; the next one gets 410 Gone.
                lines = [(kind, item) for version, kind, item in script.events if version > first]
                first = script.version


def same(script):
    return lambda state: state["synced"] and state["objects"] == script.wanted()


def cut_streams_expired_versions_and_refusals(folder):
    for seed in range(3):
        with Script(seed) as script:
            for i in range(10):
                script.put(f"m{i}", "0")
            script.streaming_lists = seed != 1
            with Follower(script.kubeconfig(folder), "json") as follower:
                follower.until(same(script), "the first list")
                script.faults = True
                for round_ in range(30):
                    name = f"m{script.random.randrange(12)}"
                    if name in script.objects and script.random.randrange(3) == 0:
                        script.remove(name)
                    else:
                        script.put(name, str(round_))
                    if script.random.randrange(8) == 0:
                        script.forget_history()
                    time.sleep(0.01)
                script.faults = False
                state = follower.until(same(script), f"after faults, seed {seed}")
                assert state["failures"] > 0


def an_expired_version_means_a_new_list(folder):
    with Script(0) as script:
        script.put("a", "1")
        script.put("gone", "1")
        with Follower(script.kubeconfig(folder), "json") as follower:
            follower.until(same(script), "the first list")
            with script.lock:  # While the client is disconnected, as if it had been suspended.
                del script.objects["gone"]
                script.objects["a"]["data"]["x"] = "2"
                script.objects["a"]["metadata"]["resourceVersion"] = str(script.version + 1)
                script.version += 2
                script.oldest, script.events = script.version, []
                script.lock.notify_all()
            state = follower.until(same(script), "after 410")
            assert state["lists"] == 2, state


def a_token_that_ran_out_is_asked_for_again(folder):
    plugin = pathlib.Path(folder) / "plugin"
    token = pathlib.Path(folder) / "token"
    plugin.write_text(f"""#!/bin/sh
test -s {token} || exit 1
printf '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"%s"}}}}' "$(cat {token})"
""")
    plugin.chmod(0o755)
    user = f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {plugin}}}}}"
    with Script(0) as script:
        script.tokens = {"one"}
        script.put("a", "1")
        with Follower(script.kubeconfig(folder, user), "json") as follower:
            state = follower.until(lambda state: state["failures"] > 0, "the plugin fails")
            assert "failed with exit code 1" in state["lastError"] and not state["synced"], state
            token.write_text("one")
            follower.until(same(script), "the plugin works")
            script.tokens = {"two"}
            token.write_text("two")
            script.forget_history()
            script.put("b", "2")
            follower.until(same(script), "a new token")


def a_token_file_is_read_again(folder):
    token = pathlib.Path(folder) / "file-token"
    token.write_text("one\n")
    with Script(0) as script:
        script.tokens = {"one"}
        script.put("a", "1")
        with Follower(script.kubeconfig(folder, f"{{tokenFile: {token}}}"), "json") as follower:
            follower.until(same(script), "the first token")
            token.write_text("two\n")
            script.tokens = {"two"}
            script.forget_history()
            script.put("b", "2")
            follower.until(same(script), "the second token")


def a_server_that_refuses_what_is_asked_for_is_not_asked_again(folder):
    with Script(0) as script:
        script.acceptable = False
        with Follower(script.kubeconfig(folder), "json") as follower:
            state = follower.until(lambda state: state["failures"] > 0, "406")
            assert "NotAcceptable" in state["lastError"] and not state["synced"], state
            asked = script.requests
            time.sleep(1)  # Retries wait for at most 200 ms.
            assert script.requests == asked, f"asked {script.requests - asked} more times"


def a_server_that_is_killed_comes_back(_):
    with Server(HOLDFAST) as server:
        client = Holdfast(server, server.data_dir / "cache")
        port = server.url().rsplit(":", 1)[1]
        for name in ("a", "b"):
            client.create_config_map(name, x="1")
        with Follower(server.kubeconfig) as follower:
            follower.until(lambda state: {"default/a", "default/b"} <= set(state["objects"]), "the first list")
            for round_ in range(3):
                server.stop(signal.SIGKILL)
                follower.until(lambda state: not state["connected"], "the connection is lost")
                server.flags = ["--listen", f"127.0.0.1:{port}"]
                server.start()
                client.patch("/api/v1/namespaces/default/configmaps/a", {"data": {"x": f"after {round_}"}})
                follower.until(lambda state, r=round_: state["objects"].get("default/a") == f"after {r}", "the server is back")
            client.run("delete", "configmap", "b")
            follower.until(lambda state: "default/b" not in state["objects"], "a deletion")


def certificate(server, folder, seconds):
    """A client certificate of the server's CA that is valid for that long, as (certificate, key) files."""
    pki = server.data_dir / "pki"
    key, request, signed = (pathlib.Path(folder) / name for name in ("client.key", "client.csr", "client.crt.new"))
    run = lambda *command: subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
    if not key.exists():
        run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        run("req", "-new", "-key", key, "-subj", "/O=system:masters/CN=short-lived", "-out", request)
    end = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
    # Only `openssl ca` accepts an end time in seconds.
    (pathlib.Path(folder) / "index").write_text("")
    (pathlib.Path(folder) / "serial").write_text(f"{random.randrange(1 << 40):012X}\n")
    (pathlib.Path(folder) / "ca.conf").write_text(f"""[ca]
default_ca = own
[own]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
x509_extensions = client
[any]
organizationName = supplied
commonName = supplied
[client]
extendedKeyUsage = clientAuth
""")
    run("ca", "-batch", "-config", f"{folder}/ca.conf", "-cert", pki / "ca.crt", "-keyfile", pki / "ca.key", "-in", request,
        "-out", signed, "-notext", "-enddate", end)
    signed.rename(pathlib.Path(folder) / "client.crt")  # Atomically.
    return pathlib.Path(folder) / "client.crt", key


def a_certificate_that_ran_out_is_read_again(folder):
    with Server(HOLDFAST) as server:
        client = Holdfast(server, server.data_dir / "cache")
        signed, key = certificate(server, folder, 4)
        user = f"{{client-certificate: {signed}, client-key: {key}}}"
        kubeconfig = pathlib.Path(folder) / "kubeconfig"
        kubeconfig.write_text(f"""current-context: x
clusters: [{{name: x, cluster: {{server: "{server.url()}", certificate-authority: {server.data_dir}/pki/ca.crt}}}}]
users: [{{name: x, user: {user}}}]
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
""")
        with Follower(kubeconfig) as follower:
            follower.until(lambda state: state["synced"], "the first certificate")
            time.sleep(5)
            client.create_config_map("a", x="1")
            certificate(server, folder, 600)
            # Every new request needs a valid certificate.
            port = server.url().rsplit(":", 1)[1]
            server.stop()
            server.flags = ["--listen", f"127.0.0.1:{port}"]
            server.start()
            follower.until(lambda state: state["objects"].get("default/a") == "1", "the second certificate")


class Switch(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """One address in front of several servers; switching it cuts off existing connections."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, target):
        super().__init__(("127.0.0.1", 0), Forward)
        self.target, self.open = target, set()
        self.passed = 0  # Connections.
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def turn(self, target):
        self.target = target
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __exit__(self, *_):
        self.shutdown()
        self.turn(None)
        self.server_close()


class Forward(socketserver.BaseRequestHandler):
    def handle(self):
        self.server.passed += 1
        target = self.server.target
        if target is None:
            return
        with socket.create_connection(("127.0.0.1", int(target))) as other:
            self.pass_on(other)

    def pass_on(self, other):
        self.server.open.add(self.request)
        ends = {self.request: other, other: self.request}
        try:
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)
        except OSError:
            pass
        finally:
            self.server.open.discard(self.request)


class Proxy(Forward):
    """An HTTP proxy: CONNECT HOST:PORT, then bytes both ways."""

    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.request.recv(4096)
        method, where, _ = head.split(b"\r\n")[0].split(b" ")
        assert method == b"CONNECT" and b"Proxy-Authorization: Basic dTpw" in head, head
        self.server.passed += 1
        self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with socket.create_connection(("127.0.0.1", int(where.rsplit(b":", 1)[1]))) as other:
            self.pass_on(other)


def a_proxy_is_gone_through(folder):
    with Server(HOLDFAST) as server, Switch(None) as proxy:
        proxy.RequestHandlerClass = Proxy
        client = Holdfast(server, server.data_dir / "cache")
        client.create_config_map("a", x="1")
        kubeconfig = pathlib.Path(folder) / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig.read_text().replace(
            f"server: {server.url()}", f"server: {server.url()}\n    proxy-url: http://u:p@127.0.0.1:{proxy.server_address[1]}"))
        with Follower(kubeconfig) as follower:
            follower.until(lambda state: state["objects"].get("default/a") == "1", "through the proxy")
        assert proxy.passed == 1, proxy.passed


def discovery_in_the_old_form(folder):
    with Script(1) as script:
        script.put("a", "1")
        environment = dict(os.environ, KUBECONFIG=str(script.kubeconfig(folder)), HOME=str(folder))
        run = lambda *command: subprocess.run([HOLDFAST, *command], env=environment, check=True, capture_output=True, text=True).stdout
        assert run("api-resources", "-o", "name").split() == ["configmaps", "namespaces", "widgets.example.com"]
        assert run("get", "cm", "-o", "name") == "configmap/a\n"


def one_informer_on_two_kinds_of_servers(folder):
    """One address that alternates between Holdfast and the real kube-apiserver, both on one etcd: only Holdfast omits
    managedFields itself."""
    if PEER is None or needs.kubectl() is None:
        needs.skip_part("one informer on two kinds of servers", needs.NO_PEER if PEER is None else needs.NO_KUBECTL)
        return
    with Peer(PEER) as peer:
        tokens = pathlib.Path(peer.work.name) / "tokens.csv"
        with Server(HOLDFAST, "--etcd-servers", peer.etcd, "--token-auth-file", str(tokens), "--controllers=none") as server:
            ports = [str(peer.port), server.url().rsplit(":", 1)[1]]
            with Switch(ports[0]) as switch:
                kubeconfig = pathlib.Path(folder) / "kubeconfig"
                kubeconfig.write_text(peer.kubeconfig.read_text().replace(f":{peer.port}", f":{switch.server_address[1]}"))
                writers = [Kubectl(peer.kubeconfig, server.data_dir / "one"), Kubectl(server.kubeconfig, server.data_dir / "two")]
                for encoding in ("json", "protobuf"):
                    writers[0].run("create", "configmap", encoding, "--from-literal=x=0")
                    with Follower(kubeconfig, encoding) as follower:
                        follower.until(lambda state: state["objects"].get(f"default/{encoding}") == "0", "the first list")
                        for turn in range(1, 7):
                            # Changes while it is disconnected and while it watches, written through either server.
                            switch.turn(None)
                            writers[turn % 2].run("patch", "configmap", encoding, "--type=merge", "-p", json.dumps({"data": {"x": str(turn)}}))
                            switch.turn(ports[turn % 2])
                            follower.until(lambda state, t=turn: state["objects"].get(f"default/{encoding}") == str(t), f"turn {turn}")
                            writers[(turn + 1) % 2].run("create", "configmap", f"{encoding}-{turn}", "--from-literal=x=new")
                            follower.until(lambda state, t=turn: f"default/{encoding}-{t}" in state["objects"], f"turn {turn}, watching")


def main():
    for story in (an_expired_version_means_a_new_list, cut_streams_expired_versions_and_refusals,
                  a_token_that_ran_out_is_asked_for_again, a_token_file_is_read_again, a_certificate_that_ran_out_is_read_again,
                  a_proxy_is_gone_through, discovery_in_the_old_form, a_server_that_is_killed_comes_back,
                  a_server_that_refuses_what_is_asked_for_is_not_asked_again,
                  one_informer_on_two_kinds_of_servers):
        with tempfile.TemporaryDirectory() as folder:
            story(folder)
        print(story.__name__.replace("_", " "))


if __name__ == "__main__":
    main()

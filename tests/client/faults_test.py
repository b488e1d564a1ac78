#!/usr/bin/env python3
"""What goes wrong between the client and a server, and that the client's copy is right afterwards:

  faults_test.py HOLDFAST FOLLOW
"""
import http.server
import json
import os
import pathlib
import random
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "clients"))
from server import Kubectl, Server  # noqa: E402

HOLDFAST, FOLLOW = (os.path.abspath(path) for path in sys.argv[1:3])


class Follower:
    """The C++ informer in a process of its own."""

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
    """An API server of ConfigMaps in one namespace that misbehaves as it is told."""

    daemon_threads = True

    def __init__(self, seed):
        super().__init__(("127.0.0.1", 0), Handler)
        self.random = random.Random(seed)
        self.lock = threading.Condition()
        self.version, self.oldest = 100, 100
        self.objects, self.events = {}, []
        self.faults = False         # Anything may happen to an answer.
        self.streaming_lists = True
        self.tokens = None          # Those that are good; None: nobody is asked.
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
        """This server knows the parameter, or not: another one each time, as behind a load balancer."""
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
                    # Cut in the middle of an event: nothing behind it may be believed.
                    self.chunk(text[:script.random.randrange(len(text))])
                    self.close_connection = True
                    return self.connection.close()
                if script.faults and script.random.randrange(4) == 0:
                    half = script.random.randrange(len(text))  # Slow: an event in two pieces.
                    if half:
                        self.chunk(text[:half])
                    time.sleep(0.01)
                    text = text[half:]
                self.chunk(text)
            with script.lock:
                script.lock.wait_for(lambda: script.version > first or script.oldest > first, timeout=1)
                if script.oldest > first and not any(version > first for version, _, _ in script.events):
                    return self.chunk("")  # The end of the watch; the next one is told that it is too late.
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
            with script.lock:  # While nobody looks: as if the client had slept.
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


def a_server_that_is_killed_comes_back(_):
    with Server(HOLDFAST) as server:
        kubectl = Kubectl(server.kubeconfig, server.data_dir / "cache")
        port = server.url().rsplit(":", 1)[1]
        for name in ("a", "b"):
            kubectl.run("create", "configmap", name, "--from-literal=x=1")
        with Follower(server.kubeconfig) as follower:
            follower.until(lambda state: {"default/a", "default/b"} <= set(state["objects"]), "the first list")
            for round_ in range(3):
                server.stop(signal.SIGKILL)
                follower.until(lambda state: not state["connected"], "the connection is lost")
                server.flags = ["--listen", f"127.0.0.1:{port}"]
                server.start()
                kubectl.run("patch", "configmap", "a", "--type=merge", "-p", json.dumps({"data": {"x": f"after {round_}"}}))
                follower.until(lambda state, r=round_: state["objects"].get("default/a") == f"after {r}", "the server is back")
            kubectl.run("delete", "configmap", "b")
            follower.until(lambda state: "default/b" not in state["objects"], "a deletion")


def main():
    for story in (an_expired_version_means_a_new_list, cut_streams_expired_versions_and_refusals,
                  a_token_that_ran_out_is_asked_for_again, a_token_file_is_read_again, a_server_that_is_killed_comes_back):
        with tempfile.TemporaryDirectory() as folder:
            story(folder)
        print(story.__name__.replace("_", " "))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Whatever a server waits for, it delays nobody else longer than it must, and SIGTERM ends the server.

shutdown_test.py HOLDFAST SLOW_LOOKUP_LIBRARY
"""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
for folder in ("api", "clients", "store"):
    sys.path.insert(0, str(TESTS / folder))
from etcd import Etcd  # noqa: E402
from hook_server import HookServer  # noqa: E402
from server import Connection, Server, wait_until  # noqa: E402

LIBRARY = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else "build/release/bin/libslow_lookup.so"
BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/release/bin/holdfast"
MAPS = "/api/v1/namespaces/default/configmaps"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def in_background(server, method, path, body=None):
    """Sends a request whose response nobody waits for."""
    def send():
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError), Connection(server) as connection:
            connection.text(method, path, body)
    threading.Thread(target=send, daemon=True).start()


class ShutdownTest(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def start(self, *flags, **more):
        server = self.stack.enter_context(Server(BINARY, "--shutdown-grace-seconds=1", *flags, **more))
        self.stack.callback(lambda: server.process.poll() is None and server.process.kill())
        self.admin = self.stack.enter_context(Connection(server))
        return server

    def hooks(self):
        """A server whose handlers do not respond before the test ends: hooks.asked counts the requests."""
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        hooks = HookServer(folder)
        self.stack.callback(hooks.stop)
        over, hooks.asked = threading.Event(), 0
        self.stack.callback(over.set)

        def hang(_):
            hooks.asked += 1
            over.wait()
            return 500, b""
        hooks.on("/hang", hang)
        return hooks

    def webhook(self, name, url, resource, hooks=None, namespace="default", seconds=30):
        made = {"metadata": {"name": name}, "webhooks": [{
            "name": f"{name}.example.com", "clientConfig": {"url": url}, "timeoutSeconds": seconds,
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "admissionReviewVersions": ["v1"], "sideEffects": "None"}]}
        if hooks:
            made["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(hooks.ca).decode()
        self.admin.done("POST", HOOKS, made)

    def ends(self, server, forced=False):
        """`forced`: it may have to give up something that cannot be interrupted, and then says so."""
        server.process.send_signal(signal.SIGTERM)
        try:
            status = server.process.wait(60)
        except subprocess.TimeoutExpired:
            self.fail("the server does not end:\n" + server.text()[-2000:])
        gave_up = "shutting down takes too long" in server.text()
        self.assertEqual(status, int(gave_up), server.text()[-2000:])
        self.assertTrue(forced or not gave_up)

    def test_a_start_that_waits(self):
        # For an etcd, and for a signer, that accept connections and say nothing.
        with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as etcd, socket.socket(socket.AF_UNIX) as signer:
            signer.bind(folder + "/signer")
            signer.listen()
            for flag in (f"--etcd-servers=http://127.0.0.1:{etcd.getsockname()[1]}", f"--service-account-signing-endpoint={folder}/signer"):
                with self.subTest(flag.partition("=")[0]), open(folder + "/log", "w+", encoding="utf-8") as log:
                    process = subprocess.Popen([BINARY, "serve", "--listen=127.0.0.1:0", "--data-dir", folder + "/" + flag[2:6], flag], stderr=log)
                    self.stack.callback(lambda process=process: process.poll() is None and process.kill())
                    listener = etcd if "etcd" in flag else signer
                    listener.settimeout(60)
                    connection, _ = listener.accept()
                    process.send_signal(signal.SIGTERM)
                    self.assertEqual(process.wait(60), 0, pathlib.Path(folder + "/log").read_text())
                    connection.close()

    def test_a_watch(self):
        server = self.start()
        with Connection(server) as watching:
            watching.connection.request("GET", MAPS + "?watch=1&timeoutSeconds=2000000000")
            self.assertEqual(watching.connection.getresponse().status, 200)
            self.ends(server)

    def test_an_annotation_that_looks_like_a_query(self):
        # The controller reads the account that the annotation names.
        server = self.start()
        secrets = "/api/v1/namespaces/default/secrets"
        for i, name in enumerate(("?watch=1&timeoutSeconds=2000000000", "../secrets", "a/b", "%2e%2e", "")):
            self.admin.done("POST", secrets, {"type": "kubernetes.io/service-account-token", "metadata": {
                "name": f"s{i}", "annotations": {"kubernetes.io/service-account.name": name or "-"}}})
        # There are no such accounts.
        wait_until("the Secrets are deleted", lambda: not self.admin.done("GET", secrets)["items"])
        self.ends(server)

    def test_a_webhook(self):
        server, hooks = self.start(), self.hooks()
        self.webhook("hung", hooks.url("/hang"), "configmaps", hooks)
        in_background(server, "POST", MAPS, {"metadata": {"name": "a"}})
        wait_until("the webhook is called", lambda: hooks.asked)
        self.ends(server)

    def test_a_call_to_itself(self):
        # The usage of the quota is written by the server; the webhook delays that.
        server, hooks = self.start(), self.hooks()
        self.admin.done("POST", "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "9"}}})
        wait_until("the quota is counted", lambda: "used" in self.admin.done("GET", "/api/v1/namespaces/default/resourcequotas/q").get("status", {}))
        self.webhook("hung", hooks.url("/hang"), "resourcequotas/status", hooks)
        in_background(server, "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}})
        wait_until("the webhook is called", lambda: hooks.asked)
        self.ends(server)

    def test_a_request_to_an_aggregated_server(self):
        server, hooks = self.start("--controllers=none"), self.hooks()
        hang = hooks.handlers["/hang"]
        hooks.on("*", lambda seen: hang(seen) if seen["path"].endswith("/things") else (
            200, json.dumps({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "agg.example.com/v1", "resources": []}).encode()))
        self.admin.done("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
        self.admin.done("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.agg.example.com"}, "spec": {
            "group": "agg.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, "caBundle": base64.b64encode(hooks.ca).decode(),
            "service": {"namespace": "default", "name": "hook", "port": hooks.port}}})
        wait_until("it is available", lambda: self.admin.text("GET", "/apis/agg.example.com/v1")[0] == 200)
        in_background(server, "GET", "/apis/agg.example.com/v1/things")
        wait_until("it is called", lambda: hooks.asked)
        self.ends(server)

    def test_a_name_lookup(self):
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        until = pathlib.Path(folder) / "until"
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, SLOW_LOOKUP_UNTIL=str(until))
        server, hooks = self.start(environment=environment), self.hooks()
        allowed = lambda review: {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": review["request"]["uid"], "allowed": True}}
        hooks.on("/healthy", allowed)
        for name in ("slow", "healthy"):
            self.admin.done("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for name in ("one", "two"):
            self.webhook(name, f"https://{name}.test/", "configmaps", namespace="slow", seconds=1)
        self.webhook("healthy", f"https://localhost:{hooks.port}/healthy", "configmaps", hooks, namespace="healthy")
        # The lookups never end, and yet the requests do, at the webhook's timeout; the other webhook is not delayed.
        code, answer = self.admin.call("POST", "/api/v1/namespaces/slow/configmaps", {"metadata": {"name": "a"}})
        self.assertEqual(code, 500, answer)
        self.assertIn("deadline exceeded", answer["message"])
        self.admin.done("POST", "/api/v1/namespaces/healthy/configmaps", {"metadata": {"name": "a"}})
        in_background(server, "POST", "/api/v1/namespaces/slow/configmaps", {"metadata": {"name": "b"}})
        self.ends(server)

    def test_a_store_that_does_not_respond(self):
        etcd = Etcd()
        self.stack.callback(etcd.stop)
        server = self.start("--etcd-servers=" + etcd.url)
        self.admin.done("POST", MAPS, {"metadata": {"name": "a"}})
        etcd.process.send_signal(signal.SIGSTOP)
        self.stack.callback(etcd.process.send_signal, signal.SIGCONT)
        for i in range(3):
            in_background(server, "POST", MAPS, {"metadata": {"name": f"b{i}"}})
        wait_until("the writes are under way", lambda: self.admin.metric("holdfast_requests_active") >= 4)
        self.ends(server, forced=True)


if __name__ == "__main__":
    unittest.main()

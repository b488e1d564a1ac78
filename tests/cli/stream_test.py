#!/usr/bin/env python3
"""stream_test.py HOLDFAST: `get` prints each page as it arrives, and does not keep it.

The server is a stub: it sends the second page only after the first row of the first one was printed, and as many pages as
the test needs, so that nothing depends on timing."""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
from check import check, finish

HOLDFAST = os.path.abspath(sys.argv[1])


class Pods(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Answer)
        self.pages, self.limits = pages, []
        self.first_row_was_read = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def environment(self, folder):
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                  "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}]}
        path = os.path.join(folder, "kubeconfig")
        with open(path, "w") as file:
            json.dump(config, file)
        return dict(os.environ, KUBECONFIG=path, KUBECACHEDIR=os.path.join(folder, f"cache{self.server_port}"))


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/api/v1/pods":
            self.send(self.page(int(query.get("continue", 0)), int(query.get("limit", 0))))
        elif url.path in ("/api", "/apis"):
            version = {"version": "v1", "freshness": "Current", "resources": [{
                "resource": "pods", "responseKind": {"group": "", "version": "v1", "kind": "Pod"}, "scope": "Namespaced", "singularResource": "pod",
                "verbs": ["get", "list", "watch"], "shortNames": ["po"]}]}
            items = [{"metadata": {"creationTimestamp": None}, "versions": [version]}] if url.path == "/api" else []
            self.send({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items},
                      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        else:
            self.send_error(404)

    def page(self, number, limit):
        self.server.limits.append(limit)
        if number == 1:
            self.server.first_row_was_read.wait(60)
        rows = [{"cells": [f"pod-{number}-{i}", "x" * 200], "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
            "name": f"pod-{number}-{i}", "namespace": "default", "annotations": {"a": "y" * 1000}}}} for i in range(limit)]
        metadata = {"resourceVersion": "1"} if number + 1 == self.server.pages else {"resourceVersion": "1", "continue": str(number + 1)}
        return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "rows": rows,
                "columnDefinitions": [{"name": name, "type": "string", "format": "", "description": "", "priority": 0} for name in ("Name", "Text")]}

    def send(self, body, kind="application/json"):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def peak_memory(pages, folder):
    """Peak memory in KiB of a `get` of that many pages, and the requests that the server received."""
    server = Pods(pages)
    process = subprocess.Popen([HOLDFAST, "get", "pods", "-A"], stdout=subprocess.PIPE, text=True, env=server.environment(folder))
    head, first = process.stdout.readline(), process.stdout.readline()
    check(head.split() == ["NAMESPACE", "NAME", "TEXT"] and first.split()[1] == "pod-0-0", f"{pages} pages: rows are printed before the second page has arrived")
    check(len(server.limits) <= 2, f"and at most one page is requested ahead: {server.limits}")
    server.first_row_was_read.set()
    rows = 1 + sum(1 for _ in process.stdout)
    _, status, usage = os.wait4(process.pid, 0)
    check(status == 0 and rows == sum(server.limits), f"all rows are printed: {rows} of {sum(server.limits)}")
    check(len(server.limits) == pages and all(0 < limit <= 500 for limit in server.limits), f"in pages of at most 500: {sorted(set(server.limits))}")
    server.shutdown()
    return usage.ru_maxrss


with tempfile.TemporaryDirectory(prefix="holdfast-stream-") as folder:
    few, many = peak_memory(5, folder), peak_memory(60, folder)
    # Fifty-five more pages are 40 MB more of JSON; variations of the allocator are far smaller.
    check(many - few < 12 * 1024, f"twelve times as many pages need no more memory: {few} KiB, {many} KiB")
finish()

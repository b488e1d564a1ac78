#!/usr/bin/env python3
"""Holdfast and kube-apiserver under the same load, one after the other on one machine: see cost.sh."""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKEN = "bench-token"
DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "NAME", "labels": {"app": "shop", "tier": "web"}},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "shop"}},
             "template": {"metadata": {"labels": {"app": "shop"}},
                          "spec": {"containers": [
                              {"name": "web", "image": "registry.example.com/web:1", "ports": [{"containerPort": 80, "name": "http"}],
                               "env": [{"name": "MODE", "value": "1"}, {"name": "LEVEL", "value": "2"}],
                               "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                               "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
                              {"name": "proxy", "image": "registry.example.com/proxy:1"}],
                              "volumes": [{"name": "scratch", "emptyDir": {}}]}}}}
DROP = ";drop=metadata.managedFields"
LISTS = {"JSON": ("application/json", ""), "JSON drop": ("application/json" + DROP, ""),
         "Protobuf": ("application/vnd.kubernetes.protobuf", ""),
         "Protobuf drop": ("application/vnd.kubernetes.protobuf" + DROP, ""),
         "metadata": ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", ""),
         "selector that matches none": ("application/json", "labelSelector=no%3Dsuch"),
         "one node": ("application/json", "fieldSelector=spec.nodeName%3Dworker-0007"),
         "page of 500": ("application/json", "limit=500")}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(what, process, log, check):
    end = time.monotonic() + 600
    while not check():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"cost: {what} did not start:\n" + log.read_text(errors="replace")[-2000:])
        time.sleep(0.005)


class Server:
    """A running API server: its address, process and time to ready."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        self.companions = []

    def spawn(self, what, *command):
        log = self.folder / (what + ".log")
        return subprocess.Popen([str(part) for part in command], stdout=log.open("ab"), stderr=subprocess.STDOUT), log

    def ready(self):
        request = urllib.request.Request(self.url + "/readyz", headers={"Authorization": "Bearer " + TOKEN})
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def start(self, *command):
        begin = time.monotonic()
        self.process, log = self.spawn(self.name.replace(" ", "-"), *command)
        wait_until(self.name, self.process, log, self.ready)
        self.ready_ms = (time.monotonic() - begin) * 1000
        return self

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def stop(self):
        for process in [self.process, *self.companions]:
            process.terminate()
            process.wait()


def start_etcd(server, binary, data):
    client, peer = free_port(), free_port()
    urls = [f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"]
    process, log = server.spawn("etcd", binary, "--data-dir", data, "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
                                "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster",
                                "default=" + urls[1], "--quota-backend-bytes=8589934592")
    server.companions.append(process)

    def healthy():
        try:
            return urllib.request.urlopen(urls[0] + "/health", timeout=5).status == 200
        except OSError:
            return False
    wait_until("etcd", process, log, healthy)
    return urls[0]


def kube_apiserver(options, folder, etcd_data=None):
    server = Server("kube-apiserver", folder)
    etcd = start_etcd(server, pathlib.Path(options.peer) / "etcd", etcd_data or folder / "etcd")
    key = folder / "sa.key"
    if not key.exists():
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
    port = free_port()
    server.url = f"https://127.0.0.1:{port}"
    return server.start(pathlib.Path(options.peer) / "kube-apiserver", "--etcd-servers", etcd, "--bind-address", "127.0.0.1",
                        "--secure-port", port, "--cert-dir", folder / "certs", "--token-auth-file", folder / "tokens.csv",
                        "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/16", "--service-account-issuer",
                        "https://kubernetes.default.svc", "--service-account-key-file", key, "--service-account-signing-key-file", key,
                        "--disable-admission-plugins", "ServiceAccount,Priority", "--max-requests-inflight", 4000,
                        "--max-mutating-requests-inflight", 2000)


def holdfast(options, folder, *flags, name="holdfast"):
    server = Server(name, folder)
    port = free_port()
    server.url = f"https://127.0.0.1:{port}"
    return server.start(options.bin, "serve", "--data-dir", folder, "--listen", f"127.0.0.1:{port}", "--token-auth-file",
                        folder / "tokens.csv", "--controllers=none", "--disable-admission-plugins=ServiceAccount,Priority", *flags)


class Report:
    def __init__(self, options):
        self.options, self.rows = options, {}

    def put(self, what, server, value):
        self.rows.setdefault(what, {})[server.name] = value
        print(f"  {server.name:18} {what:44} {value:12.2f}", flush=True)

    def load(self, server, *arguments):
        command = [self.options.load, "-server", server.url, "-token", TOKEN, "-pid", server.process.pid, *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1800, check=False)
        if done.returncode != 0:
            sys.exit("cost: " + done.stderr[-2000:])
        return done.stdout

    def small(self, server, deployment):
        requests = str(self.options.requests)
        self.put("start empty, ms", server, server.ready_ms)
        time.sleep(2)
        self.put("idle memory, MB", server, server.memory_mb())
        deployments = ["-path", "/apis/apps/v1/namespaces/default/deployments", "-object", deployment]
        for kind, arguments in (("ConfigMap", []), ("Deployment", deployments)):
            for line in self.load(server, "-n", requests, *arguments, "apply").splitlines():
                operation = line.split()[0]
                if "bad=map[]" not in line:
                    print("  failed requests:", line)
                self.put(f"{operation} {kind}, CPU us", server, number(line, "cpu/op"))
                self.put(f"{operation} {kind}, per second", server, number(line, "ops/s"))
        self.put("GET, CPU us", server, number(self.load(server, "-n", requests, "get"), "cpu/op"))
        self.put("GET drop, CPU us", server,
                 number(self.load(server, "-n", requests, "-accept", "application/json" + DROP, "get"), "cpu/op"))
        for watchers in (200, 1000):
            self.put(f"watch x{watchers}, CPU us per delivery", server,
                     number(self.load(server, "-w", str(watchers), "-n", "200", "watch"), "cpu/delivery"))
        self.put("memory after small load, MB", server, server.memory_mb())

    def lists(self, server):
        self.put("start with pods, ms", server, server.ready_ms)
        time.sleep(3)
        self.put("memory with pods, MB", server, server.memory_mb())
        for what, (accept, query) in LISTS.items():
            repeat = "10" if query else "2"
            out = self.load(server, "-path", "/api/v1/pods", "-query", query, "-accept", accept, "-repeat", repeat, "list")
            seconds = [float(found) for found in re.findall(r"cpu=([\d.]+)s", out)]
            self.put(f"LIST {what}, CPU ms", server, sum(seconds) / max(len(seconds), 1) * 1000)
        self.put("memory after LISTs, MB", server, server.memory_mb())

    def table(self):
        shown = ["kube-apiserver", "holdfast", "holdfast on etcd"]
        print(f"\n{'':46}{shown[0]:>16}{shown[1]:>12}{'ratio':>9}{'on etcd':>12}")
        for what, values in self.rows.items():
            theirs, ours, on_etcd = (values.get(name) for name in shown)
            ratio = theirs / ours if theirs is not None and ours else None
            cells = ((theirs, 16), (ours, 12), (ratio, 9), (on_etcd, 12))
            print(f"{what:46}" + "".join(f"{value:{width}.2f}" if value is not None else " " * width for value, width in cells))


def number(text, name):
    found = re.search(re.escape(name) + r"=([\d.]+)", text)
    return float(found.group(1)) if found else float("nan")


def measure_pods(options, report, work):
    """Both servers on the same pods: an embedded store is filled, and copied to an etcd as kube-apiserver writes it."""
    embedded = work / "pods"
    bench = ROOT / "build/release/bench/memory_bench"
    embedded.mkdir()
    subprocess.run([bench, "fill", embedded / "store", ROOT / "bench/data/pod.json", f"--pods={options.pods}"], check=True)
    if options.peer:
        filler = Server("filler", work / "filler")
        url = start_etcd(filler, pathlib.Path(options.peer) / "etcd", work / "etcd-data")
        subprocess.run([options.bin, "store", "copy", "--from", embedded, "--to", url], check=True)
        if options.only != "kube-apiserver":
            server = holdfast(options, work / "on-etcd", "--etcd-servers", url, name="holdfast on etcd")
            report.lists(server)
            server.stop()
        filler.process = filler.companions.pop()
        filler.stop()
        if options.only != "holdfast":
            server = kube_apiserver(options, work / "kube-pods", work / "etcd-data")
            report.lists(server)
            server.stop()
    if options.only != "kube-apiserver":
        server = holdfast(options, embedded)
        report.lists(server)
        server.stop()


def main():
    parser = argparse.ArgumentParser(prog="./dev bench cost")
    parser.add_argument("--load", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--bin", default=ROOT / "build/release/bin/holdfast", help="the holdfast binary to measure")
    parser.add_argument("--pods", type=int, default=100000, help="number of pods to LIST")
    parser.add_argument("--requests", type=int, default=3000, help="number of requests of each kind")
    parser.add_argument("--skip-pods", action="store_true", help="small objects only")
    parser.add_argument("--only", choices=["holdfast", "kube-apiserver"], help="measure one server")
    options = parser.parse_args()
    report = Report(options)
    work = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-cost-"))
    try:
        deployment = work / "deployment.json"
        deployment.write_text(json.dumps(DEPLOYMENT))
        for start in (kube_apiserver, holdfast):
            if options.only and options.only != start.__name__.replace("_", "-"):
                continue
            server = start(options, work / start.__name__)
            report.small(server, deployment)
            server.stop()
        if not options.skip_pods:
            measure_pods(options, report, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report.table()


if __name__ == "__main__":
    main()

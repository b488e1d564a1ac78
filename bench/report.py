#!/usr/bin/env python3
"""Measures Holdfast and kube-apiserver, section by section, and writes docs/benchmarks.md: see report.sh.

A scenario that fails is recorded with its reason, and the next one runs. Figures are saved after every section, so that
a run can be continued with --only."""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

import report_page
import servers

ROOT = servers.ROOT
DROP = ";drop=metadata.managedFields"
JSON, PROTOBUF, CBOR = "application/json", "application/vnd.kubernetes.protobuf", "application/cbor"
METADATA = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = ";as=Table;g=meta.k8s.io;v=v1"

# The size of a run. kube-apiserver is so slow for thousands of applies to large custom resources that its memory section
# covers only pods. `requests` and `watch`: by number of clients or watchers. Lists of the memory section are percentages of
# its objects.
SIZES = {
    "tiny": dict(mechanisms=["nothing", "all"], starts=1, pods=200, list_repeat=1, gets=200, requests={1: 20, 32: 64}, kinds=["Deployment"], watch={1: 5, 20: 5},
                 crds=3, peer_crds=3, policies="1", policy_updates=20, mixed_seconds=0.3, memory_objects=100, memory_shapes=["pods", "custom"],
                 low_churn=5, high_churn=20, memory_peer=["pods", "custom"], growth=[100, 200], peer_growth=100),
    "quick": dict(starts=3, pods=10_000, list_repeat=1, gets=5_000, requests={1: 200, 32: 1_500, 256: 1_500}, kinds=["Deployment"],
                  watch={1: 100, 100: 100, 1_000: 50, 5_000: 15}, crds=200, peer_crds=40, policies="100", policy_updates=300, mixed_seconds=10,
                  memory_objects=5_000, memory_shapes=["pods", "custom", "mixed"], low_churn=1, high_churn=30, memory_peer=[],
                  growth=[1_000, 10_000, 100_000], peer_growth=0),
    "medium": dict(starts=5, pods=50_000, list_repeat=1, gets=20_000, requests={1: 500, 32: 4_000, 256: 4_000}, kinds=["ConfigMap", "Deployment"],
                   watch={1: 200, 100: 200, 1_000: 100, 5_000: 30}, crds=1_000, peer_crds=100, policies="1,100,1000", policy_updates=500,
                   mixed_seconds=30, memory_objects=30_000, memory_shapes=["pods", "custom", "mixed"], low_churn=1, high_churn=20, memory_peer=["pods"],
                   growth=[1_000, 10_000, 100_000, 1_000_000], peer_growth=10_000),
    "full": dict(starts=10, pods=100_000, list_repeat=2, gets=50_000, requests={1: 1_000, 32: 8_000, 256: 8_000}, kinds=["ConfigMap", "Deployment"],
                 watch={1: 500, 100: 300, 1_000: 200, 5_000: 50}, crds=2_000, peer_crds=300, policies="1,100,1000", policy_updates=1_000,
                 mixed_seconds=60, memory_objects=100_000, memory_shapes=["pods", "mixed pods", "custom", "mixed"], low_churn=1, high_churn=20,
                 memory_peer=["pods", "mixed pods"], growth=[1_000, 10_000, 100_000, 1_000_000], peer_growth=10_000),
}

DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "NAME", "labels": {"app": "shop", "tier": "web"}},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "shop"}},
             "template": {"metadata": {"labels": {"app": "shop"}},
                          "spec": {"containers": [
                              {"name": "web", "image": "registry.example.com/web:VALUE", "ports": [{"containerPort": 80, "name": "http"}],
                               "env": [{"name": "MODE", "value": "1"}, {"name": "LEVEL", "value": "2"}],
                               "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                               "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
                              {"name": "proxy", "image": "registry.example.com/proxy:1"}],
                              "volumes": [{"name": "scratch", "emptyDir": {}}]}}}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME"}, "data": {"a": "VALUE", "b": "2", "c": "3"}}
KINDS = {"ConfigMap": (CONFIG_MAP, "/api/v1/namespaces/default/configmaps"), "Deployment": (DEPLOYMENT, "/apis/apps/v1/namespaces/default/deployments")}

# List variants: title, Accept, query, additional options of load_bench, and whether kube-apiserver supports it.
LISTS = [
    ("JSON", JSON, "", {}), ("JSON drop", JSON + DROP, "", {}), ("JSON gzip", JSON, "", {"gzip": "true"}), ("JSON gzip drop", JSON + DROP, "", {"gzip": "true"}),
    ("Protobuf", PROTOBUF, "", {}), ("Protobuf drop", PROTOBUF + DROP, "", {}), ("CBOR", CBOR, "", {}), ("CBOR drop", CBOR + DROP, "", {}),
    ("metadata only", JSON + METADATA, "", {}), ("metadata only drop", JSON + METADATA + DROP, "", {}),
    ("Table", JSON + TABLE, "", {}), ("Table drop", JSON + TABLE + DROP, "", {}),
    ("pages of 500", JSON, "", {"limit": 500}), ("pages of 500 drop", JSON + DROP, "", {"limit": 500}),
    ("label selector, one app", JSON, "labelSelector=" + urllib.parse.quote("app.kubernetes.io/name=app-00001"), {"count": 20}),
    ("label selector, none", JSON, "labelSelector=no%3Dsuch", {"count": 20}),
    ("field selector, one node", JSON, "fieldSelector=spec.nodeName%3Dworker-0007", {"count": 20})]

MEMORY_GATES = ("ManagedFieldsOptOut", "CompressManagedFieldsInCache", "FieldsV2", "FieldsV2AtRest", "ManagedFieldsPool")
# Mechanisms of the memory plan, by enabled gates. Separate ownership (the sidecar) and the avoidance of no-op writes have no
# gate: they are part of every row.
MECHANISMS = {"nothing": (), "read-path omission": ("ManagedFieldsOptOut",), "zstd": ("CompressManagedFieldsInCache",),
              "FieldsV2": ("FieldsV2", "FieldsV2AtRest"), "pool": ("ManagedFieldsPool",), "all": MEMORY_GATES}
# Fields of a custom resource: "custom" objects have 5 KB including managedFields, as in the plan; each "mixed" object has
# 300 of 1,000 fields, and no two have the same.
CUSTOM_FIELDS = {"custom": (160, 160), "mixed": (300, 1000)}


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.*)", info)
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
    return {"processor": model.group(1) if model else platform.machine(), "cores": os.cpu_count(), "memory_gb": round(memory / 1048576, 1),
            "system": " ".join(pathlib.Path("/etc/os-release").read_text().split('PRETTY_NAME="')[1].split('"')[:1]), "kernel": platform.release()}


def output_of(*command):
    try:
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def figures_of(outcome, verb=None):
    """The measurements of one phase of load_bench, per operation."""
    of = outcome["verbs"][verb or next(iter(outcome["verbs"]))]
    count = max(of["operations"], 1)
    figures = {name: of[name] for name in ("operations", "per_second", "p50_us", "p99_us", "p999_us")}
    figures["bytes_each"] = of["bytes"] / count
    if of["failures"]:
        figures["failures"] = of["failures"]
    if "server_cpu_s" in outcome:
        figures.update(cpu_us=outcome["server_cpu_s"] / count * 1e6, peak_mb=outcome["server_peak_mb"], rss_mb=outcome["server_rss_mb"],
                       server_cores=outcome["server_cpu_s"] / outcome["seconds"])
    if "companion_cpu_s" in outcome:
        figures["etcd_cpu_us"] = outcome["companion_cpu_s"] / count * 1e6
    figures["own_share"] = outcome["own_share"]
    return figures


class Run:
    def __init__(self, options, size, work, report):
        self.options, self.size, self.work, self.report = options, size, work, report
        self.begin, self.section, self.files = time.monotonic(), None, 0
        self.etcd_copies = {}

    # --- Recording

    def log(self, text):
        passed = int(time.monotonic() - self.begin)
        print(f"[{passed // 60:3d}:{passed % 60:02d}] {text}", flush=True)

    def row(self, what, server, **figures):
        name = server if isinstance(server, str) else server.name
        self.report["sections"][self.section]["rows"].append({"what": what, "server": name, **figures})
        shown = {key: round(value, 2) if isinstance(value, float) else value for key, value in figures.items()}
        self.log(f"  {name}: {what}: " + json.dumps(shown)[:300])

    @contextlib.contextmanager
    def scenario(self, what, server):
        """Records a failure of its body and continues."""
        try:
            yield
        except Exception as problem:
            lines = str(problem).strip().splitlines()
            self.row(what, server, failed=f"{type(problem).__name__}: " + (lines[-1] if lines else "")[:300])

    # --- Servers

    def folder(self, name):
        self.files += 1
        return self.work / f"{self.files}-{name}"

    def start(self, kind, *flags):
        """A server on an empty store: holdfast, kube-apiserver, or holdfast on etcd."""
        if kind == "holdfast":
            return servers.holdfast(self.options.bin, self.folder("holdfast"), *flags)
        if kind == "kube-apiserver":
            return servers.kube_apiserver(self.options.peer, self.folder("kube"))
        return servers.holdfast_on_etcd(self.options.bin, self.options.peer, self.folder("on-etcd"))

    def kinds(self, *more):
        return ["holdfast", *((*more, "kube-apiserver") if self.options.peer else ())]

    def each(self, what, *more):
        """Each kind of server in turn, on an empty store; failing to start is a failure of that server only."""
        for kind in self.kinds(*more):
            with self.scenario(what, kind), self.start(kind) as server:
                yield server

    def load(self, server, phase, timeout=900, **options):
        # With the server on the same two cores, a second generator thread would only compete with it.
        arguments = [f"{name}={value}" for name, value in options.items()]
        command = [self.options.build / "bench/load_bench", server.kubeconfig, phase, "pid=" + ",".join(map(str, server.pids())), *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-500:] or f"load_bench ended with {done.returncode}")
        outcome = json.loads(done.stdout)
        if phase != "list" and not any(verb["operations"] for verb in outcome["verbs"].values()):
            raise RuntimeError(f"no request of {phase} succeeded: " + json.dumps({verb: of["failures"] for verb, of in outcome["verbs"].items()}))
        return outcome

    def settle(self, seconds):
        """Waits until the memory of a server is stable."""
        time.sleep(seconds if self.size["starts"] > 1 else 0.1)

    def settle_work(self, server):
        """Waits until a server has finished the compaction caused by filling its store, which is not part of the cost of a
        request."""
        self.settle(5)
        for _ in range(30 if self.size["starts"] > 1 else 0):
            before = servers.cpu_seconds(server.process.pid)
            time.sleep(2)
            if servers.cpu_seconds(server.process.pid) - before < 0.04:
                return

    def file(self, name, content):
        path = self.work / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    # --- Stores

    def pods(self, count, mixed=False):
        """A data directory with an embedded store of realistic pods, 500 per app. Created once."""
        folder = self.work / f"{'mixed-' if mixed else ''}pods-{count}"
        if not folder.exists():
            self.log(f"  filling a store with {count:,} pods")
            folder.mkdir()
            apps = ["--mixed", f"--apps={max(count // 50, 2)}"] if mixed else [f"--apps={max(count // 500, 2)}"]
            try:
                subprocess.run([self.options.build / "bench/memory_bench", "fill", folder / "store", ROOT / "bench/data/pod.json", f"--pods={count}", *apps],
                               check=True, stdout=subprocess.DEVNULL)
                with servers.holdfast(self.options.bin, folder) as server:
                    connection = servers.Connection(server)
                    for number in range(100):
                        connection.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number:03}"}})
            except BaseException:
                shutil.rmtree(folder)
                raise
        return folder

    def etcd_of(self, data):
        """The data directory of an etcd with the same objects, as written by kube-apiserver. Created once."""
        if data not in self.etcd_copies:
            self.log("  copying the store to an etcd")
            copy = self.folder("etcd-data")
            companion = servers.Server("etcd", self.folder("etcd"))
            try:
                url = servers.start_etcd(companion, pathlib.Path(self.options.peer) / "etcd", copy)
                subprocess.run([self.options.bin, "store", "copy", "--from", data, "--to", url], check=True, stdout=subprocess.DEVNULL)
            finally:
                companion.stop()
            self.etcd_copies[data] = copy
        return self.etcd_copies[data]


# ---------------------------------------------------------------------------------------------------- Sections

def start_section(run):
    """Time to ready without data and with many pods, and memory right after."""
    for kind in run.kinds():
        times, memories, companions, cpus = [], [], [], []
        with run.scenario("empty", kind):
            for _ in range(run.size["starts"] if kind == "holdfast" else max(run.size["starts"] // 3, 1)):
                with run.start(kind) as server:
                    times.append(server.ready_ms)
                    cpus.append(servers.cpu_seconds(server.process.pid) * 1000)
                    run.settle(2)
                    memories.append(server.memory_mb())
                    companions += [servers.resident_mb(process.pid) for process in server.companions]
            run.row("empty", kind, ready_ms=middle(times), least_ms=min(times), most_ms=max(times), cpu_ms=middle(cpus), rss_mb=middle(memories),
                    **({"etcd_rss_mb": middle(companions)} if companions else {}))
    count = run.size["pods"]
    own = run.pods(count)

    def with_pods(what, kind, begin):
        with run.scenario(what, kind), begin() as server:
            cpu = servers.cpu_seconds(server.process.pid) * 1000
            run.settle(3)
            run.row(what, kind, ready_ms=server.ready_ms, cpu_ms=cpu, rss_mb=server.memory_mb())
    with_pods(f"{count:,} pods, own store", "holdfast", lambda: servers.holdfast(run.options.bin, own))
    if not run.options.peer:
        return
    with run.scenario(f"{count:,} pods, etcd", "holdfast"):
        etcd = run.etcd_of(own)
        with_pods(f"{count:,} pods, etcd", "holdfast on etcd", lambda: servers.holdfast_on_etcd(run.options.bin, run.options.peer, run.folder("on-etcd"), etcd))
        with_pods(f"{count:,} pods, etcd", "kube-apiserver", lambda: servers.kube_apiserver(run.options.peer, run.folder("kube"), etcd))
    with run.scenario(f"{count:,} pods, store copied from etcd", "holdfast"):
        copied, companion = run.folder("copied"), servers.Server("etcd", run.folder("etcd"))
        try:
            url = servers.start_etcd(companion, pathlib.Path(run.options.peer) / "etcd", etcd)
            subprocess.run([run.options.bin, "store", "copy", "--from", url, "--to", copied], check=True, stdout=subprocess.DEVNULL)
        finally:
            companion.stop()
        with_pods(f"{count:,} pods, store copied from etcd", "holdfast", lambda: servers.holdfast(run.options.bin, copied))
        shutil.rmtree(copied, ignore_errors=True)


def lists_section(run):
    """LIST of all pods, by form and selection, by one client."""
    count = run.size["pods"]
    own = run.pods(count)
    starts = {"holdfast": lambda: servers.holdfast(run.options.bin, own)}
    if run.options.peer:
        with run.scenario(f"LIST of {count:,} pods", "kube-apiserver"):
            etcd = run.etcd_of(own)
            starts["holdfast on etcd"] = lambda: servers.holdfast_on_etcd(run.options.bin, run.options.peer, run.folder("on-etcd"), etcd)
            starts["kube-apiserver"] = lambda: servers.kube_apiserver(run.options.peer, run.folder("kube"), etcd)
    for kind, begin in starts.items():
        with run.scenario(f"LIST of {count:,} pods", kind), begin() as server:
            run.settle(2)
            run.row("before LISTs", server, rss_mb=server.memory_mb())
            for title, accept, query, more in LISTS:
                with run.scenario(title, server):
                    outcome = run.load(server, "list", path="/api/v1/pods", accept=accept, query=query, clients=1, **{"count": run.size["list_repeat"], **more})
                    figures = figures_of(outcome)
                    if not figures["operations"]:
                        run.row(title, server, note=f"not served ({', '.join(figures['failures'])})")
                        continue
                    # For a whole list, even if it was paged.
                    lists = int(more.get("count", run.size["list_repeat"]))
                    figures.update(cpu_ms=outcome["server_cpu_s"] / lists * 1000, seconds_each=outcome["seconds"] / lists,
                                   mb_each=outcome["verbs"]["list"]["bytes"] / lists / 1e6, content_type=outcome["content_type"])
                    run.row(title, server, **figures)
            run.settle(2)
            run.row("after LISTs", server, rss_mb=server.memory_mb())


def gets_section(run):
    """GET of a Deployment, with and without managedFields, by 32 clients."""
    template = run.file("deployment.json", DEPLOYMENT)
    path = KINDS["Deployment"][1]
    for server in run.each("GET"):
        run.load(server, "apply", path=path, object=template, count=100)
        for title, accept in (("JSON", JSON), ("JSON drop", JSON + DROP), ("Protobuf", PROTOBUF), ("Protobuf drop", PROTOBUF + DROP)):
            with run.scenario(title, server):
                run.row(title, server, **figures_of(run.load(server, "get", path=path, accept=accept, count=run.size["gets"], objects=100)))


def writes_section(run):
    """Writes of Deployments and ConfigMaps by 1, 32 and 256 clients, each with its own objects."""
    for server in run.each("writes"):
        for kind in run.size["kinds"]:
            body, path = KINDS[kind]
            template = run.file(kind.lower() + ".json", body)
            for clients, count in run.size["requests"].items():
                common = dict(path=path, object=template, count=count, clients=clients, prefix=f"by-{clients}-")
                # Each phase works on the objects left by the previous one.
                for title, phase, value in (("create", "create", 1), ("update", "update", 2), ("patch", "patch", 3), ("apply", "apply", 4),
                                            ("no-op apply", "apply", 4), ("delete", "delete", 5)):
                    with run.scenario(f"{title} {kind}, {plural(clients, 'client')}", server):
                        run.row(f"{title} {kind}, {plural(clients, 'client')}", server, **figures_of(run.load(server, phase, value=value, **common)))


def watch_section(run):
    """One writer; every change goes to all watchers. Latency is measured from sending the write to receiving the event."""
    template = run.file("deployment.json", DEPLOYMENT)
    forms = {"JSON": JSON, "five forms": "|".join((JSON, JSON + DROP, PROTOBUF, PROTOBUF + DROP, JSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"))}
    for server in run.each("watch"):
        for watchers, events in run.size["watch"].items():
            for title, accept in forms.items():
                with run.scenario(f"{plural(watchers, 'watcher')}, {title}", server):
                    outcome = run.load(server, "watch", path=KINDS["Deployment"][1], object=template, accept=accept, watchers=watchers, count=events)
                    run.row(f"{plural(watchers, 'watcher')}, {title}", server, write_p99_us=outcome["verbs"]["write"]["p99_us"], **figures_of(outcome, "deliver"))


def crds_section(run):
    """Custom resource definitions of about 120 fields: bench/crds.py."""
    command = ["python3", ROOT / "bench/crds.py", "--json", "--bin", run.options.bin, "--count", run.size["crds"]]
    if run.options.peer:
        command += ["--peer", run.options.peer, "--peer-count", run.size["peer_crds"]]
    for kind, figures in json.loads(checked(command)).items():
        run.row(f"{figures['count']:,} definitions", kind, **figures)


def policies_section(run):
    """Admission policies and CEL: bench/policies.py and bench/cel.sh."""
    with run.scenario("policies", "holdfast"):
        command = ["python3", ROOT / "bench/policies.py", "--json", "--bin", run.options.bin, "--updates", run.size["policy_updates"], "--counts", run.size["policies"]]
        if run.options.peer:
            command += ["--peer", run.options.peer]
        for kind, rows in json.loads(checked(command)).items():
            for title, (cpu, took) in rows.items():
                run.row(f"update of a ConfigMap, policies: {title}", kind, cpu_us=cpu, p50_us=took)
    if shutil.which("valgrind"):  # The overhead of policies that do not match is too small to be timed.
        with run.scenario("policies, instructions", "holdfast"):
            counted = json.loads(checked(["python3", ROOT / "bench/policies.py", "--json", "--instructions", "--not-matching", "--bin", run.options.bin,
                                          "--updates", min(run.size["policy_updates"], 100), "--counts", run.size["policies"].rpartition(",")[2]]))["holdfast"]
            for title, (thousands, _) in counted.items():
                run.row(f"update of a ConfigMap, policies: {title}, counted by callgrind", "holdfast", instructions=thousands * 1000)
    with run.scenario("CEL", "holdfast"):
        for line in checked([ROOT / "bench/cel.sh", "0.5" if run.size["starts"] > 1 else "0.05"]).partition("ratio\n")[2].splitlines():
            parts = line.split()
            run.row("CEL: " + parts[0], "holdfast", ns_each=float(parts[1]))
            if len(parts) > 2:
                run.row("CEL: " + parts[0], "kube-apiserver", ns_each=float(parts[2]))


def mixed_section(run):
    """Informers, writers and readers at the same time."""
    template = run.file("deployment.json", DEPLOYMENT)
    for server in run.each("mixed load"):
        outcome = run.load(server, "mixed", path=KINDS["Deployment"][1], object=template, seconds=run.size["mixed_seconds"], informers=8, writers=16, readers=4)
        operations = sum(verb["operations"] for verb in outcome["verbs"].values())
        run.row("all", server, operations=operations, per_second=operations / outcome["seconds"], cpu_us=outcome["server_cpu_s"] / operations * 1e6,
                server_cores=outcome["server_cpu_s"] / outcome["seconds"], peak_mb=outcome["server_peak_mb"], own_share=outcome["own_share"],
                informer_events=outcome["informer_events"], converged=outcome["informers_converged"])
        for verb in outcome["verbs"]:
            figures = figures_of(outcome, verb)
            for shared in ("cpu_us", "etcd_cpu_us", "peak_mb", "rss_mb", "server_cores", "own_share"):
                figures.pop(shared, None)  # Not specific to this verb.
            run.row(verb, server, **figures)


# ---------------------------------------------------------------------------------------------------- The memory plan

def custom_definition():
    properties = {f"f{i:04}": {"type": "string"} for i in range(1000)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "larges.bench.example.com"},
            "spec": {"group": "bench.example.com", "scope": "Namespaced", "names": {"plural": "larges", "kind": "Large"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "properties": {"spec": {"type": "object", "properties": {"rev": {"type": "string"}, **properties}}}}}}]}}


CUSTOM_PATH = "/apis/bench.example.com/v1/namespaces/default/larges"
UNSET = '{"k8s_io__value":"unset"}'


class Shape:
    """Objects of one shape in a store, and the changes made to them."""

    def __init__(self, run, name):
        self.run, self.name, self.count = run, name, run.size["memory_objects"]
        self.custom = "pods" not in name
        if self.custom:
            self.path = CUSTOM_PATH
            template = '{"apiVersion":"bench.example.com/v1","kind":"Large","metadata":{"name":"NAME"},"spec":{"rev":REV,FIELDS}}'
            self.more = dict(zip(("fields", "field_names"), CUSTOM_FIELDS[name]), prefix="large-")
            self.data = self.fill(run.file("large.json", template.replace("REV", '"VALUE"')))
        else:
            self.path = "/api/v1/pods"
            template = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","annotations":{"bench.example.com/rev":REV}}}'
            self.data = run.pods(self.count, mixed=name == "mixed pods")
            self.more = {}
            with servers.holdfast(run.options.bin, self.data) as server:
                items = json.loads(server.get(f"/api/v1/pods?limit={self.count}&showManagedFields=false", accept=JSON + METADATA))["items"]
            self.more = dict(names=run.file("names", "".join(f"/api/v1/namespaces/{item['metadata']['namespace']}/pods/{item['metadata']['name']}\n" for item in items)))
        self.change = run.file(name.replace(" ", "-") + ".json", template.replace("REV", '"VALUE"'))
        self.unset = run.file(name.replace(" ", "-") + "-unset.json", template.replace("REV", UNSET))

    def fill(self, template):
        folder = self.run.folder(self.name)
        with servers.holdfast(self.run.options.bin, folder, "--unsafe-no-fsync") as server:
            servers.Connection(server).send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", custom_definition())
            self.run.log(f"  filling a store with {self.count:,} custom resources of {self.more['fields']} fields")
            outcome = self.run.load(server, "apply", path=self.path, object=template, value=0, count=self.count, clients=64, **self.more)
            if outcome["verbs"]["apply"]["operations"] < self.count:
                raise RuntimeError(f"could not fill the store: {outcome['verbs']['apply']['failures']}")
        return folder

    def apply(self, server, value, count, unset=False, first=0):
        return self.run.load(server, "apply", path=self.path, object=self.unset if unset else self.change, value=value, count=count, clients=32, first=first, **self.more)


# The watch cache alone, which can also keep ownership inside the objects like kube-apiserver: flags of memory_bench.
BOTH_OFF = "--feature-gates=ManagedFieldsPool=false,CompressManagedFieldsInCache=false"
CACHE_FORMS = {"ownership in the objects": ["--inline", "--plain-bodies"], "sidecar": ["--plain-bodies", BOTH_OFF],
               "sidecar, zstd": ["--plain-bodies", "--feature-gates=ManagedFieldsPool=false"],
               "sidecar, pool": ["--plain-bodies", "--feature-gates=CompressManagedFieldsInCache=false"], "sidecar, zstd, pool": ["--plain-bodies"],
               "ownership in the objects, bodies compressed": ["--inline"], "all, bodies compressed": []}


def measure_cache(run, shape):
    for title, flags in CACHE_FORMS.items():
        with run.scenario(f"cache, {shape.name}: {title}", "holdfast"):
            figures = json.loads(checked([run.options.build / "bench/memory_bench", "run", shape.data / "store", "--json", *flags]))
            run.row(f"cache, {shape.name}: {title}", "holdfast", cache_of=shape.name, form=title, **figures)


def metric_sum(text, name):
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(re.escape(name) + r"[ {]", line))


def memory_section(run):
    """The mechanisms of the memory plan: none, each on its own, all; memory, events and applies, under low and high churn."""
    for name in run.size["memory_shapes"]:
        with run.scenario(name, "holdfast"):
            shape = Shape(run, name)
            if not shape.custom:
                measure_cache(run, shape)
            low, high = (max(shape.count * run.size[which] // 100, 10) for which in ("low_churn", "high_churn"))
            with servers.holdfast(run.options.bin, shape.data) as server:
                shape.apply(server, "settled", high)  # From here on, applies do not change the set of owned fields.
            for mechanism, gates in MECHANISMS.items():
                if mechanism not in run.size.get("mechanisms", MECHANISMS):
                    continue
                with run.scenario(f"{name}: {mechanism}", "holdfast"):
                    flag = "--feature-gates=" + ",".join(f"{gate}={'true' if gate in gates else 'false'}" for gate in MEMORY_GATES)
                    with servers.holdfast(run.options.bin, shape.data, flag) as server:
                        measure_memory(run, shape, mechanism, server, low, high)
            if run.options.peer and name in run.size["memory_peer"]:
                with run.scenario(f"{name}: kube-apiserver", "kube-apiserver"):
                    with servers.kube_apiserver(run.options.peer, run.folder("kube"), run.etcd_of(shape.data)) as server:
                        measure_memory(run, shape, "kube-apiserver", server, low, high)


def plan_section(run):
    """Instructions of writes with each mechanism of the memory plan, counted inside one process: bench/plan.py."""
    with run.scenario("instructions of writes", "holdfast"):
        if not shutil.which("valgrind"):
            raise RuntimeError("valgrind is not installed")
        for operation, mechanism, count in json.loads(checked(["python3", ROOT / "bench/plan.py", run.options.build / "bench/check_driver", "--json"])):
            run.row(f"{operation}: {mechanism}", "holdfast", operation=operation, mechanism=mechanism, instructions=count)


def measure_memory(run, shape, mechanism, server, low, high):
    ours = server.name == "holdfast"
    cpu = servers.cpu_seconds(server.process.pid)
    run.settle(2)
    figures = {"objects": shape.count, "rss_mb": server.memory_mb(), "ready_ms": server.ready_ms, "ready_cpu_ms": cpu * 1000}

    def usage(prefix):
        if not ours:
            return
        text = server.get("/metrics")
        for key, metric in (("ownership_mb", "holdfast_ownership_bytes"), ("ownership_raw_mb", "holdfast_ownership_raw_bytes"), ("rendered_mb", "holdfast_cache_rendered_bytes")):
            figures[prefix + key] = metric_sum(text, metric) / 1e6
    usage("")
    first = shape.apply(server, f"{mechanism}-low", low)
    figures.update(low_apply_p99_us=figures_of(first)["p99_us"], low_apply_cpu_us=figures_of(first)["cpu_us"])
    figures["low_rss_mb"] = server.memory_mb()
    # Three rounds: the best counts, and the spread is the noise.
    rounds = [figures_of(shape.apply(server, f"{mechanism}-high-{part}", max(high // 3, 1), first=part * (high // 3))) for part in range(3)]
    figures.update(apply_p99_us=min(of["p99_us"] for of in rounds), apply_p50_us=min(of["p50_us"] for of in rounds),
                   apply_cpu_us=min(of["cpu_us"] for of in rounds), apply_cpu_spread=max(of["cpu_us"] for of in rounds) / min(of["cpu_us"] for of in rounds) - 1,
                   apply_p99_spread=max(of["p99_us"] for of in rounds) / min(of["p99_us"] for of in rounds) - 1,
                   failures=sum(sum(of.get("failures", {}).values()) for of in rounds))
    figures["high_rss_mb"] = server.memory_mb()
    usage("high_")
    # Repeated applies: nothing is written, no event is sent.
    same = figures_of(shape.apply(server, f"{mechanism}-high-0", max(high // 3, 1)))
    figures.update(noop_cpu_us=same["cpu_us"], noop_p99_us=same["p99_us"])
    if ours:
        unset = figures_of(shape.apply(server, "", max(low, 20), unset=True))
        figures.update(unset_cpu_us=unset["cpu_us"], unset_p99_us=unset["p99_us"], unset_failures=sum(unset.get("failures", {}).values()))
        shape.apply(server, "settled", max(low, 20))
    for key, accept in (("event_bytes", JSON), ("event_drop_bytes", JSON + DROP), ("event_v2_bytes", JSON + ";mf=v2")):
        outcome = run.load(server, "watch", path=shape.path, object=shape.change, accept=accept, watchers=5, count=20, **shape.more)
        figures[key] = figures_of(outcome, "deliver")["bytes_each"]
    usage("watched_")
    run.row(f"{shape.name}: {mechanism}", server, shape=shape.name, mechanism=mechanism, **figures)


def growth_section(run):
    """The same requests with increasing numbers of pods: the cost of an object and of a request should not depend on the
    number of objects."""
    for count in run.size["growth"]:
        with run.scenario(f"{count:,} pods", "holdfast"):
            data = run.pods(count)
            begins = {"holdfast": lambda: servers.holdfast(run.options.bin, data)}
            if run.options.peer and count <= run.size["peer_growth"]:
                begins["kube-apiserver"] = lambda: servers.kube_apiserver(run.options.peer, run.folder("kube"), run.etcd_of(data))
            for kind, begin in begins.items():
                with run.scenario(f"{count:,} pods", kind), begin() as server:
                    measure_growth(run, count, server)
            if count != run.size["pods"]:
                shutil.rmtree(data, ignore_errors=True)


def measure_growth(run, count, server):
    cpu = servers.cpu_seconds(server.process.pid)
    run.settle_work(server)
    figures = {"objects": count, "ready_ms": server.ready_ms, "ready_cpu_ms": cpu * 1000, "rss_mb": server.memory_mb()}
    page = json.loads(server.get("/api/v1/pods?limit=500", accept=JSON + METADATA))["items"]
    names = run.file("names", "".join(f"/api/v1/namespaces/{item['metadata']['namespace']}/pods/{item['metadata']['name']}\n" for item in page))
    change = run.file("pod.json", '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","annotations":{"bench.example.com/rev":"VALUE"}}}')
    number = min(run.size["gets"], 5000)

    def best(phase, **options):
        """The round of three with the least CPU, which has the least noise from the machine."""
        verb = "deliver" if phase == "watch" else None
        return min((figures_of(run.load(server, phase, path="/api/v1/pods", **{key: of(part) if callable(of) else of for key, of in options.items()}), verb) for part in range(3)),
                   key=lambda of: of["cpu_us"])
    of = best("get", names=names, count=number)
    figures.update(get_cpu_us=of["cpu_us"], get_p99_us=of["p99_us"])
    run.load(server, "apply", path="/api/v1/pods", names=names, object=change, count=500, value="first")  # From here on, applies do not change the set of owned fields.
    of = best("apply", names=names, object=change, count=500, value=lambda part: f"round-{part}")
    figures.update(apply_cpu_us=of["cpu_us"], apply_p99_us=of["p99_us"])
    of = best("list", query="limit=500", clients=1, count=20)
    figures.update(page_cpu_us=of["cpu_us"], page_p50_us=of["p50_us"])
    if count <= 100_000:
        of = best("list", clients=1, count=1)
        figures.update(list_cpu_us_per_object=of["cpu_us"] / count)
    of = best("watch", names=names, object=change, watchers=100, count=20)
    figures.update(deliver_cpu_us=of["cpu_us"], final_rss_mb=server.memory_mb())
    run.row(f"{count:,} pods", server, **figures)


SECTIONS = {"start": start_section, "gets": gets_section, "writes": writes_section, "watch": watch_section, "mixed": mixed_section, "lists": lists_section,
            "growth": growth_section, "memory": memory_section, "plan": plan_section, "policies": policies_section, "crds": crds_section}
# Minutes that each section takes on two idle cores, including kube-apiserver; used by --minutes.
EXPECTED = {"quick": dict(start=0.8, gets=0.3, writes=1.2, watch=0.7, mixed=0.5, lists=1, growth=0.8, memory=2.5, plan=6, policies=0.9, crds=0.6),
            "medium": dict(start=2.5, gets=0.7, writes=5, watch=2, mixed=1.3, lists=4, growth=4.5, memory=9, plan=6, policies=3.5, crds=1.5),
            "full": dict(start=4, gets=1.5, writes=9, watch=3, mixed=2.5, lists=10, growth=5, memory=30, plan=6, policies=4, crds=3)}


def plural(count, noun):
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def middle(values):
    return sorted(values)[len(values) // 2]


def checked(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1800, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-500:])
    return done.stdout


def load_report(path):
    return json.loads(path.read_text()) if path.exists() else {"sections": {}}


def provenance(options):
    """What a section was measured with: recorded with each, since sections can be measured at different times."""
    peer = pathlib.Path(options.peer) if options.peer else None
    command = "./dev bench report " + " ".join(argument for argument in sys.argv[1:] if not argument.startswith("--peer") and argument != options.peer)
    return {"holdfast": output_of("git", "describe", "--always", "--dirty"), "kube-apiserver": output_of(peer / "kube-apiserver", "--version") if peer else "",
            "etcd": output_of(peer / "etcd", "--version").split("\n")[0] if peer else "", "command": command.strip(), **machine()}


def run_section(run, name, profile):
    recorded = run.report["sections"].get(name, {})
    # Without a peer, keep its recorded figures.
    kept = [] if run.options.peer else [row for row in recorded.get("rows", []) if row["server"] != "holdfast"]
    run.section = name
    begin = time.monotonic()
    entry = run.report["sections"][name] = {"profile": profile, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
                                            "provenance": provenance(run.options), "rows": []}
    if kept:
        entry["peer_date"] = recorded.get("peer_date", recorded["date"])
        for key in ("kube-apiserver", "etcd"):
            entry["provenance"][key] = recorded.get("provenance", {}).get(key, "")
    run.log(f"{name}: {SECTIONS[name].__doc__}")
    try:
        SECTIONS[name](run)
    except Exception as problem:  # Continue with the other sections.
        entry["failed"] = f"{type(problem).__name__}: {str(problem)[-300:]}"
        run.log(f"  {name} failed: {entry['failed']}")
    entry["rows"] += kept
    entry["seconds"] = round(time.monotonic() - begin)
    run.log(f"{name} took {entry['seconds']} s")


def parse_options():
    parser = argparse.ArgumentParser(prog="./dev bench report")
    parser.add_argument("--quick", action="store_true", help="ten minutes")
    parser.add_argument("--minutes", type=float, help="choose the size by time, and skip sections that no longer fit")
    parser.add_argument("--only", help="sections to run, separated by commas: " + ", ".join(SECTIONS))
    parser.add_argument("--size", choices=SIZES, help=argparse.SUPPRESS)
    parser.add_argument("--without-peer", action="store_true", help="measure only Holdfast")
    parser.add_argument("--render", action="store_true", help="only write the page, from the recorded figures")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs", help="directory of benchmarks.md and benchmarks/")
    parser.add_argument("--bin", type=pathlib.Path, help="the holdfast binary to measure, instead of that of the build")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help=argparse.SUPPRESS)
    parser.add_argument("--without-plots", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.bin = options.bin or options.build / "bin/holdfast"
    options.profile = options.size or ("quick" if options.quick else "full")
    if options.minutes and not options.size:
        options.profile = next((name for name in ("full", "medium") if sum(EXPECTED[name].values()) <= options.minutes), "quick")
    unknown = set(options.only.split(",")) - set(SECTIONS) if options.only else None
    if unknown:
        parser.error("unknown sections: " + ", ".join(sorted(unknown)))
    return options


def main():
    options = parse_options()
    raw = options.out / "benchmarks/report.json"
    raw.parent.mkdir(parents=True, exist_ok=True)
    report = load_report(raw)
    if not options.render:
        (ROOT / ".cache").mkdir(exist_ok=True)
        work = pathlib.Path(tempfile.mkdtemp(prefix="bench-report-", dir=ROOT / ".cache"))
        run = Run(options, SIZES[options.profile], work, report)
        wanted = options.only.split(",") if options.only else list(SECTIONS)
        if options.profile in EXPECTED:
            run.log(f"{options.profile} size: {', '.join(wanted)}: about {sum(EXPECTED[options.profile][name] for name in wanted):.0f} minutes on a quiet machine")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Lets servers be stopped and the work directory be removed.
        try:
            for name in wanted:
                left = options.minutes - (time.monotonic() - run.begin) / 60 if options.minutes else None
                if left is not None and left < EXPECTED.get(options.profile, {}).get(name, 0) * 0.8:
                    run.log(f"{name}: skipped, for only {left:.1f} minutes are left")
                    continue
                run_section(run, name, options.profile)
                raw.write_text(json.dumps(report, indent=1) + "\n")
                with (options.out / "benchmarks/history.jsonl").open("a") as history:
                    history.write(json.dumps(report_page.summary(report, name)) + "\n")
        finally:
            shutil.rmtree(work, ignore_errors=True)
    report_page.write(report, options.out)
    if options.out == ROOT / "docs" and options.profile != "tiny":
        report_page.write_readme(report, ROOT / "README.md")
    plotted = True
    if not options.without_plots:  # With Debian's Python, for which matplotlib is installed.
        plotted = subprocess.run(["/usr/bin/python3", ROOT / "bench/report_plots.py", raw, options.out / "benchmarks"], check=False).returncode == 0
    failed = [f"{name}: {row['what']} ({row['server']}): {row['failed']}" for name, entry in report["sections"].items() for row in entry["rows"] if "failed" in row]
    failed += [f"{name}: {entry['failed']}" for name, entry in report["sections"].items() if "failed" in entry]
    print(f"wrote {options.out / 'benchmarks.md'}" + ("; failed:\n  " + "\n  ".join(failed) if failed else ""))
    sys.exit(0 if plotted else 1)


if __name__ == "__main__":
    main()

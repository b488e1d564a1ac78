#!/usr/bin/env python3
"""commands_test.py HOLDFAST: the command line against Holdfast and, if available, against kube-apiserver and compared with
kubectl of the same version."""
import base64
import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "client"))
from check import check, finish
from peer import Peer
from server import Server
import needs

HOLDFAST = sys.argv[1]
PEER = needs.peer("kube-apiserver", "etcd")
SAME_KUBECTL = needs.peer("kubectl") and str(needs.peer("kubectl") / "kubectl")  # Its output is compared.
KUBECTL = needs.kubectl()


class Shell:
    """Runs commands with the server's kubeconfig."""

    def __init__(self, kubeconfig, folder):
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, KUBECONFIG=str(kubeconfig), HOME=str(folder), KUBECACHEDIR=str(self.folder / "cache"))

    def run(self, *arguments, program=HOLDFAST, stdin=None):
        """-> (exit status, standard output, standard error)"""
        done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, env=self.environment, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def out(self, *arguments, stdin=None):
        status, out, err = self.run(*arguments, stdin=stdin)
        if status != 0:
            raise AssertionError(f"{' '.join(arguments)}: {status} {err}")
        return out

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)


def configmap(name, data, more=""):
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{more}data:\n{lines}"


DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: nginx, ports: [{containerPort: 80}]}
"""

# One object of each of thirty kinds, in addition to the built-in ones.
OBJECTS = [
    ("v1", "Namespace", {}), ("v1", "ConfigMap", {"data": {"a": "b"}}), ("v1", "Secret", {"stringData": {"a": "b"}}),
    ("v1", "ServiceAccount", {}), ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}), ("v1", "Endpoints", {}),
    ("v1", "LimitRange", {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}}),
    ("v1", "ResourceQuota", {"spec": {"hard": {"pods": "10"}}}),
    ("v1", "PersistentVolume", {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}),
    ("v1", "PersistentVolumeClaim", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    ("v1", "ReplicationController", {"spec": {"selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    ("v1", "PodTemplate", {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}),
    ("v1", "Node", {}),
    ("apps/v1", "ReplicaSet", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    ("apps/v1", "StatefulSet", {"spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    ("apps/v1", "DaemonSet", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    ("apps/v1", "Deployment", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    ("batch/v1", "Job", {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}),
    ("batch/v1", "CronJob", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}}),
    ("autoscaling/v2", "HorizontalPodAutoscaler", {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
    ("policy/v1", "PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
    ("networking.k8s.io/v1", "Ingress", {"spec": {"rules": [{"host": "a.io", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
    ("networking.k8s.io/v1", "IngressClass", {"spec": {"controller": "a.io/c"}}),
    ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"podSelector": {}}}),
    ("rbac.authorization.k8s.io/v1", "Role", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "thing"}, "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]}),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", {"rules": []}),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "thing"}}),
    ("storage.k8s.io/v1", "StorageClass", {"provisioner": "a.io/p"}),
    ("scheduling.k8s.io/v1", "PriorityClass", {"value": 10}),
    ("coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "h"}}),
    ("discovery.k8s.io/v1", "EndpointSlice", {"addressType": "IPv4", "endpoints": []}),
]


def beside_kubectl(shell):
    """The same tables, YAML, JSON and exit codes. Intentional differences are not compared: messages on standard error (ours
    name file, line and document), ages, and the header of diffs (kubectl names temporary files)."""
    if SAME_KUBECTL is None:
        needs.skip_part("comparison with kubectl", "no kubectl 1.36")
        return
    objects = [{"apiVersion": api_version, "kind": kind, "metadata": {"name": "thing"}, **more} for api_version, kind, more in OBJECTS]
    many = shell.file("many.yaml", "---\n".join(json.dumps(one) + "\n" for one in objects))
    status, out, err = shell.run("apply", "-f", many)
    check(status == 0, f"{len(objects)} kinds are applied: {err}")
    ages = lambda text: re.sub(r"\b(\d+[smhd])+\b", "AGE", re.sub(r" +", " ", text))
    same = lambda *arguments: compare(shell, arguments, lambda text: text)
    aged = lambda *arguments: compare(shell, arguments, ages)
    kinds = [f"{kind.lower()}{'.' + version.split('/')[0] if '/' in version else ''}" for version, kind, _ in OBJECTS]
    for kind in kinds:
        aged("get", kind)
        aged("get", kind, "-o", "wide", "-A")
        same("get", kind, "thing", "-o", "yaml")
    for form in ("yaml", "json", "name", "custom-columns=NAME:.metadata.name,LABELS:.metadata.labels,NONE:.x.y",
                 'jsonpath={range .items[*]}{.metadata.name}{"\\t"}{.metadata.uid}{"\\n"}{end}'):
        same("get", "configmaps,namespaces", "-o", form)
    for arguments in (("get", "all"), ("get", "ns", "-L", "kubernetes.io/metadata.name", "--show-labels"), ("get", "ns", "--no-headers"),
                      ("get", "deployment.apps/thing", "ns/default"), ("get", "pods"), ("get", "pods", "-A"), ("get", "pods", "nope"),
                      ("get", "ns", "--sort-by=.metadata.name"), ("get", "deployments", "--sort-by", "{.spec.replicas}"),
                      ("get", "pv", "--sort-by=.spec.capacity.storage"), ("get", "pv", "--sort-by=.spec.nope"),
                      ("get", "deployment", "thing", "nope"), ("get", "nokind"), ("get", "-f", many), ("get", "pods", "nope", "--ignore-not-found")):
        aged(*arguments)
    for arguments in (("get", "deployment", "thing", "-o", "yaml", "--show-managed-fields"), ("get", "ns", "default", "-o", "jsonpath={.metadata.name}"),
                      ("get", "ns", "-o=name"), ("get", "--raw", "/version"), ("get", "cm", "-o", "yaml", "--sort-by=.metadata.uid"),
                      ("get", "cm", "-A", "-o", "name", "--sort-by=metadata.resourceVersion"),
                      ("get", "cm,ns", "-o", "name", "--sort-by=.metadata.uid"), ("get", "pv,pvc", "-o", "yaml", "--sort-by=.metadata.uid"), ("get", "cm,ns", "-o", "yaml", "--sort-by=.nope"),
                      ("get", "cm/thing", "ns/thing", "-o", "name", "--sort-by=.metadata.uid"), ("get", "ns", "-o", "nonsense"),
                      ("api-resources",), ("api-resources", "-o", "wide"), ("api-resources", "--namespaced=false", "-o", "name"),
                      ("api-resources", "--api-group=apps", "--no-headers"), ("api-resources", "--verbs=list,get", "--sort-by=kind"),
                      ("wait", "--for=jsonpath={.status.phase}=Active", "ns/thing"), ("wait", "--for=condition=Available", "deployment/thing", "--timeout=0s"),
                      ("wait", "--for=delete", "configmap/nope"), ("wait", "--for=create", "configmap/thing"), ("wait", "--for=condition=x", "configmap/nope")):
        same(*arguments)
    for path in ("pods.spec.containers", "pods.spec.restartPolicy", "pods.spec.nope", "configmaps.data", "hpa", "services.spec.ports", "crd.spec.versions"):
        same("explain", path, "--output=plaintext")
    for kind in kinds:
        same("explain", kind.split(".")[0], "--recursive", "--output=plaintext")
    # kubectl needs flags for server-side apply and its manager.
    manager = ("--server-side", "--field-manager=same")
    changed = shell.file("changed.yaml", configmap("thing", {"a": "c"}))
    for arguments in (("apply", "-f", many, "--server-side", "--field-manager=holdfast"), ("apply", "-f", changed, *manager),
                      ("apply", "-f", changed, *manager, "--force-conflicts", "--dry-run=server"),
                      ("apply", "-f", changed, *manager, "--force-conflicts", "--dry-run=server", "-o", "json"),
                      ("apply", "-f", many, "--server-side", "--field-manager=holdfast", "-o", "yaml"), ("apply", "-f", "/nonexistent.yaml", "--server-side")):
        same(*arguments)
    for one in objects:
        one["metadata"] = {"name": "thing", "labels": {"changed": "yes"}}
    labelled = shell.file("labelled.yaml", "---\n".join(json.dumps(one) + "\n" for one in objects))
    same("wait", "--for=jsonpath={.metadata.name}=thing", *(f"{kind}/thing" for kind in kinds))
    for file in (many, changed, labelled):
        ours = shell.run("diff", "-f", file, "--field-manager=holdfast")
        theirs = shell.run("diff", "-f", file, "--server-side", "--field-manager=holdfast", "--force-conflicts", program=SAME_KUBECTL)
        lines = lambda text: sorted(line.split("  # ")[0].rstrip() for line in text.splitlines() if re.match(r"[+-][^+-]", line))
        check(ours[0] == theirs[0] and lines(ours[1]) == lines(theirs[1]), f"diff -f {pathlib.Path(file).name}: {ours[0]} {theirs[0]}")
    same("apply", "-f", labelled, "--server-side", "--field-manager=holdfast")
    same("delete", "-f", many, "--dry-run=server")
    same("delete", "-f", many, "--dry-run=client")


def compare(shell, arguments, normal):
    theirs, ours = shell.run(*arguments, program=SAME_KUBECTL), shell.run(*arguments)
    what = "as kubectl: " + " ".join(pathlib.Path(a).name if a.startswith("/") else a for a in arguments)
    if ours[0] == theirs[0] and normal(ours[1]) == normal(theirs[1]):
        check(True, what)
    else:
        check(False, f"{what}\n  ours   {ours[0]} {ours[1]!r:.600} {ours[2]!r:.300}\n  theirs {theirs[0]} {theirs[1]!r:.600} {theirs[2]!r:.300}")


def conflicts(shell):
    red = shell.file("red.yaml", configmap("paint", {"color": "red", "size": "3"}))
    blue = shell.file("blue.yaml", "# a comment\n" + configmap("paint", {"color": "blue", "size": "4", "extra": "x"}))
    shell.out("apply", "-f", red, "--field-manager", "alice")
    status, out, err = shell.run("apply", "-f", blue, "--field-manager", "bob")
    check(status == 1 and "2 fields are owned by others" in err, "a conflict is an error")
    check(re.search(r"FIELD +YOURS +LIVE +OWNER +OPERATION +SINCE\n\.data\.color +blue +red +alice +Apply +\d+s\n\.data\.size +4 +3 +alice", err),
          f"with a table of fields, values and owners: {err}")
    check("blue.yaml:2 (document 1)" in err, "that names the manifest")
    status, out, err = shell.run("apply", "-f", blue, "--field-manager", "bob", "--force-fields", ".data.color")
    check(status == 1 and ".data.size" in err and ".data.color" not in err, "a taken field is not a conflict; the other one still is")
    check(json.loads(shell.out("get", "cm", "paint", "-o", "json"))["data"] == {"color": "red", "size": "3"}, "and nothing was changed")
    status, out, err = shell.run("apply", "-f", blue, "--field-manager", "bob", "--force-fields", ".data.color,data.size")
    check(status == 0 and "overrode .data.color of alice (Apply): red -> blue" in err, f"overridden fields are reported: {err}")
    status, out, err = shell.run("apply", "-f", red, "--field-manager", "alice", "--force-conflicts", "--show-foreign")
    check(status == 0 and "overrode .data.size of bob (Apply): 4 -> 3" in err and "foreign .data.extra of bob (Apply)" in err, f"so are fields of other managers: {err}")
    labels = shell.file("labels.yaml", configmap("paint", {"color": "red"}, '  labels: {app.kubernetes.io/name: x, app: "1"}\n'))
    shell.out("apply", "-f", labels, "--field-manager", "carol")
    other = shell.file("other.yaml", configmap("paint", {"color": "red"}, '  labels: {app.kubernetes.io/name: z}\n'))
    status, out, err = shell.run("apply", "-f", other, "--field-manager", "dave")
    check(re.search(r"\.metadata\.labels\.app\.kubernetes\.io/name +z +x +carol", err), f"keys with dots are found: {err}")
    status, out, err = shell.run("diff", "-f", other, "--field-manager", "dave")
    check(status == 1 and re.search(r"-    app\.kubernetes\.io/name: x +# carol \(Apply", out) and re.search(r"\+    app\.kubernetes\.io/name: z +# dave \(Apply", out),
          f"diff names the owners: {out}")


def manifests(shell):
    bad = shell.file("bad.yaml", configmap("one", {"a": "b"}) + "---\n# second\n" + configmap("two", {"a": "b"}) + "  - x\n")
    status, out, err = shell.run("apply", "-f", bad)
    check(status == 1 and re.search(r"bad\.yaml:\d+ \(document 2\)", err), f"errors name file, line and document: {err}")
    typo = shell.file("typo.yaml", configmap("one", {"a": "b"}) + "---\n" + configmap("two", {"a": "b"}).replace("\ndata:", "\ndatta:"))
    status, out, err = shell.run("apply", "-f", typo)
    check(status == 1 and "typo.yaml:8 (document 2)" in err and "datta" in err and "configmap/one" in out, f"so do errors from the server: {err}")
    shell.out("delete", "configmap", "one")
    shell.file("folder/a.yaml", configmap("from-a", {"a": "b"}))
    shell.file("folder/below/b.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n}} for n in ("l1", "l2")]}))
    shell.file("folder/notes.txt", "not a manifest")
    out = shell.out("apply", "-f", str(shell.folder / "folder"))
    check(out == "configmap/from-a serverside-applied\n", f"a directory: {out}")
    out = shell.out("apply", "-R", "-f", str(shell.folder / "folder"))
    check(out.split() == "configmap/from-a serverside-applied configmap/l1 serverside-applied configmap/l2 serverside-applied".split(), f"its subdirectories, and Lists: {out}")
    status, out, err = shell.run("apply", "-f", "-", stdin=configmap("from-stdin", {"a": "b"}))
    check(out == "configmap/from-stdin serverside-applied\n", "standard input")
    status, out, err = shell.run("apply", "-f", "-", stdin="apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x}\n")
    check(status == 1 and "<stdin>:1" in err and "CustomResourceDefinition" in err, f"an unknown kind: {err}")


def apply_sets(shell):
    """apply --prune deletes objects that are no longer applied, and nothing else."""
    both = shell.file("set/both.yaml", configmap("one", {"a": "1"}) + "---\n" + configmap("two", {"a": "2"}) + "---\n"
                      + configmap("far", {"a": "3"}).replace("  name: far\n", "  name: far\n  namespace: kube-public\n"))
    first = shell.file("set/first.yaml", configmap("one", {"a": "1"}))
    prune = lambda file, *flags: shell.run("apply", "-f", file, "--prune", "--applyset", "shop", *flags)
    names = lambda *flags: set(shell.out("get", "cm", "-o", "name", "-l", "applyset.kubernetes.io/part-of", *flags).split())
    parent = lambda: json.loads(shell.out("get", "secret", "shop", "-o", "json"))["metadata"]
    status, out, err = prune(both)
    check(status == 0 and out == "".join(f"configmap/{name} serverside-applied\n" for name in ("one", "two", "far")), f"a set is applied: {out}{err}")
    id = parent()["labels"]["applyset.kubernetes.io/id"]
    marks = {key.split("/")[1]: value for key, value in parent()["annotations"].items()}
    check(id == "applyset-deGdy9cO9XA_cS6jkZBQNNHCB9v4eVtcTMJd6JKtoOg-v1" and marks["contains-group-kinds"] == "ConfigMap"
          and marks["additional-namespaces"] == "kube-public" and marks["tooling"].startswith("holdfast/"), f"its parent is labelled: {id} {marks}")
    check(json.loads(shell.out("get", "cm", "one", "-o", "json"))["metadata"]["labels"] == {"applyset.kubernetes.io/part-of": id}, "and so are its members")
    status, out, err = prune(first, "--dry-run=server")
    check(status == 0 and sorted(out.splitlines()) == ["configmap/far pruned (server dry run)", "configmap/one serverside-applied (server dry run)",
                                                       "configmap/two pruned (server dry run)"], f"a dry run lists what is pruned: {out}{err}")
    check(prune(first, "--dry-run=client")[1].count("pruned (dry run)") == 2, "also without the server")
    check(len(names("-A")) == 3 and parent()["annotations"]["applyset.kubernetes.io/additional-namespaces"] == "kube-public", "and changes nothing")
    bad = shell.file("set/bad.yaml", configmap("one", {"a": "1"}) + "---\n" + configmap("x_y", {"a": "1"}))
    status, out, err = prune(bad)
    check(status == 1 and "Nothing was pruned" in err and len(names("-A")) == 3, f"nothing is pruned if not everything was applied: {err}")
    shell.out("apply", "-f", "-", stdin=configmap("stranger", {"a": "1"}))
    status, out, err = prune(first)
    check(status == 0 and sorted(out.splitlines())[::2] == ["configmap/far pruned", "configmap/two pruned"] and names("-A") == {"configmap/one"}, f"members that are no longer applied are deleted: {out}{err}")
    check(parent()["annotations"]["applyset.kubernetes.io/additional-namespaces"] == "", "and the set drops their namespace")
    check(shell.run("get", "cm", "stranger")[0] == 0, "objects outside the set are kept")
    adopted = shell.file("set/adopted.yaml", configmap("one", {"a": "1"}) + "---\n" + configmap("stranger", {"a": "1"}))
    status, out, err = prune(adopted)
    check(status == 1 and "configmap/stranger" in err and "--adopt" in err and out == "", f"an existing object is not adopted: {err}")
    check(prune(adopted, "--adopt")[0] == 0 and names() == {"configmap/one", "configmap/stranger"}, "unless --adopt is given")
    status, out, err = shell.run("apply", "-f", first, "--prune", "--applyset", "configmaps/other", "--adopt")
    check(status == 1 and "another apply set" in err and shell.run("get", "cm", "other")[0] == 1, f"an object of another set is rejected: {err}")
    status, out, err = shell.run("apply", "-f", first, "--prune", "--applyset", "configmaps/stranger")
    check(status == 1 and "not an apply set" in err, f"so is an object that is not a parent: {err}")
    check(shell.run("apply", "-f", first, "--prune")[0] == 1 and shell.run("apply", "-f", first, "--applyset", "shop")[0] == 1, "--prune and --applyset require each other")
    status, out, err = shell.run("apply", "-f", first, "--prune", "--applyset", "deployments/x")
    check(status == 1 and "parent of an apply set" in err, f"not every kind can be a parent: {err}")
    if KUBECTL is None:
        return
    kubectl = Shell(shell.environment["KUBECONFIG"], shell.folder)
    kubectl.environment["KUBECTL_APPLYSET"] = "true"
    theirs = shell.file("set/theirs.yaml", configmap("theirs-1", {"a": "1"}) + "---\n" + configmap("theirs-2", {"a": "1"}))
    status, out, err = kubectl.run("apply", "--server-side", "-f", theirs, "--prune", "--applyset", "theirs", "-n", "default", program=KUBECTL)
    check(status == 0, f"a set managed by kubectl: {err}")
    rest = shell.file("set/rest.yaml", configmap("theirs-1", {"a": "1"}))
    status, out, err = shell.run("apply", "-f", rest, "--prune", "--applyset", "theirs")
    check(status == 1 and "managed by kubectl" in err, f"is rejected: {err}")
    status, out, err = shell.run("apply", "-f", rest, "--prune", "--applyset", "theirs", "--adopt")
    check(status == 0 and "configmap/theirs-2 pruned" in out, f"unless it is adopted: {out}{err}")
    status, out, err = kubectl.run("apply", "--server-side", "-f", rest, "--prune", "--applyset", "theirs", "-n", "default", program=KUBECTL)
    check(status == 1 and 'managed by tooling "holdfast"' in err, f"which kubectl respects: {err}")


class Files(http.server.BaseHTTPRequestHandler):
    """Serves manifests at URLs: /NAME.yaml, and /moved, which redirects there."""

    def do_GET(self):
        moved = {"/moved": "/a/b.yaml?x=1", "/a/relative": "b.yaml", "/loop": "/loop"}.get(self.path)
        found = self.path == "/a/b.yaml?x=1" or self.path == "/a/b.yaml"
        body = configmap("from-url", {"path": self.path}).encode() if found else b""
        self.send_response(302 if moved else 200 if found else 404)
        if moved:
            self.send_header("Location", moved)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self):
        """Acts as a proxy that serves every target itself. The tunnel ends with the first response."""
        self.proxied.append((self.path, self.headers.get("Proxy-Authorization")))
        self.send_response(200)
        self.end_headers()
        self.handle_one_request()
        self.close_connection = True

    proxied = []

    def log_message(self, *_):
        pass


def sources(shell):
    """-f URL and -k DIRECTORY."""
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=files.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{files.server_port}"
    for path, end in (("/a/b.yaml", "/a/b.yaml"), ("/moved", "/a/b.yaml?x=1"), ("/a/relative", "/a/b.yaml")):
        out = shell.out("apply", "-f", url + path)
        check(out == "configmap/from-url serverside-applied\n" and json.loads(shell.out("get", "-f", url + path, "-o", "json"))["data"] == {"path": end}, f"-f {path}")
    proxied = Shell(shell.environment["KUBECONFIG"], shell.folder)
    proxied.environment["HTTP_PROXY"] = f"http://me:secret@127.0.0.1:{files.server_port}"
    Files.proxied.clear()
    status, out, err = proxied.run("apply", "-f", "http://manifests.example.com/a/b.yaml")
    check(status == 0 and Files.proxied == [("manifests.example.com:80", "Basic bWU6c2VjcmV0")], f"through a proxy: {err} {Files.proxied}")
    status, out, err = proxied.run("apply", "-f", url + "/a/b.yaml")
    check(status == 0 and len(Files.proxied) == 1, "but not for local addresses")
    for path, why in (("/nothing", "404"), ("/loop", "redirects")):
        status, out, err = shell.run("apply", "-f", url + path)
        check(status == 1 and path in err and why in err, f"a URL that fails: {err}")
    files.shutdown()
    shell.file("overlay/base.yaml", configmap("settings", {"color": "red"}))
    shell.file("overlay/kustomization.yaml", "resources: [base.yaml]\nnamePrefix: prod-\n")
    folder = str(shell.folder / "overlay")
    lonely = Shell(shell.environment["KUBECONFIG"], shell.folder)
    lonely.environment["PATH"] = str(shell.folder / "nowhere")
    status, out, err = lonely.run("apply", "-k", folder)
    check(status == 1 and "kustomize or kubectl" in err, f"-k without kustomize: {err}")
    if KUBECTL is None:
        needs.skip_part("-k", needs.NO_KUBECTL)
        return
    lonely.environment["PATH"] = str(pathlib.Path(KUBECTL).parent)
    out = lonely.out("apply", "-k", folder)
    check(out == "configmap/prod-settings serverside-applied\n", f"-k: {out}")
    status, out, err = lonely.run("apply", "-k", str(shell.folder / "nowhere"))
    check(status == 1 and "nowhere" in err, f"a directory without a kustomization: {err}")
    check(lonely.run("delete", "-k", folder)[0] == 0, "delete -k")


def declared_manager(shell):
    """Actors in a Git repository, and a kustomize overlay that adds the option to its output."""
    managers = lambda name: {(e["manager"], e["operation"]) for e in json.loads(shell.out("get", "cm", name, "-o", "json", "--show-managed-fields"))["metadata"]["managedFields"]}
    signed = configmap("signed", {"a": "b"}, "  options: {fieldManager: git-actor}\n")
    shell.out("apply", "-f", "-", stdin=signed)
    check(managers("signed") == {("git-actor", "Apply")}, "a manifest is applied as the manager it declares")
    both = signed + "---\n" + configmap("plain", {"a": "b"}) + "---\n" + configmap("second", {"a": "b"}, "  options: {fieldManager: other-actor}\n")
    shell.out("apply", "-f", "-", stdin=both)
    check(managers("plain") == {("holdfast", "Apply")} and managers("second") == {("other-actor", "Apply")}, "each document of a file as its own manager")
    status, out, err = shell.run("apply", "-f", "-", "--field-manager", "me", stdin=signed)
    check(status == 1 and "fieldManager" in err, f"another manager on the command line is rejected: {err}")
    shell.out("create", "-f", "-", stdin=configmap("made", {"a": "b"}, "  options: {fieldManager: maker}\n"))
    check(managers("made") == {("maker", "Update")}, "create respects it too")

    # A repository with a directory for each actor.
    actor = lambda name, data: shell.file(f"repository/{name}/story.yaml", configmap("story", data, f"  options: {{fieldManager: {name}}}\n"))
    actor("team-a", {"color": "red", "old": "x"})
    actor("platform", {"size": "3"})
    repository = str(shell.folder / "repository")
    shell.out("apply", "-R", "-f", repository)
    check(managers("story") == {("team-a", "Apply"), ("platform", "Apply")}, "each actor owns the fields of its directory")
    actor("team-a", {"color": "red"})
    shell.out("apply", "-R", "-f", repository)
    check(json.loads(shell.out("get", "cm", "story", "-o", "json"))["data"] == {"color": "red", "size": "3"}, "fields given up are removed; those of others are kept")
    actor("platform", {"size": "3", "color": "blue"})
    status, out, err = shell.run("apply", "-R", "-f", repository)
    check(status == 1 and re.search(r"platform/story\.yaml", err) and re.search(r"\.data\.color +blue +red +team-a", err), f"actors that disagree: {err}")

    if KUBECTL is None:
        needs.skip_part("declared managers with kubectl", needs.NO_KUBECTL)
        return
    # An overlay that adds the option to its output.
    shell.file("signed/base/kustomization.yaml", "resources: [a.yaml]\n")
    shell.file("signed/base/a.yaml", configmap("built", {"a": "b"}))
    shell.file("signed/prod/kustomization.yaml", 'resources: [../base]\nnamePrefix: prod-\npatches:\n- target: {kind: ".*"}\n  patch: |-\n    - op: add\n      path: /metadata/options\n      value: {fieldManager: overlay-prod}\n')
    prod = str(shell.folder / "signed/prod")
    with_kubectl = Shell(shell.environment["KUBECONFIG"], shell.folder)
    with_kubectl.environment["PATH"] = f"{pathlib.Path(KUBECTL).parent}:{os.environ['PATH']}"
    with_kubectl.out("apply", "-k", prod)
    check(managers("prod-built") == {("overlay-prod", "Apply")}, "an overlay that adds the option to its output")
    # Requirements of stock kubectl: docs/declared-manager.md.
    kubectl = lambda *arguments, stdin=None: shell.run(*arguments, program=KUBECTL, stdin=stdin)
    status, out, err = kubectl("apply", "--server-side", "-k", prod)
    check(status == 1 and "fieldManager" in err, f"kubectl sends its own name, which is rejected: {err}")
    status, out, err = kubectl("apply", "--server-side", "--field-manager", "overlay-prod", "-k", prod)
    check(status == 0 and managers("prod-built") == {("overlay-prod", "Apply")}, f"with --field-manager it applies as the declared manager: {err}")
    status, out, err = kubectl("create", "-f", "-", stdin=configmap("by-kubectl", {"a": "b"}, "  options: {fieldManager: kubectl-create}\n"))
    check(status == 0 and managers("by-kubectl") == {("kubectl-create", "Update")}, f"kubectl create with its own name: {err}")
    status, out, err = kubectl("create", "-f", "-", stdin=configmap("not-by-kubectl", {"a": "b"}, "  options: {fieldManager: me}\n"))
    check(status == 1 and "fieldManager" in err, f"but not with another name: {err}")


def ownership(shell):
    shell.out("apply", "-f", shell.file("web.yaml", DEPLOYMENT), "--field-manager", "alice")
    text = shell.out("blame", "deployment", "web")
    check(re.search(r"replicas: 3 +# alice \(Apply, 20", text) and re.search(r"revisionHistoryLimit: 10 +# unowned", text), "blame")
    yaml = shell.out("get", "deployment", "web", "-o", "yaml", "--show-managed-fields")
    check(shell.out("blame", "-f", "-", stdin=yaml) == text, "from standard input")
    check(json.loads(shell.out("blame", "deployment", "web", "-o", "json"))["managers"][0]["manager"] == "alice", "as JSON")
    owned = shell.out("get", "deployment", "web", "-o", "json", "--owned-by", "alice")
    check(json.loads(owned)["spec"]["replicas"] == 3 and "revisionHistoryLimit" not in json.loads(owned)["spec"], "get --owned-by")
    check(shell.out("get", "deployments", "-o", "name", "--owned-by", "nobody") == "", "for a manager that owns nothing")
    entries = lambda *flags: json.loads(shell.out("get", "deployment", "web", "-o", "json", *flags))["metadata"].get("managedFields")
    check(entries() is None and entries("--show-managed-fields=none") is None, "managedFields are omitted")
    check(entries("--show-managed-fields=v1") == entries("--show-managed-fields") == entries("--show-managed-fields="), "all of them, as FieldsV1")
    check(all(e["fieldsType"] == "FieldsV2" and "fieldsV1" not in e for e in entries("--show-managed-fields=v2")), "as FieldsV2")
    status, out, err = shell.run("get", "deployment", "web", "--show-managed-fields=v3")
    check(status == 1 and "v3" in err, "another value is an error")
    path = shell.out("get", "deployment", "web", "-o", "jsonpath={.metadata.managedFields[0].manager}")
    check(path == "alice", "they are available to templates that read them")


WIDGETS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.shapes.io"}, "spec": {
    "group": "shapes.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{
        "name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "config": {"type": "object", "properties": {"mode": {"type": "string", "default": "fast"}}},
                "steps": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
                "groups": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                    "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}, "ports": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {
                            "type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "title": {"type": "string"},
                                                                                   "protocol": {"type": "string", "default": "TCP"}}}}}}}}}}}}}]}}


def owners_of(shell, kind, name):
    """-> {path: ["alice Apply", "keeper Apply/status"]}"""
    blame = json.loads(shell.out("blame", kind, name, "-o", "json"))
    entries = [f"{m['manager']} {m['operation']}" + (f"/{m['subresource']}" if "subresource" in m else "") for m in blame["managers"]]
    return {field["path"]: sorted(entries[position] for position in field.get("owners", [])) for field in blame["fields"]}


def hard_shapes(shell):
    """Nested keyed lists, sets, atomic lists, co-owners, subresources, a manager with Apply and Update entries: for a custom
    resource and for built-in ones."""
    shell.out("apply", "-f", "-", stdin=json.dumps(WIDGETS))
    shell.out("wait", "--for=condition=Established", "crd/widgets.shapes.io")
    widget = lambda **spec: json.dumps({"apiVersion": "shapes.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
    apply = lambda manager, text, *flags: shell.out("apply", "-f", "-", "--field-manager", manager, *flags, stdin=text)
    apply("alice", widget(tags=["x", "both"], steps=["one", "two"], config={}, groups=[{"name": "g", "ports": [{"port": 80, "title": "web"}]}]))
    apply("bob", widget(tags=["y", "both"], groups=[{"name": "g", "size": 3, "ports": [{"port": 443}, {"port": 80, "protocol": "UDP"}]}, {"name": "h"}]))
    apply("keeper", json.dumps({"apiVersion": "shapes.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "status": {"phase": "Ready"}}), "--subresource", "status")
    done = subprocess.run([HOLDFAST, "edit", "widget", "w", "--field-manager", "alice"], capture_output=True, text=True,
                          env=dict(shell.environment, KUBE_EDITOR="sed -i 's/size: 3/size: 4/'"))
    check(done.returncode == 0, f"a manager that applies and updates: {done.stderr}")
    owners = owners_of(shell, "widget", "w")
    want = {'.spec.tags[="x"]': ["alice Apply"], '.spec.tags[="y"]': ["bob Apply"], '.spec.tags[="both"]': ["alice Apply", "bob Apply"], ".spec.steps": ["alice Apply"], ".spec.config": ["alice Apply"], ".spec.config.mode": [],
            '.spec.groups[name="g"].name': ["alice Apply", "bob Apply"], '.spec.groups[name="g"].size': ["alice Update"], '.spec.groups[name="h"].name': ["bob Apply"],
            '.spec.groups[name="g"].ports[port=80,protocol="TCP"].title': ["alice Apply"], '.spec.groups[name="g"].ports[port=443,protocol="TCP"].port': ["bob Apply"],
            '.spec.groups[name="g"].ports[port=80,protocol="UDP"].port': ["bob Apply"], ".status.phase": ["keeper Apply/status"]}
    for path, who in want.items():
        check(owners.get(path) == who, f"blame of {path}: {who}" + ("" if owners.get(path) == who else f", not {owners.get(path)} of {owners}"))
    shown = shell.out("blame", "widget", "w")
    check(re.search(r"^  - both +# alice \(Apply, \S+\), bob \(Apply, \S+\)$", shown, re.M) and re.search(r"phase: Ready +# keeper \(Apply, status, ", shown),
          f"as YAML: {shown}")
    # For a file, the CRD comes from the server, from --crds, or from the same file; without one, list types are inferred
    # from the owners.
    saved, definition = shell.file("w.yaml", shell.out("get", "widget", "w", "-o", "yaml", "--show-managed-fields")), shell.file("shapes-crds/w.yaml", json.dumps(WIDGETS))
    lonely = Shell(shell.folder / "none", shell.folder)
    check(shell.out("blame", "-f", saved) == shown, "a file, with the CRD from the server")
    check(lonely.out("blame", "-f", saved, "--crds", str(shell.folder / "shapes-crds")) == shown, "with a CRD from --crds")
    check(lonely.out("blame", "-f", saved, "-f", definition).startswith(shown), "with a CRD in the same file")
    status, out, err = lonely.run("blame", "-f", saved)
    check(status == 0 and re.search(r"phase: Ready +# keeper \(Apply, status, ", out), f"without a CRD: {err}")

    entries = lambda: {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in json.loads(
        shell.out("get", "widget", "w", "-o", "json", "--show-managed-fields"))["metadata"]["managedFields"]}
    before = json.loads(shell.out("get", "widget", "w", "-o", "json"))
    dry = shell.out("migrate", "widget", "w", "--from", "alice,bob", "--to", "team", "--dry-run")
    check("(stuck" in next(line for line in dry.splitlines() if ".size" in line), f"fields owned only by an Update are stuck: {dry}")
    out = shell.out("migrate", "widget", "w", "--from", "alice,bob", "--to", "team", "--undo-file", str(shell.folder / "shapes.jsonl"))
    check(dry.splitlines()[:-1] == out.splitlines()[:-2], f"the dry run matches the result: {out}")
    after = entries()
    check(set(after) == {("team", "Apply", ""), ("keeper", "Apply", "status")}, f"two managers and three entries become one; that of the subresource is kept: {set(after)}")
    group = after[("team", "Apply", "")]["f:spec"]["f:groups"]['k:{"name":"g"}']
    check(set(group["f:ports"]) == {'k:{"port":80,"protocol":"TCP"}', 'k:{"port":443,"protocol":"TCP"}', 'k:{"port":80,"protocol":"UDP"}'} and "f:size" in group
          and set(after[("team", "Apply", "")]["f:spec"]["f:tags"]) == {'v:"x"', 'v:"y"', 'v:"both"'}, f"with all their fields: {group}")
    now = json.loads(shell.out("get", "widget", "w", "-o", "json"))
    check(now["spec"] == before["spec"] and now["status"] == before["status"], "and values do not change")
    apply("team", widget(tags=["x"], groups=[{"name": "g", "ports": [{"port": 80}]}]))
    left = json.loads(shell.out("get", "widget", "w", "-o", "json"))["spec"]
    check(left == {"tags": ["x"], "groups": [{"name": "g", "ports": [{"port": 80, "protocol": "TCP"}]}]}, f"the new manager can remove all of them: {left}")

    pod = lambda *containers: json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shapes", "finalizers": [f"{containers[0]['name']}.io/f"]}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers)}}}})
    apply("alice", pod({"name": "web", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}))
    apply("bob", pod({"name": "web", "image": "i", "ports": [{"containerPort": 80, "protocol": "UDP"}], "env": [{"name": "B", "value": "2"}]}, {"name": "side", "image": "s"}))
    fields = owners_of(shell, "deployment", "shapes")
    container = '.spec.template.spec.containers[name="web"]'
    for path, who in {container + ".image": ["alice Apply", "bob Apply"], container + '.env[name="A"].value': ["alice Apply"], container + '.env[name="B"].value': ["bob Apply"],
                      container + '.ports[containerPort=80,protocol="TCP"].containerPort': ["alice Apply"], container + '.ports[containerPort=80,protocol="UDP"].containerPort': ["bob Apply"],
                      '.spec.template.spec.containers[name="side"].image': ["bob Apply"], container + ".imagePullPolicy": [], '.metadata.finalizers[="web.io/f"]': ["alice Apply", "bob Apply"]}.items():
        check(fields.get(path) == who, f"blame of {path}: {who}" + ("" if fields.get(path) == who else f", not {fields.get(path)} of {fields}"))
    apply("alice", json.dumps(dict(json.loads(pod({"name": "web", "image": "i"})), metadata={"name": "shapes"})))
    apply("bob", json.dumps(dict(json.loads(pod({"name": "web", "image": "i"})), metadata={"name": "shapes"})))


def migrate(shell):
    """Migration from client-side apply, with the annotation and Update entry left by kubectl."""
    record = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}, "data": {"a": "1", "b": "2"}})
    old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": record}}, "data": {"a": "1", "b": "2"}}
    shell.out("create", "-f", "-", "--field-manager", "kubectl-client-side-apply", stdin=json.dumps(old))
    new = configmap("old", {"a": "1"})
    shell.out("apply", "-f", "-", "--field-manager", "kubectl", stdin=new)
    live = lambda: json.loads(shell.out("get", "cm", "old", "-o", "json", "--show-managed-fields"))
    before = live()
    check(before["data"] == {"a": "1", "b": "2"}, "fields of client-side apply are stuck")
    dry = shell.out("migrate", "cm", "old", "--client-side", "--dry-run")
    check(live() == before and ".data.b  (stuck" in dry and "1 of 1 objects would change" in dry, f"a dry run changes nothing: {dry}")
    undo = str(shell.folder / "undo.jsonl")
    out = shell.out("migrate", "cm", "old", "--client-side", "--undo-file", undo)
    check(dry.splitlines()[:-1] == out.splitlines()[:-2], f"and reports exactly what happens: {out}")
    after = live()
    check([(e["manager"], e["operation"]) for e in after["metadata"]["managedFields"]] == [("kubectl", "Apply")], f"one entry is left: {after['metadata']['managedFields']}")
    check(after["data"] == before["data"] and "annotations" not in after["metadata"], "values are kept, the annotation is removed")
    check("as it was" in shell.out("migrate", "--undo", undo), "undo")
    back = live()
    check([e["fieldsV1"] for e in back["metadata"]["managedFields"]] == [e["fieldsV1"] for e in before["metadata"]["managedFields"]] and back["metadata"]["annotations"] == before["metadata"]["annotations"],
          "restores entries and annotation")
    status, out, err = shell.run("migrate", "--undo", undo)
    check(status == 1 and "written since" in err, f"but only once: {err}")
    shell.out("migrate", "cm", "old", "--client-side", "--undo-file", undo)
    shell.out("apply", "-f", "-", "--field-manager", "kubectl", stdin=new)
    check(live()["data"] == {"a": "1"}, "now an apply removes omitted fields")


def lifecycle(shell):
    check(shell.out("create", "-f", shell.file("c.yaml", configmap("gone", {"a": "b"}))) == "configmap/gone created\n", "create")
    status, out, err = shell.run("create", "-f", str(shell.folder / "c.yaml"))
    check(status == 1 and "c.yaml:1" in err and "already exists" in err, "create again")
    watch = subprocess.Popen([HOLDFAST, "get", "cm", "gone", "-w", "--output-watch-events"], stdout=subprocess.PIPE, text=True, env=shell.environment)
    check(watch.stdout.readline().split() == ["EVENT", "NAME", "DATA", "AGE"] and watch.stdout.readline().startswith("ADDED"), "get -w shows existing objects")
    check(shell.out("delete", "cm", "gone") == 'configmap "gone" deleted from default namespace\n', "delete")
    check(watch.stdout.readline().startswith("DELETED   gone"), "and changes")
    watch.kill()
    watch.wait()
    out = shell.out("top", "ownership", "configmaps")
    check(re.search(r"^configmaps +\d+ +\d+(Ki)? +\d+(Ki)? +\d+%$", out, re.M) and re.search(r"^alice +\d+", out, re.M) and "opts out" in out, f"top ownership: {out}")
    out = shell.out("describe", "deployment", "web")
    check(re.search(r"^Name: +web$", out, re.M) and re.search(r"^  alice +Apply", out, re.M) and "Events:" in out, f"describe: {out}")
    edit = lambda command: subprocess.run([HOLDFAST, "edit", "deployment", "web"], capture_output=True, text=True, env=dict(shell.environment, KUBE_EDITOR=command))
    done = edit("sed -i 's/replicas: 3/replicas: 4/'")
    check(done.stdout == "deployment.apps/web edited\n" and shell.out("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "4", f"edit: {done.stderr}")
    done = edit("true")
    check(done.returncode == 0 and "cancelled" in done.stdout, "edit without a change")
    done = edit("sed -i 's/replicas: 4/replicas: -4/'")
    check(done.returncode == 1 and "greater than or equal to 0" in done.stderr, f"edit that the server rejects: {done.stderr}")
    done = edit("false")
    check(done.returncode == 1 and "KUBE_EDITOR" in done.stderr, "an editor that fails")
    words = lambda *given: shell.out("__complete", *given).split()
    check(words("ap") == ["api-resources", "apply", "applygen"] and "deployments" in words("get", "dep") and words("get", "deploy", "w") == ["web"] and "web" in words("get", "-n", "default", "deploy", "")
          and words("apply", "--force-f") == ["--force-fields"], "completion of commands, flags, kinds and names")
    shell.out("apply", "-n", "kube-public", "-f", "-", stdin=configmap("elsewhere", {"a": "b"}))
    check(words("get", "-n", "kube-public", "cm", "else") == ["elsewhere"] and words("-n=kube-public", "get", "cm", "else") == ["elsewhere"] and words("get", "cm", "else") == []
          and "cm/from-a" in words("delete", "cm/from") and "pods,deployments" in words("get", "pods,dep") and words("get", "-n", "kube-s") == ["kube-system"]
          and words("-n", "kube-s") == ["kube-system"] and words("get", "pods", "-o", "y") == ["yaml"] and words("explain", "deployments") == ["deployments"]
          and words("apply", "-f", "") == [] and words("top", "o") == ["ownership"], "in the given namespace; of several kinds; of flag values")
    as_shells = {"zsh": 'compdef() { :; }; compadd() { shift; print -- $*; }; source <(holdfast completion zsh); words=(holdfast get deploy w) CURRENT=4; _holdfast',
                 "fish": 'holdfast completion fish | source; complete -C "holdfast get deploy w"'}
    for name, script in as_shells.items():
        check("holdfast __complete" in shell.out("completion", name), f"completion for {name}")
        if shutil.which(name) is None:
            needs.skip_part(f"completion in {name}", f"{name} is not installed")
            continue
        done = subprocess.run([name, "-c", script], capture_output=True, text=True, env=dict(shell.environment, PATH=f"{pathlib.Path(HOLDFAST).resolve().parent}:{os.environ['PATH']}"))
        check(done.stdout == "web\n", f"as called by {name}: {done.stdout} {done.stderr}")
    done = subprocess.run(["bash", "-c", 'source <("$0" completion bash); COMP_WORDS=(holdfast get deploy w) COMP_CWORD=3; PATH=$(dirname $0):$PATH; _holdfast; echo $COMPREPLY', HOLDFAST],
                          capture_output=True, text=True, env=shell.environment)
    check(done.stdout == "web\n" or pathlib.Path(HOLDFAST).name != "holdfast", f"as called by bash: {done.stdout} {done.stderr}")
    shell.out("man", str(shell.folder / "man"))
    pages = {page.name for page in (shell.folder / "man").iterdir()}
    check({"holdfast.1", "holdfast-apply.1", "holdfast-top-ownership.1"} <= pages, f"man pages: {pages}")
    check("force\\-conflicts" in (shell.folder / "man/holdfast-apply.1").read_text(), "with the flags of the help")
    texts = [text for page in (shell.folder / "man").iterdir() for text in re.findall(r"^(?:\.SH NAME|\.TP\n\.B .*)\n(.*)$", page.read_text(), re.M)]
    sentences = [text for text in texts if text.endswith(".") and not text.endswith("...")]
    check(len(texts) > 200 and not sentences, f"help texts are phrases, without a period: {sentences}")
    status, out, err = shell.run("wait", "--for=delete", "ns/none")
    check(status == 0, "wait for an object that is gone")


def connection(shell):
    """kubectl's connection flags, also before the command."""
    check(shell.out("-n", "kube-system", "get", "sa", "-o", "name") == shell.out("get", "sa", "-o", "name", "-n", "kube-system"), "flags before the command")
    check("services" in shell.out("--namespace=default", "top", "ownership") and "clusterroles" not in shell.out("-ndefault", "top", "ownership"), "also for a command of two words")
    status, out, err = shell.run("-n", "x", "frobnicate")
    check(status == 1 and 'unknown command "frobnicate"' in err, f"an unknown command: {err}")
    config = pathlib.Path(shell.environment["KUBECONFIG"]).read_text()
    value = lambda key: re.search(key + r": (\S+)", config)[1]
    pem = lambda key: shell.file(key + ".pem", base64.b64decode(value(key)).decode())
    bare = Shell(shell.folder / "no-kubeconfig", shell.folder)
    status, out, err = bare.run("--client-certificate", pem("client-certificate-data"), "--client-key=" + pem("client-key-data"),
                                "--certificate-authority=" + pem("certificate-authority-data"), "--server=" + value("server"), "get", "ns", "default", "-o", "name")
    check(out == "namespace/default\n", f"certificates from files, without a kubeconfig: {err}")
    status, out, err = shell.run("get", "ns", "--token", "nonsense")
    check(status == 1 and err == "error: You must be logged in to the server (Unauthorized)\n", f"a token replaces the certificate: {err}")
    status, out, err = shell.run("get", "ns", "--as", "nobody")
    check(status == 1 and 'User "nobody" cannot list' in err, f"--as: {err}")
    for flags, why in ((("--user", "nobody"), 'user "nobody" does not exist'), (("--cluster", "none"), 'cluster "none" does not exist'), (("--as-group", "g"), "--as USER")):
        status, out, err = shell.run("get", "ns", *flags)
        check(status == 1 and why in err, f"{flags[0]}: {err}")


def unreachable(shell):
    status, out, err = shell.run("get", "ns", "-s", "https://127.0.0.1:1")
    check(status == 1 and "cannot reach the server https://127.0.0.1:1" in err and "holdfast serve" in err, f"an unreachable server: {err}")
    lonely = dict(shell.environment)
    lonely.pop("KUBECONFIG")
    done = subprocess.run([HOLDFAST, "get", "ns"], capture_output=True, text=True, env=lonely)
    check(done.returncode == 1 and "KUBECONFIG" in done.stderr, f"no kubeconfig: {done.stderr}")


def with_command(shell):
    temporary = shell.folder / "tmp"
    temporary.mkdir()
    environment = dict(shell.environment, TMPDIR=str(temporary))
    run = lambda *a, **k: subprocess.run([HOLDFAST, "with", *a], capture_output=True, text=True, env=environment, timeout=60, **k)
    done = run("--", HOLDFAST, "get", "ns", "default", "-o", "name")
    check(done.returncode == 0 and done.stdout == "namespace/default\n", f"with: {done.stderr}")
    check(run("--", "sh", "-c", "exit 7").returncode == 7, "its exit status")
    check(run("--", "sh", "-c", "kill -KILL $$").returncode == 128 + 9, "and signal")
    check(run("--", "/no/such/command").returncode == 127, "a command that does not exist")
    done = run("--", "sh", "-c", "echo $USE_EXISTING_CLUSTER; ls $KUBEBUILDER_ASSETS; sleep 1000 & echo $!")
    lines = done.stdout.split()
    check(lines[0] == "true" and "kube-apiserver" in lines, f"the environment of test suites: {lines}")
    check(not pathlib.Path(f"/proc/{lines[-1]}").exists(), "processes left by the command are killed")
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    shell.file("crds/widgets.yaml", json.dumps(crd))
    shell.file("objects/widget.yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n")
    done = run("--crds", str(shell.folder / "crds"), "--manifests", str(shell.folder / "objects"), "--", HOLDFAST, "get", "widgets", "-o", "name")
    check(done.stdout == "widget.example.com/w\n", f"definitions and objects: {done.stdout} {done.stderr}")
    shell.file("broken/x.yaml", "apiVersion: v1\nkind: Nope\nmetadata: {name: x}\n")
    done = run("--manifests", str(shell.folder / "broken"), "--", "true")
    check(done.returncode == 125 and "x.yaml:1" in done.stderr, f"manifests that fail: {done.stderr}")
    several = [subprocess.Popen([HOLDFAST, "with", "--", "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done"], stdout=subprocess.PIPE, env=environment, text=True) for _ in range(3)]
    for one in several:
        one.stdout.readline()
        one.send_signal(signal.SIGTERM)
    check([one.wait(30) for one in several] == [9, 9, 9], "any number at once; signals are forwarded")
    check(list(temporary.iterdir()) == [], f"nothing is left behind: {list(temporary.iterdir())}")
    done = run("--keep", "--", "true")
    check(len(list(temporary.iterdir())) == 1 and "kept" in done.stderr, "unless --keep is given")


def unset_and_options(shell):
    """holdfast unset, what --owned-by shows, Lists that declare a manager, --force-fields with keys, refused flags."""
    shell.out("apply", "-f", "-", "--field-manager", "alice", stdin=configmap("unset", {"keep": "1", "gone": "2"}))
    status, out, err = shell.run("unset", "cm", "unset", ".data.gone", "--field-manager", "bob")
    check(status == 1 and re.search(r"\.data\.gone +\(unset\) +2 +alice", err), f"a conflict shows (unset): {err}")
    status, out, err = shell.run("unset", "cm", "unset", ".data.gone", ".data.never", "--field-manager", "alice")
    check(status == 0 and "configmap/unset unset .data.gone .data.never" in out, f"unset: {out}{err}")
    live = json.loads(shell.out("get", "cm", "unset", "-o", "json"))
    check(live["data"] == {"keep": "1"}, f"only the named fields go: {live['data']}")
    owned = shell.out("get", "cm", "unset", "-o", "json", "--owned-by", "alice")
    marker = {"k8s_io__value": "unset"}
    check(json.loads(owned)["data"] == {"keep": "1", "gone": marker, "never": marker}, f"--owned-by shows what is unset: {owned}")
    shell.out("apply", "-f", "-", "--field-manager", "alice", stdin=owned)
    again = json.loads(shell.out("get", "cm", "unset", "-o", "json"))
    check(again["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"], "applying it again changes nothing")
    finalizers = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "set", "finalizers": ["x.io/a", "x.io/b"]}}
    shell.out("apply", "-f", "-", "--field-manager", "alice", stdin=json.dumps(finalizers))
    path = '.metadata.finalizers[="x.io/a"]'
    status, out, err = shell.run("unset", "cm/set", path, "--field-manager", "bob")
    check(status == 1 and re.search(re.escape(path) + r" +\(unset\) +x\.io/a +alice", err), f"an element of a set conflicts with its owner: {err}")
    shell.out("unset", "cm/set", path, "--field-manager", "bob", "--force-conflicts")
    check(json.loads(shell.out("get", "cm", "set", "-o", "json"))["metadata"]["finalizers"] == ["x.io/b"], "one finalizer is unset")
    shell.out("unset", "cm/set", '.metadata.finalizers[="x.io/b"]', "--field-manager", "alice")
    left = json.loads(shell.out("get", "cm", "set", "-o", "json", "--owned-by", "bob"))
    check("finalizers" not in json.loads(shell.out("get", "cm", "set", "-o", "json"))["metadata"] and left["metadata"]["finalizers"] == [{"k8s_io__value": "unset", "value": "x.io/a"}],
          f"the absence of each is owned by whoever unset it: {left}")

    for path in (".data[0]", "."):
        status, out, err = shell.run("unset", "cm/unset", path)
        check(status == 1 and path in err, f"a path that cannot be unset is refused: {err}")

    managers = lambda name: {e["manager"] for e in json.loads(shell.out("get", "cm", name, "-o", "json", "--show-managed-fields"))["metadata"]["managedFields"]}
    shell.out("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"options": {"fieldManager": "lister"}}, "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l1"}, "data": {"a": "b"}}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l2", "options": {"fieldManager": "own"}}, "data": {"a": "b"}}]}))
    check(managers("l1") == {"lister"} and managers("l2") == {"own"}, "a List's manager is that of its items")

    service = lambda port: json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": port}]}})
    shell.out("apply", "-f", "-", "--field-manager", "alice", stdin=service(1))
    path = '.spec.ports[port=80,protocol="TCP"].targetPort'
    status, out, err = shell.run("apply", "-f", "-", "--field-manager", "bob", stdin=service(2))
    check(status == 1 and path in err, f"the table prints {path}: {err}")
    status, out, err = shell.run("apply", "-f", "-", "--field-manager", "bob", "--force-fields", path, stdin=service(2))
    check(status == 0, f"which --force-fields takes: {err}")

    for flags in (["--show-managed-fields"], ["-o", "json"], ["-A"], ["--sort-by", ".x"]):
        status, out, err = shell.run("get", "--raw", "/version", *flags)
        check(status == 1 and "--raw" in err, f"--raw with {flags} is refused: {err}")
    check("managedFields" in shell.out("get", "cm", "unset", "-o", "jsonpath={.metadata}"), "jsonpath={.metadata} has everything, as in kubectl")
    check("managedFields" not in shell.out("get", "cm", "unset", "-o", "yaml"), "YAML has no managedFields")


def hostile_text(shell):
    """Values and names of others do not act on the terminal, and output stays JSON and YAML of the same values."""
    bad = "".join(map(chr, [*range(1, 9), *range(11, 32), *range(0x7f, 0xa0), 0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2066, 0x206a), 0xfeff]))
    value = "\x1b]0;title\x07\x1b[2J" + bad
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hostile", "annotations": {"note": value}}, "data": {"v": value}}
    path = shell.file("hostile.json", json.dumps(manifest))
    shell.out("apply", "-f", path)
    hidden = re.compile("[" + re.escape(bad.replace("\t", "").replace("\n", "")) + "]")
    for command in (["get", "cm", "hostile", "-o", "yaml"], ["get", "cm", "hostile", "-o", "json"], ["describe", "cm", "hostile"], ["blame", "cm", "hostile"],
                    ["get", "cm", "hostile", "-o", "custom-columns=V:.data.v"], ["apply", "-f", path, "-o", "yaml"], ["blame", "cm", "hostile", "-o", "json"],
                    ["get", "cm", "no" + value[:30]], ["get", "no" + value[:30]], ["apply", "-f", path, "--validate", value]):
        status, out, err = shell.run(*command)
        found = hidden.findall(out + err)
        check(not found, f"{command[:2]} {command[-1]!r:.20} shows nothing hidden: {found}")
    read = json.loads(shell.out("get", "cm", "hostile", "-o", "json"))["data"]["v"]
    check(read == value, "JSON reads back to the same value")
    shell.run("delete", "cm", "hostile")
    check(shell.run("create", "-f", "-", stdin=json.dumps(manifest))[0] == 0, "created again")
    yaml = shell.out("get", "cm", "hostile", "-o", "yaml")
    shell.run("delete", "cm", "hostile")
    check(shell.run("create", "-f", "-", stdin=yaml.replace("  resourceVersion:", "  # "))[0] == 0 and
          json.loads(shell.out("get", "cm", "hostile", "-o", "json"))["data"]["v"] == value, "so does YAML")
    check(shell.out("get", "cm", "hostile", "-o", "jsonpath={.data.v}").endswith("\ufeff"), "a template's result is data in a pipe")
    screen = Screen(shell, 100, "get", "cm", "hostile", "-o", "jsonpath={.data.v}")
    check(screen.end() == 0 and not hidden.search(screen.data.replace("\r\n", "")) and "^[]0;title^G" in screen.data, f"but not on a terminal: {screen.data!r}")
    shell.out("delete", "cm", "hostile")  # kubectl prints it as it is.


class Screen:
    """The output of a program on a terminal of some width: a pty that understands the few control sequences that we use."""

    def __init__(self, shell, columns, *arguments, **more):
        pid, self.master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            os.environ.update(shell.environment, TERM="xterm", COLUMNS=str(columns), **more)
            os.execv(HOLDFAST, [HOLDFAST, *arguments])
        self.pid, self.data = pid, ""

    def until(self, text):
        deadline = time.monotonic() + 30
        while text not in self.data and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.5)[0]:
                try:
                    piece = os.read(self.master, 65536)
                except OSError:
                    break
                self.data += piece.decode(errors="replace")
        return text in self.data

    def press(self, key):
        os.write(self.master, key.encode())

    def end(self):
        self.until("\0 never")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def frames(self):
        """Everything that was ever on the screen; overwritten text has its own lines."""
        return [line for part in self.data.replace("\r\n", "\n").split("\n") for line in part.split("\r\x1b[K") if line]

    def lines(self):
        shown = []
        for line in self.data.replace("\r\n", "\n").split("\n"):
            line = line.split("\r\x1b[K")[-1]
            shown.append(re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip())
        return shown


def terminal(shell):
    golden = pathlib.Path(__file__).resolve().parent / "screens"
    steady = lambda text: re.sub(r"\b\d+s\b", "AGE", re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text))
    for columns in (80, 160):
        shell.run("delete", "cm", "screen", "--ignore-not-found")
        shell.out("apply", "-f", "-", "--field-manager", "alice", stdin=configmap("screen", {"color": "red", "size": "3", "shape": "round"}))
        shell.file("screen.yaml", configmap("screen", {"color": "blue", "size": "4", "shape": "square", "own": "mine"}))
        os.chdir(shell.folder)
        screen = Screen(shell, columns, "apply", "-f", "screen.yaml", "--field-manager", "bob")
        for path, key in ((".data.color", "t"), (".data.shape", "s"), (".data.size", "y")):
            check(screen.until(path + ": [t]ake"), f"{columns} columns: asks about {path}")
            screen.press(key)
        check(screen.end() == 0, f"{columns} columns: conflicts resolved by key")
        compare_screen(golden / f"conflicts_{columns}.txt", steady("\n".join(screen.lines())))
        data = json.loads(shell.out("get", "cm", "screen", "-o", "json"))["data"]
        check(data == {"color": "blue", "shape": "round", "size": "3", "own": "mine"}, f"taken, shared, yielded: {data}")
        screen = Screen(shell, columns, "blame", "cm", "screen")
        check(screen.end() == 0 and "\x1b[3" in screen.data, f"{columns} columns: blame in colours")
        own = lambda lines: "\n".join(line for line in lines if "resourceVersion" not in line and "uid:" not in line)
        compare_screen(golden / f"blame_{columns}.txt", steady(own(screen.lines())))

        # An editor that prints its input, first makes a mistake and then corrects it.
        editor = shell.file("editor.sh", 'cat "$1"\nif grep -q "^# Error" "$1"; then sed -i "s/Color: 7/color: green/" "$1"; else sed -i "s/color: blue/Color: 7/" "$1"; fi\n')
        screen = Screen(shell, columns, "edit", "cm", "screen", KUBE_EDITOR=f"sh {editor}")
        check(screen.end() == 0, f"{columns} columns: edit, rejected and corrected")
        compare_screen(golden / f"edit_{columns}.txt", steady(own(screen.lines())))
        check(json.loads(shell.out("get", "cm", "screen", "-o", "json"))["data"]["color"] == "green", "the edited object is stored")

        # Paths that fit into 160 columns, but not into 80.
        name = "many/a-folder-whose-name-is-long-enough-to-leave-no-room-for-the-rest-of-the-line/all.yaml"
        shell.file(name, "---\n".join(configmap(f"screen-{i}", {"a": "b"}) for i in range(3)))
        screen = Screen(shell, columns, "apply", "-f", name)
        check(screen.end() == 0, f"{columns} columns: progress")
        check(all(len(line) < columns for line in screen.frames()), "no line is wider than the screen")
        compare_screen(golden / f"progress_{columns}.txt", "\n".join(screen.frames()))
        shell.file("fewer.yaml", configmap("screen-0", {"a": "b"}))
        for flags, key in (((), ""), (("--dry-run=server",), ""), ((), "y")):
            source = name if flags == () and key == "" else "fewer.yaml"
            screen = Screen(shell, columns, "apply", "-f", source, "--prune", "--applyset", "screen", "--adopt", *flags)
            if key:
                check(screen.until("[q]uit? "), f"{columns} columns: asks before it prunes")
                screen.press(key)
            check(screen.end() == 0, f"{columns} columns: --prune {flags}")
        compare_screen(golden / f"prune_{columns}.txt", steady("\n".join(screen.lines())))


def compare_screen(path, text):
    """With HOLDFAST_RECORD=1, records the screen as the expected one."""
    text = re.sub(r"[ ]+│", " │", text)
    if os.environ.get("HOLDFAST_RECORD"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    want = path.read_text() if path.exists() else ""
    check(text == want, f"the screen {path.name}" + ("" if text == want else f":\n{text}\n--- instead of\n{want}"))


def run_parts(server, parts):
    with tempfile.TemporaryDirectory(prefix="holdfast-cli-") as folder:
        shell = Shell(server.kubeconfig, folder)
        for part in parts:
            print("---", part.__name__)
            part(shell)


def main():
    anywhere = (conflicts, manifests, apply_sets, sources, ownership, hard_shapes, hostile_text, migrate, lifecycle, terminal, beside_kubectl)
    with Server(HOLDFAST) as server:
        run_parts(server, (declared_manager, unset_and_options, connection, unreachable, with_command, *anywhere))
    if PEER is None:
        needs.skip_part("the same with kube-apiserver", needs.NO_PEER)
    else:
        with Peer(str(PEER)) as peer:
            print("=== kube-apiserver")
            run_parts(peer, anywhere)
    finish()


if __name__ == "__main__":
    main()

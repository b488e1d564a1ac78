#!/usr/bin/env python3
"""kube-controller-manager and kube-scheduler running on Holdfast: workloads_test.py BINARY

The node is only an object: this test simulates its kubelet, as far as a Lease and the
status of pods are concerned.
"""
import datetime
import http.client
import http.server
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Kubectl, Server  # noqa: E402
import needs  # noqa: E402

BINARY = PEER = None


def now(micro=False):
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


NODE = {
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "paper", "labels": {"kubernetes.io/hostname": "paper"}},
    "status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}, "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
               "conditions": [{"type": "Ready", "status": "True", "reason": "Played", "message": "by a test",
                               "lastHeartbeatTime": now(), "lastTransitionTime": now()}]},
}


DROP = ";drop=metadata.managedFields"


class Proxy(http.server.ThreadingHTTPServer):
    """Forwards requests as the administrator, with the Accept header modified by `change`. `asked`: every Accept received."""
    daemon_threads = True

    def __init__(self, server, change):
        self.change, self.asked = change, set()
        pki = server.data_dir / "pki"
        self.tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self.tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self.target = server.url().split("//")[1]
        super().__init__(("127.0.0.1", 0), ProxyHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def kubeconfig(self, path):
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}], "users": [{"name": "x", "user": {}}]}))
        return path


class ProxyHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection", "accept-encoding")}
        self.server.asked.add(self.headers.get("Accept", ""))
        headers["Accept"] = self.server.change(self.headers.get("Accept", ""))
        connection = http.client.HTTPSConnection(self.server.target, context=self.server.tls)
        try:
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(key, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while data := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

    def log_message(self, *_):
        pass


class WorkloadsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(BINARY)
        cls.server.start()
        cls.folder = tempfile.TemporaryDirectory(prefix="holdfast-workloads-")
        cls.kubectl = Kubectl(cls.server.kubeconfig, cls.folder.name)
        cls.kubectl.run("create", "-f", "-", stdin=json.dumps(NODE))
        cls.ending = threading.Event()
        cls.heart = threading.Thread(target=cls.beat)
        cls.heart.start()
        cls.start_peers()

    @classmethod
    def start_peers(cls):
        cls.processes = [cls.run_peer("kube-controller-manager", "--kubeconfig", cls.server.kubeconfig, *cls.manager_flags()),
                         cls.run_peer("kube-scheduler", "--kubeconfig", cls.server.kubeconfig)]

    @classmethod
    def manager_flags(cls):
        pki = cls.server.data_dir / "pki"
        return "--service-account-private-key-file", pki / "sa.key", "--root-ca-file", pki / "ca.crt"

    @classmethod
    def run_peer(cls, name, *flags):
        with open(pathlib.Path(cls.folder.name) / f"{name}.log", "wb") as log:
            return subprocess.Popen([PEER / name, "--secure-port=0", *flags], stdout=log, stderr=log)

    @classmethod
    def beat(cls):
        """The node's heartbeat."""
        while True:
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "paper", "namespace": "kube-node-lease"},
                     "spec": {"holderIdentity": "paper", "leaseDurationSeconds": 40, "renewTime": now(micro=True)}}
            cls.kubectl.run("apply", "--server-side", "-f", "-", stdin=json.dumps(lease))
            if cls.ending.wait(5):
                return

    @classmethod
    def tearDownClass(cls):
        cls.ending.set()
        cls.heart.join()
        for process in cls.processes:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        cls.server.stop()
        cls.folder.cleanup()

    def wait(self, what, check, seconds=60):
        end = time.monotonic() + seconds
        while not check():
            if time.monotonic() > end:
                logs = "".join(p.read_text(errors="replace")[-2000:] for p in pathlib.Path(self.folder.name).glob("*.log"))
                self.fail(f"{what}\n{logs}")
            time.sleep(0.1)

    def pods(self, selector):
        return self.kubectl.json("get", "pods", "-l", selector)["items"]

    def play_kubelet(self, selector):
        """Runs scheduled pods, and terminates deleted ones."""
        for pod in self.pods(selector):
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                self.kubectl.run("delete", "pod", name, "--grace-period=0", "--force", "--ignore-not-found", "--wait=false")
            elif pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") == "Pending":
                status = {"status": {"phase": "Running", "startTime": now(), "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
                                     "conditions": [{"type": t, "status": "True", "lastTransitionTime": now()} for t in ("PodScheduled", "ContainersReady", "Ready")]}}
                self.kubectl.run("patch", "pod", name, "--subresource=status", "--type=strategic", "-p", json.dumps(status))

    def available(self, name):
        self.play_kubelet(f"app={name}")
        status = self.kubectl.json("get", "deployment", name)["status"]
        return status.get("availableReplicas", 0), status.get("updatedReplicas", 0), status.get("replicas", 0)

    def test_a_deployment_becomes_scheduled_pods(self):
        self.kubectl.run("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
        self.wait("no pods on the node", lambda: [p["spec"].get("nodeName") for p in self.pods("app=web")] == ["paper"] * 3)
        self.wait("not available", lambda: self.available("web") == (3, 3, 3))
        self.kubectl.run("scale", "deployment", "web", "--replicas=1")
        self.wait("not scaled", lambda: self.available("web") == (1, 1, 1))
        self.kubectl.run("set", "image", "deployment/web", "nginx=nginx:2")
        self.wait("not rolled out", lambda: self.available("web") == (1, 1, 1) and
                  [p["spec"]["containers"][0]["image"] for p in self.pods("app=web")] == ["nginx:2"])
        self.kubectl.run("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
        self.wait("the deployment stayed", lambda: self.play_kubelet("app=web") or
                  self.kubectl.run("get", "deployment,replicaset,pod", "-l", "app=web", "--ignore-not-found") == "")

    def owners(self, kind, selector):
        """{(manager, operation, subresource): fields} of the one object; each update manager has a single entry."""
        found = self.kubectl.json("get", kind, "-l", selector, "--show-managed-fields")["items"]
        self.assertEqual(len(found), 1)
        return {(entry["manager"], entry["operation"], entry.get("subresource")): entry["fieldsV1"] for entry in found[0]["metadata"]["managedFields"]}

    def test_ownership_survives_writes_of_controllers(self):
        applied = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "owned", "labels": {"app": "owned"}}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "owned"}}, "template": {
                "metadata": {"labels": {"app": "owned"}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}}}
        apply = lambda: self.kubectl.run("apply", "--server-side", "--field-manager=git", "-f", "-", stdin=json.dumps(applied))
        apply()
        mine = self.owners("deployment", "app=owned")["git", "Apply", None]
        self.wait("not available", lambda: self.available("owned") == (1, 1, 1))
        owners = self.owners("deployment", "app=owned")
        self.assertEqual(owners["git", "Apply", None], mine)
        self.assertIn("f:status", owners["kube-controller-manager", "Update", "status"])
        self.assertEqual({key[0] for key in owners}, {"git", "kube-controller-manager"})
        pod = self.owners("pod", "app=owned")
        self.assertIn("f:spec", pod["kube-controller-manager", "Update", None])
        self.assertIn("f:status", pod["kubectl-patch", "Update", "status"])
        # Omitted fields are given up, even though controllers have written in between.
        applied["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
        del applied["spec"]["replicas"]
        apply()
        self.wait("not rolled out", lambda: self.available("owned") == (1, 1, 1) and
                  [p["spec"]["containers"][0]["image"] for p in self.pods("app=owned")] == ["nginx:2"])
        self.assertNotIn("f:replicas", self.owners("deployment", "app=owned")["git", "Apply", None]["f:spec"])

    def test_a_namespace_gets_its_initial_objects_and_is_emptied(self):
        self.kubectl.run("create", "namespace", "furnished")
        self.wait("no service account", lambda: self.kubectl.run("-n", "furnished", "get", "sa", "default", "--ignore-not-found") != "")
        self.kubectl.run("-n", "furnished", "create", "configmap", "x")
        self.kubectl.run("delete", "namespace", "furnished", "--timeout=60s")


class WithoutManagedFieldsTest(WorkloadsTest):
    """The same if neither ever sees managedFields: the scheduler by its own setting, the manager, which has none, through a
    proxy."""

    @classmethod
    def start_peers(cls):
        folder = pathlib.Path(cls.folder.name)
        cls.manager_proxy = Proxy(cls.server, lambda accept: ",".join(part + DROP for part in accept.split(",")))
        cls.scheduler_proxy = Proxy(cls.server, lambda accept: accept)
        configuration = folder / "scheduler.json"
        configuration.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "clientConnection": {
                "kubeconfig": str(cls.scheduler_proxy.kubeconfig(folder / "scheduler.kubeconfig")), "contentType": "application/vnd.kubernetes.protobuf",
                "acceptContentTypes": f"application/vnd.kubernetes.protobuf{DROP},application/json{DROP}"}}))
        cls.processes = [
            cls.run_peer("kube-controller-manager", "--kubeconfig", cls.manager_proxy.kubeconfig(folder / "manager.kubeconfig"), *cls.manager_flags()),
            cls.run_peer("kube-scheduler", "--config", configuration)]

    def test_both_opted_out(self):
        self.wait("the scheduler never opted out", lambda: any(DROP in accept for accept in self.scheduler_proxy.asked))
        self.wait("the manager sent no requests", lambda: self.manager_proxy.asked)


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    PEER = needs.peer("kube-controller-manager", "kube-scheduler")
    if PEER is None:
        needs.skip("no kube-controller-manager and kube-scheduler 1.36")
    if needs.kubectl() is None:
        needs.skip(needs.NO_KUBECTL)
    unittest.main(verbosity=2)

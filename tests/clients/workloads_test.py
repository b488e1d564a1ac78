#!/usr/bin/env python3
"""kube-controller-manager and kube-scheduler at work on Holdfast: workloads_test.py BINARY FOLDER

FOLDER holds the two real binaries. The node is an object alone: this test plays its kubelet, as far as a Lease and the
status of pods go.
"""
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Kubectl, Server  # noqa: E402

BINARY = PEER = None


def now(micro=False):
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


NODE = {
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "paper", "labels": {"kubernetes.io/hostname": "paper"}},
    "status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}, "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
               "conditions": [{"type": "Ready", "status": "True", "reason": "Played", "message": "by a test",
                               "lastHeartbeatTime": now(), "lastTransitionTime": now()}]},
}


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
        pki = cls.server.data_dir / "pki"
        cls.processes = [
            cls.run_peer("kube-controller-manager", "--service-account-private-key-file", pki / "sa.key", "--root-ca-file", pki / "ca.crt"),
            cls.run_peer("kube-scheduler"),
        ]

    @classmethod
    def run_peer(cls, name, *flags):
        with open(pathlib.Path(cls.folder.name) / f"{name}.log", "wb") as log:
            return subprocess.Popen([PEER / name, "--kubeconfig", cls.server.kubeconfig, "--secure-port=0", *flags], stdout=log, stderr=log)

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
        """Runs what is scheduled, and ends what is deleted."""
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

    def test_a_namespace_is_furnished_and_emptied(self):
        self.kubectl.run("create", "namespace", "furnished")
        self.wait("no service account", lambda: self.kubectl.run("-n", "furnished", "get", "sa", "default", "--ignore-not-found") != "")
        self.kubectl.run("-n", "furnished", "create", "configmap", "x")
        self.kubectl.run("delete", "namespace", "furnished", "--timeout=60s")


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    PEER = pathlib.Path(sys.argv.pop(1))
    unittest.main(verbosity=2)

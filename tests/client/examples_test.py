#!/usr/bin/env python3
"""The examples against a running server: examples_test.py HOLDFAST APPLY CONTROLLER"""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "clients"))
from server import Kubectl, Server  # noqa: E402


def eventually(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.05)


def site(replicas):
    asked = f', replicas: "{replicas}"' if replicas else ""
    return f"""apiVersion: v1
kind: ConfigMap
metadata: {{name: shop, labels: {{example.com/site: "true"}}}}
data: {{image: "shop:1"{asked}}}
"""


def main():
    holdfast, apply, controller = (os.path.abspath(path) for path in sys.argv[1:4])
    assert len(open(pathlib.Path(__file__).parent.parent.parent / "examples" / "controller.cc").readlines()) <= 150
    with Server(holdfast) as server:
        environment = dict(os.environ, KUBECONFIG=str(server.kubeconfig))
        kubectl = Kubectl(server.kubeconfig, server.data_dir / "cache")
        for _ in range(2):
            done = subprocess.run([apply], env=environment, check=True, capture_output=True, text=True)
            assert done.stdout.startswith("applied default/settings at "), done.stdout
        assert kubectl.json("get", "configmap", "settings")["data"] == {"color": "blue"}

        running = subprocess.Popen([controller, "default"], env=environment)
        try:
            kubectl.run("apply", "--server-side", "-f", "-", stdin=site(3))
            eventually(lambda: "shop" in kubectl.run("get", "deployments,services", "-o", "name", fails=None), "made")
            eventually(lambda: "service/shop" in kubectl.run("get", "services", "-o", "name", fails=None), "the service is made")
            assert kubectl.json("get", "deployment", "shop")["spec"]["replicas"] == 3
            # The number is unset: the default comes back, and the controller owns that nothing is asked for.
            kubectl.run("apply", "--server-side", "-f", "-", stdin=site(None))
            eventually(lambda: kubectl.json("get", "deployment", "shop")["spec"]["replicas"] == 1, "replicas are unset")
            # What somebody deletes comes back.
            kubectl.run("delete", "service", "shop")
            eventually(lambda: "service/shop" in kubectl.run("get", "services", "-o", "name", fails=None), "the service is back")
            made = kubectl.json("get", "deployment", "shop", "--show-managed-fields")["metadata"]
            assert [entry["manager"] for entry in made["managedFields"] if entry["operation"] == "Apply"] == ["site-controller"]
        finally:
            running.send_signal(signal.SIGTERM)
            assert running.wait(30) == 0
    print("passed")


if __name__ == "__main__":
    main()

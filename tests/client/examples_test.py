#!/usr/bin/env python3
"""The examples against a running server: examples_test.py HOLDFAST APPLY CONTROLLER"""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "clients"))
from server import Holdfast, Server, wait_until  # noqa: E402


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
        client = Holdfast(server, server.data_dir / "cache")
        for _ in range(2):
            done = subprocess.run([apply], env=environment, check=True, capture_output=True, text=True)
            assert done.stdout.startswith("applied default/settings at "), done.stdout
        assert client.json("get", "configmap", "settings")["data"] == {"color": "blue"}

        running = subprocess.Popen([controller, "default"], env=environment)
        try:
            client.run("apply", "--server-side", "-f", "-", stdin=site(3))
            wait_until("made", lambda: "shop" in client.run("get", "deployments,services", "-o", "name", fails=None))
            wait_until("the service is created", lambda: "service/shop" in client.run("get", "services", "-o", "name", fails=None))
            assert client.json("get", "deployment", "shop")["spec"]["replicas"] == 3
            # The number is unset: the default is restored, and the controller owns the unset field.
            client.run("apply", "--server-side", "-f", "-", stdin=site(None))
            wait_until("replicas are unset", lambda: client.json("get", "deployment", "shop")["spec"]["replicas"] == 1)
            # A deleted object is recreated.
            client.run("delete", "service", "shop")
            wait_until("the service is recreated", lambda: "service/shop" in client.run("get", "services", "-o", "name", fails=None))
            made = client.json("get", "deployment", "shop", "--show-managed-fields")["metadata"]
            assert [entry["manager"] for entry in made["managedFields"] if entry["operation"] == "Apply"] == ["site-controller"]
        finally:
            running.send_signal(signal.SIGTERM)
            assert running.wait(30) == 0
    print("passed")


if __name__ == "__main__":
    main()

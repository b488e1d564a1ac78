#!/usr/bin/env python3
"""The C++ client (live_test.cc) against Holdfast and, if available, the real kube-apiserver:

  live_test.py HOLDFAST LIVE_TEST
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "clients"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Server  # noqa: E402
from peer import Peer  # noqa: E402
import needs  # noqa: E402


def run(program, kubeconfig, **more):
    environment = dict(os.environ, KUBECONFIG=str(kubeconfig), **more)
    return subprocess.run([program], env=environment, check=False).returncode


if __name__ == "__main__":
    holdfast, program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with Server(holdfast) as server:
        failed = run(program, server.kubeconfig, HOLDFAST_SERVER="1")
    with Server(holdfast, "--strict-drop") as server:  # The rule of Kubernetes 1.38.
        failed |= run(program, server.kubeconfig, HOLDFAST_SERVER="1", GTEST_FILTER="*OptingOut*:*Drop*:*Informer*:*Tables*")
    if folder := needs.peer("kube-apiserver", "etcd"):
        with Peer(folder) as peer:
            failed |= run(program, peer.kubeconfig)
    else:
        needs.skip_part("the same with kube-apiserver", needs.NO_PEER)
    sys.exit(failed)

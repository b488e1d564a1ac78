#!/usr/bin/env python3
"""The Go module in clients/go: format, vet, unit tests, and client-go and controller-runtime on running servers.

go_modules_test.py BINARY

Besides BINARY, a kube-apiserver 1.36 is used if there is one. HOLDFAST_OTHER_SERVERS (NAME=KUBECONFIG,...) adds more servers.
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "clients"), str(TESTS / "store")]
import needs
from check import check, finish
from etcd import Etcd
from peer import TOKEN, KubeApiserver

MODULE = TESTS.parent / "clients" / "go"


@contextlib.contextmanager
def kube_apiserver(folder, programs):
    """A running kube-apiserver; its kubeconfig."""
    etcd = Etcd(str(programs / "etcd"))
    try:
        server = KubeApiserver(str(programs / "kube-apiserver"), etcd, os.path.join(folder, "peer"))
        try:
            kubeconfig = pathlib.Path(folder) / "kubeconfig"
            kubeconfig.write_text(f"""apiVersion: v1
kind: Config
clusters: [{{name: peer, cluster: {{server: "{server.api.url}", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: {TOKEN}}}}}]
contexts: [{{name: peer, context: {{cluster: peer, user: admin}}}}]
current-context: peer
""")
            yield kubeconfig
        finally:
            server.stop()
    finally:
        etcd.stop()


def run(environment, folder, *command):
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, end="")
    check(done.returncode == 0, f"{' '.join(command)} in {folder.name}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    if reason := needs.missing("go"):
        needs.skip(reason)
    environment = needs.with_tools()
    check(run(environment, MODULE, "gofmt", "-l", ".") == "", "gofmt has nothing to change")
    for folder in (MODULE, MODULE / "e2e"):
        run(environment, folder, "go", "vet", "./...")
    run(environment, MODULE, "go", "test", "-count=1", "./...")
    others = [other for other in [environment.get("HOLDFAST_OTHER_SERVERS")] if other]
    with contextlib.ExitStack() as stack:
        if programs := needs.peer("kube-apiserver", "etcd"):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-go-"))
            others.append(f"kube-apiserver={stack.enter_context(kube_apiserver(folder, programs))}")
        else:
            needs.skip_part("clients/go on kube-apiserver", needs.NO_PEER)
        servers = dict(environment, HOLDFAST_BINARY=os.path.abspath(sys.argv[1]), HOLDFAST_OTHER_SERVERS=",".join(others))
        shown = run(servers, MODULE / "e2e", "go", "test", "-count=1", "-v", "./...")
        for name in ["holdfast", *(other.split("=")[0] for other in ",".join(others).split(",") if other)]:
            check(f"--- PASS: TestCustomResources/{name} " in shown, f"the tests ran on {name}")
    finish()

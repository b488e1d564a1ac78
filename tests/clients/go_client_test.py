#!/usr/bin/env python3
"""client-go against a running server (go/): go_client_test.py BINARY"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Server  # noqa: E402
import needs  # noqa: E402

SOURCE = pathlib.Path(__file__).parent / "go"

if __name__ == "__main__":
    if reason := needs.missing("go"):
        needs.skip(reason)
    environment = needs.with_tools()
    subprocess.run(["go", "mod", "download"], cwd=SOURCE, env=environment, check=True)
    with Server(os.path.abspath(sys.argv[1])) as server:
        done = subprocess.run(["go", "test", "-count=1", "-v", "."], cwd=SOURCE, env=dict(environment, KUBECONFIG=str(server.kubeconfig)), check=False)
    sys.exit(done.returncode)

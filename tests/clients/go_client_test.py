#!/usr/bin/env python3
"""client-go against a running server (go/): go_client_test.py BINARY"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Server  # noqa: E402

SOURCE = pathlib.Path(__file__).parent / "go"
NO_MODULES = 77  # Tells CTest that the test was skipped.

if __name__ == "__main__":
    if subprocess.run(["go", "mod", "download"], cwd=SOURCE, check=False).returncode != 0:
        print("the Go modules cannot be fetched")
        sys.exit(NO_MODULES)
    with Server(os.path.abspath(sys.argv[1])) as server:
        done = subprocess.run(["go", "test", "-count=1", "-v", "."], cwd=SOURCE, env=dict(os.environ, KUBECONFIG=str(server.kubeconfig)), check=False)
    sys.exit(done.returncode)

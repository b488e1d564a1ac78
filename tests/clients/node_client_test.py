#!/usr/bin/env python3
"""@kubernetes/client-node against a running server (node/): node_client_test.py BINARY"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Server  # noqa: E402
import needs  # noqa: E402

SOURCE = pathlib.Path(__file__).parent / "node"

if __name__ == "__main__":
    if reason := needs.missing("npm"):
        needs.skip(reason)
    with tempfile.TemporaryDirectory(prefix="holdfast-node-") as folder:
        for file in SOURCE.iterdir():
            if file.is_file():
                shutil.copy(file, folder)
        subprocess.run(["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund"], cwd=folder, check=True)
        with Server(os.path.abspath(sys.argv[1])) as server:
            done = subprocess.run(["node", "--test", "client_test.mjs"], cwd=folder, env=dict(os.environ, KUBECONFIG=str(server.kubeconfig)), check=False)
    sys.exit(done.returncode)

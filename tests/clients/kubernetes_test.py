#!/usr/bin/env python3
"""Some of Kubernetes' own integration tests against this server: kubernetes_test.py HOLDFAST RUNNER PACKAGE...

RUNNER builds and runs them (tools/integration/run of the project's shared folder; needs Go and etcd). Compiling Kubernetes
takes many minutes: a package whose test binary has not been built yet is skipped with a message that tells how to build it.
"""
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77


def main():
    holdfast, runner, packages = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not os.access(runner, os.X_OK) or not shutil.which("go"):
        print("skipped: the runner of Kubernetes' integration tests, or go, is not available")
        return SKIPPED
    home = pathlib.Path(os.environ.get("INTEGRATION_HOME", pathlib.Path.home() / ".cache" / "holdfast-integration"))
    built = [package for package in packages if (home / "bin" / package / (package.rsplit("/", 1)[-1] + ".test")).exists()]
    for package in packages:
        if package not in built:
            print(f"skipped: {package} has not been built; {runner} {holdfast} {package} --build-only")
    if not built:
        return SKIPPED
    return subprocess.run([runner, holdfast, *built, "--without", "cel,nodes,access,servers", "--jobs", "2"]).returncode


sys.exit(main())

#!/usr/bin/env python3
"""Some of Kubernetes' own integration tests against this server:
kubernetes_test.py HOLDFAST RUNNER PACKAGE[:TESTS]... [--if-built PACKAGE...]

RUNNER builds and runs them (tools/integration/run of the project's shared folder; needs Go and etcd). Packages of Kubernetes
itself take many minutes to compile: those after --if-built are skipped, with a message that tells how to build them, unless
their test binary is there.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("runner")
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--if-built", nargs="*", default=[])
    args = parser.parse_args()
    needed = ("go", "ed", "patch")
    if not os.access(args.runner, os.X_OK) or not all(shutil.which(program) for program in needed):
        print(f"skipped: the runner of Kubernetes' integration tests, or one of {', '.join(needed)}, is not available")
        return SKIPPED
    home = pathlib.Path(os.environ.get("INTEGRATION_HOME", pathlib.Path.home() / ".cache" / "holdfast-integration"))
    chosen = list(args.packages)
    for package in args.if_built:
        if (home / "bin" / package / (package.rsplit("/", 1)[-1] + ".test")).exists():
            chosen.append(package)
        else:
            print(f"skipped: {package} has not been built; {args.runner} {args.holdfast} {package} --build-only")
    if not chosen:
        return SKIPPED
    command = [args.runner, args.holdfast, *chosen, "--without", "cel,nodes,access,servers", "--jobs", "2"]
    return subprocess.run(command).returncode


sys.exit(main())

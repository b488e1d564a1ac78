#!/usr/bin/env python3
"""Some of Kubernetes' own integration tests against this server:
kubernetes_test.py HOLDFAST PACKAGE[:TESTS]... [--if-built PACKAGE...]

tests/kubernetes/integration builds and runs them (needs Go, etcd, ed and patch). Packages of Kubernetes itself take many
minutes to compile: those after --if-built are skipped unless their test binary is there. HOLDFAST_TEST_ALL=1, which
./dev test --all sets, builds them.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import needs  # noqa: E402

RUNNER = TESTS / "kubernetes" / "integration"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--if-built", nargs="*", default=[])
    args = parser.parse_args()
    if reason := needs.missing("go"):
        needs.skip(reason)
    for program in ("ed", "patch", "etcd"):
        if shutil.which(program) is None and not (program == "etcd" and needs.peer("etcd")):
            needs.skip(f"{program} is not installed")
    chosen = list(args.packages)
    for package in args.if_built:
        if os.environ.get("HOLDFAST_TEST_ALL") or (needs.CACHE / "holdfast-integration" / "bin" / package / (package.rsplit("/", 1)[-1] + ".test")).exists():
            chosen.append(package)
        else:
            needs.skip_part(package, f"it takes minutes to compile; {RUNNER.relative_to(TESTS.parent)} --build-only {args.holdfast} {package}")
    command = [RUNNER, args.holdfast, *chosen, "--without", "cel,nodes,access,servers", "--jobs", "2"]
    return subprocess.run(command, env=needs.with_tools(), check=False).returncode


sys.exit(main())

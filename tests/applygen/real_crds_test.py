#!/usr/bin/env python3
"""real_crds_test.py HOLDFAST COMPILER HEADERS: applygen's headers for ninety CustomResourceDefinitions of other projects
compile without warnings.

The definitions are taken from the projects' Go modules, which are downloaded. Compiling takes minutes, so that this runs only with
./dev test --all. HOLDFAST_CRDS names a directory with other definitions (YAML) to compile instead.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "clients")]
import needs  # noqa: E402
from check import check, finish  # noqa: E402

# Module, version, and the directory in it.
SOURCES = (
    ("github.com/cert-manager/cert-manager", "v1.16.2", "deploy/crds"),
    ("istio.io/api", "v1.24.1", "kubernetes"),
    ("github.com/prometheus-operator/prometheus-operator", "v0.79.2", "example/prometheus-operator-crd-full"),
    ("github.com/crossplane/crossplane", "v1.18.1", "cluster/crds"),
    ("sigs.k8s.io/gateway-api", "v1.2.1", "config/crd/experimental"),
    ("sigs.k8s.io/cluster-api", "v1.9.0", "config/crd/bases"),
    ("github.com/external-secrets/external-secrets", "v0.12.1", "config/crds/bases"),
    ("github.com/kedacore/keda/v2", "v2.16.1", "config/crd/bases"),
)
MEMORY = 12 << 30  # For one compiler.


def folders():
    """The directories with definitions."""
    if given := os.environ.get("HOLDFAST_CRDS"):
        return [pathlib.Path(given)]
    if not os.environ.get("HOLDFAST_TEST_ALL"):
        needs.skip("it downloads the modules of other projects, and compiles for minutes")
    if reason := needs.missing("go"):
        needs.skip(reason)
    found = []
    for module, version, folder in SOURCES:
        done = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], cwd="/", env=dict(needs.with_tools(), GOFLAGS="-mod=mod"), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            needs.skip(f"{module}@{version} cannot be downloaded")
        found.append(pathlib.Path(json.loads(done.stdout)["Dir"]) / folder)
    return found


def limited():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main():
    holdfast, compiler, headers = sys.argv[1:]
    files = [file for folder in folders() for file in sorted(folder.glob("*.yaml")) if "\nkind: CustomResourceDefinition\n" in "\n" + file.read_text()]
    definitions = sum(("\n" + file.read_text()).count("\nkind: CustomResourceDefinition\n") for file in files)
    check(definitions >= 90 or "HOLDFAST_CRDS" in os.environ, f"{definitions} definitions")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([holdfast, "applygen", "-o", folder, *files], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"applygen: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        made = sorted(pathlib.Path(folder).glob("*.h"), key=lambda header: -header.stat().st_size)

        def compile_header(header):
            source = header.with_suffix(".cc")
            source.write_text(f'#include "{header.name}"\n')
            return subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", f"-I{headers}", f"-I{folder}", source],
                                  capture_output=True, text=True, check=False, preexec_fn=limited)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for header, done in zip(made, pool.map(compile_header, made)):
                check(done.returncode == 0, f"{header.name}: {done.stderr[:2000]}")
    print(f"{definitions} definitions, {len(made)} headers")


if __name__ == "__main__":
    main()
    finish()

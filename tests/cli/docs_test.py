#!/usr/bin/env python3
"""docs_test.py HOLDFAST: every shell block of the pages about the command line, run as written, each page with a fresh server.

A block that begins with ```sh is run and must succeed; ```sh fails must fail. Commands of toolchains that are not here are
skipped with a message."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
HOLDFAST = pathlib.Path(sys.argv[1]).resolve()
failures = 0


def run(block, fails, folder, environment):
    global failures
    script = "set -e\n" + re.sub(r"^(holdfast diff .*)$", r"\1 || [ $? = 1 ]", block, flags=re.M)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    ok = (done.returncode != 0) == fails
    print(("ok      " if ok else "FAILED  ") + block.splitlines()[0])
    if not ok:
        failures += 1
        print(block, done.stdout, done.stderr, sep="\n")


def page(name):
    """All blocks of a page share a server and a folder."""
    text = (DOCS / name).read_text()
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as folder:
        bin = pathlib.Path(folder) / "bin"
        bin.mkdir()
        (bin / "holdfast").symlink_to(HOLDFAST)
        environment = dict(os.environ, HOME=folder, PATH=f"{bin}:{os.environ['PATH']}")
        server = subprocess.Popen([HOLDFAST, "with", "--", "sh", "-c", f"echo $KUBECONFIG; exec sleep 600"], stdout=subprocess.PIPE, text=True)
        environment["KUBECONFIG"] = server.stdout.readline().strip()
        print("---", name)
        try:
            for fails, block in re.findall(r"^```sh( fails)?\n(.*?)^```$", text, re.M | re.S):
                missing = [tool for tool in ("go", "mvn", "npm", "cargo") if re.search(rf"-- {tool} ", block)]
                if missing:
                    print(f"skipped {block.splitlines()[0]}: needs a project for {', '.join(missing)}")
                    continue
                run(block, bool(fails), folder, environment)
        finally:
            server.terminate()
            server.wait()


for name in ("ownership.md", "declared-manager.md", "testing.md"):
    page(name)
print(f"{failures} failures")
sys.exit(1 if failures else 0)

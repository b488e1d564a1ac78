#!/usr/bin/env python3
"""docs_test.py HOLDFAST PAGE...: runs every shell block of these pages of docs/ as written, each page with a new server.

The text after ``` determines the type of a block:
  sh                   is run and must succeed
  sh fails             is run and must fail
  sh needs TOOL        is run if TOOL is installed, otherwise skipped with a message
  sh needs TOOL, fetches
                       the same, and fetches packages: if that fails, the tool's other blocks are skipped too
  LANGUAGE FILE        is written to FILE, for the commands that follow
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "clients"))
from check import check, finish

DOCS = TESTS.parent / "docs"
HOLDFAST = pathlib.Path(sys.argv[1]).resolve()


class Page:
    """All blocks of a page share a server and a directory."""

    def __init__(self, folder, environment):
        self.folder, self.environment, self.unusable = pathlib.Path(folder), environment, {}

    def block(self, kind, text):
        language, _, rest = kind.partition(" ")
        if language != "sh":
            if rest:
                path = self.folder / rest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return
        needs = re.match(r"needs (\w+)(, fetches)?$", rest)
        if needs and needs[1] not in self.unusable and shutil.which(needs[1]) is None:
            self.unusable[needs[1]] = f"{needs[1]} is not installed"
        if needs and needs[1] in self.unusable:
            print(f"skipped {self.title(text)}: {self.unusable[needs[1]]}")
            return
        done = self.run(text)
        if needs and needs[2] and done.returncode != 0:
            self.unusable[needs[1]] = "its packages cannot be fetched"
            print(f"skipped {self.title(text)}: {self.unusable[needs[1]]}\n{done.stdout}{done.stderr}")
            return
        check((done.returncode != 0) == (rest == "fails"), f"{text}\n{done.stdout}\n{done.stderr}")

    @staticmethod
    def title(text):
        lines = text.splitlines()
        return lines[1] if lines[0].startswith("cd ") and len(lines) > 1 else lines[0]

    def run(self, text):
        script = "set -e\n" + re.sub(r"^(holdfast diff .*)$", r"\1 || [ $? = 1 ]", text, flags=re.M)
        return subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=1200)


def run_page(name):
    text = (DOCS / name).read_text()
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as folder:
        bin = pathlib.Path(folder) / "bin"
        bin.mkdir()
        (bin / "holdfast").symlink_to(HOLDFAST)
        # Compile Rust packages once per build tree, not once per run.
        environment = dict(os.environ, PATH=f"{bin}:{os.environ['PATH']}", KUBECACHEDIR=f"{folder}/cache",
                           CARGO_TARGET_DIR=str(HOLDFAST.parent.parent / "docs_test_cargo"))
        server = subprocess.Popen([HOLDFAST, "with", "--", "sh", "-c", 'echo "$KUBECONFIG"; cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        environment["KUBECONFIG"] = server.stdout.readline().strip()
        print("---", name)
        page = Page(folder, environment)
        try:
            for kind, block in re.findall(r"^```([a-z]+(?: [^\n]*)?)\n(.*?)^```$", text, re.M | re.S):
                page.block(kind, block)
        finally:
            server.stdin.close()
            server.wait()


for name in sys.argv[2:]:
    run_page(name)
finish()

#!/usr/bin/env python3
"""docs_test.py HOLDFAST [--FLAG=VALUE...] PAGE...: runs every shell block of these pages of docs/ as written, each page with a
new server, which gets the flags.

The text after ``` determines the type of a block:
  sh                   is run and must succeed
  sh fails             is run and must fail
  sh shown             is only shown: it needs a checkout, or files that the page does not have
  sh needs TOOL        is run if TOOL can be used (needs.missing), otherwise skipped with a message
  LANGUAGE FILE        is written to FILE, for the commands that follow
"""
import contextlib
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
from server import Server
sys.path.insert(0, str(TESTS))
import needs

DOCS = TESTS.parent / "docs"
HOLDFAST = pathlib.Path(sys.argv[1]).resolve()
FLAGS = [word for word in sys.argv[2:] if word.startswith("--")]
PAGES = [word for word in sys.argv[2:] if not word.startswith("--")]


def missing(tool):
    if tool == "kubectl":
        return None if needs.kubectl() else needs.NO_KUBECTL
    return needs.missing(tool)


class Page:
    """All blocks of a page share a server and a directory."""

    def __init__(self, name, folder, environment):
        self.name = name
        self.folder, self.environment = pathlib.Path(folder), environment

    def block(self, kind, text):
        language, _, rest = kind.partition(" ")
        if language != "sh":
            if rest:
                path = self.folder / rest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return
        if rest == "shown":
            return
        check(rest in ("", "fails") or rest.startswith("needs "), f"a block is `sh`, `sh fails`, `sh shown` or `sh needs TOOL`, not `{kind}`")
        if rest.startswith("needs ") and (reason := missing(rest.removeprefix("needs "))):
            needs.skip_part(f"{self.title(text)} ({self.name})", reason)
            return
        done = self.run(text)
        check((done.returncode != 0) == (rest == "fails"), f"{text}\n{done.stdout}\n{done.stderr}")

    @staticmethod
    def title(text):
        lines = text.splitlines()
        return lines[1] if lines[0].startswith("cd ") and len(lines) > 1 else lines[0]

    def run(self, text):
        script = "set -e\n" + re.sub(r"^(holdfast diff .*)$", r"\1 || [ $? = 1 ]", text, flags=re.M)
        return subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=1200)


@contextlib.contextmanager
def temporary_server():
    """The kubeconfig of a new server: that of `holdfast with`, which takes no flags for its server, if there are none."""
    if FLAGS:
        with Server(HOLDFAST, *FLAGS) as server:
            yield str(server.kubeconfig)
        return
    server = subprocess.Popen([HOLDFAST, "with", "--", "sh", "-c", 'echo "$KUBECONFIG"; cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()
        server.wait()


def run_page(name):
    text = (DOCS / name).read_text()
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as folder:
        bin = pathlib.Path(folder) / "bin"
        bin.mkdir()
        (bin / "holdfast").symlink_to(HOLDFAST)
        if kubectl := needs.kubectl():
            (bin / "kubectl").symlink_to(shutil.which(kubectl))
        environment = needs.with_tools()
        # Compile Rust packages once per build tree, not once per run.
        environment.update(PATH=f"{bin}:{environment['PATH']}", KUBECACHEDIR=f"{folder}/cache",
                           CARGO_TARGET_DIR=str(HOLDFAST.parent.parent / "docs_test_cargo"))
        print("---", name, *FLAGS)
        page = Page(name, folder, environment)
        with temporary_server() as environment["KUBECONFIG"]:
            for kind, block in re.findall(r"^```([a-z]+(?: [^\n]*)?)\n(.*?)^```$", text, re.M | re.S):
                page.block(kind, block)


for name in PAGES:
    run_page(name)
finish()

#!/usr/bin/env python3
"""The console's page in a real browser (browser_test.mjs): console_test.py BINARY [--screenshots FOLDER | --pictures docs/console]

Needs Node; for the browser also Chromium and, from npm, playwright-core and axe-core. Writes screenshots of every view at every width, dark and light,
or the pictures of docs/console.md."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SOURCE.parent / "clients"))
from server import Server  # noqa: E402
import needs  # noqa: E402


def browser():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


if __name__ == "__main__":
    if not shutil.which("node"):
        needs.skip("node is not installed")
    no_browser = "chromium is not installed" if not browser() else needs.missing("npm")
    BINARY = os.path.abspath(sys.argv[1])
    FOLDERS = {name: os.path.abspath(sys.argv[3]) if sys.argv[2:3] == [f"--{name.lower()}"] else "" for name in ("SCREENSHOTS", "PICTURES")}
    if no_browser:
        needs.skip_part("the page in a browser", no_browser)
    with tempfile.TemporaryDirectory(prefix="holdfast-console-") as folder:
        for file in SOURCE.iterdir():
            if file.suffix in (".json", ".mjs"):
                shutil.copy(file, folder)
        if not no_browser:
            subprocess.run(["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund"], cwd=folder, check=True)
        with Server(BINARY) as server:
            environment = dict(os.environ, KUBECONFIG=str(server.kubeconfig), KUBECACHEDIR=folder + "/cache", HOLDFAST_BINARY=BINARY,
                               CHROMIUM=browser() or "", PAGE=str(SOURCE.parent.parent / "src/programs/console/page"), **FOLDERS)
            tests = ["page_test.mjs"] if no_browser else ["page_test.mjs", "browser_test.mjs"]
            done = subprocess.run(["node", "--test", "--test-concurrency=1", "--test-reporter=spec", *tests], cwd=folder, env=environment, check=False)
    sys.exit(done.returncode)

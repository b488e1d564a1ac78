#!/usr/bin/env python3
"""The test suite of a controller-runtime operator (operator/), as run by its author: operator_test.py BINARY

First with KUBEBUILDER_ASSETS from `holdfast envtest-assets`, then against a running server. If kube-apiserver is
available, its set-up time is printed for comparison.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Server  # noqa: E402
import needs  # noqa: E402

BINARY = None
SOURCE = pathlib.Path(__file__).parent / "operator"
ENVIRONMENT = needs.with_tools()


class OperatorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="holdfast-operator-")
        cls.suite = pathlib.Path(cls.folder.name) / "operator.test"
        subprocess.run(["go", "test", "-c", "-o", cls.suite, "."], cwd=SOURCE, env=ENVIRONMENT, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_suite(self, *flags, **environment):
        done = subprocess.run([self.suite, "-test.v", *flags], cwd=SOURCE, env=dict(ENVIRONMENT, **environment), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:])
        return done.stdout

    def assets(self):
        folder = pathlib.Path(self.folder.name) / "assets"
        subprocess.run([BINARY, "envtest-assets", folder], check=True, stdout=subprocess.DEVNULL)
        return str(folder)

    def set_up_ms(self, output):
        return int(re.search(r"envtest set-up: (\d+) ms", output).group(1))

    def test_the_unmodified_suite_passes_on_the_assets(self):
        output = self.run_suite(KUBEBUILDER_ASSETS=self.assets())
        times = f"envtest set-up: Holdfast {self.set_up_ms(output)} ms"
        if peer := needs.peer("kube-apiserver", "etcd"):
            real = self.run_suite("-test.run", "^$", KUBEBUILDER_ASSETS=str(peer))
            times += f", kube-apiserver and etcd {self.set_up_ms(real)} ms"
        print(times)

    def test_the_suite_passes_on_a_running_server(self):
        with Server(BINARY) as server:
            self.run_suite(USE_EXISTING_CLUSTER="true", KUBECONFIG=str(server.kubeconfig))


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    if reason := needs.missing("go"):
        needs.skip(reason)
    subprocess.run(["go", "mod", "download"], cwd=SOURCE, env=ENVIRONMENT, check=True)
    unittest.main(verbosity=2)

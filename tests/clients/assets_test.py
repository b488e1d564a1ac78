#!/usr/bin/env python3
"""The output of `holdfast envtest-assets` as used by test frameworks: assets_test.py BINARY"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Server, free_port, wait_until

BINARY = None


class ControlPlane:
    """etcd and kube-apiserver, started as envtest starts them, or (`one_dash`) io.fabric8:kube-api-test."""

    def __init__(self, assets, folder, *flags, one_dash=False):
        self.folder = pathlib.Path(folder)
        self.client, self.port = free_port(), free_port()
        data, certs = self.folder / "etcd", self.folder / "certs"
        certs.mkdir(exist_ok=True)
        self.log = open(self.folder / "log", "ab")
        run = lambda name, *arguments: subprocess.Popen([assets / name, *arguments], stdout=self.log, stderr=self.log)
        if one_dash:
            etcd = ["-data-dir", str(data), "-wal-dir", str(data) + "-wal", "-listen-client-urls", f"http://0.0.0.0:{self.client}",
                    "-advertise-client-urls", f"http://0.0.0.0:{self.client}", "-listen-peer-urls", f"http://localhost:{free_port()}"]
        else:
            etcd = [f"--advertise-client-urls=http://127.0.0.1:{self.client}", f"--data-dir={data}", f"--listen-client-urls=http://127.0.0.1:{self.client}",
                    f"--listen-peer-urls=http://127.0.0.1:{free_port()}", "--unsafe-no-fsync=true"]
        self.etcd = run("etcd", *etcd)
        wait_until("etcd is healthy", lambda: self.health() == 200, 120)
        (self.folder / "tokens").write_text('admin-token,admin,admin,"system:masters"\n')
        self.apiserver = run("kube-apiserver", "--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1",
                             f"--cert-dir={certs}", "--disable-admission-plugins=ServiceAccount",
                             f"--etcd-servers=http://127.0.0.1:{self.client}", f"--secure-port={self.port}",
                             "--service-cluster-ip-range=10.0.0.0/24", f"--token-auth-file={self.folder / 'tokens'}", *flags)
        wait_until("kube-apiserver is healthy", lambda: self.get("/healthz")[0] == 200, 120)

    def text(self):
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def health(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.client, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def get(self, path, method="GET", body=None, token=None, accept=None):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=ssl._create_unverified_context())
        headers = {"content-type": "application/json"}
        if accept:
            headers["accept"] = accept
        if token:
            headers["authorization"] = "Bearer " + token
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def stop(self):
        for process in (self.apiserver, self.etcd):
            process.terminate()
            if process.wait(10) != 0:
                raise AssertionError(self.text())
        self.log.close()


class AssetsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="holdfast-assets-")
        cls.assets = pathlib.Path(cls.folder.name) / "assets"
        subprocess.run([BINARY, "envtest-assets", cls.assets], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_asset(self, name, *arguments):
        return subprocess.run([self.assets / name, *arguments], text=True, capture_output=True, timeout=20, check=False)

    def test_creating_assets_again_changes_nothing(self):
        done = subprocess.run([BINARY, "envtest-assets", self.assets], text=True, capture_output=True, check=True)
        self.assertEqual(done.stdout, f"export KUBEBUILDER_ASSETS={self.assets}\nexport KUBE_API_TEST_DIR={self.assets}\n")
        versions = list((pathlib.Path(self.assets) / "k8s").iterdir())
        self.assertRegex(versions[0].name, r"^1\.\d+\.\d+-linux-(amd64|arm64)$")
        for name in ("kube-apiserver", "etcd", "kubectl"):
            self.assertTrue((versions[0] / name).exists(), f"kube-api-test finds {name}")

    def test_copies_are_regular_files(self):
        folder = pathlib.Path(self.folder.name) / "copies"
        for _ in range(2):  # The second time overwrites the first.
            subprocess.run([BINARY, "envtest-assets", "--copy", folder], check=True, stdout=subprocess.DEVNULL)
        for name in ("kube-apiserver", "etcd"):
            self.assertTrue((folder / name).is_file() and not (folder / name).is_symlink(), name)
        done = subprocess.run([folder / "kube-apiserver", "--version"], text=True, capture_output=True, timeout=20, check=True)
        self.assertRegex(done.stdout, r"^Kubernetes v1\.36\.")

    def test_help_contains_what_frameworks_look_for(self):
        etcd = self.run_asset("etcd", "--help")
        self.assertEqual(etcd.returncode, 0)
        self.assertRegex(etcd.stdout, r"(?m)^\s*--unsafe-no-fsync\b")
        apiserver = self.run_asset("kube-apiserver", "--help")
        self.assertEqual(apiserver.returncode, 0)
        self.assertIn("--etcd-servers", apiserver.stdout)
        self.assertNotIn("--insecure-port", apiserver.stdout)
        self.assertRegex(self.run_asset("kube-apiserver", "--version").stdout, r"^Kubernetes v1\.36\.")

    def test_unknown_flags_are_rejected_as_by_kube_apiserver(self):
        for arguments, message in ((["--no-such-flag=1"], "unknown flag: --no-such-flag"),
                                   (["--runtime-config"], "flag needs an argument: --runtime-config"),
                                   (["--authentication-config=/a"], "--authentication-config=/a is not supported by Holdfast"),
                                   (["--audit-log-format", "legacy"],
                                    "--audit-log-format=legacy is not supported by Holdfast; only json is"),
                                   (["--runtime-config=rbac.authorization.k8s.io/v1/roles=false"],
                                    "--runtime-config disables rbac.authorization.k8s.io/v1/roles, which this server needs itself"),
                                   (["--runtime-config=apps/v1,batch/v2alpha1"], "--runtime-config batch/v2alpha1 is not "
                                    "supported by Holdfast: there is no such version"),
                                   (["serve"], 'unknown command "serve" for "kube-apiserver"')):
            done = self.run_asset("kube-apiserver", *arguments)
            self.assertEqual((done.returncode, done.stderr), (1, f"Error: {message}\n"))

    def test_flags_that_exclude_each_other_are_refused_in_its_words(self):
        done = self.run_asset("kube-apiserver", "--etcd-servers=http://127.0.0.1:1", "--cert-dir", str(self.assets / "certs"),
                              "--service-account-signing-endpoint=/s", "--service-account-key-file=/k")
        self.assertEqual((done.returncode, done.stderr), (1, "holdfast: can't set `--service-account-signing-key-file` and/or `--service-account-key-file` "
                                                             "with `--service-account-signing-endpoint` (They are mutually exclusive)\n"))

    def test_data_survives_a_restart_and_no_controller_runs(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-plane-") as folder:
            plane = ControlPlane(self.assets, folder, "--runtime_config", "api/all=true", "--profiling",
                                 "--feature-gates=NoGateOfOurs=true", "--etcd-prefix=registry")
            self.assertIn("feature gate has no effect gate=\"NoGateOfOurs=true\"", plane.text())
            body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
            self.assertEqual(plane.get("/api/v1/namespaces", "POST", body, "admin-token")[0], 201)
            plane.stop()
            plane = ControlPlane(self.assets, folder)
            self.assertEqual(plane.get("/api/v1/namespaces/kept", token="admin-token")[0], 200)
            self.assertEqual(plane.get("/api/v1/namespaces/kept/serviceaccounts/default", token="admin-token")[0], 404)
            plane.stop()

    def test_dropping_fields_follows_the_rule_of_kubernetes(self):
        path = "/api/v1/namespaces/default"
        for flags, unknown in (((), 406), (("--strict-drop=false",), 200)):
            with tempfile.TemporaryDirectory(prefix="holdfast-plane-") as folder:
                plane = ControlPlane(self.assets, folder, *flags)
                try:
                    self.assertEqual(plane.get(path, token="admin-token", accept="application/json;drop=spec")[0], unknown, flags)
                    code, data = plane.get(path, token="admin-token", accept="application/json;drop=spec, application/json;drop=metadata.managedFields")
                    self.assertEqual((code, "managedFields" in data), (200, unknown == 200), flags)
                finally:
                    plane.stop()

    def test_all_ways_to_start_run_concurrently(self):
        """Two of kube-api-test, two of envtest with KUBEBUILDER_ASSETS, and a server for USE_EXISTING_CLUSTER: each has its own objects."""
        configmaps = "/api/v1/namespaces/default/configmaps"

        def write_and_list(name, get):
            body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
            wait_until(f"{name}: an object is created", lambda: get(configmaps, "POST", body, "admin-token")[0] in (201, 409))
            code, listed = get(configmaps, token="admin-token")
            return code, [item["metadata"]["name"] for item in json.loads(listed)["items"] if item["metadata"]["name"] != "kube-root-ca.crt"]

        def plane(name, one_dash):
            with tempfile.TemporaryDirectory(prefix="holdfast-plane-") as folder:
                started = ControlPlane(self.assets, folder, one_dash=one_dash)
                try:
                    return write_and_list(name, started.get)
                finally:
                    started.stop()

        def existing(name):
            with tempfile.TemporaryDirectory(prefix="holdfast-plane-") as folder:
                tokens = pathlib.Path(folder) / "tokens"
                tokens.write_text('admin-token,admin,admin,"system:masters"\n')
                with Server(BINARY, "--token-auth-file", str(tokens)) as server:
                    reached = ControlPlane.__new__(ControlPlane)
                    reached.port = urllib.parse.urlsplit(server.url()).port
                    return write_and_list(name, reached.get)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            started = {name: pool.submit(plane, name, one_dash) for name, one_dash in (("a", True), ("b", True), ("c", False), ("d", False))}
            started["e"] = pool.submit(existing, "e")
            for name, future in started.items():
                self.assertEqual(future.result(), (200, [name]))


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)

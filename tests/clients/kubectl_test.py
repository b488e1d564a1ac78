#!/usr/bin/env python3
"""kubectl as used by users, against a server started here: kubectl_test.py BINARY

Each test_ method is one story; HOLDFAST_KUBECONFIG selects a running server instead.
"""
import os
import pathlib
import sys
import tempfile
import time
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Kubectl, Server  # noqa: E402
import needs  # noqa: E402

BINARY = None

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80}]}]
"""


def config_map(name, **data):
    members = "".join(f"\n  {key}: {value!r}" for key, value in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:{members or ' {}'}\n"


class KubectlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="holdfast-kubectl-")
        cls.server = None
        kubeconfig = os.environ.get("HOLDFAST_KUBECONFIG")
        if not kubeconfig:
            cls.server = Server(BINARY)
            cls.server.start()
            kubeconfig = cls.server.kubeconfig
        cls.kubectl = Kubectl(kubeconfig, pathlib.Path(cls.folder.name) / "cache")

    @classmethod
    def tearDownClass(cls):
        if cls.server:
            cls.server.stop()
            cls.server.folder.cleanup()
        cls.folder.cleanup()

    def setUp(self):
        self.ns = "t-" + uuid.uuid4().hex[:8]
        self.kubectl.run("create", "namespace", self.ns)

    def tearDown(self):
        self.kubectl.run("delete", "namespace", self.ns, "--wait=false")

    def k(self, *arguments, **keywords):
        return self.kubectl.run("-n", self.ns, *arguments, **keywords)

    def each_kubectl(self):
        """kubectl on the PATH, and those in HOLDFAST_KUBECTLS (paths, separated by colons)."""
        yield self.kubectl
        for path in filter(None, os.environ.get("HOLDFAST_KUBECTLS", "").split(":")):
            if not os.access(path, os.X_OK):
                raise AssertionError(f"HOLDFAST_KUBECTLS: there is no kubectl at {path}")
            yield Kubectl(self.kubectl.environment["KUBECONFIG"], pathlib.Path(self.folder.name) / "other-cache", path)

    def test_unset_markers_work_with_kubectl(self):
        """As documented in docs/unsetting-fields.md: outside of the object's own metadata, but not in it."""
        manifest = DEPLOYMENT.replace("replicas: 2", "replicas: 2\n  minReadySeconds: 5").replace(
            'image: "nginx:1",', 'image: "nginx:1", env: [{name: DEBUG, value: "1"}, {name: KEEP, value: "1"}],')
        unset = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  minReadySeconds: {k8s_io__value: unset}
  template:
    metadata: {labels: {legacy: {k8s_io__value: unset}}}
    spec:
      containers:
      - name: web
        env: [{name: DEBUG, k8s_io__value: unset}]
"""
        in_metadata = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web, annotations: {legacy: {k8s_io__value: unset}}}
"""
        for kubectl in self.each_kubectl():
            version = kubectl.run("version", "--client")
            apply = ("apply", "-n", self.ns, "--server-side", "--field-manager=second", "--force-conflicts", "-f", "-")
            kubectl.run("apply", "-n", self.ns, "--server-side", "-f", "-", stdin=manifest)
            kubectl.run(*apply, "--validate=false", stdin=unset)
            done = kubectl.json("get", "-n", self.ns, "deployment", "web")
            self.assertNotIn("minReadySeconds", done["spec"], version)
            env = done["spec"]["template"]["spec"]["containers"][0]["env"]
            self.assertEqual([item["name"] for item in env], ["KEEP"], version)
            in_a_list = "apiVersion: v1\nkind: List\nitems:\n-" + unset.strip().replace("\n", "\n  ").join((" ", "\n"))
            self.assertIn("minReadySeconds", kubectl.run(*apply, stdin=in_a_list, fails=True), version)
            kubectl.run(*apply, "--validate=false", stdin=in_a_list)
            refused = kubectl.run(*apply, "--validate=false", stdin=in_metadata, fails=True)
            self.assertIn("cannot unmarshal", refused, version)
            kubectl.run("delete", "-n", self.ns, "deployment", "web")

    def test_client_side_apply_keeps_the_annotation_and_detects_no_change(self):
        self.assertIn("created", self.k("apply", "-f", "-", stdin=config_map("a", x="1")))
        self.assertIn("unchanged", self.k("apply", "-f", "-", stdin=config_map("a", x="1")))
        self.assertIn("configured", self.k("apply", "-f", "-", stdin=config_map("a", x="2")))
        got = self.kubectl.json("-n", self.ns, "get", "cm", "a")
        self.assertEqual(got["data"], {"x": "2"})
        self.assertIn("kubectl.kubernetes.io/last-applied-configuration", got["metadata"]["annotations"])

    def test_server_side_apply_conflicts_until_it_is_forced(self):
        self.k("apply", "--server-side", "--field-manager=alice", "-f", "-", stdin=config_map("s", color="red"))
        refused = self.k("apply", "--server-side", "--field-manager=bob", "-f", "-", stdin=config_map("s", color="blue"), fails=True)
        self.assertIn('conflict with "alice": .data.color', refused)
        self.k("apply", "--server-side", "--field-manager=bob", "--force-conflicts", "-f", "-", stdin=config_map("s", color="blue"))
        got = self.kubectl.json("-n", self.ns, "get", "cm", "s", "--show-managed-fields")
        owners = {entry["manager"]: entry.get("fieldsV1") for entry in got["metadata"]["managedFields"]}
        self.assertEqual(owners, {"bob": {"f:data": {"f:color": {}}}})

    def test_get_in_every_output_format(self):
        self.k("apply", "-f", "-", stdin=DEPLOYMENT)
        self.assertRegex(self.k("get", "deployments"), r"NAME\s+READY\s+UP-TO-DATE\s+AVAILABLE\s+AGE\nweb\s+0/2")
        self.assertIn("nginx:1", self.k("get", "deploy", "-o", "wide"))
        self.assertEqual(self.k("get", "deploy", "web", "-o", "name"), "deployment.apps/web\n")
        self.assertEqual(self.k("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"), "2")
        self.assertIn("replicas: 2", self.k("get", "deploy", "web", "-o", "yaml"))
        self.assertRegex(self.k("get", "deploy", "-l", "app=web", "--no-headers"), r"^web ")
        self.assertIn("No resources found", self.k("get", "deploy", "-l", "app=other"))
        self.assertRegex(self.k("get", "deploy", "-o", "custom-columns=N:.metadata.name"), r"N\nweb")
        self.assertIn("web", self.kubectl.run("get", "deploy", "-A", "--sort-by=.metadata.name"))

    def test_describe_shows_the_object(self):
        self.k("apply", "-f", "-", stdin=DEPLOYMENT)
        self.assertRegex(self.k("describe", "deployment", "web"), r"Replicas:\s+2 desired")

    def test_create_reports_existing_and_invalid_objects(self):
        self.k("create", "configmap", "c", "--from-literal=a=1")
        self.assertIn("already exists", self.k("create", "configmap", "c", fails=True))
        self.assertIn("a lowercase RFC 1123 subdomain", self.k("create", "configmap", "Not_A_Name", fails=True))
        unknown = config_map("u") + "nonsense: 1\n"
        self.assertIn('unknown field "nonsense"', self.k("create", "-f", "-", stdin=unknown, fails=True))
        self.assertIn("NotFound", self.k("get", "cm", "missing", fails=True))

    def test_label_annotate_patch_and_edit_by_patch(self):
        self.k("create", "configmap", "c", "--from-literal=a=1")
        self.k("label", "cm", "c", "tier=front")
        self.k("annotate", "cm", "c", "note=hello")
        self.k("patch", "cm", "c", "--type=json", "-p", '[{"op":"add","path":"/data/b","value":"2"}]')
        self.k("patch", "cm", "c", "--type=merge", "-p", '{"data":{"a":null}}')
        self.k("patch", "cm", "c", "-p", '{"data":{"c":"3"}}')
        got = self.kubectl.json("-n", self.ns, "get", "cm", "c")
        self.assertEqual((got["data"], got["metadata"]["labels"], got["metadata"]["annotations"]),
                         ({"b": "2", "c": "3"}, {"tier": "front"}, {"note": "hello"}))
        self.k("label", "cm", "c", "tier-")
        self.assertNotIn("labels", self.kubectl.json("-n", self.ns, "get", "cm", "c")["metadata"])

    def test_diff_shows_changes_without_applying_them(self):
        self.k("apply", "-f", "-", stdin=config_map("d", x="1"))
        shown = self.k("diff", "-f", "-", stdin=config_map("d", x="2"), fails=True)
        self.assertRegex(shown, r'(?m)^\+\s+x: "?2"?')
        self.assertEqual(self.kubectl.json("-n", self.ns, "get", "cm", "d")["data"], {"x": "1"})

    def test_dry_run_on_the_server_changes_nothing(self):
        self.k("create", "configmap", "c", "--dry-run=server")
        self.assertIn("NotFound", self.k("get", "cm", "c", fails=True))

    def test_scale_and_rollout(self):
        self.k("apply", "-f", "-", stdin=DEPLOYMENT)
        self.k("scale", "deployment", "web", "--replicas=5")
        self.assertEqual(self.k("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"), "5")
        self.assertIn("Waiting for deployment", self.k("rollout", "status", "deployment/web", "--timeout=1s", fails=True))
        self.k("rollout", "restart", "deployment/web")
        self.k("set", "image", "deployment/web", "web=nginx:2")
        self.assertIn("nginx:2", self.k("get", "deploy", "-o", "wide"))

    def test_delete_waits_until_the_object_is_gone(self):
        self.k("create", "configmap", "c")
        self.assertIn("deleted", self.k("delete", "cm", "c"))
        self.assertIn("not found", self.k("delete", "cm", "c", fails=True))
        self.k("create", "configmap", "first-map")
        self.k("create", "configmap", "second-map")
        self.k("delete", "cm", "--all")
        self.assertNotIn("first-map", self.k("get", "cm"))

    def test_wait_for_a_condition_that_a_status_write_sets(self):
        self.k("apply", "-f", "-", stdin=DEPLOYMENT)
        self.k("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p",
               '{"status":{"conditions":[{"type":"Available","status":"True","reason":"R","message":"m"}]}}')
        self.assertIn("condition met", self.k("wait", "deploy/web", "--for=condition=Available", "--timeout=60s"))
        self.k("delete", "deploy", "web", "--wait=false")
        self.k("wait", "deploy/web", "--for=delete", "--timeout=60s")

    def test_explain_reads_the_published_schema(self):
        shown = self.k("explain", "deployment.spec.strategy")
        self.assertIn("FIELD: strategy", shown)
        self.assertIn("rollingUpdate", shown)
        self.assertIn("`Recreate` stops all old pods", " ".join(shown.split()))

    def test_api_resources_and_versions(self):
        shown = self.kubectl.run("api-resources")
        for name in ("configmaps", "deployments", "customresourcedefinitions", "flowschemas"):
            self.assertIn(name, shown)
        self.assertIn("apps/v1\n", self.kubectl.run("api-versions"))
        self.assertIn("v1.36", self.kubectl.run("version"))

    def test_replace_needs_the_current_version(self):
        self.k("apply", "-f", "-", stdin=config_map("r", x="1"))
        stale = self.k("get", "cm", "r", "-o", "yaml")
        self.k("patch", "cm", "r", "--type=merge", "-p", '{"data":{"x":"2"}}')
        self.assertIn("the object has been modified", self.k("replace", "-f", "-", stdin=stale, fails=True))

    def test_watch_prints_changes(self):
        self.k("create", "configmap", "c")
        shown = self.k("get", "cm", "c", "--watch", "--output-watch-events", "--request-timeout=1s")
        self.assertRegex(shown, r"ADDED\s+c")

    def test_a_namespace_is_deleted_with_its_content(self):
        name = self.ns + "-gone"
        self.kubectl.run("create", "namespace", name)
        self.kubectl.run("-n", name, "create", "configmap", "c")
        self.kubectl.run("-n", name, "apply", "-f", "-", stdin=DEPLOYMENT)
        self.kubectl.run("delete", "namespace", name, "--timeout=60s")
        self.assertIn("NotFound", self.kubectl.run("get", "namespace", name, fails=True))

    def test_a_new_namespace_has_a_service_account_and_the_ca(self):
        deadline = time.monotonic() + 120
        while "BEGIN CERTIFICATE" not in self.k("get", "cm", "-o", "yaml") or "default" not in self.k("get", "sa"):
            self.assertLess(time.monotonic(), deadline, "the namespace did not get its initial objects")
            time.sleep(0.05)

    def test_auth_can_i(self):
        if needs.minor_of(self.kubectl.binary) < 28:
            self.skipTest("kubectl is older than 1.28")
        self.assertEqual(self.k("auth", "can-i", "create", "pods").strip(), "yes")
        self.assertRegex(self.k("auth", "whoami"), r"system:masters")


if __name__ == "__main__":
    BINARY = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
    if needs.kubectl() is None:
        needs.skip(needs.NO_KUBECTL)
    unittest.main(verbosity=2)

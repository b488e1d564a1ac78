#!/usr/bin/env python3
"""The embedded controllers, tested against a server started here: controllers_test.py BINARY"""
import concurrent.futures
import datetime
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Connection, Holdfast, Server, wait_until  # noqa: E402

BINARY = None

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.stories.example.com}
spec:
  group: stories.example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
"""


class Story(unittest.TestCase):
    """One server for all tests of a class; each test has its own namespace."""
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(BINARY, *cls.flags)
        cls.server.start()
        cls.cache = tempfile.TemporaryDirectory(prefix="holdfast-controllers-")
        cls.holdfast = Holdfast(cls.server, cls.cache.name)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cache.cleanup()

    def setUp(self):
        self.ns = "s-" + uuid.uuid4().hex[:12]
        self.holdfast.create_namespace(self.ns)

    def k(self, *arguments, **more):
        return self.holdfast.run("-n", self.ns, *arguments, **more)

    def patch(self, path, change, kind="merge", **more):
        """Of an object of the core group in the test's namespace."""
        return self.holdfast.patch(f"/api/v1/namespaces/{self.ns}/{path}", change, kind, **more)

    def json(self, *arguments):
        return self.holdfast.json("-n", self.ns, *arguments)

    def make(self, *objects):
        """Creates objects and returns them as stored."""
        self.k("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return [self.get(o["kind"], o["metadata"]["name"]) for o in objects]

    def get(self, kind, name):
        return self.json("get", kind, name)

    def there(self, kind, name):
        return self.k("get", kind, name, "--ignore-not-found", "-o", "name").strip() != ""

    def stays(self, check, seconds=0.5):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertTrue(check())
            time.sleep(0.05)


def config_map(name, *owners, block=None, **metadata):
    references = [reference(o, block) for o in owners]
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, **({"ownerReferences": references} if references else {}), **metadata}}


def reference(owner, block=None):
    found = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return found if block is None else {**found, "blockOwnerDeletion": block}


class GarbageCollection(Story):
    def test_background_deletes_children_and_grandchildren(self):
        [owner] = self.make(config_map("owner"))
        [child] = self.make(config_map("child", owner))
        self.make(config_map("grandchild", child), config_map("stranger"))
        self.k("delete", "configmap", "owner")
        wait_until("the child stayed", lambda: not self.there("configmap", "child"))
        wait_until("the grandchild stayed", lambda: not self.there("configmap", "grandchild"))
        self.assertTrue(self.there("configmap", "stranger"))

    def test_foreground_waits_for_blocking_dependents(self):
        [owner] = self.make(config_map("owner"))
        self.make(config_map("held", owner, block=True, finalizers=["example.com/hold"]), config_map("loose", owner))
        self.k("delete", "configmap", "owner", "--cascade=foreground", "--wait=false")
        wait_until("the loose one stayed", lambda: not self.there("configmap", "loose"))
        wait_until("the held one is not deleted", lambda: "deletionTimestamp" in self.get("configmap", "held")["metadata"])
        self.stays(lambda: self.get("configmap", "owner")["metadata"]["finalizers"] == ["foregroundDeletion"])
        self.patch("configmaps/held", [{"op": "remove", "path": "/metadata/finalizers"}], "json")
        wait_until("the owner stayed", lambda: not self.there("configmap", "owner"))

    def test_foreground_handles_deep_trees_and_cycles(self):
        [owner] = self.make(config_map("owner"))
        [child] = self.make(config_map("child", owner, block=True))
        [grandchild] = self.make(config_map("grandchild", child, block=True))
        self.patch("configmaps/owner", {"metadata": {"ownerReferences": [reference(grandchild, True)]}})
        self.k("delete", "configmap", "owner", "--cascade=foreground", "--wait=false")
        for name in ("grandchild", "child", "owner"):
            wait_until(f"{name} stayed", lambda: not self.there("configmap", name))

    def test_orphan_removes_owner_references_first(self):
        [owner, other] = self.make(config_map("owner"), config_map("other"))
        self.make(config_map("child", owner), config_map("shared", owner, other))
        self.k("delete", "configmap", "owner", "--cascade=orphan")
        self.assertNotIn("ownerReferences", self.get("configmap", "child")["metadata"])
        self.assertEqual(self.get("configmap", "shared")["metadata"]["ownerReferences"], [reference(other)])

    def test_a_remaining_owner_keeps_the_dependent(self):
        [first, second] = self.make(config_map("first"), config_map("second"))
        self.make(config_map("child", first, second))
        self.k("delete", "configmap", "first")
        wait_until("the reference stayed", lambda: self.get("configmap", "child")["metadata"]["ownerReferences"] == [reference(second)])
        self.k("delete", "configmap", "second")
        wait_until("the child stayed", lambda: not self.there("configmap", "child"))

    def test_dependents_of_missing_owners_are_collected(self):
        [owner] = self.make(config_map("owner"))
        gone = {**owner, "metadata": {**owner["metadata"], "uid": str(uuid.uuid4())}}
        self.k("create", "-f", "-", stdin=json.dumps(config_map("of-another-uid", gone)))
        nameless = {**gone, "metadata": {"name": "never", "uid": str(uuid.uuid4())}}
        self.k("create", "-f", "-", stdin=json.dumps(config_map("of-nobody", nameless)))
        wait_until("another uid counted", lambda: not self.there("configmap", "of-another-uid"))
        wait_until("nobody counted", lambda: not self.there("configmap", "of-nobody"))
        self.assertTrue(self.there("configmap", "owner"))

    def test_cross_namespace_owners_count_as_missing_and_cause_an_event(self):
        [owner] = self.make(config_map("owner"))
        far = "far-" + self.ns
        self.holdfast.create_namespace(far)
        self.holdfast.create(config_map("child", owner), namespace=far)
        wait_until("it stayed", lambda: self.holdfast.run("-n", far, "get", "configmap", "child", "--ignore-not-found") == "")
        events = self.holdfast.json("-n", far, "get", "events")["items"]
        self.assertEqual([(e["reason"], e["type"]) for e in events], [("OwnerRefInvalidNamespace", "Warning")])
        self.assertEqual(events[0]["message"], f'ownerRef [v1/ConfigMap, namespace: {far}, name: owner, uid: '
                                               f'{owner["metadata"]["uid"]}] does not exist in namespace "{far}"')

    def test_cluster_scoped_objects_are_never_collected_for_a_namespaced_owner(self):
        [owner] = self.make(config_map("owner"))
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": self.ns, "ownerReferences": [reference(owner)]}, "rules": []}
        self.k("create", "-f", "-", stdin=json.dumps(role))
        self.k("delete", "configmap", "owner")
        self.stays(lambda: self.there("clusterrole", self.ns))

    def test_custom_resources_own_and_are_owned(self):
        self.k("apply", "-f", "-", stdin=WIDGETS)
        self.holdfast.run("wait", "--for=condition=Established", "crd/widgets.stories.example.com")
        widget = {"apiVersion": "stories.example.com/v1", "kind": "Widget", "metadata": {"name": "top"}}
        [top] = self.make(widget)
        [middle] = self.make({**widget, "metadata": {"name": "middle", "ownerReferences": [reference(top, True)]}})
        self.make(config_map("bottom", middle, block=True))
        self.k("delete", "widget", "top", "--cascade=foreground")
        for kind, name in (("widget", "middle"), ("configmap", "bottom"), ("widget", "top")):
            wait_until(f"{name} stayed", lambda: not self.there(kind, name))

    def test_owners_of_kinds_defined_later_are_waited_for(self):
        plural = "late" + uuid.uuid4().hex[:6]
        owner = {"apiVersion": f"{plural}.example.com/v1", "kind": "Late", "metadata": {"name": "x", "uid": str(uuid.uuid4())}}
        self.k("create", "-f", "-", stdin=json.dumps(config_map("child", owner)))
        self.stays(lambda: self.there("configmap", "child"))
        self.k("apply", "-f", "-", stdin=WIDGETS.replace("widgets.stories.example.com", f"{plural}.{plural}.example.com")
                  .replace("stories.example.com", f"{plural}.example.com").replace("kind: Widget, plural: widgets", f"kind: Late, plural: {plural}"))
        wait_until("it stayed", lambda: not self.there("configmap", "child"))


def pod(name, **requests):
    resources = {"requests": requests, "limits": requests} if requests else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}


class Quotas(Story):
    def quota(self, hard, **spec):
        self.k("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
                                                      "spec": {"hard": hard, **spec}}))
        wait_until("not counted", lambda: "used" in self.get("quota", "q").get("status", {}))

    def used(self):
        return self.get("quota", "q")["status"]["used"]

    def create(self, object, **more):
        return self.k("create", "-f", "-", stdin=json.dumps(object), **more)

    def test_pods_over_quota_are_rejected_and_usage_is_released(self):
        wait_until("no service account", lambda: self.there("serviceaccount", "default"))
        self.quota({"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"})
        self.assertEqual(self.get("quota", "q")["status"], {"hard": {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"},
                                                            "used": {"pods": "0", "requests.cpu": "0", "limits.memory": "0"}})
        self.create(pod("a", cpu="600m", memory="512Mi"))
        self.assertEqual(self.used(), {"pods": "1", "requests.cpu": "600m", "limits.memory": "512Mi"})
        self.assertIn('pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1',
                      self.create(pod("b", cpu="600m", memory="1Mi"), fails=True))
        self.assertIn('pods "b" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c',
                      self.create(pod("b"), fails=True))
        self.k("delete", "pod", "a", "--grace-period=0", "--force")
        wait_until("still used", lambda: self.used() == {"pods": "0", "requests.cpu": "0", "limits.memory": "0"})
        self.create(pod("b", cpu="600m", memory="1Mi"))

    def test_existing_objects_are_counted_and_failed_writes_are_not(self):
        self.make(config_map("one"))
        wait_until("no root CA", lambda: self.there("configmap", "kube-root-ca.crt"))
        self.quota({"count/configmaps": "3", "count/widgets.stories.example.com": "1", "services.nodeports": "1"})
        self.assertEqual(self.used()["count/configmaps"], "2")
        self.create(config_map("one"), fails=True)
        wait_until("the failed write still counts", lambda: self.used()["count/configmaps"] == "2")
        self.create(config_map("two"))
        self.assertIn("exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3",
                      self.create(config_map("three"), fails=True))
        self.k("apply", "-f", "-", stdin=WIDGETS)
        self.holdfast.run("wait", "--for=condition=Established", "crd/widgets.stories.example.com")
        wait_until("not counted", lambda: "count/widgets.stories.example.com" in self.used())
        widget = {"apiVersion": "stories.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
        self.create(widget)
        self.assertIn('widgets.stories.example.com "b" is forbidden: exceeded quota: q, requested: count/widgets.stories.example.com=1',
                      self.create({**widget, "metadata": {"name": "b"}}, fails=True))
        self.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                     "spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}})
        self.assertIn('services "s" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1',
                      self.patch("services/s", {"spec": {"type": "NodePort"}}, fails=True))

    def test_scopes_select_pods(self):
        wait_until("no service account", lambda: self.there("serviceaccount", "default"))
        self.quota({"pods": "0"}, scopes=["BestEffort"])
        self.create(pod("a", cpu="1", memory="1Mi"))
        self.assertIn("exceeded quota: q, requested: pods=1", self.create(pod("b"), fails=True))

    def test_concurrent_writes_never_exceed_a_quota(self):
        self.quota({"count/secrets": "10"})
        body = lambda i: json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{i}"}})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: self.server_post(f"/api/v1/namespaces/{self.ns}/secrets", body(i)), range(60)))
        self.assertEqual(sorted(answers), [201] * 10 + [403] * 50)
        self.assertEqual(len(self.json("get", "secrets")["items"]), 10)

    def server_post(self, path, body):
        with Connection(self.server) as connection:
            return connection.call("POST", path, json.loads(body))[0]


class Expiry(Story):
    flags = ("--event-ttl=2s",)

    def test_events_expire(self):
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": self.ns}, "reason": "Test"}
        self.k("create", "-f", "-", stdin=json.dumps(event))
        newer = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "f"}, "regarding": {"namespace": self.ns}, "reason": "Test",
                 "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Wait", "reportingController": "t/t", "reportingInstance": "t", "type": "Normal"}
        self.k("create", "-f", "-", stdin=json.dumps(newer))
        wait_until("the events stayed", lambda: self.json("get", "events")["items"] == [])

    def test_leases_of_stopped_servers_are_deleted(self):
        lease = lambda name, renewed: {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
            "name": name, "namespace": "kube-system", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 3600, "renewTime": renewed}}
        self.holdfast.run("create", "-f", "-", stdin=json.dumps(lease("apiserver-old", "2020-01-01T00:00:00.000000Z")))
        self.holdfast.run("create", "-f", "-", stdin=json.dumps(lease("apiserver-new", "2120-01-01T00:00:00.000000Z")))
        self.server.stop()
        self.server.start()
        type(self).holdfast = Holdfast(self.server, self.cache.name)
        leases = lambda: [l["metadata"]["name"] for l in self.holdfast.json("-n", "kube-system", "get", "leases")["items"]]
        wait_until("it stayed", lambda: "apiserver-old" not in leases())
        self.assertIn("apiserver-new", leases())


class PausedControllers(Story):
    def lease(self, seconds_ago):
        now = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds_ago)
        return json.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                           "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
                           "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15,
                                    "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})

    def test_controllers_pause_while_a_controller_manager_holds_its_lease(self):
        [owner] = self.make(config_map("owner"))
        self.make(config_map("child", owner))
        self.holdfast.run("apply", "-f", "-", stdin=self.lease(0))
        time.sleep(0.3)  # The observed lease is at most that old.
        self.k("delete", "configmap", "owner")
        self.stays(lambda: self.there("configmap", "child"), 1)
        self.holdfast.run("apply", "-f", "-", stdin=self.lease(60))
        wait_until("it still rests", lambda: not self.there("configmap", "child"))


class TypeChecking(Story):
    def policy(self, *expressions):
        return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": self.ns + ".example.com"},
                "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}]},
                         "validations": [{"expression": expression} for expression in expressions]}}

    def status(self):
        return self.get("validatingadmissionpolicy", self.ns + ".example.com").get("status", {})

    def test_policy_status_has_type_checking_warnings(self):
        self.make(self.policy("object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'", "object.spec.replicas > '1'", "object.spec.nope == 1"))
        wait_until("it was not checked", lambda: self.status().get("observedGeneration") == 1)
        warnings = self.status()["typeChecking"]["expressionWarnings"]
        self.assertEqual([w["fieldRef"] for w in warnings], ["spec.validations[1].expression", "spec.validations[2].expression"])
        self.assertEqual(warnings[1]["warning"], "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'nope'\n | object.spec.nope == 1\n | ...........^\n")
        self.make(self.policy("object.spec.replicas > 1"))
        wait_until("it was not checked again", lambda: self.status().get("observedGeneration") == 2)
        self.assertFalse(self.status().get("typeChecking"))


class Namespaces(Story):
    def test_namespaces_get_their_initial_objects(self):
        wait_until("no service account", lambda: self.there("serviceaccount", "default"))
        wait_until("no root CA", lambda: self.there("configmap", "kube-root-ca.crt"))
        self.assertIn("BEGIN CERTIFICATE", self.get("configmap", "kube-root-ca.crt")["data"]["ca.crt"])

    def test_deleted_namespaces_wait_for_finalizers(self):
        self.make(config_map("held", finalizers=["example.com/hold"]), config_map("loose"))
        self.holdfast.run("delete", "namespace", self.ns, "--wait=false")
        wait_until("the loose one stayed", lambda: not self.there("configmap", "loose"))
        self.assertEqual(self.holdfast.json("get", "namespace", self.ns)["status"]["phase"], "Terminating")
        self.patch("configmaps/held", [{"op": "remove", "path": "/metadata/finalizers"}], "json")
        wait_until("the namespace stayed", lambda: self.holdfast.run("get", "namespace", self.ns, "--ignore-not-found") == "")


MERGE = "application/merge-patch+json"


def definition(plural, kind, **versions):
    """A CustomResourceDefinition plural.hurry.example.com."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.hurry.example.com"},
            "spec": {"group": "hurry.example.com", "names": {"kind": kind, "plural": plural}, "scope": "Namespaced",
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema, **versions}]}}


class RapidChanges(Story):
    """Creates, changes and deletes on one connection without pauses: events that arrive while their object is being
    processed must not be lost."""
    CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def setUp(self):
        super().setUp()
        self.c = Connection(self.server)
        self.addCleanup(self.c.connection.close)

    def gone(self, path):
        return self.c.call("GET", path)[0] == 404

    def test_namespaces_deleted_immediately_are_removed(self):
        paths = []
        for i in range(60):
            name = f"{self.ns}-{i}"
            self.c.done("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            if i % 3 == 0:
                self.c.done("PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
            if i % 3 == 1:
                self.c.done("POST", f"/api/v1/namespaces/{name}/configmaps", config_map("x"))
            self.c.done("DELETE", f"/api/v1/namespaces/{name}")
            paths.append(f"/api/v1/namespaces/{name}")
        for path in paths:
            wait_until(f"{path} stayed", lambda: self.gone(path))

    def test_a_recreated_namespace_gets_its_objects_and_can_be_deleted(self):
        path = f"/api/v1/namespaces/{self.ns}-again"
        for _ in range(10):
            self.c.done("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.ns + "-again"}})
            self.c.done("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
            self.c.done("DELETE", path)
            wait_until("the namespace stayed", lambda: self.gone(path))
        self.c.done("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.ns + "-again"}})
        wait_until("no service account", lambda: not self.gone(path + "/serviceaccounts/default"))
        wait_until("no root CA", lambda: not self.gone(path + "/configmaps/kube-root-ca.crt"))

    def test_dependents_of_short_lived_owners_are_collected(self):
        root = f"/api/v1/namespaces/{self.ns}/configmaps"
        kept, lost = [], []
        for i in range(40):
            owner = self.c.done("POST", root, config_map(f"owner-{i}"))
            self.c.done("POST", root, config_map(f"child-{i}", owner, block=True))
            self.c.done("PATCH", f"{root}/child-{i}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
            policy = ("Background", "Foreground", "Orphan")[i % 3]
            self.c.done("DELETE", f"{root}/owner-{i}", {"propagationPolicy": policy})
            lost.append(f"{root}/owner-{i}")
            (kept if policy == "Orphan" else lost).append(f"{root}/child-{i}")
        for path in lost:
            wait_until(f"{path} stayed", lambda: self.gone(path))
        for path in kept:
            self.assertNotIn("ownerReferences", self.c.done("GET", path)["metadata"])

    def test_dependents_created_after_their_owner_was_deleted_are_collected(self):
        root = f"/api/v1/namespaces/{self.ns}/configmaps"
        for i in range(30):
            owner = self.c.done("POST", root, config_map(f"owner-{i}"))
            self.c.done("DELETE", f"{root}/owner-{i}")
            self.c.done("POST", root, config_map(f"child-{i}", owner))
        for i in range(30):
            wait_until(f"child-{i} stayed", lambda: self.gone(f"{root}/child-{i}"))

    def test_quotas_converge_to_the_actual_usage(self):
        root = f"/api/v1/namespaces/{self.ns}"
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "100"}}}
        left = 0
        for i in range(40):
            if i % 10 == 0:
                self.c.call("DELETE", f"{root}/resourcequotas/q")
                self.c.done("POST", f"{root}/resourcequotas", quota)
            code, _ = self.c.call("POST", f"{root}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{i}"}})
            if i % 5 == 0:
                self.c.call("PATCH", f"{root}/resourcequotas/q", {"spec": {"hard": {"count/secrets": str(100 + i)}}}, MERGE)
            if i % 3 != 0 and code == 201:
                self.c.done("DELETE", f"{root}/secrets/s{i}")
            elif code == 201:
                left += 1
        used = lambda: self.c.done("GET", f"{root}/resourcequotas/q").get("status", {}).get("used", {}).get("count/secrets")
        wait_until(f"not {left} are used", lambda: used() == str(left))

    def test_aggregated_roles_converge_to_the_existing_rules(self):
        root, label = "/apis/rbac.authorization.k8s.io/v1/clusterroles", "hurry.example.com/" + self.ns
        role = lambda i: {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"{self.ns}-{i}", "labels": {label: "yes"}},
                          "rules": [{"apiGroups": [""], "resources": [f"r{i}"], "verbs": ["get"]}]}
        self.c.done("POST", root, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": self.ns},
                                   "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]}, "rules": []})
        for i in range(20):
            self.c.done("POST", root, role(i))
            if i % 4 == 0:
                self.c.done("PATCH", f"{root}/{self.ns}-{i}", {"metadata": {"labels": {label: "no"}}}, MERGE)
            elif i % 4 != 1:
                self.c.done("DELETE", f"{root}/{self.ns}-{i}")
        wanted = sorted(f"r{i}" for i in range(20) if i % 4 == 1)
        rules = lambda: sorted(r["resources"][0] for r in self.c.done("GET", f"{root}/{self.ns}").get("rules") or [])
        wait_until(f"not {wanted}", lambda: rules() == wanted)

    def test_short_lived_definitions_leave_nothing_behind(self):
        path, objects = f"{self.CRDS}/gadgets.hurry.example.com", f"/apis/hurry.example.com/v1/namespaces/{self.ns}/gadgets"
        before = self.c.metric("holdfast_caches")
        for i in range(15):
            self.c.done("POST", self.CRDS, definition("gadgets", "Gadget"))
            owner = self.c.done("POST", objects, {"apiVersion": "hurry.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}})
            self.c.done("POST", objects, {"apiVersion": "hurry.example.com/v1", "kind": "Gadget",
                                          "metadata": {"name": "h", "ownerReferences": [reference(owner, True)]}})
            if i % 2:
                self.c.done("PATCH", path, {"spec": {"names": {"categories": [f"c{i}"]}}}, MERGE)
            self.c.done("DELETE", path)
            wait_until("the definition stayed", lambda: self.gone(path))
        wait_until("caches of kinds that are gone stayed in memory", lambda: self.c.metric("holdfast_caches") <= before)

    def test_dependents_of_a_changed_kind_are_collected(self):
        path, objects = f"{self.CRDS}/changes.hurry.example.com", f"/apis/hurry.example.com/v1/namespaces/{self.ns}/changes"
        self.c.done("POST", self.CRDS, definition("changes", "Change"))
        thing = lambda name, *owners: {"apiVersion": "hurry.example.com/v1", "kind": "Change",
                                       "metadata": {"name": name, "ownerReferences": [reference(o, True) for o in owners]}}
        before = None
        for i in range(6):
            owner = self.c.done("POST", objects, thing(f"owner-{i}"))
            self.c.done("POST", objects, thing(f"child-{i}", owner))
            self.c.done("PATCH", path, {"spec": {"names": {"categories": [f"c{i}"]}}}, MERGE)
            self.c.done("DELETE", f"{objects}/owner-{i}", {"propagationPolicy": ("Background", "Foreground")[i % 2]})
            for name in (f"owner-{i}", f"child-{i}"):
                wait_until(f"{name} stayed", lambda: self.gone(f"{objects}/{name}"))
            before = before or self.c.metric("holdfast_caches")
        wait_until("caches of former generations stayed in memory", lambda: self.c.metric("holdfast_caches") <= before)

    def test_a_definition_being_deleted_serves_everything_but_creation(self):
        path, objects = f"{self.CRDS}/helds.hurry.example.com", f"/apis/hurry.example.com/v1/namespaces/{self.ns}/helds"
        self.c.done("POST", self.CRDS, definition("helds", "Held"))
        held = {"apiVersion": "hurry.example.com/v1", "kind": "Held", "metadata": {"name": "h", "finalizers": ["example.com/hold"]}}
        self.c.done("POST", objects, held)
        self.c.done("DELETE", path)
        wait_until("the object is not deleted", lambda: "deletionTimestamp" in self.c.done("GET", f"{objects}/h")["metadata"])
        refused = 'helds.hurry.example.com "n" is forbidden: create not allowed while custom resource definition is terminating'
        new = {**held, "metadata": {"name": "n"}}
        for method, target, kind in (("POST", objects, "application/json"), ("PATCH", f"{objects}/n?fieldManager=m", "application/apply-patch+yaml")):
            code, answer = self.c.call(method, target, new, kind)
            self.assertEqual((code, answer["reason"], answer["message"]), (403, "Forbidden", refused))
        # A definition that is being deleted can be written, without waiting for its objects.
        self.c.done("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
        live = self.c.done("GET", f"{objects}/h")
        live["spec"] = {"by": "put"}
        self.c.done("PUT", f"{objects}/h", live)
        self.c.done("PATCH", f"{objects}/h?fieldManager=m&force=true", {**held, "spec": {"by": "apply"}}, "application/apply-patch+yaml")
        self.assertFalse(self.gone(path))
        self.c.done("PATCH", f"{objects}/h", {"metadata": {"finalizers": None}}, MERGE)
        wait_until("the definition stayed", lambda: self.gone(path))


class DisabledControllers(Story):
    flags = ("--controllers=*,-garbage-collector,-serviceaccount",)

    def test_disabled_controllers_do_nothing_and_the_others_work(self):
        [owner] = self.make(config_map("owner"))
        self.make(config_map("child", owner))
        self.k("delete", "configmap", "owner")
        wait_until("no root CA", lambda: self.there("configmap", "kube-root-ca.crt"))
        self.stays(lambda: self.there("configmap", "child"))
        self.assertFalse(self.there("serviceaccount", "default"))


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)

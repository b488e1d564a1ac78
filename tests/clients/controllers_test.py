#!/usr/bin/env python3
"""The embedded controllers, each through kubectl, against a server that this test starts: controllers_test.py BINARY"""
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
from server import Kubectl, Server  # noqa: E402

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
    """One server for the stories of a class; each story has a namespace of its own."""
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(BINARY, *cls.flags)
        cls.server.start()
        cls.cache = tempfile.TemporaryDirectory(prefix="holdfast-kubectl-")
        cls.kubectl = Kubectl(cls.server.kubeconfig, cls.cache.name)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cache.cleanup()

    def setUp(self):
        self.ns = "s-" + uuid.uuid4().hex[:12]
        self.kubectl.run("create", "namespace", self.ns)

    def k(self, *arguments, **more):
        return self.kubectl.run("-n", self.ns, *arguments, **more)

    def json(self, *arguments):
        return self.kubectl.json("-n", self.ns, *arguments)

    def make(self, *objects):
        """Creates them and returns them as they are now."""
        self.k("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return [self.get(o["kind"], o["metadata"]["name"]) for o in objects]

    def get(self, kind, name):
        return self.json("get", kind, name)

    def there(self, kind, name):
        return self.k("get", kind, name, "--ignore-not-found", "-o", "name").strip() != ""

    def wait(self, what, check, seconds=10):
        end = time.monotonic() + seconds
        while not check():
            if time.monotonic() > end:
                self.fail(what)
            time.sleep(0.02)

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
    def test_background_takes_children_and_grandchildren(self):
        [owner] = self.make(config_map("owner"))
        [child] = self.make(config_map("child", owner))
        self.make(config_map("grandchild", child), config_map("stranger"))
        self.k("delete", "configmap", "owner")
        self.wait("the child stayed", lambda: not self.there("configmap", "child"))
        self.wait("the grandchild stayed", lambda: not self.there("configmap", "grandchild"))
        self.assertTrue(self.there("configmap", "stranger"))

    def test_foreground_waits_for_those_that_block(self):
        [owner] = self.make(config_map("owner"))
        self.make(config_map("held", owner, block=True, finalizers=["example.com/hold"]), config_map("loose", owner))
        self.k("delete", "configmap", "owner", "--cascade=foreground", "--wait=false")
        self.wait("the loose one stayed", lambda: not self.there("configmap", "loose"))
        self.wait("the held one is not deleted", lambda: "deletionTimestamp" in self.get("configmap", "held")["metadata"])
        self.stays(lambda: self.get("configmap", "owner")["metadata"]["finalizers"] == ["foregroundDeletion"])
        self.k("patch", "configmap", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
        self.wait("the owner stayed", lambda: not self.there("configmap", "owner"))

    def test_foreground_goes_down_the_whole_tree_and_through_circles(self):
        [owner] = self.make(config_map("owner"))
        [child] = self.make(config_map("child", owner, block=True))
        [grandchild] = self.make(config_map("grandchild", child, block=True))
        self.k("patch", "configmap", "owner", "--type=merge", "-p", json.dumps({"metadata": {"ownerReferences": [reference(grandchild, True)]}}))
        self.k("delete", "configmap", "owner", "--cascade=foreground", "--wait=false")
        for name in ("grandchild", "child", "owner"):
            self.wait(f"{name} stayed", lambda: not self.there("configmap", name))

    def test_orphan_lets_go_first(self):
        [owner, other] = self.make(config_map("owner"), config_map("other"))
        self.make(config_map("child", owner), config_map("shared", owner, other))
        self.k("delete", "configmap", "owner", "--cascade=orphan")
        self.assertNotIn("ownerReferences", self.get("configmap", "child")["metadata"])
        self.assertEqual(self.get("configmap", "shared")["metadata"]["ownerReferences"], [reference(other)])

    def test_an_owner_that_is_left_keeps_it(self):
        [first, second] = self.make(config_map("first"), config_map("second"))
        self.make(config_map("child", first, second))
        self.k("delete", "configmap", "first")
        self.wait("the reference stayed", lambda: self.get("configmap", "child")["metadata"]["ownerReferences"] == [reference(second)])
        self.k("delete", "configmap", "second")
        self.wait("the child stayed", lambda: not self.there("configmap", "child"))

    def test_owners_that_are_not_there_own_nothing(self):
        [owner] = self.make(config_map("owner"))
        gone = {**owner, "metadata": {**owner["metadata"], "uid": str(uuid.uuid4())}}
        self.k("create", "-f", "-", stdin=json.dumps(config_map("of-another-uid", gone)))
        nameless = {**gone, "metadata": {"name": "never", "uid": str(uuid.uuid4())}}
        self.k("create", "-f", "-", stdin=json.dumps(config_map("of-nobody", nameless)))
        self.wait("another uid counted", lambda: not self.there("configmap", "of-another-uid"))
        self.wait("nobody counted", lambda: not self.there("configmap", "of-nobody"))
        self.assertTrue(self.there("configmap", "owner"))

    def test_an_owner_in_another_namespace_is_none_and_an_event_says_so(self):
        [owner] = self.make(config_map("owner"))
        far = "far-" + self.ns
        self.kubectl.run("create", "namespace", far)
        self.kubectl.run("-n", far, "create", "-f", "-", stdin=json.dumps(config_map("child", owner)))
        self.wait("it stayed", lambda: self.kubectl.run("-n", far, "get", "configmap", "child", "--ignore-not-found") == "")
        events = self.kubectl.json("-n", far, "get", "events")["items"]
        self.assertEqual([(e["reason"], e["type"]) for e in events], [("OwnerRefInvalidNamespace", "Warning")])
        self.assertEqual(events[0]["message"], f'ownerRef [v1/ConfigMap, namespace: {far}, name: owner, uid: '
                                               f'{owner["metadata"]["uid"]}] does not exist in namespace "{far}"')

    def test_what_has_cluster_scope_is_never_collected_for_a_namespaced_owner(self):
        [owner] = self.make(config_map("owner"))
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": self.ns, "ownerReferences": [reference(owner)]}, "rules": []}
        self.k("create", "-f", "-", stdin=json.dumps(role))
        self.k("delete", "configmap", "owner")
        self.stays(lambda: self.there("clusterrole", self.ns))

    def test_custom_resources_own_and_are_owned(self):
        self.k("apply", "-f", "-", stdin=WIDGETS)
        self.kubectl.run("wait", "--for=condition=Established", "crd/widgets.stories.example.com")
        widget = {"apiVersion": "stories.example.com/v1", "kind": "Widget", "metadata": {"name": "top"}}
        [top] = self.make(widget)
        [middle] = self.make({**widget, "metadata": {"name": "middle", "ownerReferences": [reference(top, True)]}})
        self.make(config_map("bottom", middle, block=True))
        self.k("delete", "widget", "top", "--cascade=foreground")
        for kind, name in (("widget", "middle"), ("configmap", "bottom"), ("widget", "top")):
            self.wait(f"{name} stayed", lambda: not self.there(kind, name))

    def test_owners_of_kinds_that_come_later_are_waited_for(self):
        plural = "late" + uuid.uuid4().hex[:6]
        owner = {"apiVersion": f"{plural}.example.com/v1", "kind": "Late", "metadata": {"name": "x", "uid": str(uuid.uuid4())}}
        self.k("create", "-f", "-", stdin=json.dumps(config_map("child", owner)))
        self.stays(lambda: self.there("configmap", "child"))
        self.k("apply", "-f", "-", stdin=WIDGETS.replace("widgets.stories.example.com", f"{plural}.{plural}.example.com")
                  .replace("stories.example.com", f"{plural}.example.com").replace("kind: Widget, plural: widgets", f"kind: Late, plural: {plural}"))
        self.wait("it stayed", lambda: not self.there("configmap", "child"))


class Resting(Story):
    def lease(self, seconds_ago):
        now = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds_ago)
        return json.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                           "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
                           "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15,
                                    "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})

    def test_controllers_rest_while_a_controller_manager_holds_its_lease(self):
        [owner] = self.make(config_map("owner"))
        self.make(config_map("child", owner))
        self.kubectl.run("apply", "-f", "-", stdin=self.lease(0))
        time.sleep(0.3)  # What was seen of the lease is that old at most.
        self.k("delete", "configmap", "owner")
        self.stays(lambda: self.there("configmap", "child"), 1)
        self.kubectl.run("apply", "-f", "-", stdin=self.lease(60))
        self.wait("it still rests", lambda: not self.there("configmap", "child"))


class Namespaces(Story):
    def test_a_namespace_is_furnished(self):
        self.wait("no service account", lambda: self.there("serviceaccount", "default"))
        self.wait("no root CA", lambda: self.there("configmap", "kube-root-ca.crt"))
        self.assertIn("BEGIN CERTIFICATE", self.get("configmap", "kube-root-ca.crt")["data"]["ca.crt"])

    def test_a_deleted_namespace_waits_for_what_is_held(self):
        self.make(config_map("held", finalizers=["example.com/hold"]), config_map("loose"))
        self.kubectl.run("delete", "namespace", self.ns, "--wait=false")
        self.wait("the loose one stayed", lambda: not self.there("configmap", "loose"))
        self.assertEqual(self.kubectl.json("get", "namespace", self.ns)["status"]["phase"], "Terminating")
        self.k("patch", "configmap", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
        self.wait("the namespace stayed", lambda: self.kubectl.run("get", "namespace", self.ns, "--ignore-not-found") == "")


class SwitchedOff(Story):
    flags = ("--controllers=*,-garbage-collector,-serviceaccount",)

    def test_those_that_are_off_do_nothing_and_the_others_work(self):
        [owner] = self.make(config_map("owner"))
        self.make(config_map("child", owner))
        self.k("delete", "configmap", "owner")
        self.wait("no root CA", lambda: self.there("configmap", "kube-root-ca.crt"))
        self.stays(lambda: self.there("configmap", "child"))
        self.assertFalse(self.there("serviceaccount", "default"))


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)

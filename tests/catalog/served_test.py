#!/usr/bin/env python3
"""The descriptions of the catalog are where clients look for them: served_test.py HOLDFAST"""
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "api"))
from catalog import load, members_of  # noqa: E402
from serve import Server, wait_until  # noqa: E402

HOLDFAST = sys.argv.pop(1)
PACKAGES, TYPES, ORDER, _ = load()
GATED = "--feature-gates=DeclarativeFieldManager=false"
# Bytes of the documents of kube-apiserver v1.36.3, as JSON.
KUBERNETES = {
    "/openapi/v2": 2227610, "api/v1": 1631799, "apis/admissionregistration.k8s.io/v1": 481482, "apis/apiextensions.k8s.io/v1": 144862,
    "apis/apiregistration.k8s.io/v1": 106997, "apis/apps/v1": 726787, "apis/authentication.k8s.io/v1": 32913,
    "apis/authorization.k8s.io/v1": 57647, "apis/autoscaling/v1": 124924, "apis/autoscaling/v2": 151651, "apis/batch/v1": 433323,
    "apis/certificates.k8s.io/v1": 120848, "apis/coordination.k8s.io/v1": 112754, "apis/discovery.k8s.io/v1": 121842,
    "apis/events.k8s.io/v1": 116762, "apis/flowcontrol.apiserver.k8s.io/v1": 191559, "apis/networking.k8s.io/v1": 413622,
    "apis/node.k8s.io/v1": 99063, "apis/policy/v1": 130906, "apis/rbac.authorization.k8s.io/v1": 312525,
    "apis/resource.k8s.io/v1": 387157, "apis/scheduling.k8s.io/v1": 92681, "apis/storage.k8s.io/v1": 488604}


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(HOLDFAST)
        cls.addClassCleanup(cls.server.__exit__, None, None, None)

    def schemas(self):
        """-> {"v2": {schema: ...}, "v3": {schema: ...}}"""
        found = {"v2": self.server.json("GET", "/openapi/v2")["definitions"], "v3": {}}
        for path in self.server.json("GET", "/openapi/v3")["paths"]:
            found["v3"].update(self.server.json("GET", "/openapi/v3/" + path).get("components", {}).get("schemas", {}))
        return found

    def test_every_schema_and_property_of_openapi_is_described_in_these_words(self):
        named = {f"{one.package.openapi}.{one.name}": one for one in TYPES.values() if one.keyword == "struct" and one.package.openapi}
        for version, schemas in self.schemas().items():
            self.assertGreater(len(schemas), 500)
            for name, schema in schemas.items():
                with self.subTest(f"{version}: {name}"):
                    self.assertTrue(schema.get("description"))
                    for member, value in schema.get("properties", {}).items():
                        self.assertTrue(value.get("description"), member)
                    if name not in named:
                        continue  # The response of /version.
                    self.assertEqual(schema["description"], named[name].description)
                    for field in members_of(TYPES, named[name]):
                        if field.name in schema.get("properties", {}):
                            self.assertEqual(schema["properties"][field.name]["description"], field.description)

    def test_every_column_of_a_table_is_described_in_these_words(self):
        tables = 0
        for group, version, package in ORDER:
            for resource in package.resources:
                if not {"list", "get"} & set(resource.verbs):
                    continue
                root = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
                code, _, data = self.server.request("GET", root + resource.plural, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
                if code == 404:
                    continue  # A beta version that is not served unless asked for.
                table = json.loads(data)
                with self.subTest(resource.plural):
                    self.assertEqual(table["kind"], "Table")
                    self.assertEqual([column["description"] for column in table["columnDefinitions"]], [column.description for column in resource.columns])
                    tables += 1
        self.assertGreater(tables, 50)

    def test_fields_of_a_gate_are_described_only_while_it_is_on(self):
        metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        self.assertIn("Holdfast gate", self.schemas()["v2"][metadata]["properties"]["options"]["description"])
        with Server(HOLDFAST, flags=[GATED]) as server:
            self.assertNotIn("options", server.json("GET", "/openapi/v2")["definitions"][metadata]["properties"])

    def test_custom_resources_are_described_in_the_words_of_their_authors(self):
        spec, size = "What  it is\nmade of. Default 7. ", "\tIn `cm`.\n\nMore: \u00e4"
        self.server.json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, "versions": [{
                "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                    "type": "object", "description": "A widget.", "properties": {"spec": {
                        "type": "object", "description": spec, "properties": {"size": {"type": "integer", "description": size}, "plain": {"type": "string"}}}}}}}]}}, 201)
        wait_until("widgets are in OpenAPI", lambda: "apis/example.com/v1" in self.server.json("GET", "/openapi/v3")["paths"])
        wait_until("widgets are in OpenAPI v2", lambda: "com.example.v1.Widget" in self.server.json("GET", "/openapi/v2")["definitions"])
        for schema in (self.server.json("GET", "/openapi/v3/apis/example.com/v1")["components"]["schemas"]["com.example.v1.Widget"],
                       self.server.json("GET", "/openapi/v2")["definitions"]["com.example.v1.Widget"]):
            self.assertEqual(schema["description"], "A widget.")
            described = schema["properties"]["spec"]
            self.assertEqual(described["description"], spec)
            self.assertEqual(described["properties"]["size"]["description"], size)
            self.assertNotIn("description", described["properties"]["plain"])
            # Kubernetes' conformance test looks for these words.
            self.assertIn("Standard object's metadata", schema["properties"]["metadata"]["description"])
        self.server.json("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
        wait_until("widgets are not in OpenAPI any more", lambda: "apis/example.com/v1" not in self.server.json("GET", "/openapi/v3")["paths"])
        wait_until("widgets are gone", lambda: "com.example.v1.Widget" not in self.server.json("GET", "/openapi/v2")["definitions"])

    def test_documents_are_smaller_than_those_of_kubernetes(self):
        for path in self.server.json("GET", "/openapi/v3")["paths"]:
            if re.fullmatch(r"apis?(/.*)?/v\d+", path) and not path.startswith("apis/ownership.holdfast.dev/"):  # Kubernetes has no such group.
                with self.subTest(path):
                    self.assertLess(len(self.server.request("GET", "/openapi/v3/" + path)[2]), KUBERNETES[path])
        self.assertLess(len(self.server.request("GET", "/openapi/v2")[2]), KUBERNETES["/openapi/v2"])

    def test_documents_cost_no_memory_until_they_are_asked_for(self):
        with open(HOLDFAST, "rb") as binary:
            image = binary.read()
        self.assertNotIn(TYPES["apps/v1.DeploymentSpec"].description.encode(), image, "packed in the binary")


if __name__ == "__main__":
    unittest.main()

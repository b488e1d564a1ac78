"""Requests that are made to cost as much as they can, for the tests that refuse them and the benchmark that weighs them."""
import http.client
import json

http.client._MAXHEADERS = 10_000  # Answers may carry a warning for each field.

GROUP = "attacks.example.com"
THINGS = f"/apis/{GROUP}/v1/namespaces/mine/things"


def definition(preserve=True):
    """A kind whose spec takes anything (or, without `preserve`, only spec.known)."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True} if preserve else \
        {"type": "object", "properties": {"known": {"type": "string"}}}
    plural = "things" if preserve else "stricts"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "singular": plural[:-1], "kind": plural.title()[:-1]},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}}


def thing(name, spec="{}", metadata=""):
    """JSON text, since most of these are not to be made by way of Python's own objects."""
    return f'{{"apiVersion":"{GROUP}/v1","kind":"Thing","metadata":{{"name":"{name}"{metadata}}},"spec":{spec}}}'


def nested(levels):
    return '{"a":' * levels + "{}" + "}" * levels


def repeated_members(count):
    """One member given again and again, each time a map with another member."""
    return '{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",' + \
        ",".join('"spec":{"resourceAttributes":{"extra%d":{}}}' % i for i in range(count)) + "}"


def doubling_patch(times):
    """Copies an object into its own innermost map, which doubles its depth each time."""
    operations, path, levels = [], "/spec/a", 1
    for _ in range(times):
        operations.append({"op": "copy", "from": "/spec/a", "path": path + "/a"})
        path += "/a" * levels
        levels *= 2
    return json.dumps(operations)


def owner_references(count):
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{i}", "uid": f"{i:08x}-0000-4000-8000-000000000000"} for i in range(count)]
    return thing("owned", metadata=',"ownerReferences":' + json.dumps(references))


def value_keys(count):
    """managedFields that own an item of a set, which is a map with many members."""
    value = "v:" + json.dumps({f"k{i}": i for i in range(count)})
    entry = {"manager": "m", "operation": "Update", "apiVersion": f"{GROUP}/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:set": {value: {}}}}}
    return thing("valued", metadata=',"managedFields":' + json.dumps([entry]))


def unknown_fields(count):
    return f'{{"apiVersion":"{GROUP}/v1","kind":"Strict","metadata":{{"name":"unknown"}},"spec":{{' + \
        ",".join(f'"u{i}":1' for i in range(count)) + "}}"


def large_role(side):
    rule = {"verbs": [f"v{i}" for i in range(side)], "apiGroups": [f"g{i}" for i in range(side)], "resources": [f"r{i}" for i in range(side)]}
    return {"metadata": {"name": "large"}, "rules": [rule]}


def service_ports(count):
    """A strategic patch of a list that merges by key."""
    return {"spec": {"ports": [{"name": f"p{i}", "port": 1 + i % 65535, "protocol": "TCP"} for i in range(count)]}}

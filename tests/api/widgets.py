"""A custom kind with every type of field, and the requests for it that tests use."""
import json

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
UNSET = {"k8s_io__value": "unset"}

_TEXT = {"type": "string"}
_SPEC = {
    "size": {"type": "integer"}, "note": _TEXT, "color": {"type": "string", "default": "blue"},
    "box": {"type": "object", "properties": {"a": _TEXT, "b": _TEXT}},
    "options": {"type": "object", "additionalProperties": _TEXT},
    "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": _TEXT}},
    "words": {"type": "array", "items": _TEXT},
    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
    "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
              "items": {"type": "object", "required": ["port"], "properties": {
                  "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": _TEXT}}},
    "replicas": {"type": "integer"},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
             "versions": [{"name": "v1", "served": True, "storage": True,
                           "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                           "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                               "spec": {"type": "object", "properties": _SPEC},
                               "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}}}]}}


def define(server):
    server.json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, want=201)


def widget(name, **spec):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def apply(server, object, manager, path=None, want=(200, 201), force=False, query="", **more):
    path = path or f"{WIDGETS}/{object['metadata']['name']}"
    query = f"?fieldManager={manager}" + ("&force=true" if force else "") + query
    code, _, data = server.request("PATCH", path + query, object, content_type=APPLY, **more)
    answer = json.loads(data)
    wanted = want if isinstance(want, tuple) else (want,)
    assert code in wanted, f"apply by {manager} of {json.dumps(object)}: {code} {answer.get('message')}"
    return answer


def owns(object, manager, *path, operation="Apply", subresource=None):
    """Whether the manager owns the field; a path consists of f: names, or whole elements such as 'k:{"port":80}'."""
    for entry in object["metadata"].get("managedFields", []):
        if (entry["manager"], entry["operation"], entry.get("subresource")) != (manager, operation, subresource):
            continue
        at = entry["fieldsV1"]
        for name in path:
            at = at.get(name if name[1:2] == ":" else "f:" + name) if at is not None else None
        if at is not None:
            return True
    return False

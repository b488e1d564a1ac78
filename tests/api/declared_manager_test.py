#!/usr/bin/env python3
"""declared_manager_test.py HOLDFAST: metadata.options.fieldManager, the manager that an object names itself; and who owns what across /scale and /status."""
import json, sys

from serve import Server, check, finish, run_parts
from widgets import APPLY, JSON_PATCH, MERGE, WIDGETS, apply, define, owns, widget

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"


def configmap(name, manager=None, **data):
    options = {} if manager is None else {"options": {"fieldManager": manager}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **options}, "data": data or {"k": "v"}}


def declared(object, manager):
    return {**object, "metadata": {**object["metadata"], "options": {"fieldManager": manager}}}


def managers(object):
    return [(e["manager"], e["operation"]) for e in object["metadata"]["managedFields"]]


def every_write(server):
    for collection, make, field in ((CONFIGMAPS, lambda n: configmap(n), ("data", "k", "w")), (WIDGETS, lambda n: widget(n, size=1), ("spec", "size", 2))):
        kind = collection.rsplit("/", 1)[1]
        change = lambda value: {field[0]: {field[1]: value}}
        made = server.json("POST", collection, declared(make("o"), "maker"), want=201)
        check(managers(made) == [("maker", "Update")], f"{kind}: POST")
        live = {"name": "o", "resourceVersion": made["metadata"]["resourceVersion"]}
        put = server.json("PUT", collection + "/o", declared({**make("o"), "metadata": live, **change(field[2])}, "putter"), want=200)
        check(("putter", "Update") in managers(put), f"{kind}: PUT")
        merged = server.json("PATCH", collection + "/o", {"metadata": {"labels": {"m": "1"}, "options": {"fieldManager": "merger"}}}, content_type=MERGE, want=200)
        check(("merger", "Update") in managers(merged), f"{kind}: merge patch")
        patched = server.json("PATCH", collection + "/o", [{"op": "add", "path": "/metadata/options", "value": {"fieldManager": "jsoner"}},
                                                           {"op": "add", "path": "/metadata/annotations", "value": {"j": "1"}}], content_type=JSON_PATCH, want=200)
        check(("jsoner", "Update") in managers(patched), f"{kind}: JSON patch")
        applied = server.json("PATCH", collection + "/p", declared(make("p"), "applier"), content_type=APPLY, want=201)
        check(managers(applied) == [("applier", "Apply")], f"{kind}: apply, without a query parameter")
        again = server.json("PATCH", collection + "/p", declared(make("p"), "applier"), content_type=APPLY, want=200)
        check(again["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"], f"{kind}: the option alone is no reason to write")
        option_only = server.json("PATCH", collection + "/p", {"metadata": {"options": {"fieldManager": "nobody"}}}, content_type=MERGE, want=200)
        check(option_only == again, f"{kind}: nor is it in a patch that changes nothing else")
        for object in (made, put, merged, patched, applied, server.json("GET", collection + "/o")):
            check("options" not in object["metadata"] and "f:options" not in json.dumps(object), f"{kind}: it is never stored, returned or owned")
    strategic = server.json("PATCH", CONFIGMAPS + "/o", {"metadata": {"labels": {"s": "1"}, "options": {"fieldManager": "strategist"}}},
                            content_type="application/strategic-merge-patch+json", want=200)
    check(("strategist", "Update") in managers(strategic), "strategic merge patch")
    yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\n  options:\n    fieldManager: yamler\ndata:\n  a: b\n"
    made = server.json("POST", CONFIGMAPS, yaml, content_type="application/yaml", want=201)
    check(managers(made) == [("yamler", "Update")], "YAML")
    status = server.json("PATCH", WIDGETS + "/o/status", {"metadata": {"options": {"fieldManager": "reporter"}}, "status": {"replicas": 1}}, content_type=MERGE, want=200)
    check(owns(status, "reporter", "status", "replicas", operation="Update", subresource="status"), "a subresource")


def protobuf(server):
    """ObjectMeta's field 18, a map of strings: built by hand, since no published schema has it."""
    def field(number, data):
        key = number << 3 | 2
        return (bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])) + bytes([len(data)]) + data
    option = field(1, b"fieldManager") + field(2, b"binary")
    meta = field(1, b"pb") + field(18, option)
    object = field(1, meta) + field(2, field(1, b"k") + field(2, b"v"))
    body = b"k8s\0" + field(1, field(1, b"v1") + field(2, b"ConfigMap")) + field(2, object)
    made = server.json("POST", CONFIGMAPS, body, content_type="application/vnd.kubernetes.protobuf", want=201)
    check(managers(made) == [("binary", "Update")] and made["data"] == {"k": "v"}, "Protobuf field 18")


def refusals(server):
    for what, object, query, path in (
            ("another query parameter", configmap("q", "declared"), "?fieldManager=other", "metadata.options[fieldManager]"),
            ("a name that is too long", configmap("q", "x" * 129), "", "metadata.options[fieldManager]"),
            ("a name that cannot be printed", configmap("q", "a\u0007b"), "", "metadata.options[fieldManager]"),
            ("an unknown option", {**configmap("q"), "metadata": {"name": "q", "options": {"bogus": "x"}}}, "", "metadata.options[bogus]")):
        for method, url, type in (("POST", CONFIGMAPS, "application/json"), ("PATCH", CONFIGMAPS + "/q", APPLY)):
            if type == APPLY and not query:
                query = "?fieldManager=m" if "bogus" in path else ""
            refused = server.json(method, url + query, object, content_type=type)
            check(refused.get("code") == 422 and path in refused["message"], f"{what}: {method} {refused.get('code')} {refused.get('message')}")
    same = server.json("POST", CONFIGMAPS + "?fieldManager=same", configmap("same", "same"), want=201)
    check(managers(same) == [("same", "Update")], "the same in both is fine")
    empty = server.json("POST", CONFIGMAPS, configmap("empty", ""), want=201)
    check(managers(empty) == [("test", "Update")], "an empty one is as none: the user agent")
    empty = server.json("POST", CONFIGMAPS + "?fieldManager=query", configmap("empty2", ""), want=201)
    check(managers(empty) == [("query", "Update")], "an empty one is as none: the query parameter")
    nobody = server.json("PATCH", CONFIGMAPS + "/z", configmap("z"), content_type=APPLY, want=422)
    check("fieldManager" in nobody["message"], "an apply without any manager stays the error it is")


def only_on_the_object_itself(server):
    template = {"metadata": {"labels": {"a": "b"}, "options": {"fieldManager": "nested"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nested"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    code, headers, data = server.request("POST", "/apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict", object)
    check(code == 400 and b'unknown field \\"spec.template.metadata.options\\"' in data, f"in a template it is an unknown field: {code}")


def in_openapi(server):
    meta = server.json("GET", "/openapi/v3/api/v1")["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    check("options" in meta["properties"], "OpenAPI v3 has it, so that validating clients let it through")
    meta = server.json("GET", "/openapi/v2")["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    check("options" in meta["properties"], "OpenAPI v2 has it")


def scale_takes_replicas(server):
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    for kind, object, path in (("Deployment", whole, DEPLOYMENT), ("Widget", widget("scaled", replicas=3, note="n"), WIDGETS + "/scaled")):
        apply(server, object, "m", path)
        before = server.json("GET", path)
        server.json("PATCH", path + "/scale?fieldManager=m", {"status": {"replicas": 9}}, content_type=MERGE, want=200)
        check(server.json("GET", path) == before, f"{kind}: a patch of Scale's status alone changes nothing")
        scale = server.json("PATCH", path + "/scale?fieldManager=m", {"spec": {"replicas": 5}}, content_type=MERGE, want=200)
        check(scale["kind"] == "Scale" and scale["spec"]["replicas"] == 5, f"{kind}: /scale")
        after = server.json("GET", path)
        check(after["spec"]["replicas"] == 5 and owns(after, "m", "spec", "replicas", operation="Update", subresource="scale") and not owns(after, "m", "spec", "replicas"),
              f"{kind}: replicas move from m's Apply entry to its Update entry of /scale")
        refused = apply(server, object, "m", path, want=409)
        check(".spec.replicas" in refused["message"] and "subresource" in refused["message"], f"{kind}: applying the old value conflicts: {refused['message']}")


def unknown_versions_go_with_a_scale_write(server):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    definition = server.json("GET", definitions)
    old = {**definition["spec"]["versions"][0], "name": "v1alpha1", "storage": False}
    server.json("PATCH", definitions, {"spec": {"versions": [definition["spec"]["versions"][0], old]}}, content_type=MERGE, want=200)
    apply(server, widget("aged", replicas=1), "new")
    apply(server, {**widget("aged", note="n"), "apiVersion": "example.com/v1alpha1"}, "old", path=WIDGETS.replace("/v1/", "/v1alpha1/") + "/aged")
    server.json("PATCH", definitions, {"spec": {"versions": definition["spec"]["versions"]}}, content_type=MERGE, want=200)
    check(("old", "Apply") in managers(server.json("GET", WIDGETS + "/aged")), "an entry of a version that is gone is still told")
    server.json("PATCH", WIDGETS + "/aged/scale", {"spec": {"replicas": 6}}, content_type=MERGE, want=200)
    check(("old", "Apply") not in managers(server.json("GET", WIDGETS + "/aged")), "and disappears with any write of /scale")


def gate_off(server):
    server.restart("DeclarativeFieldManager=false")
    code, headers, _ = server.request("POST", CONFIGMAPS, configmap("off", "declared"))
    check(code == 201 and 'unknown field \\"metadata.options\\"' in (headers["Warning"] or ""), "gate off: an unknown field")
    check(managers(server.json("GET", CONFIGMAPS + "/off")) == [("test", "Update")], "gate off: it names nobody")
    check(b'"options"' not in server.request("GET", "/openapi/v3/api/v1")[2].split(b"meta.v1.ObjectMeta\"")[1][:20000].split(b"meta.v1.OwnerReference")[0], "gate off: OpenAPI does not have it")
    server.restart()
    check(managers(server.json("POST", CONFIGMAPS, configmap("on", "declared"), want=201)) == [("declared", "Update")], "gate on again")


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, (define, every_write, protobuf, refusals, only_on_the_object_itself, in_openapi, scale_takes_replicas, unknown_versions_go_with_a_scale_write, gate_off))
    finish()

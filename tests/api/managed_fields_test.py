#!/usr/bin/env python3
"""managed_fields_test.py HOLDFAST: opting out of managedFields, and naming the manager in the object, as users ask for them."""
import json, sys

from serve import Server

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
FORMATS = {
    "application/json": b'"managedFields"',
    "application/yaml": b"managedFields:",
    "application/cbor": b"managedFields",
    "application/vnd.kubernetes.protobuf": b"FieldsV1",
}
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL", what)


def configmap(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def opting_out(server):
    server.json("POST", CONFIGMAPS, configmap("a"), want=201)
    for format, mark in FORMATS.items():
        for spelling in (";drop=metadata.managedFields", ";drop=nothing.known+metadata.managedFields", ";mf=none"):
            requests = {
                "get": ("GET", CONFIGMAPS + "/a", None),
                "list": ("GET", CONFIGMAPS, None),
                "put": ("PUT", CONFIGMAPS + "/a", configmap("a")),
                "post": ("POST", CONFIGMAPS + "?dryRun=All", configmap("new")),
                "patch": ("PATCH", CONFIGMAPS + "/a", {"metadata": {"labels": {"x": "y"}}}),
                "delete collection": ("DELETE", CONFIGMAPS + "?dryRun=All&labelSelector=x=y", None),
            }
            for verb, (method, path, body) in requests.items():
                type = "application/merge-patch+json" if verb == "patch" else "application/json"
                _, headers, with_them = server.request(method, path, body, accept=format, content_type=type)
                code, dropped_headers, without = server.request(method, path, body, accept=format + spelling, content_type=type)
                what = f"{verb} {format}{spelling}"
                check(code in (200, 201), f"{what}: {code}")
                check(mark in with_them, f"{what}: the plain answer lacks managedFields")
                check(mark not in without and b"managedFields" not in without, f"{what}: managedFields are still there")
                check(headers["Content-Type"] == dropped_headers["Content-Type"], f"{what}: Content-Type differs")
    for form in ("Table", "PartialObjectMetadataList"):
        _, _, data = server.request("GET", CONFIGMAPS, accept=f"application/json;as={form};v=v1;g=meta.k8s.io;drop=metadata.managedFields")
        check(form.encode() in data and b"managedFields" not in data, f"list as {form} without managedFields")
    _, _, data = server.request("GET", CONFIGMAPS + "/a?showManagedFields=false")
    check(b"managedFields" not in data, "?showManagedFields=false on get")
    _, _, data = server.request("GET", CONFIGMAPS + "?showManagedFields=true")
    check(b"managedFields" in data, "?showManagedFields=true changes nothing")
    for unknown in (";drop=", ";mf=some", ";drop=metadata.labels"):
        _, _, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json" + unknown)
        check(b"managedFields" in data and b'"labels"' in data, f"{unknown} is ignored")
    _, _, data = server.request("GET", CONFIGMAPS + "/missing", accept="application/json;drop=metadata.managedFields")
    check(json.loads(data)["reason"] == "NotFound", "a Status passes untouched")

    lines = server.watch(CONFIGMAPS + "?watch=true&timeoutSeconds=5", 1, "application/json;drop=metadata.managedFields")
    check(b"managedFields" not in lines[0] and b'"ADDED"' in lines[0], "a watch without managedFields")
    lines = server.watch(CONFIGMAPS + "?watch=true&timeoutSeconds=5", 1)
    check(b"managedFields" in lines[0], "a watch with managedFields beside it")


def binary_form(server):
    _, _, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json;mf=v2")
    entries = json.loads(data)["metadata"]["managedFields"]
    check(all(e["fieldsType"] == "FieldsV2" and "fieldsV2" in e and "fieldsV1" not in e for e in entries), "mf=v2 gives every entry as FieldsV2")
    _, _, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json;mf=v1")
    check(all(e["fieldsType"] == "FieldsV1" for e in json.loads(data)["metadata"]["managedFields"]), "mf=v1 gives FieldsV1")


def read_stripped_write_back(server):
    before = server.json("GET", CONFIGMAPS + "/a")
    stripped = server.json("GET", CONFIGMAPS + "/a", accept="application/json;drop=metadata.managedFields")
    stripped["data"]["more"] = "1"
    after = server.json("PUT", CONFIGMAPS + "/a?fieldManager=writer", stripped, want=200)
    managers = {e["manager"] for e in after["metadata"]["managedFields"]}
    check({e["manager"] for e in before["metadata"]["managedFields"]} <= managers and "writer" in managers,
          "a PUT of a stripped object keeps the stored owners")


def declared_manager(server):
    made = server.json("POST", CONFIGMAPS, configmap("o", options={"fieldManager": "declared"}), want=201)
    check([e["manager"] for e in made["metadata"]["managedFields"]] == ["declared"] and "options" not in made["metadata"], "POST takes the manager from metadata.options")
    applied = server.json("PATCH", CONFIGMAPS + "/p", configmap("p", options={"fieldManager": "declared"}), want=201, content_type="application/apply-patch+yaml")
    check([(e["manager"], e["operation"]) for e in applied["metadata"]["managedFields"]] == [("declared", "Apply")], "an apply needs no query parameter then")
    again = server.json("PATCH", CONFIGMAPS + "/p", configmap("p", options={"fieldManager": "declared"}), want=200, content_type="application/apply-patch+yaml")
    check(again["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"], "the option by itself is no reason to write")
    refused = server.json("POST", CONFIGMAPS + "?fieldManager=other", configmap("q", options={"fieldManager": "declared"}), want=422)
    check("metadata.options[fieldManager]" in refused["message"], "a different query parameter is refused")
    refused = server.json("POST", CONFIGMAPS, configmap("q", options={"bogus": "x"}), want=422)
    check("metadata.options[bogus]" in refused["message"], "an unknown option is refused")
    refused = server.json("POST", CONFIGMAPS, configmap("q", options={"fieldManager": "x" * 129}), want=422)
    check("metadata.options[fieldManager]: Too long" in refused["message"], "a long name is refused")
    patched = server.json("PATCH", CONFIGMAPS + "/o", [{"op": "add", "path": "/metadata/options", "value": {"fieldManager": "byjson"}}, {"op": "add", "path": "/data/j", "value": "1"}],
                          want=200, content_type="application/json-patch+json")
    check("byjson" in [e["manager"] for e in patched["metadata"]["managedFields"]], "a JSON patch's option is read from the patched object")


def unset_fields(server):
    path = "/apis/apps/v1/namespaces/default/deployments/d"
    config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
              "spec": {"replicas": 3, "minReadySeconds": 5, "selector": {"matchLabels": {"a": "b"}},
                       "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}}
    server.json("PATCH", path + "?fieldManager=m1", config, want=201, content_type="application/apply-patch+yaml")
    unset = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"minReadySeconds": {"k8s_io__value": "unset"}}}
    refused = server.json("PATCH", path + "?fieldManager=m2", unset, want=409, content_type="application/apply-patch+yaml")
    check(".spec.minReadySeconds" in refused["message"], "unsetting another's field is a conflict")
    done = server.json("PATCH", path + "?fieldManager=m2&force=true", unset, want=200, content_type="application/apply-patch+yaml")
    check("minReadySeconds" not in done["spec"], "the field is gone")
    owners = {e["manager"]: e["fieldsV1"] for e in done["metadata"]["managedFields"]}
    check("f:minReadySeconds" in owners["m2"]["f:spec"] and "f:minReadySeconds" not in owners["m1"]["f:spec"], "who unset it owns it")
    again = server.json("PATCH", path + "?fieldManager=m2&force=true", unset, want=200, content_type="application/apply-patch+yaml")
    check(again["metadata"]["resourceVersion"] == done["metadata"]["resourceVersion"], "unsetting again changes nothing")


def gates_off(holdfast):
    with Server(holdfast, "ManagedFieldsOptOut=false,DeclarativeFieldManager=false,FieldsV2=false") as server:
        server.json("POST", CONFIGMAPS, configmap("a"), want=201)
        for spelling in (";drop=metadata.managedFields", ";mf=none", ";mf=v2"):
            _, _, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json" + spelling)
            check(b"managedFields" in data and b"FieldsV1" in data, f"gate off: {spelling} is ignored")
        _, _, data = server.request("GET", CONFIGMAPS + "/a?showManagedFields=false")
        check(b"managedFields" in data, "gate off: ?showManagedFields is ignored")
        code, headers, data = server.request("POST", CONFIGMAPS, configmap("o", options={"fieldManager": "declared"}))
        check(code == 201 and 'unknown field \\"metadata.options\\"' in (headers["Warning"] or ""), "gate off: metadata.options is an unknown field")
    with Server(holdfast, "DropAnyField=true") as server:
        server.json("POST", CONFIGMAPS, configmap("a", labels={"l": "1"}), want=201)
        _, headers, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json;drop=data+metadata.labels+metadata.name")
        check(b'"data"' not in data and b'"labels"' not in data and b'"name":"a"' in data and headers["Warning"], "DropAnyField: any path but what identifies the object, with a warning")


def main():
    holdfast = sys.argv[1]
    with Server(holdfast) as server:
        for part in (opting_out, binary_form, read_stripped_write_back, declared_manager, unset_fields):
            try:
                part(server)
            except (AssertionError, KeyError, ValueError) as problem:
                check(False, f"{part.__name__}: {problem!r}")
    gates_off(holdfast)
    print("failed" if failures else "passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

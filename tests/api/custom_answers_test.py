#!/usr/bin/env python3
"""custom_answers_test.py HOLDFAST: the responses of kube-apiserver to requests for custom resources, which do not have their
own routes."""
import json, sys

from serve import Server, check, finish, run_parts, wait_until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROOT = "/apis/answers.example.com/v1"
THINGS, GADGETS, PLAINS = ROOT + "/namespaces/default/things", ROOT + "/gadgets", ROOT + "/namespaces/default/plains"
JSON, MERGE, JSON_PATCH = "application/json", "application/merge-patch+json", "application/json-patch+json"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SUBRESOURCES = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}


def definition(plural, kind, scope="Namespaced", versions=None, group="answers.example.com", **spec):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind},
                     "versions": versions or [version("v1", storage=True)], **spec}}


def version(name, storage=False, properties=None, subresources=None, **more):
    schema = {"type": "object", "properties": properties or {"spec": ANY, "status": ANY}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema},
            **({"subresources": subresources} if subresources else {}), **more}


def thing(kind, name, api_version="answers.example.com/v1", **spec):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def scale(name, replicas, **metadata):
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, **metadata}, "spec": {"replicas": replicas}}


def answers(server, rows):
    """Rows of (method, path, body, content type, code, text in the response); None if the body must be empty."""
    for method, path, body, content_type, want, piece in rows:
        code, headers, data = server.request(method, path, body, content_type=content_type)
        check(code == want and (piece.encode() in data if piece is not None else not data), f"{method} {path}: {code} {data[:400]}, not {want} {piece}")


def setup(server):
    for body in (definition("things", "Thing", versions=[version("v1", storage=True, subresources=SUBRESOURCES)]),
                 definition("gadgets", "Gadget", "Cluster", versions=[version("v1", storage=True, subresources=SUBRESOURCES)]),
                 definition("plains", "Plain")):
        server.json("POST", CRDS, body, want=201)
    for collection, kind in ((THINGS, "Thing"), (GADGETS, "Gadget"), (PLAINS, "Plain")):
        server.json("POST", collection, thing(kind, "a", replicas=1), want=201)
        server.json("POST", collection, thing(kind, "none"), want=201)


def paths_and_verbs(server):
    page = "404 page not found"
    answers(server, [
        ("POST", ROOT + "/things", thing("Thing", "b"), JSON, 404, page),
        ("DELETE", ROOT + "/things", None, JSON, 404, page),
        ("DELETE", ROOT + "/things/a", None, JSON, 404, page),
        ("PATCH", ROOT + "/things", {}, MERGE, 404, page),
        ("GET", ROOT + "/namespaces/default/gadgets", None, JSON, 404, page),
        ("GET", ROOT + "/things", None, JSON, 200, '"name":"a"'),
        ("PUT", THINGS, thing("Thing", "a"), JSON, 400, "name must be provided"),
        ("PATCH", THINGS, {}, MERGE, 400, "name must be provided"),
        ("POST", THINGS + "/a", thing("Thing", "from-body"), JSON, 201, '"name":"from-body"'),
        ("HEAD", THINGS + "/a", None, JSON, 200, None),
        ("OPTIONS", THINGS, None, JSON, 405, ' is not supported on resources of kind \\"things.answers.example.com\\"'),
        ("POST", THINGS + "/a/status", thing("Thing", "a"), JSON, 405, 'create is not supported on resources of kind \\"things.answers.example.com\\"'),
        ("DELETE", THINGS + "/a/scale", None, JSON, 405, 'delete is not supported on resources of kind'),
        ("GET", PLAINS + "/a/status", None, JSON, 404, 'plains.answers.example.com \\"a\\" not found'),
        ("PUT", PLAINS + "/a/scale", scale("a", 1), JSON, 404, 'plains.answers.example.com \\"a\\" not found'),
        ("GET", THINGS + "/a/bogus", None, JSON, 404, 'things.answers.example.com \\"a\\" not found'),
        ("GET", THINGS + "/a?export=true", None, JSON, 400, "the export parameter, deprecated since v1.14, is no longer supported"),
        ("GET", THINGS + "/a?export=false", None, JSON, 200, '"name":"a"'),
    ])


def scales(server):
    absent = 'the spec replicas field \\".spec.replicas\\" does not exist'
    answers(server, [
        ("GET", THINGS + "/none/scale", None, JSON, 500, f'"message":"Internal error occurred: {absent}","reason":"InternalError"'),
        ("PUT", THINGS + "/a/scale", scale("a", 3, namespace="default"), JSON, 200, '"replicas":3'),  # Autoscalers do not send a resourceVersion.
        ("PUT", THINGS + "/a/scale", scale("a", 4, namespace="default", resourceVersion="1"), JSON, 409, "the object has been modified"),
        ("PUT", THINGS + "/a/scale", scale("a", -4, namespace="default"), JSON, 422,
         'Thing.answers.example.com \\"a\\" is invalid: .spec.replicas: Invalid value: -4: should be a non-negative integer'),
        ("PUT", THINGS + "/none/scale", scale("none", 2, namespace="default"), JSON, 200, '"replicas":2'),
        ("PUT", GADGETS + "/a/scale", scale("a", 3), JSON, 200, '"replicas":3'),
        ("PATCH", GADGETS + "/a/scale", {"spec": {"replicas": 4}}, MERGE, 200, '"replicas":4'),
        ("PATCH", GADGETS + "/a/scale", [{"op": "replace", "path": "/spec/replicas", "value": 5}], JSON_PATCH, 200, '"replicas":5'),
        ("PATCH", GADGETS + "/none/scale", {"spec": {"replicas": 6}}, MERGE, 200, '"replicas":6'),
    ])
    for path, replicas in ((THINGS + "/a", 3), (THINGS + "/none", 2), (GADGETS + "/a", 5), (GADGETS + "/none", 6)):
        check(server.json("GET", path)["spec"]["replicas"] == replicas, f"{path} has {replicas} replicas")


def values_of_the_wrong_type(server):
    """What the schema says, and what follows from it: the reasons of format errors, and replicas that cannot be read."""
    spec = {"spec": {"type": "object", "properties": {"day": {"type": "string", "format": "date"}, "replicas": {"x-kubernetes-int-or-string": True},
                                                      "selector": {"x-kubernetes-preserve-unknown-fields": True}}}, "status": ANY}
    scaled = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".spec.selector"}}
    server.json("POST", CRDS, definition("odds", "Odd", versions=[version("v1", storage=True, properties=spec, subresources=scaled)]), want=201)
    odds = ROOT + "/namespaces/default/odds"
    def causes(**given):
        return [(cause["reason"], cause["field"], cause["message"]) for cause in server.json("POST", odds, thing("Odd", "o", **given), want=422)["details"]["causes"]]
    check(causes(day="x") == [("FieldValueTypeInvalid", "spec.day", 'Invalid value: "x": spec.day in body must be of type date: "x"')], causes(day="x"))
    want = 'Invalid value: 0: .spec.replicas accessor error: many is of the type string, expected int64'
    check(causes(replicas="many") == [("FieldValueInvalid", ".spec.replicas", want)], causes(replicas="many"))
    want = 'Invalid value: "": .spec.selector accessor error: map[a:[1 x]] is of the type map[string]interface {}, expected string'
    check(causes(selector={"a": [1, "x"]}) == [("FieldValueInvalid", ".spec.selector", want)], causes(selector={"a": [1, "x"]}))
    server.json("POST", odds, thing("Odd", "o", replicas=2, selector="a=b", day="2026-01-02"), want=201)


def exported_objects_are_restored(server):
    """The times of an object are the server's: others in an update are ignored."""
    live = server.json("GET", PLAINS + "/a")
    for method, content_type in (("PUT", JSON), ("PATCH", MERGE)):
        body = {**live, "metadata": {"name": "a", "creationTimestamp": "2020-01-02T03:04:05Z"}}
        if method == "PUT":
            body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        restored = server.json(method, PLAINS + "/a", body, content_type=content_type, want=200)
        check(restored["metadata"]["creationTimestamp"] == live["metadata"]["creationTimestamp"], restored["metadata"])
    code, _, data = server.request("GET", PLAINS + "/a", accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    check(code == 500 and json.loads(data)["message"] == "content is not a list", f"{code} {data[:200]}")


def objects_migrate_by_writing_them_back(server):
    """A write that changes nothing stores an object again if it is stored in an older version."""
    both = lambda stored: [version("v1", storage=stored == "v1"), version("v2", storage=stored == "v2")]
    server.json("POST", CRDS, definition("moves", "Move", versions=both("v1")), want=201)
    moves = ROOT + "/namespaces/default/moves"
    old = server.json("POST", moves, thing("Move", "m", x=1), want=201)
    number = lambda: server.json("GET", moves + "/m", want=200)["metadata"]["resourceVersion"]
    server.json("PUT", moves + "/m", old, want=200)
    check(number() == old["metadata"]["resourceVersion"], "nothing is written while the version is the same")
    server.json("PATCH", CRDS + "/moves.answers.example.com", {"spec": {"versions": both("v2")}}, content_type=MERGE, want=200)
    def is_moved():
        server.json("PUT", moves + "/m?dryRun=All", old)  # Stores nothing.
        after = server.json("PUT", moves + "/m", old)
        return after["kind"] == "Move" and after["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]
    wait_until("v2 is stored", is_moved)
    moved = number()
    again = server.json("PUT", moves + "/m", server.json("GET", moves + "/m"), want=200)
    check(again["metadata"]["resourceVersion"] == moved == number(), "once")


def defaults_of_each_version(server):
    """Requests get the defaults of their version, stored objects those of the stored version, conversions none."""
    text = {"type": "string"}
    def spec(**defaults):
        return {"spec": {"type": "object", "default": {}, "properties": {
            name: {**text, **({"default": defaults[name]} if name in defaults else {})} for name in ("stored", "asked", "both", "other")}}}
    server.json("POST", CRDS, definition("colors", "Color", versions=[
        version("v1", storage=True, properties=spec(stored="v1", both="v1")), version("v2", properties=spec(asked="v2", both="v2"))]), want=201)
    v1, v2 = ROOT + "/namespaces/default/colors", ROOT.replace("/v1", "/v2") + "/namespaces/default/colors"
    made = server.json("POST", v2, thing("Color", "x", "answers.example.com/v2"), want=201)
    check(made["spec"] == {"stored": "v1", "asked": "v2", "both": "v2"}, "a create through v2 shows the defaults of v1 as a read does", made["spec"])
    check(server.json("GET", v2 + "/x") == made, "the response to a create equals that of GET")
    check(server.json("GET", v1 + "/x")["spec"] == made["spec"], "also through v1")
    # Not persisted: a changed default of the stored version takes effect.
    path = CRDS + "/colors.answers.example.com"
    server.json("PATCH", path, [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/stored/default", "value": "later"}],
                content_type=JSON_PATCH, want=200)
    check(server.json("GET", v2 + "/x")["spec"]["stored"] == "later", "a default of only the stored version was not stored")
    # A write through the stored version persists it.
    server.json("PATCH", v1 + "/x", {"spec": {"other": "o"}}, content_type=MERGE, want=200)
    server.json("PATCH", path, [{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/stored/default"}],
                content_type=JSON_PATCH, want=200)
    after = server.json("GET", v1 + "/x")
    check(after["spec"] == {"stored": "later", "asked": "v2", "both": "v2", "other": "o"}, "a write through the stored version stored it", after["spec"])
    server.json("PATCH", path, [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/other/default", "value": "d"}],
                content_type=JSON_PATCH, want=200)
    made = server.json("POST", v2, thing("Color", "y", "answers.example.com/v2"), want=201)
    again = server.json("PUT", v2 + "/y", made, want=200)
    check(again == made, "writing back what was read changes nothing")
    dry = server.json("POST", v2 + "?dryRun=All", thing("Color", "dry", "answers.example.com/v2"), want=201)
    check(dry["spec"] == {**made["spec"]}, "a dry run shows the same", dry["spec"])


def fields_to_select_by_are_of_a_version(server):
    spec = {"spec": {"type": "object", "properties": {"one": {"type": "string"}, "two": {"type": "string"}}}}
    more = {"spec": {"type": "object", "properties": {**spec["spec"]["properties"], "three": {"type": "string"}}}}
    picks = lambda second: definition("picks", "Pick", versions=[
        version("v1", storage=True, properties=spec, selectableFields=[{"jsonPath": ".spec.one"}]),
        version("v2", properties=second, selectableFields=[{"jsonPath": ".spec.two"}])])
    refused = server.json("POST", CRDS, picks(spec), want=422)
    check("spec.versions[0].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included" in refused["message"],
          "fields of a version need a schema of that version", refused["message"])
    server.json("POST", CRDS, picks(more), want=201)
    v1, v2 = ROOT + "/namespaces/default/picks", ROOT.replace("/v1", "/v2") + "/namespaces/default/picks"
    for name in "ab":
        server.json("POST", v1, thing("Pick", name, one=name, two=name + name), want=201)
    names = lambda list: [item["metadata"]["name"] for item in list["items"]]
    check(names(server.json("GET", v1 + "?fieldSelector=spec.one%3Da", want=200)) == ["a"], "v1 selects by its field")
    check(names(server.json("GET", v2 + "?fieldSelector=spec.two%3Dbb", want=200)) == ["b"], "v2 by its own field")
    for url in (v1 + "?fieldSelector=spec.two%3Dbb", v2 + "?fieldSelector=spec.one%3Da"):
        check("field label not supported" in server.json("GET", url, want=400)["message"], f"{url}: not by the other's")


def finalizers_are_warned_about(server):
    def warning(method, path, body, content_type=JSON):
        code, headers, data = server.request(method, path, body, content_type=content_type)
        check(code in (200, 201), f"{method} {path}: {code} {data[:200]}")
        return headers["Warning"] or ""
    prefer = "to avoid accidental conflicts with other finalizer writers"
    made = warning("POST", THINGS, {**thing("Thing", "fin"), "metadata": {"name": "fin", "finalizers": ["plain"]}})
    check(f'metadata.finalizers: \\"plain\\": prefer a domain-qualified finalizer name {prefer}' in made, made)
    check(warning("PATCH", THINGS + "/fin", {"metadata": {"labels": {"a": "b"}}}, MERGE) == "", "only for new ones")
    dotted = warning("PATCH", THINGS + "/fin", {"metadata": {"finalizers": ["plain", "a.b", "x.example.com/y"]}}, MERGE)
    check(f'\\"a.b\\": prefer a domain-qualified finalizer name including a path (/) {prefer}' in dotted and "x.example.com" not in dotted and "plain" not in dotted, dotted)
    server.json("PATCH", THINGS + "/fin", {"metadata": {"finalizers": None}}, content_type=MERGE, want=200)


def findings_are_listed_by_place(server):
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    server.json("POST", CRDS, definition("nests", "Nest", versions=[version("v1", storage=True, properties={
        "spec": {"type": "object", "properties": {"inner": inner}}})]), want=201)
    nests = ROOT + "/namespaces/default/nests"
    body = {**thing("Nest", "n", inner={"apiVersion": "v1", "kind": "X", "metadata": {"name": "i", "bogus": 1}}, strange=1), "aaa": 1}
    body["metadata"]["mine"] = 1
    refused = server.json("POST", nests + "?fieldValidation=Strict", body, want=400)
    check('unknown field "metadata.mine", unknown field "aaa", unknown field "spec.strange", unknown field "spec.inner.metadata.bogus"' in refused["message"], refused["message"])


def resources_inside_resources(server):
    """apiVersion, kind and metadata of embedded resources: undecodable fields are named, limits and defaults of the schema
    apply."""
    text = {"type": "string"}
    embedded = lambda **properties: {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True, "properties": properties}
    inner = embedded(apiVersion={**text, "default": "foos/v1"}, kind={**text, "enum": ["Foo", "Bar"], "default": "Foo"},
                     metadata={"type": "object", "default": {"name": "whole", "unknown": 1}, "properties": {"name": {**text, "maxLength": 5}, "labels": {"type": "object", "additionalProperties": text, "default": {"a": "b"}}}})
    spans = {"type": "object", "properties": {"deep": embedded()}, "default": {"deep": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "deep", "unknown": 1}}}}
    server.json("POST", CRDS, definition("boxes", "Box", versions=[version("v1", storage=True, properties={
        "apiVersion": {**text, "maxLength": 40}, "metadata": {"type": "object", "properties": {"name": {**text, "pattern": "^b"}}},
        "inner": inner, "spans": spans, "more": {"type": "object", "additionalProperties": embedded()}})]), want=201)
    boxes = ROOT + "/namespaces/default/boxes"
    box = lambda name, **members: {"apiVersion": "answers.example.com/v1", "kind": "Box", "metadata": {"name": name}, **members}
    made = server.json("POST", boxes, box("b1", inner={}, spans=None), want=201)
    check(made["inner"] == {"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "whole", "labels": {"a": "b"}}}, "defaults, without fields that metadata does not have", made["inner"])
    check(made["spans"] == {"deep": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "deep"}}}, "also for resources in a default", made["spans"])
    check(server.json("GET", boxes + "/b1") == made, "as stored")
    named = lambda place, value, why: f'Box in version \\"v1\\" cannot be handled as a Box: {place}: Invalid value: {value}: {why}'
    answers(server, [
        ("POST", boxes, box("b2", inner={"metadata": {"name": 5}}), JSON, 400, named("inner.metadata", '{\\"name\\":5}', "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string")),
        ("POST", boxes, box("b2", inner={"kind": 5}), JSON, 400, named("inner.kind", 5, "must be a string")),
        ("POST", boxes, box("b2", more={"x": {"metadata": []}}), JSON, 400, named("more[x].metadata", "[]", "json: cannot unmarshal array into Go value of type v1.ObjectMeta")),
        ("POST", boxes, box("b2", inner={"kind": "Baz"}), JSON, 422, 'inner.kind: Unsupported value: \\"Baz\\": supported values: \\"Foo\\", \\"Bar\\"'),
        ("POST", boxes, box("b2", inner={"metadata": {"name": "too-long"}}), JSON, 422, "inner.metadata.name: Too long: may not be more than 5 bytes"),
        ("POST", boxes, box("a2"), JSON, 422, "metadata.name: Invalid value: \\\"a2\\\": metadata.name in body should match '^b'"),
    ])
    bad = definition("bads", "Bad", versions=[version("v1", storage=True, properties={"inner": embedded(metadata={"type": "object", "properties": {"name": {**text, "default": ".."}}})})])
    refused = server.json("POST", CRDS, bad, want=422)["message"]
    check('properties[inner].properties[metadata].properties[name].default: Invalid value: "..": must result in valid metadata: metadata.name: Invalid value: "..": may not be \'..\'' in refused, "a default that cannot be metadata", refused)
    # The limits of a version apply to every object written through it, changed or not.
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/apiVersion/maxLength"
    server.json("PATCH", CRDS + "/boxes.answers.example.com", [{"op": "replace", "path": path, "value": 3}], content_type=JSON_PATCH, want=200)
    refused = server.json("PATCH", boxes + "/b1", {"metadata": {"labels": {"l": "m"}}}, content_type=MERGE, want=422)["message"]
    check("apiVersion: Too long: may not be more than 3 bytes" in refused, "apiVersion is never an old mistake", refused)


def old_mistakes_are_forgiven(server):
    """Ratcheting: unchanged values are not rejected again. A reordered keyed list is unchanged; a value with unknown members
    is not."""
    item = {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}
    def schema(limited):
        keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"], "items": item, **({"maxItems": 1} if limited else {})}
        loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": {"type": "string"}}, **({"maxProperties": 1} if limited else {})}
        part = {"type": "object", "properties": {"keyed": keyed, "loose": loose, "num": {"type": "integer"}}}
        return version("v1", storage=True, properties={"spec": part, "status": part}, subresources={"status": {}})
    server.json("POST", CRDS, definition("lists", "Lists", versions=[schema(False)]), want=201)
    path = ROOT + "/namespaces/default/lists"
    items = [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]
    part = {"keyed": items, "loose": {"x": 1, "y": 2}}
    server.json("POST", path, thing("Lists", "l", **part), want=201)
    server.json("PATCH", path + "/l/status", {"status": part}, content_type=MERGE, want=200)
    server.json("PATCH", CRDS + "/lists.answers.example.com", {"spec": {"versions": [schema(True)]}}, content_type=MERGE, want=200)
    for url, name in ((path + "/l/status", "status"), (path + "/l", "spec")):
        refused = server.json("PATCH", url, {name: {"keyed": items[::-1]}}, content_type=MERGE, want=422)["message"]
        check(f"{name}.loose: Too many: 2: must have at most 1 item" in refused and "keyed" not in refused, f"{name}: the list is forgiven, the object is not", refused)
        server.json("PATCH", url, {name: {"keyed": items[::-1], "loose": None}}, content_type=MERGE, want=200)
        refused = server.json("PATCH", url, {name: {"keyed": [{"key": "a", "value": "new"}, items[1]]}}, content_type=MERGE, want=422)["message"]
        check(f"{name}.keyed: Too many: 2: must have at most 1 item" in refused, f"{name}: a list that changed is not", refused)
        refused = server.json("PATCH", url, {name: {"num": "x"}}, content_type=MERGE, want=422)["message"]
        place = "num" if name == "status" else "spec.num"
        check(f'{name}.num: Invalid value: "string": {place} in body must be of type integer: "string"' in refused, "the message names what the endpoint validates", refused)


def conditions_of_definitions(server):
    conditions = lambda made: {c["type"]: (c["status"], c["reason"], c["message"]) for c in server.json("GET", CRDS + "/" + made["metadata"]["name"])["status"]["conditions"]}
    kind = "KubernetesAPIApprovalPolicyConformant"
    for plural, annotation, want in (("urls", "https://example.com/pull/1", ("True", "ApprovedAnnotation", "approved in https://example.com/pull/1")),
                                     ("bypasses", "unapproved, because", ("False", "UnapprovedAnnotation", 'not approved: "unapproved, because"'))):
        body = definition(plural, plural.title(), group="answers.k8s.io")
        body["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
        found = conditions(server.json("POST", CRDS, body, want=201))
        check(found.get(kind) == want and found["Established"][0] == "True", f"{annotation}", found)
    check(kind not in conditions(definition("things", "Thing")), "not in other groups")
    client = lambda bundle: {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/x", "caBundle": bundle}}}
    found = conditions(server.json("POST", CRDS, definition("bundles", "Bundle", conversion=client("aGVsbG8=")), want=201))
    check(found["Established"] == ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid"), "a bundle without certificates", found)


def ownership_outlives_its_version(server):
    """kube-apiserver rejects every apply and then drops all ownership; here the next write only drops the entry of the
    removed version."""
    server.json("POST", CRDS, definition("aged", "Aged", versions=[version("v1", storage=True), version("v1alpha1")]), want=201)
    path, old = ROOT + "/namespaces/default/aged/x", ROOT.replace("/v1", "/v1alpha1") + "/namespaces/default/aged/x"
    apply = lambda url, manager, body, want: server.json("PATCH", f"{url}?fieldManager={manager}", body, content_type="application/apply-patch+yaml", want=want)
    apply(old, "old", thing("Aged", "x", "answers.example.com/v1alpha1", a="1"), 201)
    apply(path, "kept", thing("Aged", "x", k="1"), 200)
    definitions = CRDS + "/aged.answers.example.com"
    server.json("PATCH", definitions, {"spec": {"versions": [version("v1", storage=True)]}}, content_type=MERGE, want=200)
    managers = lambda object: {entry["manager"] for entry in object["metadata"]["managedFields"]}
    check(managers(server.json("GET", path)) == {"old", "kept"}, "reads show the entry")
    after = apply(path, "new", thing("Aged", "x", b="2"), 200)
    check(managers(after) == {"kept", "new"} and after["spec"] == {"a": "1", "k": "1", "b": "2"}, "an apply works, and other managers keep their fields", after)
    patched = server.json("PATCH", path + "?fieldManager=up", {"spec": {"c": "3"}}, content_type=MERGE, want=200)
    check(managers(patched) == {"kept", "new", "up"}, "so does an update", managers(patched))


def rest_of_watch(server, path, change):
    """What a watch sends after its first event and `change`; None if it does not end."""
    connection = server.connect()
    connection.request("GET", path + "?watch=1", headers={"Accept": JSON})
    answer = connection.getresponse()
    answer.readline()
    change()
    try:
        return answer.read()
    except TimeoutError:
        return None
    finally:
        connection.close()


def watches_end_with_their_definition(server):
    server.json("POST", CRDS, definition("watched", "Watched"), want=201)
    path, own = ROOT + "/namespaces/default/watched", CRDS + "/watched.answers.example.com"
    server.json("POST", path, thing("Watched", "a"), want=201)
    change = lambda: server.json("PATCH", own, {"spec": {"versions": [version("v1", storage=True, properties={"spec": ANY, "more": ANY})]}}, content_type=MERGE, want=200)
    check(rest_of_watch(server, path, change) == b"", "a changed definition ends the watches of its objects")

    # The object stays for its finalizer, and its watches with it: they see all that happens to it.
    server.json("PATCH", path + "/a", {"metadata": {"finalizers": ["example.com/hold"]}}, content_type=MERGE, want=200)

    def delete():
        server.json("DELETE", own, want=200)
        marked = lambda: server.json("GET", path + "/a", want=200)["metadata"].get("deletionTimestamp")
        wait_until("the object of a deleted definition is marked as deleted", marked)
        server.json("PATCH", path + "/a", {"metadata": {"finalizers": None}}, content_type=MERGE, want=200)

    ended = rest_of_watch(server, path, delete)
    types = None if ended is None else [json.loads(line)["type"] for line in ended.splitlines()]
    check(types == ["MODIFIED", "DELETED"], "a deleted definition ends them once its objects are gone", str(ended))


def built_in_groups_are_not_extended(server):
    """Paths of built-in groups are reserved: a definition there is accepted and its versions are listed, but it is not served."""
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}
    for plural, kind, name in (("ingresses", "Ingress", "v1"), ("extras", "Extra", "v1"), ("later", "Later", "v7")):
        made = definition(plural, kind, group="networking.k8s.io", versions=[version(name, storage=True)])
        made["metadata"]["annotations"] = approved
        server.json("POST", CRDS, made, want=201)
    answers(server, [("GET", f"/apis/networking.k8s.io/{path}", None, JSON, 404, "could not find the requested resource") for path in ("v1/extras", "v7/later", "v7")])
    listed = [resource["name"] for resource in server.json("GET", "/apis/networking.k8s.io/v1", want=200)["resources"]]
    check("extras" not in listed and listed.count("ingresses") == 1, "discovery shows the built-in resources", listed)
    versions = [one["version"] for one in server.json("GET", "/apis/networking.k8s.io", want=200)["versions"]]
    check(versions == ["v7", "v1"], "the versions of the group", versions)
    found = server.json("GET", "/openapi/v2", want=200)
    check("io.k8s.api.networking.v1.Ingress" in found["definitions"], "OpenAPI is complete")
    conditions = {one["type"]: one["status"] for one in server.json("GET", CRDS + "/extras.networking.k8s.io")["status"]["conditions"]}
    check(conditions.get("Established") == "True", "its conditions are the usual ones", conditions)
    server.json("DELETE", CRDS + "/ingresses.networking.k8s.io", want=200)
    code, _, _ = server.request("GET", "/apis/networking.k8s.io/v1/ingresses")
    check(code == 200, "the built-in kind of that name still works", code)


def members_are_sorted(server):
    """Custom objects are maps: members are sorted by name, including managedFields. PartialObjectMetadata is printed in
    declaration order."""
    server.json("POST", f"{PLAINS}?fieldManager=m", {**thing("Plain", "sorted"), "metadata": {"name": "sorted", "labels": {"b": "1", "a": "2"}, "annotations": {"x": "y"}}}, want=201)
    _, _, data = server.request("GET", PLAINS + "/sorted")
    metadata = json.loads(data)["metadata"]
    check(list(metadata) == sorted(metadata) and "managedFields" in metadata, "metadata", list(metadata))
    check(list(metadata["managedFields"][0]) == sorted(metadata["managedFields"][0]), "an entry of managedFields", list(metadata["managedFields"][0]))
    partial = server.json("GET", PLAINS + "/sorted", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")["metadata"]
    want = ["name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels", "annotations", "managedFields"]
    table = server.json("GET", PLAINS + "/sorted", accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    check(list(table["rows"][0]["object"]["metadata"]) == want, "metadata in a row of a Table", table["rows"][0])
    check(list(partial) == want and list(partial["managedFields"][0])[:2] == ["manager", "operation"], "metadata only", partial)


def replicas_below_an_index(server):
    paths = {"specReplicasPath": ".spec.list[0].n", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.s[1]"}
    server.json("POST", CRDS, definition("indexed", "Indexed", versions=[version("v1", storage=True, subresources={"scale": paths})]), want=201)


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, (setup, paths_and_verbs, scales, values_of_the_wrong_type, exported_objects_are_restored, objects_migrate_by_writing_them_back, defaults_of_each_version, fields_to_select_by_are_of_a_version,
                           finalizers_are_warned_about, conditions_of_definitions, ownership_outlives_its_version,
                           findings_are_listed_by_place, resources_inside_resources, old_mistakes_are_forgiven,
                           watches_end_with_their_definition, built_in_groups_are_not_extended,
                           members_are_sorted, replicas_below_an_index))
    finish()

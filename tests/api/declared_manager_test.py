#!/usr/bin/env python3
"""declared_manager_test.py HOLDFAST: metadata.options.fieldManager, the field manager declared by an object; and ownership
across /scale and /status."""
import base64, json, os, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare"))
from hook_server import HookServer
from samples import SAMPLES
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
            ("a name of too many characters", configmap("q", "ü" * 129), "", "metadata.options[fieldManager]"),
            ("a name that cannot be printed", configmap("q", "a\u0007b"), "", "metadata.options[fieldManager]"),
            ("an unknown option", {**configmap("q"), "metadata": {"name": "q", "options": {"bogus": "x"}}}, "", "metadata.options[bogus]")):
        for method, url, type in (("POST", CONFIGMAPS, "application/json"), ("PATCH", CONFIGMAPS + "/q", APPLY)):
            if type == APPLY and not query:
                query = "?fieldManager=m" if "bogus" in path else ""
            refused = server.json(method, url + query, object, content_type=type)
            check(refused.get("code") == 422 and path in refused["message"], f"{what}: {method} {refused.get('code')} {refused.get('message')}")
    umlauts = server.json("POST", CONFIGMAPS, configmap("umlauts", "ü" * 65), want=201)
    check(managers(umlauts) == [("ü" * 65, "Update")], "names are limited in characters, not bytes")
    server.json("PUT", CONFIGMAPS + "/umlauts", {**umlauts, "data": {"k": "w"}}, want=200)
    same = server.json("POST", CONFIGMAPS + "?fieldManager=same", configmap("same", "same"), want=201)
    check(managers(same) == [("same", "Update")], "the same in both is fine")
    empty = server.json("POST", CONFIGMAPS, configmap("empty", ""), want=201)
    check(managers(empty) == [("test", "Update")], "empty is the same as absent: the user agent")
    empty = server.json("POST", CONFIGMAPS + "?fieldManager=query", configmap("empty2", ""), want=201)
    check(managers(empty) == [("query", "Update")], "empty is the same as absent: the query parameter")
    nobody = server.json("PATCH", CONFIGMAPS + "/z", configmap("z"), content_type=APPLY, want=422)
    check("fieldManager" in nobody["message"], "an apply without a manager is still an error")


# Small objects of kinds without a sample in tests/compare.
SMALL = {"CSIDriver": {"spec": {}}, "CSINode": {"spec": {"drivers": []}}, "CSIStorageCapacity": {"storageClassName": "x"}, "ControllerRevision": {"revision": 1, "data": {}},
         "DeviceClass": {"spec": {}}, "Event": {"involvedObject": {"namespace": "default"}}, "ResourceClaim": {"spec": {}}, "ResourceClaimTemplate": {"spec": {"spec": {}}},
         "RuntimeClass": {"handler": "x"}, "VolumeAttributesClass": {"driverName": "a.example.com", "parameters": {"a": "b"}},
         "VolumeAttachment": {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
         "ResourceSlice": {"spec": {"driver": "a.example.com", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}},
         "FieldProtection": {"spec": {"resources": [{"apiGroups": ["example.com"], "resources": ["nothing"]}], "paths": [".spec"]}}}
# Kinds without such an object: their merge and JSON patches are not covered.
WITHOUT_SAMPLE = set()


def endpoints(server):
    """Every endpoint of discovery: (group version, name with its subresource, its discovery entry)."""
    versions = ["/api/v1"] + ["/apis/" + v["groupVersion"] for g in server.json("GET", "/apis")["groups"] for v in g["versions"]]
    for root in versions:
        for resource in server.json("GET", root)["resources"]:
            yield root, resource["name"], resource


def instance(server, root, plural, resource):
    """The path of an existing object of this resource; None if there is no way to create one."""
    api_version = root.removeprefix("/apis/").removeprefix("/api/")
    place = "/namespaces/default/" if resource["namespaced"] else "/"
    collection = root + place + plural
    samples = [widget("walked", replicas=1)] if plural == "widgets" else SAMPLES.get((api_version, resource["kind"]), [])
    if resource["kind"] in SMALL:
        samples = samples + [{"apiVersion": api_version, "kind": resource["kind"], "metadata": {}, **SMALL[resource["kind"]]}]
    for sample in samples:
        name = {"customresourcedefinitions": "walked.example.org", "apiservices": "v1.walked.example.org", "ipaddresses": "10.11.12.13"}.get(plural, "walked")
        code, _, data = server.request("POST", collection, {**sample, "metadata": {**sample["metadata"], "name": name}})
        if code in (201, 409):
            return collection + "/" + name
    found = server.json("GET", collection).get("items") if "list" in resource["verbs"] else None
    return collection + "/" + found[0]["metadata"]["name"] if found else None


def every_endpoint(server):
    """Every verb of every resource and subresource that accepts an object checks its options."""
    walked, live = 0, {}
    for root, name, resource in endpoints(server):
        plural, _, sub = name.partition("/")
        verbs = set(resource["verbs"]) & {"create", "update", "patch"}
        if not verbs or sub == "proxy" or resource["kind"] in ("PodExecOptions", "PodAttachOptions", "PodPortForwardOptions"):
            continue
        group, version = resource.get("group"), resource.get("version") or root.rsplit("/", 1)[1]
        api_version = (group + "/" if group else "") + version if "version" in resource else root.removeprefix("/apis/").removeprefix("/api/")
        place = "/namespaces/default/" if resource["namespaced"] else "/"
        base = root + place + plural
        if not sub and "get" in resource["verbs"]:
            live[root + plural] = instance(server, root, plural, resource)
        known = live.get(root + plural)
        path = known or base + "/walked"
        object = {"apiVersion": api_version, "kind": resource["kind"], "metadata": {"name": path.rsplit("/", 1)[1]}}
        bad = {"an unknown option": ("", {"bogus": "x"}, "metadata.options[bogus]"),
               "another manager": ("?fieldManager=other", {"fieldManager": "declared"}, "metadata.options[fieldManager]")}
        requests = []
        if "create" in verbs:
            requests.append(("POST", path + "/" + sub if sub else base, "application/json", None))
        url = path + ("/" + sub if sub else "")
        if "update" in verbs:
            requests.append(("PUT", url, "application/json", None))
        if "patch" in verbs:
            requests.append(("PATCH", url, APPLY, None))
            if known:
                requests += [("PATCH", url, MERGE, lambda options: {"metadata": {"options": options}}),
                             ("PATCH", url, JSON_PATCH, lambda options: [{"op": "add", "path": "/metadata/options", "value": options}])]
            else:
                WITHOUT_SAMPLE.add(resource["kind"])
        for method, url, type, patch in requests:
            for what, (query, options, field) in bad.items():
                if type == APPLY and not query:
                    query = "?fieldManager=m"
                body = patch(options) if patch else {**object, "metadata": {**object["metadata"], "options": options}}
                code, _, data = server.request(method, url + query, body, content_type=type)
                check(code == 422 and field.encode() in data, f"{what}: {method} {url} {type}: {code} {data[:300]}")
                walked += 1
    check(walked >= 850, f"the walk covered {walked} requests")
    check(WITHOUT_SAMPLE <= {"CertificateSigningRequest", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}, f"no sample of {sorted(WITHOUT_SAMPLE)}")
    for path in filter(None, live.values()):
        check("options" not in server.json("GET", path)["metadata"], f"no objects are left in {path}")


def scale_names_its_manager(server):
    """The option of a Scale sets the owner of spec.replicas, and is never visible in an object."""
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "named"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    for kind, object, path in (("Deployment", whole, DEPLOYMENT[:-1] + "named"), ("Widget", widget("named", replicas=1), WIDGETS + "/named")):
        server.json("POST", path.rsplit("/", 1)[0], object, want=201)
        scale = server.json("GET", path + "/scale")
        scale["spec"]["replicas"] = 2
        server.json("PUT", path + "/scale", declared(scale, "putter"), want=200)
        check(owns(server.json("GET", path), "putter", "spec", "replicas", operation="Update", subresource="scale"), f"{kind}: PUT of /scale")
        server.json("PATCH", path + "/scale", {"metadata": {"options": {"fieldManager": "merger"}}, "spec": {"replicas": 3}}, content_type=MERGE, want=200)
        check(owns(server.json("GET", path), "merger", "spec", "replicas", operation="Update", subresource="scale"), f"{kind}: merge patch of /scale")
        answer = server.json("PATCH", path + "/scale", [{"op": "add", "path": "/metadata/options", "value": {"fieldManager": "jsoner"}},
                                                        {"op": "replace", "path": "/spec/replicas", "value": 4}], content_type=JSON_PATCH, want=200)
        check("options" not in answer["metadata"], f"{kind}: the Scale in the response has no options")
        check(owns(server.json("GET", path), "jsoner", "spec", "replicas", operation="Update", subresource="scale"), f"{kind}: JSON patch of /scale")


def admission_adds_no_options(server):
    """Changes of webhooks to metadata.options are neither stored nor returned, and do not set a manager; webhooks see the
    manager declared by the request."""
    seen = []
    def reviewed(review, patch):
        seen.append(review["request"])
        response = {"uid": review["request"]["uid"], "allowed": True}
        if patch:
            patch = [{"op": "add", "path": "/metadata/options", "value": {"fieldManager": "evil", "bogus": "x"}}]
            response.update(patch=base64.b64encode(json.dumps(patch).encode()).decode(), patchType="JSONPatch")
        return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
    with tempfile.TemporaryDirectory() as folder:
        hooks = HookServer(folder)
        hooks.on("/mutate", lambda review: reviewed(review, True))
        hooks.on("/validate", lambda review: reviewed(review, False))
        rules = [{"operations": ["*"], "apiGroups": ["", "apps", "example.com"], "apiVersions": ["*"],
                  "resources": ["configmaps", "widgets", "deployments", "*/scale", "pods/binding", "pods/eviction"]}]
        paths = []
        for kind, name in (("Mutating", "mutate"), ("Validating", "validate")):
            path = "/apis/admissionregistration.k8s.io/v1/" + kind.lower() + "webhookconfigurations"
            server.json("POST", path, {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration", "metadata": {"name": "options"}, "webhooks": [
                {"name": "options.example.com", "clientConfig": {"url": hooks.url("/" + name), "caBundle": base64.b64encode(hooks.ca).decode()}, "rules": rules,
                 "admissionReviewVersions": ["v1"], "sideEffects": "None"}]}, want=201)
            paths.append(path + "/options")
        for collection, make in ((CONFIGMAPS, lambda n: configmap(n)), (WIDGETS, lambda n: widget(n, size=1, replicas=1))):
            kind = collection.rsplit("/", 1)[1]
            code, headers, data = server.request("POST", collection, declared(make("hooked"), "maker"))
            made = json.loads(data)
            check(code == 201 and "metadata.options" in (headers["Warning"] or ""), f"{kind}: a warning says that the option was ignored")
            live = server.json("GET", collection + "/hooked")
            check("options" not in made["metadata"] and "options" not in live["metadata"], f"{kind}: it is neither returned nor stored")
            check(managers(live) == [("maker", "Update")], f"{kind}: it names no manager", managers(live))
            writes = (("PUT", "application/json", declared({**live, "metadata": {**live["metadata"], "labels": {"a": "1"}}}, "putter"), "putter"),
                      ("PATCH", MERGE, {"metadata": {"labels": {"a": "2"}, "options": {"fieldManager": "merger"}}}, "merger"),
                      ("PATCH", JSON_PATCH, [{"op": "add", "path": "/metadata/options", "value": {"fieldManager": "jsoner"}},
                                             {"op": "replace", "path": "/metadata/labels/a", "value": "3"}], "jsoner"),
                      ("PATCH", APPLY, declared(make("hooked"), "applier"), "applier"))
            for method, type, body, manager in writes:
                seen.clear()
                after = server.json(method, collection + "/hooked", body, content_type=type, want=200)
                check(("maker", "Update") in managers(after) and manager in [m for m, _ in managers(after)], f"{kind}: {type}: ownership is kept", managers(after))
                check(len(seen) == 2 and all(r["options"].get("fieldManager") == manager for r in seen), f"{kind}: {type}: both webhooks see the manager", [r["options"] for r in seen])
                check("options" not in json.dumps([r["object"]["metadata"] for r in seen]), f"{kind}: {type}: and no option in the object")
            seen.clear()
            server.json("PATCH", collection + "/hooked", {"metadata": {"labels": {"a": "4"}}}, content_type=MERGE, want=200)
            check(len(seen) == 2 and all("fieldManager" not in r["options"] for r in seen), f"{kind}: requests without a manager are shown without one", [r["options"] for r in seen])
        seen.clear()
        server.json("PATCH", WIDGETS + "/hooked/scale", {"metadata": {"options": {"fieldManager": "scaler"}}, "spec": {"replicas": 7}}, content_type=MERGE, want=200)
        check(len(seen) == 2 and all(r["options"].get("fieldManager") == "scaler" and "options" not in r["object"]["metadata"] for r in seen), "/scale", seen)
        check(owns(server.json("GET", WIDGETS + "/hooked"), "scaler", "spec", "replicas", operation="Update", subresource="scale"), "/scale: owned")
        for path in paths:
            server.json("DELETE", path, want=200)


def only_on_the_object_itself(server):
    template = {"metadata": {"labels": {"a": "b"}, "options": {"fieldManager": "nested"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nested"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    code, headers, data = server.request("POST", "/apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict", object)
    check(code == 400 and b'unknown field \\"spec.template.metadata.options\\"' in data, f"in a template it is an unknown field: {code}")


def in_openapi(server):
    meta = server.json("GET", "/openapi/v3/api/v1")["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    check("options" in meta["properties"], "OpenAPI v3 has it, so that validating clients accept it")
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
    check(("old", "Apply") in managers(server.json("GET", WIDGETS + "/aged")), "an entry of a removed version is still shown")
    server.json("PATCH", WIDGETS + "/aged/scale", {"spec": {"replicas": 6}}, content_type=MERGE, want=200)
    check(("old", "Apply") not in managers(server.json("GET", WIDGETS + "/aged")), "and disappears with any write of /scale")


def gate_off(server):
    server.restart("DeclarativeFieldManager=false")
    code, headers, _ = server.request("POST", CONFIGMAPS, configmap("off", "declared"))
    check(code == 201 and 'unknown field \\"metadata.options\\"' in (headers["Warning"] or ""), "gate off: an unknown field")
    check(managers(server.json("GET", CONFIGMAPS + "/off")) == [("test", "Update")], "gate off: it does not set a manager")
    check(b'"options"' not in server.request("GET", "/openapi/v3/api/v1")[2].split(b"meta.v1.ObjectMeta\"")[1][:20000].split(b"meta.v1.OwnerReference")[0], "gate off: OpenAPI does not have it")
    server.restart()
    check(managers(server.json("POST", CONFIGMAPS, configmap("on", "declared"), want=201)) == [("declared", "Update")], "gate on again")


def managers_that_yield():
    with Server(sys.argv[1], flags=("--yielding-field-managers=kubectl,kubectl-create",)) as server:
        body = configmap("yields", "declared")
        stored = server.json("POST", CONFIGMAPS + "?fieldManager=kubectl-create", body, want=201)
        check(managers(stored) == [("declared", "Update")], f"a manager that yields is replaced by the declared one: {managers(stored)}")
        stored = apply(server, body, "kubectl", path=CONFIGMAPS + "/yields")
        check(("declared", "Apply") in managers(stored), f"in an apply as well: {managers(stored)}")
        stored = apply(server, {**body, "metadata": {"name": "yields"}}, "kubectl", path=CONFIGMAPS + "/yields")
        check(("kubectl", "Apply") in managers(stored), "without a declaration it is the manager")
        refused = apply(server, body, "other", path=CONFIGMAPS + "/yields", want=422)
        check("--field-manager=declared" in refused["message"], f"others are refused, with what to tell kubectl: {refused['message']}")


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, (define, every_write, protobuf, refusals, every_endpoint, scale_names_its_manager, admission_adds_no_options, only_on_the_object_itself, in_openapi, scale_takes_replicas, unknown_versions_go_with_a_scale_write, gate_off))
    managers_that_yield()
    finish()

#!/usr/bin/env python3
"""opt_out_test.py HOLDFAST: clients that opt out of managedFields, or request them in binary form, in every supported way."""
import base64, json, os, re, sys, tempfile, threading

from serve import Server, check, finish, run_parts
from widgets import WIDGETS
import widgets

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DROPPED = ";drop=metadata.managedFields"
SPELLINGS = (DROPPED, ";drop=nothing.known+metadata.managedFields", ";mf=none")
AUDIT_CONFIGMAPS = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: RequestResponse, resources: [{group: '', resources: [configmaps]}]}]\n"
# Text found only in responses with managedFields.
FORMATS = {
    "application/json": b'"managedFields"',
    "application/yaml": b"managedFields:",
    "application/cbor": b"managedFields",
    "application/vnd.kubernetes.protobuf": b"FieldsV1",
}


def configmap(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def widget(name):
    return widgets.widget(name, replicas=1, size=1)


def deployment(name):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
                     "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}}


def given(server):
    widgets.define(server)
    server.json("POST", CONFIGMAPS, configmap("a"), want=201)
    server.json("POST", WIDGETS, widget("a"), want=201)
    server.json("POST", DEPLOYMENTS, deployment("a"), want=201)


def every_verb(server):
    for kind, collection, make, formats in (("ConfigMap", CONFIGMAPS, configmap, FORMATS),
                                            ("Widget", WIDGETS, widget, [f for f in FORMATS if "protobuf" not in f])):
        one = collection + "/a"
        live = lambda: {**make("a"), "metadata": {"name": "a", "resourceVersion": server.json("GET", one)["metadata"]["resourceVersion"]}}
        requests = {
            "get": lambda: ("GET", one, None),
            "list": lambda: ("GET", collection, None),
            "put": lambda: ("PUT", one, live()),
            "post": lambda: ("POST", collection + "?dryRun=All", make("new")),
            "merge patch": lambda: ("PATCH", one, {"metadata": {"labels": {"x": "y"}}}),
            "apply": lambda: ("PATCH", one + "?fieldManager=applier&force=true&dryRun=All", make("a")),
            "delete": lambda: ("DELETE", one, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "dryRun": ["All"]}),
            "delete collection": lambda: ("DELETE", collection + "?dryRun=All&labelSelector=x=y", None),
        }
        if kind == "Widget":
            requests["status"] = lambda: ("PATCH", one + "/status", {"status": {"replicas": 3}})
        for format in formats:
            for spelling in SPELLINGS:
                for verb, request in requests.items():
                    method, path, body = request()
                    type = {"merge patch": "application/merge-patch+json", "status": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}.get(verb, "application/json")
                    _, headers, with_them = server.request(method, path, body, accept=format, content_type=type)
                    method, path, body = request()
                    code, dropped_headers, without = server.request(method, path, body, accept=format + spelling, content_type=type)
                    what = f"{kind} {verb} {format}{spelling}"
                    check(code in (200, 201, 202), f"{what}: {code} {without[:200]}")
                    # A completed deletion is answered with a Status.
                    if not (verb == "delete" and b"managedFields" not in with_them and b"Status" in with_them):
                        check(FORMATS[format] in with_them, f"{what}: the plain response lacks managedFields: {with_them[:200]}")
                    check(FORMATS[format] not in without and b"managedFields" not in without, f"{what}: managedFields are still there")
                    check(headers["Content-Type"] == dropped_headers["Content-Type"], f"{what}: Content-Type differs")


def subresources(server):
    for format, mark in FORMATS.items():
        for path in (DEPLOYMENTS + "/a/status", "/api/v1/namespaces/default/status"):
            _, _, with_them = server.request("GET", path, accept=format)
            code, _, without = server.request("GET", path, accept=format + DROPPED)
            check(code == 200 and mark not in without, f"{path} {format} without managedFields")
            check(mark in with_them, f"{path} {format} has managedFields otherwise")
        for path in (DEPLOYMENTS + "/a/scale", WIDGETS + "/a/scale"):
            if path.startswith(WIDGETS) and "protobuf" in format:
                continue
            code, _, data = server.request("GET", path, accept=format + DROPPED)
            check(code == 200 and b"Scale" in data, f"{path} {format}: {code}")


def forms(server):
    for collection in (CONFIGMAPS, WIDGETS):
        for form in ("PartialObjectMetadataList", "Table"):
            wanted = f"application/json;as={form};v=v1;g=meta.k8s.io"
            whole = collection + ("?includeObject=Object" if form == "Table" else "")
            _, _, with_them = server.request("GET", whole, accept=wanted)
            _, _, data = server.request("GET", whole, accept=wanted + DROPPED)
            check(form.encode() in data and b"managedFields" not in data, f"{collection} as {form} without managedFields")
            check(b"managedFields" in with_them, f"{collection} as {form} has them otherwise")
        _, _, data = server.request("GET", collection + "/a", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" + DROPPED)
        check(b"PartialObjectMetadata" in data and b"managedFields" not in data, f"{collection}/a as PartialObjectMetadata without managedFields")


def query_parameter(server):
    for path in (CONFIGMAPS, CONFIGMAPS + "/a", WIDGETS, WIDGETS + "/a"):
        _, _, data = server.request("GET", path + "?showManagedFields=false")
        check(b"managedFields" not in data, f"{path}?showManagedFields=false")
        _, _, data = server.request("GET", path + "?showManagedFields=true")
        check(b"managedFields" in data, f"{path}?showManagedFields=true changes nothing")
        _, _, data = server.request("GET", path + "?showManagedFields=true", accept="application/json" + DROPPED)
        check(b"managedFields" not in data, f"{path}: one way of asking is enough")
    lines = server.watch(CONFIGMAPS + "?watch=true&timeoutSeconds=5&showManagedFields=false", 1)
    check(b"managedFields" not in lines[0] and b'"ADDED"' in lines[0], "watch with ?showManagedFields=false")


def what_counts(server):
    for unknown in (";drop=", ";mf=some", ";mf=", ";drop=metadata.labels", ";drop=managedFields", ";drop=metadata.managedfields"):
        _, _, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json" + unknown)
        check(b"managedFields" in data and b'"labels"' in data, f"{unknown} is ignored")
    for accept, dropped in (("application/json, application/yaml" + DROPPED, False), ("application/json" + DROPPED + ", application/yaml", True),
                            ("application/nothing" + DROPPED + ", application/json", False), ("application/yaml;as=Table;v=v9" + DROPPED + ", application/json", False)):
        _, _, data = server.request("GET", CONFIGMAPS + "/a", accept=accept)
        check((b"managedFields" not in data) == dropped, f"of `{accept}` the winning clause counts")
    code, _, data = server.request("GET", CONFIGMAPS + "/missing", accept="application/json" + DROPPED)
    check(code == 404 and json.loads(data)["reason"] == "NotFound", "a Status is unchanged")
    for path in ("/api", "/apis", "/version"):
        code, _, data = server.request("GET", path, accept="application/json" + DROPPED)
        check(code == 200 and json.loads(data), f"{path} has no managedFields to drop")


def watches(server):
    """Watchers of every format, with and without managedFields, on the same events."""
    version = server.json("GET", CONFIGMAPS)["metadata"]["resourceVersion"]
    seen = {}

    def follow(format, wish):
        path = CONFIGMAPS + f"?watch=true&timeoutSeconds=3&resourceVersion={version}"
        seen[format, wish] = server.watch(path, 0, format + wish)[0]

    wishes = ("", DROPPED, ";mf=none")
    streams = [f if f != "application/vnd.kubernetes.protobuf" else f + ";stream=watch" for f in FORMATS if "yaml" not in f]
    followers = [threading.Thread(target=follow, args=(format, wish)) for format in streams for wish in wishes]
    for follower in followers:
        follower.start()
    server.json("POST", CONFIGMAPS, configmap("watched"), want=201)
    server.json("PATCH", CONFIGMAPS + "/watched", {"data": {"k": "w"}}, want=200, content_type="application/merge-patch+json")
    server.json("DELETE", CONFIGMAPS + "/watched", want=200)
    for follower in followers:
        follower.join()
    for (format, wish), data in seen.items():
        check(all(word in data for word in (b"ADDED", b"MODIFIED", b"DELETED")), f"a watch as {format}{wish} has its three events: {data[:80]}")
        check((b"FieldsV1" in data) == (wish == ""), f"a watch as {format}{wish}")


def binary_form(server):
    for collection in (CONFIGMAPS, WIDGETS):
        _, _, data = server.request("GET", collection + "/a", accept="application/json;mf=v2")
        entries = json.loads(data)["metadata"]["managedFields"]
        check(all(e["fieldsType"] == "FieldsV2" and base64.b64decode(e["fieldsV2"])[0] in (1, 2, 3) and "fieldsV1" not in e for e in entries),
              f"{collection}: mf=v2 gives every entry as FieldsV2")
        _, _, data = server.request("GET", collection + "/a", accept="application/json;mf=v1")
        check(all(e["fieldsType"] == "FieldsV1" for e in json.loads(data)["metadata"]["managedFields"]), f"{collection}: mf=v1 gives FieldsV1")
        for format in FORMATS:
            if collection == WIDGETS and "protobuf" in format:
                continue
            _, _, data = server.request("GET", collection + "/a", accept=format + ";mf=v2")
            check(b"FieldsV2" in data and b"FieldsV1" not in data, f"{collection}: mf=v2 as {format}")
    # Both forms are accepted in writes and are equivalent.
    plain = server.json("GET", CONFIGMAPS + "/a")
    binary = server.json("GET", CONFIGMAPS + "/a", accept="application/json;mf=v2")
    server.json("PUT", CONFIGMAPS + "/a", binary, want=200)
    after = server.json("GET", CONFIGMAPS + "/a")
    check(after["metadata"]["managedFields"] == plain["metadata"]["managedFields"], "a PUT with FieldsV2 preserves ownership")
    check(after["metadata"]["resourceVersion"] == plain["metadata"]["resourceVersion"], "and writes nothing")


def read_stripped_write_back(server):
    for collection, path in ((CONFIGMAPS, ("data", "more")), (WIDGETS, ("spec", "size"))):
        before = server.json("GET", collection + "/a")
        stripped = server.json("GET", collection + "/a", accept="application/json" + DROPPED)
        stripped[path[0]][path[1]] = "1" if path[0] == "data" else 7
        after = server.json("PUT", collection + "/a?fieldManager=writer", stripped, want=200)
        managers = {e["manager"] for e in after["metadata"]["managedFields"]}
        check({e["manager"] for e in before["metadata"]["managedFields"]} <= managers | {"test"} and "writer" in managers,
              f"{collection}: a PUT of a stripped object keeps the stored owners")


def discoverable(server):
    v3 = server.json("GET", "/openapi/v3/api/v1")
    v2 = server.json("GET", "/openapi/v2")
    path = "/api/v1/namespaces/{namespace}/configmaps/{name}"
    media = " ".join(v3["paths"][path]["get"]["responses"]["200"]["content"])
    produces = " ".join(v2["paths"][path]["get"]["produces"])
    check(all(type + DROPPED in media for type in FORMATS), f"OpenAPI v3 lists the parameter for each encoding: {media}")
    check(all(type + DROPPED in produces for type in FORMATS), f"OpenAPI v2 lists the parameter for each encoding: {produces}")
    check("cbor-seq;drop" not in json.dumps(v3) and "stream=watch;drop" not in json.dumps(v3), "no stream is listed with it")
    custom = server.json("GET", "/openapi/v3/apis/example.com/v1")["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets"]["get"]
    check(all(server.request("GET", WIDGETS, accept=type)[0] == 200 for type in custom["responses"]["200"]["content"] if "drop=" in type), "custom resources are served in each type that is listed with it")


def counted(server):
    """What was sent is counted, by resource and by kind of client."""
    def counts():
        lines = server.request("GET", "/metrics")[2].decode().splitlines()
        return {tuple(sorted(re.findall(r'(\w+)="([^"]*)"', line))): float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("holdfast_managed_fields_opt_out_total{")}

    def added(request):
        before = counts()
        request()
        return {key: value - before.get(key, 0) for key, value in counts().items() if value != before.get(key, 0)}

    def only(found, **labels):
        return len(found) == 1 and list(found.values()) == [1] and labels.items() <= dict(next(iter(found))).items()

    for path, verb in ((CONFIGMAPS + "/a", "get"), (CONFIGMAPS, "list")):
        for format in FORMATS:
            sent = added(lambda: server.request("GET", path, accept=format + DROPPED))
            check(only(sent, verb=verb, group="", resource="configmaps", kind="drop", format=format[12:], client="other"), f"{verb} as {format}: {sent}")
    sent = added(lambda: server.json("PATCH", WIDGETS + "/a", {"metadata": {"labels": {"n": "1"}}}, accept="application/json;mf=none", content_type="application/merge-patch+json", want=200))
    check(only(sent, verb="patch", group="example.com", resource="widgets", kind="mf"), f"a patch: {sent}")
    sent = added(lambda: server.watch(CONFIGMAPS + "?watch=true&timeoutSeconds=5&showManagedFields=false", 2))
    check(only(sent, verb="watch", kind="query"), f"a watch is counted once: {sent}")
    for path in (CONFIGMAPS + "/missing", CONFIGMAPS + "?labelSelector=((("):
        check(added(lambda: server.request("GET", path, accept="application/json" + DROPPED)) == {}, f"{path}: an error is not counted")
    check(added(lambda: server.request("GET", CONFIGMAPS)) == {}, "nor what has managedFields")
    for agent, family in (("kubectl/v1.36.0 (linux/amd64) kubernetes/abc", "kubectl"), ("manager/v0 (linux/amd64) kubernetes/$Format", "go"), ("Helm/3.1", "helm"),
                          ("OpenAPI-Generator/1/python", "python"), ("never heard of", "other"), ("kubectl-imposter/1", "other")):
        sent = added(lambda: server.request("GET", CONFIGMAPS + "/a", accept="application/json" + DROPPED, headers={"User-Agent": agent}))
        check(only(sent, client=family), f"{agent} is {family}: {sent}")


def bytes_are_counted(server):
    """The bytes of field sets that were not sent, for each object of a list and each event of a watch."""
    def saved():
        lines = server.request("GET", "/metrics")[2].decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("holdfast_managed_fields_opt_out_bytes_total{") and 'resource="configmaps"' in line)

    def size(*objects):
        return sum(len(json.dumps(entry["fieldsV1"], separators=(",", ":"))) for each in objects for entry in each["metadata"]["managedFields"])

    for name in ("a", "b"):
        server.json("POST", CONFIGMAPS, configmap("bytes-" + name), want=201)
    items = [item for item in server.json("GET", CONFIGMAPS)["items"]]
    for format in FORMATS:
        for path, expected in ((CONFIGMAPS + "/bytes-a", size(server.json("GET", CONFIGMAPS + "/bytes-a"))), (CONFIGMAPS, size(*items))):
            before = saved()
            server.request("GET", path, accept=format + DROPPED)
            check(saved() - before == expected, f"{path} as {format}: {saved() - before}, expected {expected}")
    before = saved()
    server.watch(CONFIGMAPS + "?watch=true&timeoutSeconds=5", len(items), "application/json" + DROPPED)
    check(saved() - before == size(*items), f"a watch of {len(items)} objects: {saved() - before}")
    before = saved()
    patched = server.json("PATCH", CONFIGMAPS + "/bytes-a?fieldManager=p", {"data": {"x": "y"}}, accept="application/json" + DROPPED, content_type="application/merge-patch+json", want=200)
    check("managedFields" not in patched["metadata"] and saved() - before == size(server.json("GET", CONFIGMAPS + "/bytes-a")), f"a patch: {saved() - before}")
    before = saved()
    server.request("GET", CONFIGMAPS)
    check(saved() == before, "nothing is saved with managedFields")


def audit():
    """What is recorded does not depend on what the client wants to receive."""
    with tempfile.TemporaryDirectory() as folder:
        policy, log = os.path.join(folder, "policy.yaml"), os.path.join(folder, "audit.log")
        with open(policy, "w") as file:
            file.write(AUDIT_CONFIGMAPS)
        with Server(sys.argv[1], flags=(f"--audit-policy-file={policy}", f"--audit-log-path={log}")) as server:
            _, _, sent = server.request("POST", CONFIGMAPS, configmap("recorded"), accept="application/json" + DROPPED)
            server.request("GET", CONFIGMAPS + "/recorded", accept="application/json" + DROPPED)
        with open(log) as file:
            events = [json.loads(line) for line in file if '"name":"recorded"' in line]
        check(b"managedFields" not in sent and len(events) == 2, f"two requests that opt out: {sent[:100]} {len(events)}")
        check(all(event["responseObject"]["metadata"].get("managedFields") for event in events), f"their recorded responses have managedFields: {events}")


def kubernetes_rule():
    """--strict-drop: a clause with a value that Kubernetes 1.38 does not know matches nothing, for every verb and before any effect."""
    with Server(sys.argv[1], flags=("--strict-drop",)) as server:
        given(server)
        one = CONFIGMAPS + "/a"
        before = server.json("GET", one)
        apply = ("PATCH", one + "?fieldManager=x", {**configmap("a"), "data": {"x": "y"}})
        requests = [("GET", one, None), ("GET", CONFIGMAPS, None), ("GET", CONFIGMAPS + "?watch=true&timeoutSeconds=1", None), ("POST", CONFIGMAPS, configmap("new")),
                    ("PUT", one, configmap("a")), ("PATCH", one, {"data": {"x": "y"}}), apply, ("DELETE", one, None), ("DELETE", CONFIGMAPS, None), ("GET", WIDGETS + "/a", None),
                    ("GET", DEPLOYMENTS + "/a/scale", None), ("GET", CONFIGMAPS + "/missing", None), ("GET", "/apis/apps", None), ("GET", "/api/v1", None), ("POST", CONFIGMAPS, "{")]
        for request in requests:
            type = "application/apply-patch+yaml" if request is apply else "application/merge-patch+json" if request[0] == "PATCH" else "application/json"
            for value in ("spec", "metadata.managedFields+data", '"metadata.managedFields"'):
                code, headers, data = server.request(*request, accept="application/json;drop=" + value, content_type=type)
                check(code == 406 and b"only the following media types are accepted" in data, f"{request[:2]} with drop={value}: {code} {data[:120]}")
        code, _, data = server.request("GET", one, accept="application/json;drop=spec, application/json;drop=metadata.managedFields")
        check(code == 200 and b"managedFields" not in data, f"the next clause is tried: {code}")
        for accept, query in (("application/json;mf=none", ""), ("application/json;DROP=metadata.managedFields", ""), ("application/json", "?showManagedFields=false")):
            code, _, data = server.request("GET", one + query, accept=accept)
            check(code == 200 and b"managedFields" in data, f"{accept} {query} is unknown to Kubernetes: {code}")
        check(server.json("GET", one) == before, "none of them had an effect")
        document = server.request("GET", "/openapi/v3/api/v1")[2] + server.request("GET", "/openapi/v2")[2]
        check(b"drop=" not in document and b"showManagedFields" not in document, "nothing is listed, as in Kubernetes")


def gates_off_and_on_again(server):
    before = server.json("GET", CONFIGMAPS + "/a")
    server.restart("ManagedFieldsOptOut=false,FieldsV2=false,FieldsV2AtRest=false,ManagedFieldsPool=false,CompressManagedFieldsInCache=false")
    for spelling in (*SPELLINGS, ";mf=v2"):
        for path in (CONFIGMAPS + "/a", CONFIGMAPS, WIDGETS + "/a"):
            _, _, data = server.request("GET", path, accept="application/json" + spelling)
            check(b"managedFields" in data and b"FieldsV1" in data, f"gate off: {spelling} is ignored")
    _, _, data = server.request("GET", CONFIGMAPS + "/a?showManagedFields=false")
    check(b"managedFields" in data, "gate off: ?showManagedFields is ignored")
    check("drop=metadata.managedFields" not in server.request("GET", "/openapi/v3/api/v1")[2].decode(), "gate off: OpenAPI does not list it")
    check(server.json("GET", CONFIGMAPS + "/a") == before, "gates off: the object is unchanged")
    server.json("PATCH", CONFIGMAPS + "/a", {"data": {"while": "switched-off"}}, want=200, content_type="application/merge-patch+json")
    off = server.json("GET", CONFIGMAPS + "/a")
    server.restart()
    check(server.json("GET", CONFIGMAPS + "/a") == off, "gates on again: the object is unchanged")
    _, _, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json" + DROPPED)
    check(b"managedFields" not in data, "gate on again: managedFields can be dropped")


def any_field(server):
    _, headers, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json;drop=data")
    check(b'"data"' in data and headers["Warning"] is None, "DropAnyField off: other paths are unknown")
    server.restart("DropAnyField=true")
    wish = ";drop=data+metadata.labels+metadata.name+kind+metadata.uid+metadata.resourceVersion"
    for format in FORMATS:
        _, headers, data = server.request("GET", CONFIGMAPS + "/a", accept=format + wish)
        check(b"switched-off" not in data and headers["Warning"] and "partial" in headers["Warning"], f"DropAnyField: {format} without data, with a warning: {headers['Warning']}")
    _, _, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json" + wish)
    left = json.loads(data)
    check(left["kind"] == "ConfigMap" and {"name", "uid", "resourceVersion", "managedFields"} <= set(left["metadata"]) and "labels" not in left["metadata"] and "data" not in left,
          "DropAnyField: identifying fields are kept")
    answer = server.json("PATCH", CONFIGMAPS + "/a", {"metadata": {"labels": {"z": "1"}}}, accept="application/json;drop=data", content_type="application/merge-patch+json", want=200)
    check("data" in answer, "DropAnyField: responses to writes are complete")
    _, headers, data = server.request("GET", CONFIGMAPS + "/a", accept="application/json;drop=" + "+".join([*(f"x{i}" for i in range(8)), "data"]))
    check(b'"data"' in data, "DropAnyField: no more than eight targets")


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, (given, every_verb, subresources, forms, query_parameter, what_counts, watches, binary_form, read_stripped_write_back, discoverable, counted, bytes_are_counted,
                           gates_off_and_on_again, any_field))
    audit()
    kubernetes_rule()
    finish()

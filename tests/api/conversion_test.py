#!/usr/bin/env python3
"""conversion_test.py HOLDFAST: a custom resource in two versions converted by a webhook, which runs in this process."""
import base64, json, sys, tempfile

from hook_server import HookServer
from serve import Server, check, finish

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "conv.example.com"
V1, V2 = f"/apis/{GROUP}/v1/namespaces/default/hosts", f"/apis/{GROUP}/v2/namespaces/default/hosts"


def definition(hooks, storage="v1"):
    def version(name, properties):
        return {"name": name, "served": True, "storage": name == storage, "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec." + ("hostPort" if name == "v1" else "host")}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties | {"extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"hosts.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "hosts", "kind": "Host"},
                     "versions": [version("v1", {"hostPort": {"type": "string"}, "mode": {"type": "string", "default": "plain"}}),
                                  version("v2", {"host": {"type": "string", "maxLength": 20}, "port": {"type": "string"}, "mode": {"type": "string"}})],
                     "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
                         "url": hooks.url("/convert"), "caBundle": base64.b64encode(hooks.ca).decode()}}}}}


def convert(review, change=lambda converted: converted):
    request = review["request"]
    wanted = request["desiredAPIVersion"]
    out = []
    for original in request["objects"]:
        converted = json.loads(json.dumps(original))
        converted["apiVersion"] = wanted
        spec = converted.get("spec") or {}  # May be empty after merging.
        if wanted.endswith("/v2") and "hostPort" in spec:
            spec["host"], _, spec["port"] = spec.pop("hostPort").partition(":")
        if wanted.endswith("/v1") and "host" in spec:
            spec["hostPort"] = spec.pop("host") + ":" + spec.pop("port", "")
        out.append(change(converted))
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview",
            "response": {"uid": request["uid"], "convertedObjects": out, "result": {"status": "Success"}}}


def host(version, name, **spec):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Host", "metadata": {"name": name}, "spec": spec}


def round_trips(server, hooks):
    made = server.json("POST", V1, host("v1", "a", hostPort="example.com:80"), want=201)
    check(made["spec"] == {"hostPort": "example.com:80", "mode": "plain"} and not hooks.take(), "the stored version needs no webhook call", made)
    shown = server.json("GET", V2 + "/a", want=200)
    check(shown["spec"] == {"host": "example.com", "port": "80", "mode": "plain"} and shown["apiVersion"].endswith("/v2"), "a read converts", shown)
    check(shown["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"], "metadata is unchanged", shown)
    one = hooks.take()[0]
    review = one["review"]
    check(one["path"] == "/convert?timeout=30s" and list(review) == ["kind", "apiVersion", "request", "response"]
          and list(review["request"]) == ["uid", "desiredAPIVersion", "objects"], "the review", review)
    check("resourceVersion" not in review["request"]["objects"][0]["metadata"], "without a resourceVersion", review)

    made = server.json("POST", V2 + "?fieldManager=two", host("v2", "b", host="b.example", port="81"), want=201)
    check(made["spec"]["host"] == "b.example" and made["metadata"]["managedFields"][0]["apiVersion"] == f"{GROUP}/v2", "a write converts there and back", made)
    check(server.json("GET", V1 + "/b", want=200)["spec"]["hostPort"] == "b.example:81", "what is stored", made)
    status = server.json("POST", V2, host("v2", "bad", host="a-name-that-is-longer-than-twenty"))
    check(status.get("code") == 422 and "spec.host" in status["message"], "validated by the version of the request", status)

    hooks.take()
    listed = server.json("GET", V2, want=200)
    check([item["spec"]["host"] for item in listed["items"]] == ["example.com", "b.example"], "a list converts", listed)
    table = server.json("GET", V2, accept="application/json;as=Table;v=v1;g=meta.k8s.io", want=200)
    check(len(table["rows"]) == 2, "as a Table", table)


def many_in_one_call(server, hooks):
    for i in range(30):
        server.json("POST", V1, host("v1", f"many-{i:02}", hostPort=f"h{i}:1"), want=201)
    hooks.take()
    listed = server.json("GET", V2, want=200)
    calls = hooks.take()
    check(len(listed["items"]) == 32 and len(calls) == 1 and len(calls[0]["review"]["request"]["objects"]) == 30,
          "one call for new objects", [len(call["review"]["request"]["objects"]) for call in calls])
    check(not server.json("GET", V2, want=200) or not hooks.take(), "none the second time")


def applies(server, hooks):
    apply = "application/apply-patch+yaml"
    one = {"apiVersion": f"{GROUP}/v1", "kind": "Host", "metadata": {"name": "ssa"}, "spec": {"hostPort": "x:1"}}
    server.json("PATCH", V1 + "/ssa?fieldManager=one", one, content_type=apply, want=201)
    two = {"apiVersion": f"{GROUP}/v2", "kind": "Host", "metadata": {"name": "ssa"}, "spec": {"mode": "fast"}}
    status = server.json("PATCH", V2 + "/ssa?fieldManager=two", two, content_type=apply)
    check(status.get("spec", {}).get("mode") == "fast" and status["spec"].get("host") == "x", "appliers of two versions", status)
    fields = {entry["manager"]: entry for entry in status["metadata"]["managedFields"]}
    check(fields["one"]["apiVersion"].endswith("/v1") and fields["two"]["apiVersion"].endswith("/v2"), "each entry in its own version", fields)
    conflict = dict(two, spec={"host": "y", "port": "1"})
    status = server.json("PATCH", V2 + "/ssa?fieldManager=two", conflict, content_type=apply)
    check(status.get("code") == 409 and 'conflict with "one"' in status["message"], "conflicts across versions", status)
    one["spec"] = {}
    status = server.json("PATCH", V1 + "/ssa?fieldManager=one", one, content_type=apply, want=200)
    check("hostPort" not in status["spec"], "fields given up are removed", status)


def applies_deep_objects(server, hooks):
    """Deep objects are merged on a thread with a larger stack, which also records what has to be converted."""
    apply = "application/apply-patch+yaml"
    extra = {}
    for _ in range(300):
        extra = {"a": extra}
    one = host("v1", "deep", hostPort="x:1", extra=extra)
    server.json("PATCH", V1 + "/deep?fieldManager=one", one, content_type=apply, want=201)
    status = server.json("PATCH", V2 + "/deep?fieldManager=two", host("v2", "deep", mode="fast"), content_type=apply)
    check(status.get("spec", {}).get("mode") == "fast" and status["spec"].get("host") == "x", "appliers of two versions of a deep object", status)


def watches(server, hooks):
    revision = server.json("GET", V2, want=200)["metadata"]["resourceVersion"]
    server.json("POST", V1, host("v1", "watched", hostPort="w:9"), want=201)
    line = json.loads(server.watch(V2 + f"?watch=1&resourceVersion={revision}", 1)[0])
    check(line["type"] == "ADDED" and line["object"]["spec"]["host"] == "w", "events convert", line)
    server.json("DELETE", V2 + "/watched", want=200)


def selects_by_fields_of_the_version(server, hooks):
    """Selectors on fields that only the webhook sets are evaluated after conversion: in paged lists, deletions and watches."""
    for i, where in enumerate(["north", "south", "north", "south", "north"]):
        server.json("POST", V1, host("v1", f"s{i}", hostPort=f"{where}:{i}"), want=201)
    north = V2 + "?fieldSelector=spec.host%3Dnorth"
    names = lambda listed: [item["metadata"]["name"] for item in listed["items"]]
    check(names(server.json("GET", north, want=200)) == ["s0", "s2", "s4"], "a list selects")
    check(names(server.json("GET", V2 + "?fieldSelector=spec.host!%3Dnorth,metadata.name%3Ds3", want=200)) == ["s3"], "combined with metadata")
    page = server.json("GET", north + "&limit=2", want=200)
    check(names(page) == ["s0", "s2"] and "remainingItemCount" not in page["metadata"], "a page contains as many objects as match", page)
    rest = server.json("GET", north + "&limit=2&continue=" + page["metadata"]["continue"], want=200)
    check(names(rest) == ["s4"] and not rest["metadata"]["continue"], "the next has the rest", rest)
    check(server.json("GET", V1 + "?fieldSelector=spec.host%3Dnorth").get("code") == 400, "a field of another version")

    revision = page["metadata"]["resourceVersion"]
    for name, where in [("s0", "south:0"), ("s1", "north:1"), ("s2", "north:22")]:
        server.json("PATCH", V1 + "/" + name, {"spec": {"hostPort": where}}, content_type="application/merge-patch+json", want=200)
    server.json("DELETE", V1 + "/s4", want=200)
    server.json("DELETE", V1 + "/s3", want=200)
    last = server.json("POST", V1, host("v1", "s5", hostPort="north:5"), want=201)["metadata"]["resourceVersion"]
    events = [json.loads(line) for line in server.watch(f"{north}&watch=1&resourceVersion={revision}", 5)]
    seen = [(event["type"], event["object"]["metadata"]["name"], event["object"]["spec"]["host"], event["object"]["spec"]["port"]) for event in events]
    check(seen == [("DELETED", "s0", "north", "0"), ("ADDED", "s1", "north", "1"), ("MODIFIED", "s2", "north", "22"), ("DELETED", "s4", "north", "4"),
                   ("ADDED", "s5", "north", "5")], "a watch reports objects that start and stop matching", seen)
    check(int(events[0]["object"]["metadata"]["resourceVersion"]) > int(revision), "with the revision of the change", events[0])
    check(events[4]["object"]["metadata"]["resourceVersion"] == last, "as it was written", events[4])
    first = [json.loads(line) for line in server.watch(north + "&watch=1", 3)]
    check(sorted(event["object"]["metadata"]["name"] for event in first) == ["s1", "s2", "s5"], "and the initial objects", first)

    server.json("DELETE", north, want=200)
    left = [name for name in names(server.json("GET", V2, want=200)) if name.startswith("s") and name[1:].isdigit()]
    check(left == ["s0"], "a deletion selects", left)
    server.json("DELETE", V1 + "/s0", want=200)


def broken_webhooks(server, hooks):
    def refused(what, handler, want):
        hooks.on("/convert", handler)
        server.json("POST", V1, host("v1", "broken", hostPort=f"{what}:1"), want=201)
        status = server.json("GET", V2 + "/broken")
        check(status.get("code") == 500 and "reason" not in status and status["message"].startswith(want), what, status)
        status = server.json("GET", V2)
        check(status.get("code") == 500 and "reason" not in status and status["message"].startswith(want), what + ": the list", status)
        server.json("DELETE", V1 + "/broken", want=200)
    kind = f"conversion webhook for {GROUP}/v1, Kind=Host"

    def failing(review):
        return {"apiVersion": review["apiVersion"], "kind": "ConversionReview",
                "response": {"uid": review["request"]["uid"], "result": {"status": "Failure", "message": "no way"}}}

    def renaming(converted):
        converted["metadata"]["name"] = "other"
        return converted

    def nothing(converted):
        del converted["metadata"]
        return converted
    refused("failure", failing, f"{kind} failed: no way")
    refused("http", lambda review: (500, b""), f'{kind} failed: an error on the server ("unknown") has prevented the request from succeeding')
    refused("name", lambda review: convert(review, renaming), f"{kind} returned invalid object: must have the same name: broken != other")
    refused("meta", lambda review: convert(review, nothing), f"{kind} returned invalid")
    refused("version", lambda review: convert(review, lambda one: {**one, "apiVersion": "x/v1"}),
            f"{kind} returned invalid object at index 0: invalid groupVersion (expected {GROUP}/v2, received x/v1)")
    refused("few", lambda review: {**convert(review), "response": {**convert(review)["response"], "convertedObjects": []}},
            f"{kind} returned 0 objects, expected 1")
    hooks.on("/convert", convert)

    def labelled(converted):
        converted["metadata"]["labels"] = {"by": "webhook"}
        converted["metadata"]["finalizers"] = ["x/y"]
        return converted
    hooks.on("/convert", lambda review: convert(review, labelled))
    server.json("POST", V1, host("v1", "labels", hostPort="l:1"), want=201)
    shown = server.json("GET", V2 + "/labels", want=200)
    check(shown["metadata"]["labels"] == {"by": "webhook"} and "finalizers" not in shown["metadata"], "only labels may change", shown["metadata"])
    hooks.on("/convert", convert)


def another_storage_version(server, hooks):
    stored = server.json("GET", DEFINITIONS + f"/hosts.{GROUP}", want=200)
    changed = definition(hooks, storage="v2")
    changed["metadata"] = stored["metadata"]
    server.json("PUT", DEFINITIONS + f"/hosts.{GROUP}", changed, want=200)
    check(server.json("GET", V1 + "/a", want=200)["spec"]["hostPort"] == "example.com:80", "the old version is read as stored")
    shown = server.json("GET", V2 + "/a", want=200)
    check(shown["spec"]["host"] == "example.com", "and converted for the new", shown)
    server.json("PUT", V2 + "/a", {**shown, "spec": {"host": "new", "port": "2"}}, want=200)
    hooks.take()
    check(server.json("GET", V2 + "/a", want=200)["spec"]["host"] == "new" and not hooks.take(), "a write stores the new version")
    check(server.json("GET", DEFINITIONS + f"/hosts.{GROUP}", want=200)["status"]["storedVersions"] == ["v1", "v2"], "storedVersions")


def main():
    with tempfile.TemporaryDirectory() as folder, Server(sys.argv[1]) as server:
        hooks = HookServer(folder)
        hooks.on("/convert", convert)
        server.json("POST", DEFINITIONS, definition(hooks), want=201)
        for told in (round_trips, many_in_one_call, applies, applies_deep_objects, watches, selects_by_fields_of_the_version, broken_webhooks,
                     another_storage_version):
            told(server, hooks)
        hooks.stop()
    finish()


main()

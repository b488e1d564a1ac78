#!/usr/bin/env python3
"""ownership_api_test.py HOLDFAST: the group ownership.holdfast.dev. Reviews of what writes would do to owners of
fields; transfers and releases of fields; protections. With the stories in tests/scenario/ownership_api."""
import json, pathlib, sys

import yaml

from serve import Server, check, finish, run_parts, wait_until
from widgets import APPLY, MERGE, UNSET, define, owns, widget

GROUP = "/apis/ownership.holdfast.dev"
REVIEWS = GROUP + "/v1/ownershipreviews"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def user(name):
    return {"Impersonate-User": name}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def deployment(name, image="i:1", **spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "web", "image": image}]}}, **spec}}


def apply(server, path, object, manager, query="", want=(200, 201), **more):
    code, _, data = server.request("PATCH", f"{path}/{object['metadata']['name']}?fieldManager={manager}{query}", object, content_type=APPLY, **more)
    answer = json.loads(data)
    assert code in (want if isinstance(want, tuple) else (want,)), f"apply by {manager}: {code} {answer.get('message')}"
    return answer


def review(server, *documents, manager="me", want=201, headers=None, **spec):
    documents = [one if "object" in one or "patch" in one else {"object": one} for one in documents]
    body = {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipReview", "spec": {"fieldManager": manager, "documents": documents, **spec}}
    return server.json("POST", REVIEWS, body, want=want, headers=headers)


def result_of(server, *documents, **more):
    return review(server, *documents, **more)["status"]["results"][0]


def paths(entries):
    return [entry["path"] for entry in entries]


def allow(server, name, rules, who):
    """A role for one user."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    server.json("POST", rbac + "/namespaces/default/roles", {"metadata": {"name": name}, "rules": rules}, want=201)
    server.json("POST", rbac + "/namespaces/default/rolebindings", {"metadata": {"name": name}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": who}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}}, want=201)


# --- Reviews ---


def a_conflict_names_both_values_and_the_owner(server):
    stored = apply(server, MAPS, config_map("conflict", color="red", size="3"), "alice")
    answer = review(server, config_map("conflict", color="blue", size="3"), manager="bob")
    check(not answer["status"]["allowed"], "a review with a conflict is not allowed")
    result = answer["status"]["results"][0]
    since = stored["metadata"]["managedFields"][0]["time"]
    check(result["target"] == {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "conflict"}, "the target is named", result)
    check(result["outcome"] == "Conflict" and result["error"]["code"] == 409, "the outcome is a conflict", result)
    check(result["conflicts"] == [{"path": ".data.color", "yours": "blue", "live": "red",
                                   "owners": [{"manager": "alice", "operation": "Apply", "apiVersion": "v1", "since": since}]}], "the conflict has both values and the owner", result)
    check("taken" not in result and "changes" not in result, "nothing else would happen")
    forced = result_of(server, config_map("conflict", color="blue", size="3"), manager="bob", force=True)
    check(forced["outcome"] == "Changed" and paths(forced["conflicts"]) == [".data.color"] and forced["conflicts"][0]["yours"] == "blue", "forced, the same conflict is shown", forced)
    check([(t["path"], t["from"][0]["manager"]) for t in forced["taken"]] == [(".data.color", "alice")], "forced, the field is taken", forced)
    check([(t["path"], t["from"][0]["manager"]) for t in forced["shared"]] == [(".data.size", "alice")], "an equal value is shared", forced)
    check(forced["changes"] == [{"path": ".data.color", "before": "red", "after": "blue"}], "the change is shown", forced)
    check(server.json("GET", MAPS + "/conflict") == stored, "a review writes nothing")


def an_apply_that_drops_fields_releases_them(server):
    apply(server, MAPS, config_map("drops", a="1", b="2"), "me")
    apply(server, MAPS, config_map("drops", b="2", c="3"), "other")
    result = result_of(server, config_map("drops", a="1"))
    check(result["released"] == [".data.b"] and "changes" not in result, "a shared field is released and stays", result)
    check([(f["owner"]["manager"], f["paths"]) for f in result["foreign"]] == [("other", [".data.b", ".data.c"])], "fields of others stay", result)
    result = result_of(server, config_map("drops", b="2"))
    check(result["changes"] == [{"path": ".data.a", "before": "1"}], "a field of nobody else is removed", result)
    check(result_of(server, config_map("drops", a="1", b="2"))["outcome"] == "Unchanged", "the same configuration changes nothing")


def what_the_server_sets_and_drops_is_shown(server):
    result = result_of(server, deployment("fresh"), manager="git")
    check(result["outcome"] == "Created" and ".spec.template.spec.containers[name=\"web\"].image" in result["claimed"], "a new object", result)
    check(".spec.replicas" in result["defaulted"] and ".spec.strategy.type" in result["defaulted"], "defaults are listed", result.get("defaulted"))
    check(not [p for p in result["defaulted"] if p.startswith(".metadata")], "metadata that every object has is not a default", result["defaulted"])
    result = result_of(server, {**deployment("fresh"), "unknown": 1}, manager="git", operation="Create")
    check(result["pruned"] == [".unknown"] and result["warnings"] == ['unknown field "unknown"'], "an unknown field is pruned, with a warning", result)
    strict = result_of(server, {**deployment("fresh"), "unknown": 1}, manager="git", operation="Create", fieldValidation="Strict")
    check(strict["outcome"] == "Refused", "strict validation refuses it", strict)
    check(server.request("GET", DEPLOYMENTS + "/fresh")[0] == 404, "nothing was created")
    apply(server, DEPLOYMENTS, deployment("unsets", replicas=3, minReadySeconds=5), "git")
    result = result_of(server, deployment("unsets", replicas=3, minReadySeconds=UNSET), manager="git")
    check(result["unset"] == [".spec.minReadySeconds"] and {"path": ".spec.minReadySeconds", "before": 5} in result["changes"], "a marker unsets", result)
    check("pruned" not in result, "an unset field is not pruned", result)


def custom_resources_and_their_lists(server):
    apply(server, WIDGETS, widget("w", ports=[{"port": 80, "name": "web"}], tags=["t"], box={"a": "1"}), "alice")
    document = widget("w", ports=[{"port": 80, "name": "admin"}, {"port": 81}], tags=["t", "u"])
    document["metadata"]["namespace"] = "default"
    result = result_of(server, document, manager="bob", force=True)
    check(paths(result["taken"]) == ['.spec.ports[port=80,protocol="TCP"].name'], "an item's member is taken", result)
    check('.spec.tags[="t"]' in paths(result["shared"]) and '.spec.tags[="u"]' in result["claimed"], "an item of a set is shared, another claimed", result)
    check({"path": '.spec.ports[port=80,protocol="TCP"].name', "before": "web", "after": "admin"} in result["changes"], "the value of an item's member", result)
    check([f["paths"] for f in result["foreign"]] == [[".spec.box.a"]], "the rest stays", result)


def creates_updates_and_patches(server):
    apply(server, MAPS, config_map("written", a="1", b="2"), "alice")
    taken = result_of(server, config_map("written", a="9"), operation="Update")
    check(taken["outcome"] == "Changed" and paths(taken["taken"]) == [".data.a", ".data.b"], "an update takes what it changes, and ends the ownership of what it removes", taken)
    check(taken["claimed"] if "claimed" in taken else [] == [], "nothing else is claimed", taken)
    check(paths(taken["changes"]) == [".data.a", ".data.b"] and "after" not in taken["changes"][1], "both changes", taken)
    exists = result_of(server, config_map("written", a="9"), operation="Create")
    check(exists["outcome"] == "Refused" and exists["error"]["reason"] == "AlreadyExists", "a create of an object that exists", exists)
    named = {**config_map("x"), "metadata": {"generateName": "gen-", "namespace": "default"}}
    check(result_of(server, named, operation="Create")["target"]["name"].startswith("gen-"), "a generated name")
    target = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "written"}
    for patch_type, patch in (("Merge", {"data": {"a": "7"}}), ("StrategicMerge", {"data": {"a": "7"}}), ("JSON", [{"op": "replace", "path": "/data/a", "value": "7"}])):
        patched = result_of(server, {"target": target, "patchType": patch_type, "patch": json.dumps(patch)}, operation="Patch")
        check(paths(patched["taken"]) == [".data.a"] and patched["changes"] == [{"path": ".data.a", "before": "1", "after": "7"}], f"a patch: {patch_type}", patched)
    missing = result_of(server, {"target": {**target, "name": "none"}, "patchType": "Merge", "patch": "{}"}, operation="Patch")
    check(missing["outcome"] == "Refused" and missing["error"]["code"] == 404, "a patch of nothing", missing)


def status_is_a_subresource(server):
    apply(server, WIDGETS, widget("with-status", size=1), "alice")
    document = {**widget("with-status"), "status": {"replicas": 2}}
    document["metadata"] = {"name": "with-status", "namespace": "default"}
    result = result_of(server, {"object": document, "subresource": "status"}, manager="controller")
    check(result["claimed"] == [".status.replicas"], "the status is claimed", result)
    result = result_of(server, {"object": document, "subresource": "scale"}, manager="controller")
    check(result["outcome"] == "Refused" and "cannot be reviewed" in result["error"]["message"], "scale has a kind of its own", result)


def several_documents_keep_their_order(server):
    apply(server, MAPS, config_map("first", a="1"), "alice")
    answer = review(server, config_map("first", a="2"), {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}}, config_map("second", a="1"), {"object": {"kind": "Pod"}})
    check([r["outcome"] for r in answer["status"]["results"]] == ["Conflict", "Refused", "Created", "Refused"], "one result per document", answer)
    check(not answer["status"]["allowed"] and review(server, config_map("second", a="1"))["status"]["allowed"], "allowed, if all are")


def policies_decide_as_for_the_write(server):
    group = "/apis/admissionregistration.k8s.io/v1"
    server.json("POST", group + "/validatingadmissionpolicies", {"metadata": {"name": "no-secrets-in-data"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]},
        "validations": [{"expression": "!('password' in object.?data.orValue({}))", "message": "no passwords"}]}}, want=201)
    server.json("POST", group + "/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": {"policyName": "no-secrets-in-data", "validationActions": ["Deny"]}}, want=201)
    result = result_of(server, config_map("policy", password="x"))
    check(result["outcome"] == "Refused" and "no passwords" in result["error"]["message"], "the policy refuses", result)
    server.json("DELETE", group + "/validatingadmissionpolicybindings/b", want=200)


def malformed_reviews(server):
    for body, field in (({}, "spec.documents"), ({"documents": [{"object": {}}], "operation": "Nothing"}, "spec.operation"),
                        ({"documents": [{"object": {}}], "operation": "Update", "force": True}, "spec.force"),
                        ({"documents": [{}]}, "spec.documents[0].object"), ({"documents": [{"object": {}}], "fieldManager": ""}, "spec.fieldManager"),
                        ({"documents": [{"patch": "{}"}], "operation": "Patch"}, "spec.documents[0].target.kind"),
                        ({"documents": [{"object": {}}] * 501}, "spec.documents")):
        answer = server.json("POST", REVIEWS, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipReview", "spec": {"fieldManager": "me", **body}}, want=422)
        check(field in [cause["field"] for cause in answer["details"]["causes"]], f"{field} is checked", answer)
    check(server.request("GET", REVIEWS)[0] == 405, "reviews cannot be listed")


def nothing_is_shown_to_those_who_may_not_see_it(server):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden", "namespace": "default"}, "stringData": {"key": "value"}}
    server.json("POST", "/api/v1/namespaces/default/secrets?fieldManager=alice", secret, want=201)
    changed = {**secret, "stringData": {"key": "other"}}
    for verbs in (["patch"], ["get"], ["create"]):
        name = "may-" + verbs[0]
        allow(server, name, [{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}], name)
        def refused():
            result = result_of(server, changed, manager="eve", force=True, headers=user(name))
            return result["outcome"] == "Refused" and result["error"]["code"] == 403 and set(result) == {"target", "outcome", "error"}
        check(refused() and refused(), f"with only the right to {verbs[0]}, nothing is shown")
    allow(server, "may-both", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch"]}], "may-both")
    wait_until("the role", lambda: result_of(server, changed, manager="eve", force=True, headers=user("may-both"))["outcome"] == "Changed")
    missing = {**changed, "metadata": {"name": "not-there", "namespace": "default"}}
    result = result_of(server, missing, manager="eve", headers=user("may-both"))
    check(result["outcome"] == "Refused" and result["error"]["code"] == 403, "an apply that would create needs that right too", result)
    code = server.request("POST", REVIEWS, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipReview", "spec": {"fieldManager": "me", "documents": [{"object": changed}]}},
                          headers={"Impersonate-User": "system:anonymous", "Impersonate-Group": "system:unauthenticated"})[0]
    check(code == 403, "reviews are for authenticated users")


# --- Transfers and releases ---

TRANSFERS, RELEASES = GROUP + "/v1/ownershiptransfers", GROUP + "/v1/ownershipreleases"


def target(kind, name=None, api_version="v1", **more):
    return {"apiVersion": api_version, "kind": kind, "namespace": "default", **({"name": name} if name else {}), **more}


def move(server, *targets, manager, to=None, want=201, query="", headers=None, **spec):
    body = {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipTransfer" if to else "OwnershipRelease",
            "spec": {"targets": list(targets), "from": manager if isinstance(manager, dict) else {"manager": manager}, **spec}}
    if to:
        body["spec"]["to"] = to if isinstance(to, dict) else {"manager": to}
    return server.json("POST", (TRANSFERS if to else RELEASES) + query, body, want=want, headers=headers)


def the_autoscaler_gets_the_replicas(server):
    stored = apply(server, DEPLOYMENTS, deployment("scaled", replicas=3), "git")
    web = target("Deployment", "scaled", "apps/v1")
    dry = move(server, web, manager="git", to="hpa", paths=[".spec.replicas"], query="?dryRun=All")
    check(dry["status"]["results"][0]["paths"] == [".spec.replicas"], "a dry run says what moves", dry)
    check(server.json("GET", DEPLOYMENTS + "/scaled") == stored, "a dry run writes nothing")
    done = move(server, web, manager="git", to="hpa", paths=[".spec.replicas"])["status"]["results"][0]
    after = server.json("GET", DEPLOYMENTS + "/scaled")
    check(done == {"target": web, "outcome": "Changed", "uid": after["metadata"]["uid"], "resourceVersion": after["metadata"]["resourceVersion"], "paths": [".spec.replicas"]}, "the result", done)
    check(after["spec"] == stored["spec"] and after["metadata"]["generation"] == stored["metadata"]["generation"], "no value has moved")
    check(owns(after, "hpa", "spec", "replicas") and not owns(after, "git", "spec", "replicas") and owns(after, "git", "spec", "selector"), "the owner has", after["metadata"]["managedFields"])
    without = deployment("scaled")
    check(apply(server, DEPLOYMENTS, without, "git")["spec"]["replicas"] == 3, "git may leave the field out now")
    refused = apply(server, DEPLOYMENTS, deployment("scaled", replicas=5), "git", want=409)
    check('"hpa"' in refused["message"], "and gets a conflict if it does not")
    again = move(server, web, manager="git", to="hpa", paths=[".spec.replicas"])["status"]["results"][0]
    check(again["outcome"] == "Unchanged" and again["resourceVersion"] == server.json("GET", DEPLOYMENTS + "/scaled")["metadata"]["resourceVersion"], "again, nothing is written", again)
    move(server, web, manager="hpa", to="git")
    back = apply(server, DEPLOYMENTS, deployment("scaled", replicas=4), "git")
    check(back["spec"]["replicas"] == 4 and len(back["metadata"]["managedFields"]) == 1, "and back", back["metadata"]["managedFields"])


def operations_and_subresources(server):
    apply(server, DEPLOYMENTS, deployment("kinds", replicas=3), "git")
    web = target("Deployment", "kinds", "apps/v1")
    move(server, web, manager="git", to={"manager": "controller", "operation": "Update", "subresource": "scale"}, paths=[".spec.replicas"])
    after = server.json("GET", DEPLOYMENTS + "/kinds")
    check(owns(after, "controller", "spec", "replicas", operation="Update", subresource="scale"), "another operation and subresource", after["metadata"]["managedFields"])
    server.json("PATCH", DEPLOYMENTS + "/kinds/scale?fieldManager=controller", {"spec": {"replicas": 7}}, content_type=MERGE, want=200)
    after = server.json("GET", DEPLOYMENTS + "/kinds")
    check(len(after["metadata"]["managedFields"]) == 2, "the scale of that manager is the same entry", after["metadata"]["managedFields"])
    none = move(server, web, manager={"manager": "controller", "subresource": ""}, to="x")["status"]["results"][0]
    check(none["outcome"] == "Unchanged", "only what it owns through the object itself")
    none = move(server, web, manager={"manager": "controller", "operation": "Apply"}, to="x")["status"]["results"][0]
    check(none["outcome"] == "Unchanged", "only what it applies")
    server.json("PATCH", DEPLOYMENTS + "/kinds?fieldManager=both", {"spec": {"minReadySeconds": 1}}, content_type=MERGE, want=200)
    apply(server, DEPLOYMENTS, deployment("kinds", revisionHistoryLimit=3), "both", "&force=true")
    move(server, web, manager="both", to={"manager": "both", "operation": "Apply"}, paths=[".spec"])
    after = server.json("GET", DEPLOYMENTS + "/kinds")
    check(owns(after, "both", "spec", "minReadySeconds") and owns(after, "both", "spec", "revisionHistoryLimit") and not owns(after, "both", "spec", "minReadySeconds", operation="Update"),
          "client-side to server-side: one entry", after["metadata"]["managedFields"])


def items_and_wildcards(server):
    two = deployment("items")
    two["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "s:1"})
    apply(server, DEPLOYMENTS, two, "git")
    web = target("Deployment", "items", "apps/v1")
    done = move(server, web, manager="git", to="images", paths=[".spec.template.spec.containers[*].image"])["status"]["results"][0]
    check(done["paths"] == ['.spec.template.spec.containers[name="side"].image', '.spec.template.spec.containers[name="web"].image'], "every item", done)
    done = move(server, web, manager="git", paths=['.spec.template.spec.containers[name="side"]'])["status"]["results"][0]
    check(done["outcome"] == "Changed" and done["paths"] == ['.spec.template.spec.containers[name="side"].name'], "one item is released", done)
    after = server.json("GET", DEPLOYMENTS + "/items")
    check(len(after["spec"]["template"]["spec"]["containers"]) == 2, "and stays")


def many_objects(server):
    for name, label in (("s1", "x"), ("s2", "x"), ("s3", "y")):
        one = config_map(name, a="1")
        one["metadata"]["labels"] = {"set": label}
        apply(server, MAPS, one, "old")
    results = move(server, target("ConfigMap", selector="set=x"), manager="old", to="new", paths=[".data"])["status"]["results"]
    check([r["target"]["name"] for r in results] == ["s1", "s2"] and all(r["outcome"] == "Changed" for r in results), "a selector", results)
    results = move(server, target("ConfigMap"), manager="old", to="new")["status"]["results"]
    check([r["target"]["name"] for r in results] == ["s1", "s2", "s3"], "a kind: only objects with such fields", results)
    apply(server, DEPLOYMENTS, deployment("in-namespace"), "new")
    results = move(server, {"namespace": "default"}, manager="new", to="newest")["status"]["results"]
    check({r["target"]["kind"] for r in results} == {"ConfigMap", "Deployment"} and len(results) == 4, "a namespace", results)
    check("status" in move(server, {"namespace": "default"}, manager="new", to="newest"), "nothing left")
    results = move(server, target("ConfigMap", "s1"), target("ConfigMap", "not-there"), manager="newest", to="new")["status"]["results"]
    check([r["outcome"] for r in results] == ["Changed", "Refused"] and results[1]["error"]["code"] == 404, "each object on its own", results)


def preconditions_of_a_transfer(server):
    stored = apply(server, MAPS, config_map("conditions", a="1"), "old")["metadata"]
    for precondition, code in (({"uid": "other"}, 409), ({"resourceVersion": "1"}, 409), ({"uid": stored["uid"], "resourceVersion": stored["resourceVersion"]}, 201)):
        answer = move(server, target("ConfigMap", "conditions", preconditions=precondition), manager="old", to="new", want=code)
        check(code == 201 or answer["reason"] == "Conflict", f"precondition {precondition}", answer)
    move(server, target("ConfigMap", "not-there"), manager="old", to="new", want=404)


def malformed_transfers(server):
    for spec, field in (({"targets": []}, "spec.targets"), ({"targets": [{}]}, "spec.targets[0].kind"), ({"targets": [{"kind": "Pod", "name": "x"}]}, "spec.targets[0].apiVersion"),
                        ({"targets": [target("Pod", "x", selector="a=b")]}, "spec.targets[0].selector"), ({"targets": [target("Pod", selector="=")]}, "spec.targets[0].selector"),
                        ({"targets": [target("Pod", preconditions={"uid": "x"})]}, "spec.targets[0].preconditions"), ({"from": {}}, "spec.from.manager"),
                        ({"to": {"manager": "x", "operation": "Steal"}}, "spec.to.operation"), ({"to": {}}, "spec.to.manager"), ({"paths": ["spec"]}, "spec.paths[0]")):
        body = {"targets": [target("Pod", "x")], "from": {"manager": "a"}, "to": {"manager": "b"}, **spec}
        answer = server.json("POST", TRANSFERS, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipTransfer", "spec": body}, want=422)
        check([cause["field"] for cause in answer["details"]["causes"]] == [field], f"{field} is checked", answer)
    apply(server, MAPS, config_map("bad-name", a="1"), "old")
    move(server, target("ConfigMap", "bad-name"), manager="old", to="x" * 200, want=422)
    move(server, {"apiVersion": "v1", "kind": "Nothing", "name": "x"}, manager="a", to="b", want=400)


def a_transfer_needs_its_right(server):
    apply(server, MAPS, config_map("guarded", a="1"), "old")
    allow(server, "edits-only", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "update", "patch"]}], "edits-only")
    allow(server, "transfers", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "transfer"]}], "transfers")
    one = target("ConfigMap", "guarded")
    wait_until("the role", lambda: server.request("GET", MAPS, headers=user("edits-only"))[0] == 200)
    for what in (one, target("ConfigMap")):
        answer = move(server, what, manager="old", to="new", want=403, headers=user("edits-only"))
        check('cannot transfer resource "configmaps"' in answer["message"], "patch is not enough", answer)
    allow(server, "blind", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["transfer"]}], "blind")
    move(server, one, manager="old", to="new", want=403, headers=user("blind"))
    wait_until("the role", lambda: move(server, one, manager="old", to="mover", want=None, headers=user("transfers")).get("kind") == "OwnershipTransfer")
    results = move(server, {"namespace": "default"}, manager="mover", to="newer", headers=user("transfers"))["status"]["results"]
    check([r["target"]["name"] for r in results] == ["guarded"], "of a namespace, what the user may list", results)
    results = move(server, {"namespace": "default"}, manager="newer", to="x", headers=user("edits-only"))["status"]["results"]
    check(len(results) == 1 and results[0]["outcome"] == "Refused" and "name" not in results[0]["target"], "of a namespace, what may be listed and not transferred is named", results)


def policies_see_transfers(server):
    group = "/apis/admissionregistration.k8s.io/v1"
    apply(server, MAPS, config_map("watched", a="1"), "old")
    server.json("POST", group + "/validatingadmissionpolicies", {"metadata": {"name": "no-thief"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["UPDATE"]}]},
        "validations": [{"expression": "!object.metadata.?managedFields.orValue([]).exists(f, f.manager == 'thief')", "message": "no thief"}]}}, want=201)
    server.json("POST", group + "/validatingadmissionpolicybindings", {"metadata": {"name": "t"}, "spec": {"policyName": "no-thief", "validationActions": ["Deny"]}}, want=201)
    answer = move(server, target("ConfigMap", "watched"), manager="old", to="thief", want=422)
    check("no thief" in answer["message"], "admission decides", answer)
    server.json("DELETE", group + "/validatingadmissionpolicybindings/t", want=200)


def large_objects_and_concurrent_writers(server):
    import concurrent.futures
    apply(server, MAPS, config_map("large", **{f"k{i}": "x" * 100 for i in range(3000)}), "old")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(server.request, "PATCH", f"{MAPS}/large?fieldManager=w{i}", {"data": {f"n{i}": "1"}}, content_type=MERGE) for i in range(8)]
        moves = [pool.submit(move, server, target("ConfigMap", "large"), manager="old", to="new", paths=[f".data.k{i}"]) for i in range(8)]
        check(all(w.result()[0] == 200 for w in writes) and all(m.result()["status"]["results"][0]["outcome"] == "Changed" for m in moves), "all of them happen")
    after = server.json("GET", MAPS + "/large")
    check(all(owns(after, "new", "data", f"k{i}") and not owns(after, "old", "data", f"k{i}") for i in range(8)) and owns(after, "old", "data", "k8"), "and none is lost")
    rest = move(server, target("ConfigMap", "large"), manager="old", to="new")["status"]["results"][0]
    check(len(rest["paths"]) == 1000 and rest["omitted"] == 1992, "long lists end", rest.get("omitted"))


# --- Protections ---

PROTECTIONS = GROUP + "/v1/fieldprotections"


def protect(server, name, want=201, **spec):
    """A protection of deployments in the default namespace, unless it says otherwise."""
    spec = {"resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}], "namespaces": ["default"], **spec}
    return server.json("POST", PROTECTIONS, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "FieldProtection", "metadata": {"name": name}, "spec": spec}, want=want)


def unprotect(server, name):
    server.json("DELETE", f"{PROTECTIONS}/{name}", want=200)


def message(server, method, path, body, want, **more):
    return server.json(method, path, body, want=want, **more).get("message", "")


def no_way_around_a_protected_field(server):
    apply(server, DEPLOYMENTS, deployment("kept", replicas=3), "git")
    apply(server, DEPLOYMENTS, deployment("empty"), "git")
    made = protect(server, "replicas", paths=[".spec.replicas"], allowed=[{"managers": ["hpa"], "users": ["autoscaler"]}])
    check(made["spec"]["action"] == "Deny", "an action by default")
    path = DEPLOYMENTS + "/kept"
    live = server.json("GET", path)
    put = {**live, "spec": {**live["spec"], "replicas": 9}}
    put["metadata"] = {k: v for k, v in live["metadata"].items() if k not in ("managedFields", "resourceVersion")}
    entries = [{**entry, "fieldsV1": {**entry["fieldsV1"], "f:spec": {k: v for k, v in entry["fieldsV1"]["f:spec"].items() if k != "f:replicas"}}} for entry in live["metadata"]["managedFields"]]
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "kept", "namespace": "default"}, "spec": {"replicas": 9}}
    ways = [("PUT", path, put, "application/json"), ("PATCH", path, {"spec": {"replicas": 9}}, MERGE), ("PATCH", path, {"spec": {"replicas": None}}, MERGE),
            ("PATCH", path, {"spec": {"replicas": 9}}, "application/strategic-merge-patch+json"), ("PATCH", path, [{"op": "replace", "path": "/spec/replicas", "value": 9}], "application/json-patch+json"),
            ("PATCH", path + "?fieldManager=bob&force=true", deployment("kept", replicas=9), APPLY), ("PATCH", path + "?fieldManager=bob", deployment("kept", replicas=3), APPLY),
            ("PATCH", path + "?fieldManager=git", deployment("kept"), APPLY), ("PATCH", path + "?fieldManager=git", deployment("kept", replicas=UNSET), APPLY),
            ("PATCH", path + "?fieldManager=hpa&force=true", deployment("kept", replicas=9), APPLY),
            ("PUT", path + "/scale", scale, "application/json"), ("PATCH", path + "/scale", {"spec": {"replicas": 9}}, MERGE), ("PATCH", path + "/scale?fieldManager=bob&force=true", scale, APPLY),
            ("PATCH", path, {"metadata": {"managedFields": entries}}, MERGE), ("PATCH", path, {"metadata": {"managedFields": [{}]}}, MERGE),
            ("PATCH", path, {"metadata": {"options": {"fieldManager": "hpa"}}, "spec": {"replicas": 9}}, MERGE),
            ("POST", DEPLOYMENTS, deployment("other", replicas=9), "application/json"), ("PATCH", DEPLOYMENTS + "/other?fieldManager=bob", deployment("other", replicas=9), APPLY)]
    for method, where, body, content_type in ways:
        code, _, data = server.request(method, where, body, content_type=content_type)
        answer = json.loads(data)
        check(code == 403 and answer["details"]["causes"][0]["field"] == ".spec.replicas", f"{method} {where} of {json.dumps(body)[:200]}", answer)
    expected = 'field protection "replicas" protects: .spec.replicas: only manager "hpa" of user "autoscaler" may do that'
    check(expected in answer["message"], "the error names the protection, the path and who may", answer["message"])
    for to in ("hpa", "bob"):
        check(expected in message(server, "POST", TRANSFERS, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipTransfer", "spec": {
            "targets": [target("Deployment", "kept", "apps/v1")], "from": {"manager": "git"}, "to": {"manager": to}}}, 403), "a transfer")
    check(expected in message(server, "POST", RELEASES, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipRelease", "spec": {
        "targets": [target("Deployment", "kept", "apps/v1")], "from": {"manager": "git"}}}, 403), "a release")
    review = result_of(server, deployment("kept", replicas=9), manager="bob", force=True)
    check(review["outcome"] == "Refused" and expected in review["error"]["message"], "a review says so before", review)
    check(server.json("GET", path)["spec"]["replicas"] == 3 and server.json("GET", path)["metadata"]["managedFields"] == live["metadata"]["managedFields"], "nothing has changed")
    # Everything else is free.
    apply(server, DEPLOYMENTS, deployment("kept", image="i:2", replicas=3), "git")
    apply(server, DEPLOYMENTS, deployment("made"), "git")
    server.json("POST", DEPLOYMENTS, deployment("posted"), want=201)
    server.json("PATCH", path + "/status?fieldManager=c", {"status": {"observedGeneration": 1}}, content_type=MERGE, want=200)
    server.json("PUT", path, {**server.json("GET", path)}, want=200)
    server.json("DELETE", DEPLOYMENTS + "/made", want=200)
    server.json("DELETE", DEPLOYMENTS + "/posted", want=200)


def the_allowed_writer_may(server):
    allow(server, "autoscaler", [{"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"], "verbs": ["*"]}], "autoscaler")
    me = user("autoscaler")
    wait_until("the role", lambda: server.request("GET", DEPLOYMENTS, headers=me)[0] == 200)
    server.json("PATCH", DEPLOYMENTS + "/kept/scale?fieldManager=hpa", {"spec": {"replicas": 5}}, content_type=MERGE, headers=me, want=200)
    check("is forbidden" in message(server, "PATCH", DEPLOYMENTS + "/kept/scale?fieldManager=kubectl", {"spec": {"replicas": 6}}, 403, content_type=MERGE, headers=me), "not as another manager")
    move(server, target("Deployment", "kept", "apps/v1"), manager={"manager": "hpa"}, to={"manager": "hpa", "operation": "Apply", "subresource": ""}, headers=me)
    after = server.json("GET", DEPLOYMENTS + "/kept")
    check(after["spec"]["replicas"] == 5 and owns(after, "hpa", "spec", "replicas"), "it may set and transfer the field", after["metadata"]["managedFields"])
    unprotect(server, "replicas")
    server.json("PATCH", DEPLOYMENTS + "/kept", {"spec": {"replicas": 6}}, content_type=MERGE, want=200)


def a_name_of_a_manager_can_be_reserved(server):
    protect(server, "names", managers=["git"], allowed=[{"groups": ["deployers"]}, {"serviceAccounts": ["default/pipeline"]}])
    path = DEPLOYMENTS + "/kept"
    for query, body, content_type in (("?fieldManager=git", {"metadata": {"labels": {"a": "1"}}}, MERGE), ("?fieldManager=git&force=true", deployment("kept"), APPLY),
                                      ("", {"metadata": {"options": {"fieldManager": "git"}, "labels": {"a": "1"}}}, MERGE),
                                      ("?fieldManager=x", {"metadata": {"managedFields": [{"manager": "git", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
                                                                                           "fieldsV1": {"f:spec": {"f:paused": {}}}}]}}, MERGE)):
        text = message(server, "PATCH", path + query, body, 403, content_type=content_type)
        check('field protection "names" reserves the name of the manager: only group "deployers", or user "system:serviceaccount:default:pipeline" may do that' in text, f"{query} {body}", text)
    move(server, target("Deployment", "kept", "apps/v1"), manager="hpa", to="git", want=403)
    server.json("PATCH", path + "?fieldManager=other", {"metadata": {"labels": {"a": "1"}}}, content_type=MERGE, want=200)
    allow(server, "pipeline", [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}], "system:serviceaccount:default:pipeline")
    wait_until("the role", lambda: server.request("PATCH", path + "?fieldManager=git", {"metadata": {"labels": {"a": "2"}}}, content_type=MERGE,
                                                  headers={"Impersonate-User": "system:serviceaccount:default:pipeline"})[0] == 200)
    unprotect(server, "names")


def force_and_deletion_can_be_restricted(server):
    apply(server, DEPLOYMENTS, deployment("forced", replicas=3), "git")
    protect(server, "force", force=True, allowed=[{"users": ["chief"]}])
    apply(server, DEPLOYMENTS, deployment("forced", replicas=3), "bob", "&force=true")
    refused = apply(server, DEPLOYMENTS, deployment("forced", replicas=4), "bob", "&force=true", want=403)
    check(".spec.replicas" in refused["message"] and "restricts who may force" in refused["message"], "taking by force", refused)
    unprotect(server, "force")
    protect(server, "deletion", paths=[".metadata.labels.keep"], deletion=True, allowed=[{"users": ["chief"]}])
    check(server.request("DELETE", DEPLOYMENTS + "/forced?dryRun=All")[0] == 200, "an object without the field may be deleted")
    unprotect(server, "deletion")
    server.json("PATCH", DEPLOYMENTS + "/forced", {"metadata": {"labels": {"keep": "yes"}}}, content_type=MERGE, want=200)
    protect(server, "deletion", paths=[".metadata.labels.keep"], deletion=True, allowed=[{"users": ["chief"]}])
    check("protects against deletion: .metadata.labels.keep" in message(server, "DELETE", DEPLOYMENTS + "/forced", None, 403), "one with it may not")
    check(server.request("DELETE", DEPLOYMENTS)[0] == 403 and server.request("GET", DEPLOYMENTS + "/forced")[0] == 200, "nor with its collection")
    unprotect(server, "deletion")
    server.json("DELETE", DEPLOYMENTS + "/forced", want=200)


def selectors_resources_and_namespaces(server):
    server.json("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}}, want=201)
    labelled = {**config_map("labelled", a="1", b="1"), "metadata": {"name": "labelled", "namespace": "default", "labels": {"guard": "on"}}}
    apply(server, MAPS, labelled, "git")
    apply(server, MAPS, config_map("plain", a="1"), "git")
    protect(server, "maps", resources=[{"apiGroups": [""], "resources": ["*"]}], objectSelector={"matchLabels": {"guard": "on"}}, paths=[".data.a"])
    for patch in ({"data": {"a": "2"}}, {"metadata": {"labels": {"guard": "off"}}, "data": {"a": "2"}}):
        check("nobody may do that" in message(server, "PATCH", MAPS + "/labelled", patch, 403, content_type=MERGE), "a selected object, also by its old labels")
    check("nobody" in message(server, "PATCH", MAPS + "/plain", {"metadata": {"labels": {"guard": "on"}}, "data": {"a": "2"}}, 403, content_type=MERGE), "and by its new ones")
    server.json("PATCH", MAPS + "/labelled", {"data": {"b": "2"}}, content_type=MERGE, want=200)
    server.json("PATCH", MAPS + "/plain", {"data": {"a": "2"}}, content_type=MERGE, want=200)
    server.json("POST", "/api/v1/namespaces/elsewhere/configmaps", {"metadata": {"name": "m", "labels": {"guard": "on"}}, "data": {"a": "1"}}, want=201)
    unprotect(server, "maps")
    apply(server, WIDGETS, widget("p", ports=[{"port": 80, "name": "web"}, {"port": 81, "name": "x"}], atom={"a": "1"}), "git")
    protect(server, "widgets", resources=[{"apiGroups": ["*"], "resources": ["widgets"]}], paths=[".spec.ports[*].name", ".spec.atom.a"])
    for patch in ({"spec": {"ports": [{"port": 80, "name": "y"}, {"port": 81, "name": "x"}]}}, {"spec": {"ports": [{"port": 80, "name": "web"}]}}, {"spec": {"atom": {"a": "2"}}}):
        check("widgets" in message(server, "PATCH", WIDGETS + "/p", patch, 403, content_type=MERGE), f"items of lists and atomic values: {patch}")
    server.json("PATCH", WIDGETS + "/p", {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 81, "name": "x"}, {"port": 82}]}}, content_type=MERGE, want=200)
    unprotect(server, "widgets")


def warnings_instead_of_errors(server):
    apply(server, MAPS, config_map("warned", a="1"), "git")
    protect(server, "warns", resources=[{"apiGroups": [""], "resources": ["configmaps"]}], paths=[".data.a"], action="Warn")
    code, headers, _ = server.request("PATCH", MAPS + "/warned", {"data": {"a": "2"}}, content_type=MERGE)
    check(code == 200 and 'field protection \\"warns\\" protects: .data.a: nobody may do that' in headers.get("Warning", ""), "a warning", dict(headers))
    protect(server, "denies", resources=[{"apiGroups": [""], "resources": ["configmaps"]}], paths=[".data.b"])
    server.json("PATCH", MAPS + "/warned", {"data": {"b": "1"}}, content_type=MERGE, want=403)
    server.json("PATCH", PROTECTIONS + "/warns", {"spec": {"action": "Audit"}}, content_type=MERGE, want=200)
    server.json("PATCH", MAPS + "/warned", {"data": {"b": "1"}}, content_type=MERGE, want=403)
    code, headers, _ = server.request("PATCH", MAPS + "/warned", {"data": {"a": "3"}}, content_type=MERGE)
    check(code == 200 and "Warning" not in headers, "in the audit log only")
    unprotect(server, "warns")
    unprotect(server, "denies")


def malformed_protections(server):
    good = {"resources": [{"apiGroups": [""], "resources": ["pods"]}], "paths": [".spec"]}
    for spec, field in (({"resources": []}, "spec.resources"), ({"paths": []}, "spec.paths"), ({"paths": ["spec"]}, "spec.paths[0]"), ({"action": "Shout"}, "spec.action"),
                        ({"resources": [{"apiGroups": [], "resources": ["pods"]}]}, "spec.resources[0].apiGroups"), ({"resources": [{"apiGroups": [""], "resources": ["pods/status"]}]}, "spec.resources[0].resources[0]"),
                        ({"allowed": [{}]}, "spec.allowed[0]"), ({"allowed": [{"serviceAccounts": ["x"]}]}, "spec.allowed[0].serviceAccounts[0]"),
                        ({"objectSelector": {"matchLabels": {"-": "x"}}}, "spec.objectSelector.matchLabels"), ({"paths": [".a"] * 101}, "spec.paths")):
        answer = server.json("POST", PROTECTIONS, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "FieldProtection", "metadata": {"name": "bad"}, "spec": {**good, **spec}}, want=422)
        check(field in [cause["field"] for cause in answer["details"]["causes"]], f"{field} is checked", answer)


def protections_are_ordinary_objects(server):
    apply(server, PROTECTIONS, {"apiVersion": "ownership.holdfast.dev/v1", "kind": "FieldProtection", "metadata": {"name": "table"}, "spec": {
        "resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}], "paths": [".spec.replicas"], "namespaces": ["none"]}}, "ops")
    for accept in ("application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf"):
        code, _, data = server.request("GET", PROTECTIONS + "/table", accept=accept)
        check(code == 200 and b".spec.replicas" in data, accept)
    table = json.loads(server.request("GET", PROTECTIONS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")[2])
    check(table["rows"][0]["cells"][:4] == ["table", "Deny", "deployments", ".spec.replicas"], "a table", table)
    protect(server, "itself", resources=[{"apiGroups": ["*"], "resources": ["*"]}], paths=[".metadata.labels"], namespaces=[], deletion=True)
    server.json("PATCH", PROTECTIONS + "/itself", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE, want=200)
    unprotect(server, "itself")
    unprotect(server, "table")


# --- Stories, in tests/scenario/ownership_api ---
#
#   story: what it shows
#   steps:
#   - apply: an object       # or create, patch (a merge patch): written to the namespace of the story
#     as: git                # its manager
#   - transfer: a spec       # or release, review, protect: an object of ownership.holdfast.dev with this spec
#     code: 409              # default: any success
#     message: ...           # part of the message
#     warning: ...           # part of the warnings
#     object: {data: {}}     # contained in the response, among others
#     absent: [data.x]       # not contained in it
#     result: {}             # contained in the first result
#
# Texts may contain ${ns}, the namespace.

STORIES = pathlib.Path(__file__).resolve().parent.parent / "scenario" / "ownership_api"
OWN_KINDS = {"transfer": "OwnershipTransfer", "release": "OwnershipRelease", "review": "OwnershipReview", "protect": "FieldProtection"}
KINDS = {"ConfigMap": "/api/v1/namespaces/{}/configmaps", "Deployment": "/apis/apps/v1/namespaces/{}/deployments"}


def differences(wanted, got, at):
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            yield from differences(value, got.get(key), f"{at}.{key}")
    elif wanted != got:
        yield f"{at}: wanted {json.dumps(wanted)}, got {json.dumps(got)}"


def send(server, ns, step):
    for verb, kind in OWN_KINDS.items():
        if verb in step:
            body = {"apiVersion": "ownership.holdfast.dev/v1", "kind": kind, "metadata": {"name": ns} if verb == "protect" else {}, "spec": step[verb]}
            return server.request("POST", f"{GROUP}/v1/{kind.lower()}s", body)
    verb = next(verb for verb in ("apply", "create", "patch") if verb in step)
    body = step[verb]
    path, query = KINDS[body["kind"]].format(ns), "?fieldManager=" + step.get("as", "test")
    if verb == "create":
        return server.request("POST", path + query, body)
    return server.request("PATCH", f"{path}/{body['metadata']['name']}{query}", body, content_type=APPLY if verb == "apply" else MERGE)


def find(tree, path):
    for part in path.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def stories(server):
    played = 0
    for path in sorted(STORIES.glob("*.yaml")):
        for story in yaml.safe_load_all(path.read_text()):
            played += 1
            ns = f"story-{played}"
            server.json("POST", "/api/v1/namespaces", {"metadata": {"name": ns}}, want=201)
            for number, step in enumerate(json.loads(json.dumps(story["steps"]).replace("${ns}", ns))):
                code, headers, data = send(server, ns, step)
                answer, where = json.loads(data), f"{story['story']}: step {number}"
                check(code == step["code"] if "code" in step else code < 300, f"{where}: code {code}", answer)
                check(step.get("message", "") in answer.get("message", ""), f"{where}: message", answer)
                check(step.get("warning", "") in headers.get("Warning", ""), f"{where}: warning", headers.get("Warning"))
                for difference in differences(step.get("object", {}), answer, "answer"):
                    check(False, f"{where}: {difference}")
                for absent in step.get("absent", []):
                    check(find(answer, absent) is None, f"{where}: {absent} exists", answer)
                if "result" in step:
                    for difference in differences(step["result"], answer["status"]["results"][0], "result"):
                        check(False, f"{where}: {difference}")
            server.request("DELETE", f"{GROUP}/v1/fieldprotections/{ns}")
    check(played > 0, "there are stories")


# --- The group ---


def every_format(server):
    body = {"apiVersion": "ownership.holdfast.dev/v1", "kind": "OwnershipReview", "spec": {"fieldManager": "me", "documents": [{"object": config_map("conflict", color="green")}]}}
    _, _, protobuf = server.request("POST", REVIEWS, body, accept="application/vnd.kubernetes.protobuf")
    check(protobuf.startswith(b"k8s\0") and b".data.color" in protobuf, "Protobuf")
    code, _, again = server.request("POST", REVIEWS, protobuf, content_type="application/vnd.kubernetes.protobuf")
    check(code == 201 and json.loads(again)["status"]["results"][0]["outcome"] == "Conflict", "Protobuf in", again.decode()[:500])
    code, _, cbor = server.request("POST", REVIEWS, body, accept="application/cbor")
    check(code == 201 and b".data.color" in cbor, "CBOR")
    code, _, again = server.request("POST", REVIEWS, cbor, content_type="application/cbor")
    check(code == 201 and json.loads(again)["status"]["results"][0]["outcome"] == "Conflict", "CBOR in", again.decode()[:500])
    code, _, yaml = server.request("POST", REVIEWS, body, accept="application/yaml")
    check(code == 201 and b"outcome: Conflict" in yaml, "YAML", yaml.decode()[:300])
    code, _, again = server.request("POST", REVIEWS, yaml, content_type="application/yaml")
    check(code == 201, "YAML in", again.decode()[:500])


def discovery_and_openapi(server):
    groups = [group["name"] for group in server.json("GET", "/apis", want=200)["groups"]]
    check("ownership.holdfast.dev" in groups, "the group is listed", groups)
    resources = server.json("GET", GROUP + "/v1", want=200)["resources"]
    check({(r["name"], r["kind"], r["namespaced"]) for r in resources} >= {("ownershipreviews", "OwnershipReview", False)}, "the resources are listed", resources)
    document = server.json("GET", "/openapi/v3/apis/ownership.holdfast.dev/v1", want=200)
    check("dev.holdfast.ownership.v1.OwnershipReview" in document["components"]["schemas"], "the schemas are served", list(document["components"]["schemas"]))


def without_the_gate(holdfast):
    with Server(holdfast, "OwnershipAPI=false") as server:
        check(server.request("GET", GROUP)[0] == 404 and server.request("POST", REVIEWS, {})[0] == 404, "the gate removes the group")
        check("ownership.holdfast.dev" not in server.request("GET", "/apis")[2].decode(), "and it is not in discovery")
        check("ownership.holdfast.dev" not in server.request("GET", "/openapi/v3")[2].decode(), "nor in OpenAPI")
        check(server.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/holdfast:ownership-user")[0] == 404, "and has no role")


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        define(server)
        wait_until("widgets", lambda: server.request("GET", WIDGETS)[0] == 200)
        run_parts(server, [a_conflict_names_both_values_and_the_owner, an_apply_that_drops_fields_releases_them, what_the_server_sets_and_drops_is_shown,
                           custom_resources_and_their_lists, creates_updates_and_patches, status_is_a_subresource, several_documents_keep_their_order,
                           policies_decide_as_for_the_write, malformed_reviews, nothing_is_shown_to_those_who_may_not_see_it,
                           the_autoscaler_gets_the_replicas, operations_and_subresources, items_and_wildcards, many_objects, preconditions_of_a_transfer, malformed_transfers,
                           a_transfer_needs_its_right, policies_see_transfers, large_objects_and_concurrent_writers,
                           no_way_around_a_protected_field, the_allowed_writer_may, a_name_of_a_manager_can_be_reserved, force_and_deletion_can_be_restricted,
                           selectors_resources_and_namespaces, warnings_instead_of_errors, malformed_protections, protections_are_ordinary_objects, stories,
                           every_format, discovery_and_openapi])
    without_the_gate(sys.argv[1])
    finish()

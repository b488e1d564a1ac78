#!/usr/bin/env python3
"""ownership_api_test.py HOLDFAST: the group ownership.holdfast.dev. Reviews of what writes would do to owners of fields."""
import json, sys

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
                           policies_decide_as_for_the_write, malformed_reviews, nothing_is_shown_to_those_who_may_not_see_it, every_format, discovery_and_openapi])
    without_the_gate(sys.argv[1])
    finish()

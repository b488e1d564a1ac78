#!/usr/bin/env python3
"""unset_test.py HOLDFAST: fields that an apply configuration unsets with {k8s_io__value: unset}, for custom and built-in
kinds."""
import json, sys

from serve import Server, check, finish, run_parts
from widgets import APPLY, JSON_PATCH, MERGE, UNSET, WIDGETS, apply, define, owns, widget

DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"


def deployment(**spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


WHOLE_DEPLOYMENT = deployment(replicas=3, minReadySeconds=5, selector={"matchLabels": {"a": "b"}}, template={
    "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "c", "image": "i:1", "ports": [{"containerPort": 80}, {"containerPort": 90, "protocol": "UDP"}], "env": [{"name": "X", "value": "1"}]}]}})


def every_sort_of_field(server):
    full = {"size": 1, "note": "n", "box": {"a": "1", "b": "2"}, "options": {"x": "1", "y": "2"}, "atom": {"a": "1"}, "words": ["w"], "tags": ["t", "u"],
            "ports": [{"port": 80, "name": "web"}, {"port": 81}]}
    for name in full:
        apply(server, widget(f"sort-{name}", **full), "first")
        done = apply(server, widget(f"sort-{name}", **{name: UNSET}), "second", force=True)
        check(name not in done["spec"] and all(other in done["spec"] for other in full if other != name), f"{name} is removed, the rest is kept")
        check(owns(done, "second", "spec", name) and not owns(done, "first", "spec", name), f"the manager that unset {name} owns it")
        again = apply(server, widget(f"sort-{name}", **{name: UNSET}), "second")
        check(again["metadata"]["resourceVersion"] == done["metadata"]["resourceVersion"], f"unsetting {name} again writes nothing")
        refused = apply(server, widget(f"sort-{name}", **{name: full[name]}), "third", want=409)
        check("second" in refused["message"], f"setting {name} conflicts with the manager that unset it")
        released = apply(server, widget(f"sort-{name}", size=5), "second", force=True)
        check(not owns(released, "second", "spec", name) or name == "size", f"without the marker {name} is released")


def parts_of_containers(server):
    full = {"box": {"a": "1", "b": "2"}, "options": {"x": "1", "y": "2"}, "ports": [{"port": 80, "name": "web"}, {"port": 80, "protocol": "UDP"}]}
    apply(server, widget("parts", **full), "first")
    done = apply(server, widget("parts", box={"b": UNSET}, options={"y": UNSET}, ports=[{"port": 80, **UNSET}]), "second", force=True)
    check(done["spec"]["box"] == {"a": "1"} and done["spec"]["options"] == {"x": "1"}, "a member of a struct and of a map")
    check(done["spec"]["ports"] == [{"port": 80, "protocol": "UDP"}], "an item of a keyed list, its defaulted key completed")
    check(owns(done, "second", "spec", "ports", 'k:{"port":80,"protocol":"TCP"}') and not owns(done, "first", "spec", "ports", 'k:{"port":80,"protocol":"TCP"}'), "the item moves")
    check(owns(done, "second", "spec", "options", "y") and owns(done, "first", "spec", "options", "x") and not owns(done, "first", "spec", "options", "y"), "key b moves, key a stays")
    refused = apply(server, widget("parts", options=UNSET), "third", want=409)
    check(".spec.options.x" in refused["message"], "unsetting a container conflicts with owners below it")


def sharing(server):
    apply(server, widget("shared", size=1), "first")
    apply(server, widget("shared", size=UNSET), "a", force=True)
    both = apply(server, widget("shared", size=UNSET), "b")
    check(owns(both, "a", "spec", "size") and owns(both, "b", "spec", "size"), "two managers that unset the same field share it")
    one = apply(server, widget("shared", note="x"), "a")
    check(owns(one, "b", "spec", "size") and not owns(one, "a", "spec", "size"), "one of them releases it, the other keeps it")


def defaults(server):
    apply(server, widget("defaulted", color="red"), "first")
    done = apply(server, widget("defaulted", color=UNSET), "second", force=True)
    check(done["spec"]["color"] == "blue" and owns(done, "second", "spec", "color"), "the default is restored, owned by the manager that unset the field")
    shared = apply(server, widget("defaulted", color=UNSET), "third")
    check(owns(shared, "third", "spec", "color") and owns(shared, "second", "spec", "color"), "two managers that unset a defaulted field share it")
    again = apply(server, widget("defaulted", color=UNSET), "third")
    check(again["metadata"]["resourceVersion"] == shared["metadata"]["resourceVersion"], "repeating it writes nothing")


def mixes_with_updates(server):
    apply(server, widget("mixed", note="n", size=UNSET), "owner")
    updated = server.json("PATCH", WIDGETS + "/mixed?fieldManager=updater", {"spec": {"size": 4}}, content_type=MERGE, want=200)
    check(updated["spec"]["size"] == 4 and owns(updated, "updater", "spec", "size", operation="Update") and not owns(updated, "owner", "spec", "size"), "an update takes the field")
    refused = apply(server, widget("mixed", note="n", size=UNSET), "owner", want=409)
    check("updater" in refused["message"], "and the next unset conflicts with it")
    back = apply(server, widget("mixed", note="n", size=UNSET), "owner", force=True)
    check("size" not in back["spec"] and owns(back, "owner", "spec", "size"), "with force it is unset again")
    for type, patch in ((MERGE, {"spec": {"note": "m"}}), (JSON_PATCH, [{"op": "replace", "path": "/spec/note", "value": "j"}])):
        patched = server.json("PATCH", WIDGETS + "/mixed?fieldManager=other", patch, content_type=type, want=200)
        check(owns(patched, "owner", "spec", "size"), f"a patch of another field leaves it ({type})")
    whole = server.json("GET", WIDGETS + "/mixed")
    whole["spec"]["note"] = "put"
    check(owns(server.json("PUT", WIDGETS + "/mixed?fieldManager=other", whole, want=200), "owner", "spec", "size"), "and so does a PUT")


def built_in_kinds(server):
    apply(server, WHOLE_DEPLOYMENT, "first", DEPLOYMENT)
    refused = apply(server, deployment(minReadySeconds=UNSET), "second", DEPLOYMENT, want=409)
    check(".spec.minReadySeconds" in refused["message"], "unsetting another's field is a conflict")
    container = {"name": "c", "ports": [{"containerPort": 80, **UNSET}], "env": [{"name": "X", **UNSET}]}
    done = apply(server, deployment(minReadySeconds=UNSET, template={"spec": {"containers": [container]}}), "second", DEPLOYMENT, force=True)
    left = done["spec"]["template"]["spec"]["containers"][0]
    check("minReadySeconds" not in done["spec"] and left["ports"] == [{"containerPort": 90, "protocol": "UDP"}] and "env" not in left, "fields and items of a Deployment")
    check(owns(done, "second", "spec", "minReadySeconds") and owns(done, "second", "spec", "template", "spec", "containers", 'k:{"name":"c"}', "env", 'k:{"name":"X"}'), "their ownership")
    as_cbor = b"\xd9\xd9\xf7" + cbor(deployment(minReadySeconds=UNSET, template={"spec": {"containers": [container]}}))
    code, _, data = server.request("PATCH", DEPLOYMENT + "?fieldManager=second", as_cbor, content_type="application/apply-patch+cbor")
    check(code == 200 and json.loads(data)["metadata"]["resourceVersion"] == done["metadata"]["resourceVersion"], f"the same as CBOR writes nothing: {code}")
    meta = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "meta", "labels": {"a": "1", "b": "2"}, "finalizers": ["x.com/f"]}, "data": {"k": "v"}}
    path = "/api/v1/namespaces/default/configmaps/meta"
    apply(server, meta, "first", path)
    unset = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "meta", "labels": {"b": UNSET}, "finalizers": UNSET}, "data": UNSET}
    done = apply(server, unset, "second", path, force=True)
    check(done["metadata"]["labels"] == {"a": "1"} and "finalizers" not in done["metadata"] and "data" not in done, "labels, finalizers and data of a ConfigMap")


def others_are_not_broken(server):
    """Unset fields of one manager never make another's apply fail, nor leave a null behind."""
    for name, (first, second) in {
        "options": ({"a": "1", "b": "2"}, {"b": UNSET}),
        "box": ({"a": "1", "b": "2"}, {"b": UNSET}),
        "ports": ([{"port": 80}, {"port": 81}], [{"port": 81, **UNSET}]),
    }.items():
        object = f"others-{name}"
        apply(server, widget(object, note="n", **{name: first}), "m1")
        apply(server, widget(object, **{name: second}), "m2", force=True)
        done = apply(server, widget(object, note="n"), "m1")
        check(name not in done["spec"], f"{name} is removed with the last field in it, whoever unset others: {done['spec']}")
        released = apply(server, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": object}}, "m2")
        check(released["spec"] == done["spec"] and not owns(released, "m2", "spec", name), f"giving up the marker removes nothing: {released['spec']}")
    apply(server, widget("others-own", options={"a": "1", "b": "2"}, note="n"), "m1")
    done = apply(server, widget("others-own", options={"a": UNSET}, note="n"), "m1")
    check(done["spec"]["options"] == {}, f"the same manager keeps a marker and drops the rest: {done['spec']}")


def containers_of_markers(server):
    done = apply(server, widget("empty", color=UNSET), "m1")
    check(done["spec"] == {"color": "blue"}, f"a new object with only markers has its defaults: {done['spec']}")
    done = apply(server, widget("empty", options={"a": UNSET}, ports=[{"port": 80, **UNSET}], color=UNSET), "m1")
    check(done["spec"] == {"color": "blue"}, f"containers with only markers are not made: {done['spec']}")
    check(owns(done, "m1", "spec", "options", "a") and owns(done, "m1", "spec", "ports", 'k:{"port":80,"protocol":"TCP"}'), "what is unset in them is owned")
    again = apply(server, widget("empty", options={"a": UNSET}, ports=[{"port": 80, **UNSET}], color=UNSET), "m1")
    check(again["metadata"]["resourceVersion"] == done["metadata"]["resourceVersion"], "applying it again writes nothing")
    released = apply(server, widget("empty"), "m1")
    check(released["spec"] == {"color": "blue"}, f"giving up all markers removes nothing: {released.get('spec')}")
    probe = {"name": "c", "livenessProbe": {"failureThreshold": UNSET}}
    parents = deployment(**{**WHOLE_DEPLOYMENT["spec"], "strategy": {"type": "Recreate"}})
    parents["metadata"] = {"name": "p"}
    apply(server, parents, "m1", path=DEPLOYMENT[:-1] + "p")
    body = deployment(strategy={"rollingUpdate": {"maxSurge": UNSET}}, template={"spec": {"containers": [probe], "os": {"name": UNSET}}})
    body["metadata"] = {"name": "p"}
    done = apply(server, body, "m2", path=DEPLOYMENT[:-1] + "p")
    spec = done["spec"]["template"]["spec"]
    check("livenessProbe" not in spec["containers"][0] and "os" not in spec and done["spec"]["strategy"] == {"type": "Recreate"}, f"no container is made for a marker: {done['spec']}")
    check(owns(done, "m2", "spec", "strategy", "rollingUpdate", "maxSurge"), "but the absence is owned")


def releases_leave_what_is_not_owned(server):
    """What no manager owns beside a marker survives that the marker is given up."""
    job = "/apis/batch/v1/namespaces/default/jobs/j"
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"metadata": {"annotations": {"injected": "1"}}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}}}
    apply(server, body, "m0", path=job)
    whole = server.json("GET", job)
    whole["metadata"]["managedFields"] = [entry for entry in whole["metadata"]["managedFields"] if entry["manager"] != "m0"] or [{}]
    server.json("PUT", job + "?fieldManager=resets", whole, want=200)
    plain = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": {"a": "b"}}}
    marked = {**plain, "spec": {"template": {"metadata": {"annotations": {"x": UNSET}}}}}
    done = apply(server, marked, "m1", path=job)
    check(owns(done, "m1", "spec", "template", "metadata", "annotations", "x"), "the marker of an immutable template is owned")
    released = apply(server, plain, "m1", path=job)
    check(released["spec"]["template"]["metadata"]["annotations"] == {"injected": "1"}, f"and can be given up: {released['spec']['template']['metadata']}")


def members_of_sets(server):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "set", "finalizers": ["x.com/a", "x.com/b"]}}
    path = "/api/v1/namespaces/default/configmaps/set"
    apply(server, config, "m1", path=path)
    less = {**config, "metadata": {"name": "set", "finalizers": [{**UNSET, "value": "x.com/a"}]}}
    apply(server, less, "m2", path=path, want=409)
    done = apply(server, less, "m2", path=path, force=True)
    check(done["metadata"]["finalizers"] == ["x.com/b"] and owns(done, "m2", "metadata", "finalizers", 'v:"x.com/a"'), f"one finalizer is unset: {done['metadata']}")


def aliases(server):
    whole = deployment(**WHOLE_DEPLOYMENT["spec"])
    whole["metadata"] = {"name": "alias"}
    path = DEPLOYMENT[:-1] + "alias"
    whole["spec"]["template"]["spec"]["serviceAccountName"] = "robot"
    done = apply(server, whole, "m1", path=path)
    check(done["spec"]["template"]["spec"]["serviceAccount"] == "robot", "the server keeps serviceAccount and serviceAccountName in step")
    del whole["spec"]["template"]["spec"]["serviceAccountName"]
    for name in ("serviceAccountName", "serviceAccount"):
        body = deployment(template={"spec": {name: UNSET}})
        body["metadata"] = {"name": "alias"}
        done = apply(server, body, "m2", path=path, force=True)
        left = done["spec"]["template"]["spec"]
        check("serviceAccount" not in left and "serviceAccountName" not in left, f"{name} is unset together with its alias: {left}")
        again = apply(server, body, "m2", path=path)
        check(again["metadata"]["resourceVersion"] == done["metadata"]["resourceVersion"], "again writes nothing")
        whole["spec"]["template"]["spec"]["serviceAccountName"] = "robot"
        apply(server, whole, "m1", path=path, force=True)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "alias"}, "stringData": {"a": "1", "b": "2"}}
    path = "/api/v1/namespaces/default/secrets/alias"
    apply(server, secret, "m1", path=path)
    done = apply(server, {**secret, "stringData": {"a": UNSET, "b": "2"}}, "m1", path=path)
    check(done["data"] == {"b": "Mg=="}, f"a key of stringData is unset in data: {done['data']}")


def null_is_absent(server):
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/r"
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    apply(server, {**body, "rules": rules}, "m0", path=role)
    apply(server, {**body, "rules": UNSET}, "m1", path=role, force=True)
    done = apply(server, {**body, "rules": UNSET}, "m2", path=role)
    check(owns(done, "m1", "rules") and owns(done, "m2", "rules"), "two managers that unset a field written as null share it")
    apply(server, {**body, "rules": rules}, "m3", path=role, want=409)


def through_scale(server):
    apply(server, WHOLE_DEPLOYMENT, "m1", path=DEPLOYMENT, force=True)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": UNSET}}
    apply(server, scale, "m2", path=DEPLOYMENT + "/scale", want=409)
    done = apply(server, scale, "m2", path=DEPLOYMENT + "/scale", force=True)
    check(done["spec"] == {"replicas": 1}, f"the default is restored through scale: {done['spec']}")
    whole = server.json("GET", DEPLOYMENT)
    check(whole["spec"]["replicas"] == 1 and owns(whole, "m2", "spec", "replicas", subresource="scale"), "owned by the manager that unset it")
    check(not owns(whole, "m1", "spec", "replicas"), "not by the manager that had set it")
    apply(server, widget("scaled", replicas=3), "m1")
    scale = {**scale, "metadata": {"name": "scaled"}}
    refused = apply(server, scale, "m2", path=WIDGETS + "/scaled/scale", force=True, want=400)
    check("no default" in refused["message"], f"replicas without a default are not written as 0: {refused['message']}")


def what_clients_can_ask(server):
    document = server.json("GET", "/openapi/v3/apis/apps/v1")
    content = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]["requestBody"]["content"]
    check(content["application/apply-patch+yaml"].get("x-kubernetes-unset-marker") == UNSET, "OpenAPI declares that applies may contain markers")
    check("x-kubernetes-unset-marker" not in content["application/merge-patch+json"], "but not other patches")
    _, _, metrics = server.request("GET", "/metrics")
    lines = metrics.decode().splitlines()
    check('kubernetes_feature_enabled{name="ServerSideApplyUnsettingFields",stage="ALPHA"} 1' in lines, "the gate is in the metrics")
    counted = [line for line in lines if line.startswith("holdfast_unset_applies_total{") and 'resource="widgets"' in line]
    check(counted and float(counted[0].split()[-1]) > 0, f"applies with markers are counted: {counted}")
    check(any(line.startswith("apiserver_request_total{") and 'verb="APPLY"' in line for line in lines), "an apply counts as APPLY")


def warnings_of(server, path, body, query="", method="PATCH", content_type=APPLY):
    code, headers, data = server.request(method, path + query, body, content_type=content_type)
    assert code in (200, 201), f"{method} {path}: {code} {data[:300]}"
    return " ".join(headers.get_all("Warning") or [])


def what_came_back_is_reported(server):
    text = warnings_of(server, WIDGETS + "/back", widget("back", color=UNSET, size=UNSET), "?fieldManager=m")
    check(".spec.color was unset, but is set again: it has a default" in text and ".spec.size" not in text, f"a default that came back: {text}")
    apply(server, {**WHOLE_DEPLOYMENT, "metadata": {"name": "back"}}, "m", path=DEPLOYMENT[:-1] + "back")
    body = {**deployment(strategy=UNSET, progressDeadlineSeconds=UNSET), "metadata": {"name": "back"}}
    text = warnings_of(server, DEPLOYMENT[:-1] + "back", body, "?fieldManager=n")
    check(".spec.strategy was unset" in text and ".spec.progressDeadlineSeconds was unset" in text, f"defaults of a built-in kind: {text}")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "back"}}
    server.json("POST", "/api/v1/namespaces", namespace, want=201)
    namespace["metadata"]["labels"] = {"kubernetes.io/metadata.name": UNSET}
    text = warnings_of(server, "/api/v1/namespaces/back", namespace, "?fieldManager=m&force=true")
    check(".metadata.labels.kubernetes.io/metadata.name was unset" in text, f"what the server sets: {text}")
    text = warnings_of(server, DEPLOYMENT + "/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": UNSET}}, "?fieldManager=m2")
    check(".spec.replicas was unset" in text, f"through scale: {text}")
    check("unset" not in warnings_of(server, WIDGETS + "/back", widget("back", size=UNSET), "?fieldManager=m"), "no warning if nothing came back")


def markers_stored_as_data_are_reported(server):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}, "data": {"k8s_io__value": "unset"}}
    configs = "/api/v1/namespaces/default/configmaps"
    text = warnings_of(server, configs, config, method="POST", content_type="application/json")
    check(".data looks like an unset marker" in text, f"in a POST: {text}")
    text = warnings_of(server, configs + "/data", config, method="PUT", content_type="application/json")
    check(".data looks like an unset marker" in text, f"in a PUT: {text}")
    text = warnings_of(server, configs + "/data", {"metadata": {"annotations": {"a": "k8s_io__value"}}, "data": {"k8s_io__value": "unset"}}, content_type=MERGE)
    check(".data looks like an unset marker" in text, f"in a patch: {text}")
    check("marker" not in warnings_of(server, configs + "/data", {"data": {"k8s_io__value": "other"}}, content_type=MERGE), "not with another value")
    config["data"] = {"k8s_io__value": {"k8s_io__value": "text"}}
    done = apply(server, config, "m", path=configs + "/data", force=True)
    check(done["data"] == {"k8s_io__value": "text"}, f"an apply writes the key doubled: {done['data']}")


def only_successful_applies_are_counted(server):
    def counted():
        lines = server.request("GET", "/metrics")[2].decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("holdfast_unset_applies_total{") and 'resource="widgets"' in line)
    apply(server, widget("counted", size=3), "m")
    before = counted()
    apply(server, widget("counted", size=UNSET), "n", want=409)
    apply(server, widget("counted", size=UNSET), "n", force=True, query="&dryRun=All")
    check(counted() == before, "conflicts and dry runs are not counted")
    apply(server, widget("counted", size=UNSET), "n", force=True)
    check(counted() == before + 1, "a successful apply is")


def kubectl_annotation_has_no_markers(server):
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "annotated", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "spec": {"size": 1}}
    server.json("POST", WIDGETS, body, want=201)
    done = apply(server, widget("annotated", note="n", size=UNSET), "kubectl", force=True)
    last = done["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    check("k8s_io__value" not in last and "note" in last, f"markers are not copied into kubectl's annotation: {last}")


def wrong_use(server):
    apply(server, widget("wrong", size=1), "first")
    cases = {
        "another value": (widget("wrong", size={"k8s_io__value": "gone"}), ".spec.size"),
        "a value that is no text": (widget("wrong", size={"k8s_io__value": 1}), ".spec.size"),
        "a sibling": (widget("wrong", box={"a": "1", **UNSET}), ".spec.box"),
        "a sibling in an item": (widget("wrong", ports=[{"port": 80, "name": "n", **UNSET}]), ".spec.ports"),
        "an element of a set": (widget("wrong", tags=[UNSET]), ".spec.tags"),
        "inside an atomic map": (widget("wrong", atom={"a": UNSET}), ".spec.atom"),
        "inside an atomic list": (widget("wrong", words=[UNSET]), ".spec.words"),
        "a key field": (widget("wrong", ports=[{"port": UNSET}]), ".spec.ports"),
        "the kind": ({**widget("wrong"), "kind": UNSET}, "marker at .kind:"),
        "the name": ({**widget("wrong"), "metadata": {"name": UNSET}}, "metadata.name"),
        "a marker item without its key": (widget("wrong", ports=[{"protocol": "TCP", **UNSET}]), '"port"'),
        "a key that is null": (widget("wrong", ports=[{"port": None, **UNSET}]), '"port"'),
        "a key of the wrong type": (widget("wrong", ports=[{"port": "80", **UNSET}]), '"port"'),
        "an item set and unset": (widget("wrong", ports=[{"port": 80}, {"port": 80, "protocol": "TCP", **UNSET}]), ".spec.ports"),
        "managedFields": ({**widget("wrong"), "metadata": {"name": "wrong", "managedFields": UNSET}}, "metadata.managedFields must be nil"),
        "the uid": ({**widget("wrong"), "metadata": {"name": "wrong", "uid": UNSET}}, ".metadata.uid"),
        "the resourceVersion": ({**widget("wrong"), "metadata": {"name": "wrong", "resourceVersion": UNSET}}, ".metadata.resourceVersion"),
        "the root": ({**widget("wrong"), **UNSET}, "marker at .:"),
    }
    for what, (body, path) in cases.items():
        code, _, data = server.request("PATCH", WIDGETS + "/wrong?fieldManager=m&force=true", body, content_type=APPLY)
        check(code in (400, 422) and path in json.loads(data)["message"], f"{what} is rejected with its path: {code} {data[:300]}")
    check(server.json("GET", WIDGETS + "/wrong")["spec"] == {"size": 1, "color": "blue"}, "they had no effect")


def outside_apply(server):
    code, _, _ = server.request("PATCH", WIDGETS + "/wrong", {"spec": {"size": UNSET}}, content_type=MERGE)
    check(code == 422, f"in a merge patch, the marker is an ordinary map: {code}")
    stored = server.json("PATCH", WIDGETS + "/wrong", {"spec": {"options": UNSET}}, content_type=MERGE, want=200)
    check(stored["spec"]["options"] == UNSET, "and is stored in maps of strings")


def gate_off_and_on_again(server):
    before = apply(server, widget("gate", note="n", size=UNSET), "owner")
    server.restart("ServerSideApplyUnsettingFields=false")
    check(server.json("GET", WIDGETS + "/gate") == before, "gate off: ownership is kept")
    code, _, data = server.request("PATCH", WIDGETS + "/gate?fieldManager=owner", widget("gate", note="n", size=UNSET), content_type=APPLY)
    check(code in (400, 422, 500) and b"size" in data, f"gate off: the marker is ordinary data of the wrong type: {code} {data[:200]}")
    stored = apply(server, widget("plain", options=UNSET), "owner")
    check(stored["spec"]["options"] == UNSET, "gate off: and is stored where it fits")
    patched = server.json("PATCH", WIDGETS + "/gate?fieldManager=other", {"spec": {"note": "o"}}, content_type=MERGE, want=200)
    check(owns(patched, "owner", "spec", "size"), "gate off: a patch keeps the entry")
    server.restart()
    check(server.json("GET", WIDGETS + "/gate") == patched, "gate on again: nothing is lost")
    refused = apply(server, widget("gate", size=2), "third", want=409)
    check("owner" in refused["message"], "gate on again: it still conflicts")
    server.restart("ServerSideApplyUnsettingFields=false")
    released = apply(server, widget("gate", box={"a": "1"}), "owner")
    check(not owns(released, "owner", "spec", "size"), "gate off: an apply without the marker releases it too")


def cbor(value):
    """A CBOR encoder sufficient for these bodies."""
    def head(major, n):
        return bytes([major << 5 | n]) if n < 24 else bytes([major << 5 | 24, n]) if n < 256 else bytes([major << 5 | 25]) + n.to_bytes(2, "big")
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, int):
        return head(0, value)
    return head(2, len(value.encode())) + value.encode()


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, (define, every_sort_of_field, parts_of_containers, sharing, defaults, mixes_with_updates, built_in_kinds, others_are_not_broken, containers_of_markers,
                           releases_leave_what_is_not_owned, members_of_sets, aliases, markers_stored_as_data_are_reported,
                           only_successful_applies_are_counted, kubectl_annotation_has_no_markers,
                           null_is_absent, through_scale, what_came_back_is_reported, what_clients_can_ask, wrong_use, outside_apply, gate_off_and_on_again))
    finish()

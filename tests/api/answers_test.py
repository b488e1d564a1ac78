#!/usr/bin/env python3
"""Responses that once differed in random comparisons with kube-apiserver: answers_test.py HOLDFAST"""
import base64
import json
import socket
import ssl
import struct
import sys

from serve import Server, check, finish, run_parts

MAPS = "/api/v1/namespaces/default/configmaps"
JSON, MERGE = "application/json", "application/merge-patch+json"
PATCH, STRATEGIC = "application/json-patch+json", "application/strategic-merge-patch+json"


def send(server, method, path, body=None, content_type=JSON, accept=JSON):
    code, _, data = server.request(method, path, body, content_type=content_type, accept=accept)
    return code, json.loads(data) if accept == JSON else data


def a_patch_cannot_make_an_object_another_kind(server):
    assert send(server, "POST", MAPS, {"metadata": {"name": "kind"}, "data": {"a": "b"}})[0] == 201
    for body, why in (({"kind": "Pod"}, "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
                      ({"kind": "X"}, 'no kind "X" is registered for version "v1"'),
                      ({"apiVersion": "x/v1"}, 'no kind "ConfigMap" is registered for version "x/v1"'),
                      ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c")):
        code, answer = send(server, "PATCH", f"{MAPS}/kind", body, MERGE)
        check(code == 422 and why in answer["message"], f"{body}: {code} {answer}")
    code, answer = send(server, "PATCH", f"{MAPS}/kind", {"apiVersion": None}, MERGE)
    check(code == 400 and "name must be provided" in answer["message"], f"no apiVersion: {code} {answer}")
    for body, how in (({"kind": None}, MERGE), ({"kind": "X", "apiVersion": "x/v1"}, STRATEGIC),
                      ([{"op": "remove", "path": "/kind"}], PATCH)):
        code, answer = send(server, "PATCH", f"{MAPS}/kind", body, how)
        check((code, answer["kind"], answer["apiVersion"]) == (200, "ConfigMap", "v1"), f"{body}: {code} {answer}")


def options_of_lists_are_refused_in_order(server):
    bad, unfit = "labelSelector=%2C", "resourceVersion=0&resourceVersionMatch=Exact"
    code, answer = send(server, "GET", f"{MAPS}?{bad}&{unfit}")
    check(code == 400, f"unparsable options are reported first: {answer}")
    code, answer = send(server, "GET", f"{MAPS}?fieldSelector=spec.x%3D1&{unfit}")
    check(code == 422, f"then conflicting options: {answer}")
    code, answer = send(server, "GET", f"{MAPS}?watch=true&continue=x")
    check(code == 422 and "forbidden when continue is provided" in answer["message"], f"{answer}")
    code, body = send(server, "GET", f"{MAPS}?{bad}", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    check(code == 400, f"the response form is checked only for successful responses: {body}")
    code, body = send(server, "GET", MAPS, accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    check(code == 406 and b"(*core.ConfigMapList)" in body, f"{body}")


def an_address_has_an_object_while_a_service_holds_it(server):
    services, addresses = "/api/v1/namespaces/default/services", "/apis/networking.k8s.io/v1/ipaddresses"
    body = {"metadata": {"name": "one"}, "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 80}]}}
    assert send(server, "POST", services, body)[0] == 201
    code, answer = send(server, "GET", f"{addresses}/10.0.0.77")
    check(code == 200 and answer["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "one"}, f"{answer}")
    check(answer["metadata"]["managedFields"][0]["manager"] == "kube-apiserver", f"{answer}")
    send(server, "DELETE", f"{services}/one")
    check(send(server, "GET", f"{addresses}/10.0.0.77")[0] == 404, "it is deleted with the service")
    taken = {"metadata": {"name": "10.0.0.78"}, "spec": {"parentRef": {"resource": "x", "name": "y"}}}
    assert send(server, "POST", addresses, taken)[0] == 201
    body["spec"]["clusterIP"] = "10.0.0.78"
    code, answer = send(server, "POST", services, body)
    check(code == 422 and "already allocated" in answer["message"], f"an address allocated by hand: {answer}")


def deleting_a_job_warns_about_its_pods(server):
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}
    assert send(server, "POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": pod}})[0] == 201
    _, headers, _ = server.request("DELETE", f"{jobs}/j?dryRun=All")
    check("child pods are preserved" in (headers.get("Warning") or ""), "a deletion without a propagation policy")
    _, headers, _ = server.request("DELETE", f"{jobs}/j?propagationPolicy=Background")
    check(headers.get("Warning") is None, "a deletion with one")


PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
AUTOSCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"


def definition(name, spec, **more):
    version = {"name": "v1", "served": True, "storage": True,
               "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}, **more}
    group = f"{name}.example.com"
    return {"metadata": {"name": f"widgets.{group}"},
            "spec": {"scope": "Cluster", "group": group, "names": {"plural": "widgets", "kind": "Widget", "listKind": "Widgets"},
                     "versions": [version]}}


# Requests with the expected code and texts of the response. The rows of one sentence are steps.
ROWS = [
    ("only a dry run of an update shows selfLink", [
        ("POST", CONFIG_MAPS, {"metadata": {"name": "linked", "selfLink": "x"}}, JSON, 201, ["!selfLink"]),
        ("PUT", f"{CONFIG_MAPS}/linked?dryRun=All", {"metadata": {"name": "linked", "selfLink": "x"}}, JSON, 200, ['"selfLink":"x"']),
        ("PATCH", f"{CONFIG_MAPS}/linked", {"metadata": {"selfLink": "x"}, "data": {"a": "b"}}, MERGE, 200, ["!selfLink"])]),
    ("errors show a strategic merge patch as left by the merge", [
        ("PATCH", f"{CONFIG_MAPS}/linked", {"metadata": {"labels": {"a": None}}, "immutable": "x"}, STRATEGIC, 422, ["map[immutable:x metadata:map[labels:map[]]]"])]),
    ("an autoscaler with a container resource metric", [
        ("POST", AUTOSCALERS.replace("v1", "v2"), {"metadata": {"name": "by-pods"}, "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "metrics": [
            {"type": "ContainerResource", "containerResource": {"name": "pods", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5}}}]}}, JSON, 422, ["must be a standard resource for containers"])]),
    ("errors show documents in the field order of their type", [
        ("POST", AUTOSCALERS, {"metadata": {"name": "ordered"}, "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}, JSON, 201, []),
        ("PATCH", f"{AUTOSCALERS}/ordered", {"kind": "Pod"}, MERGE, 422, ['\\"minReplicas\\":1,\\"maxReplicas\\":2'])]),
    ("the namespace of an eviction must match the URL", [
        ("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]}}, JSON, 201, []),
        ("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p", "namespace": "other"}}, JSON, 400, ["does not match the namespace"])]),
    ("the status of a pod is validated", [
        ("PATCH", f"{PODS}/p/status", {"status": {"resourceClaimStatuses": [{"name": "gpu"}]}}, MERGE, 422, ["must match the name of an entry in `spec.resourceClaims`"]),
        ("PATCH", f"{PODS}/p/status", {"status": {"conditions": [{"type": "not a name", "status": "True"}]}}, MERGE, 422, ["status.conditions[0].Type"]),
        ("PATCH", f"{PODS}/p/status", {"status": {"hostIPs": [{"ip": "1.2.3.4"}]}}, MERGE, 422, ["must be equal to `hostIP`"]),
        ("PATCH", f"{PODS}/p/status", {"status": {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}}, MERGE, 422,
         ['[{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: may specify no more than one IP for each IP family'])]),
    ("addresses reported by a kubelet cause warnings, and fields of disabled gates are dropped", [
        ("PATCH", f"{PODS}/p/status", {"status": {"podIP": "2001:DB8::1", "podIPs": [{"ip": "2001:DB8::1"}], "nodeAllocatableResourceClaimStatuses": [
            {"resourceClaimName": "c", "containers": ["a"], "resources": {"cpu": "1"}}]}}, MERGE, 200,
         ["^status.podIPs[0].ip: IPv6 address", '!"nodeAllocatableResourceClaimStatuses":'])]),
    ("a volume has one source, and deprecated node labels cause warnings", [
        ("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "flocker": {"datasetName": "a", "datasetUUID": "b"}}}, JSON, 422, ["datasetName and datasetUUID can not be specified simultaneously"]),
        ("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/x"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "beta.kubernetes.io/os", "operator": "Exists"}]}]}}}}, JSON, 201,
         ['^spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14'])]),
    ("a POST to bindings ignores the uid", [
        ("POST", "/api/v1/namespaces/default/bindings", {"metadata": {"name": "p", "uid": "x"}, "target": {"name": "n"}}, JSON, 201, [])]),
    ("a binding checks the resourceVersion of the pod", [
        ("POST", PODS, {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "a", "image": "i"}]}}, JSON, 201, []),
        ("POST", f"{PODS}/q/binding", {"metadata": {"name": "q", "resourceVersion": "1"}, "target": {"name": "n"}}, JSON, 409, ["ResourceVersion in precondition: 1"])]),
    ("devices of a pod with its own user namespace", [
        ("POST", PODS, {"metadata": {"name": "u"}, "spec": {"hostUsers": False, "containers": [{"name": "a", "image": "i", "volumeDevices": [{"name": "v", "devicePath": "/d"}]}]}}, JSON, 422,
         ["spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"])]),
    ("pod CIDRs of a node are a dual-stack pair", [
        ("POST", NODES, {"metadata": {"name": "n"}, "spec": {"podCIDRs": ["10.0.0.0/24", "x"]}}, JSON, 422,
         ["failed to check with dual stack with error:invalid CIDR[1]: <nil> (invalid CIDR address: x)", "may specify no more than one CIDR for each IP family"])]),
    ("names that are not valid path segments", [
        ("GET", f"{MAPS}/%2e%2e", None, JSON, 400, ['Name parameter invalid: "..": may not be \'..\'']),
        ("DELETE", f"{MAPS}/a%25b", None, JSON, 400, ["may not contain '%'"])]),
    ("the list of groups is served for every method, a version that does not exist for none", [
        ("PATCH", "/apis", {}, MERGE, 200, ["APIGroupList"]), ("PUT", "/apis/apps", {}, JSON, 200, ["preferredVersion"]), ("PUT", "/api/v2", {}, JSON, 404, ["could not find"]), ("PUT", "/api/v1", {}, JSON, 405, ["does not allow this method"])]),
    ("component statuses report health and honour selectors", [
        ("GET", "/api/v1/componentstatuses", None, JSON, 200,
         ['"kind":"ComponentStatusList"', '"name":"controller-manager"', '"name":"scheduler"', '"name":"etcd-0"', '"message":"ok"']),
        ("GET", "/api/v1/componentstatuses?fieldSelector=metadata.name%3Detcd-0", None, JSON, 200, ['"name":"etcd-0"', '!"name":"scheduler"']),
        ("GET", "/api/v1/componentstatuses?labelSelector=a", None, JSON, 200, ['"items":[]']),
        ("GET", "/api/v1/componentstatuses/etcd-0", None, JSON, 200, ['"conditions":[{"type":"Healthy","status":"True","message":"ok"}]']),
        ("GET", "/api/v1/componentstatuses?watch=1", None, JSON, 405, [])]),
    ("errors use the singular of componentstatuses", [("GET", "/api/v1/componentstatuses/x", None, JSON, 404, ['componentstatus "x" not found'])]),
    ("an IPAddress does not support generateName", [
        ("POST", "/apis/networking.k8s.io/v1/ipaddresses", {"metadata": {"generateName": "gen-"}, "spec": {"parentRef": {"resource": "services", "name": "s"}}}, JSON, 422,
         ['IPAddress.networking.k8s.io "gen-" is invalid: [metadata.generateName'])]),
    ("a strategic merge patch cannot change the data of a ControllerRevision", [
        ("POST", "/apis/apps/v1/namespaces/default/controllerrevisions", {"metadata": {"name": "r"}, "data": {"spec": {"a": 1}}, "revision": 1}, JSON, 201, []),
        ("PATCH", "/apis/apps/v1/namespaces/default/controllerrevisions/r", {"data": {"spec": {"a": 2}}}, STRATEGIC, 500,
         ['unable to find api field in struct RawExtension for the json field'])]),
    ("a list by name is not paged", [
        ("POST", MAPS, {"metadata": {"name": "page"}}, JSON, 201, []),
        ("GET", f"{MAPS}?limit=1&fieldSelector=metadata.name%3Dpage", None, JSON, 200, ["!\"continue\""]),
        ("GET", f"{MAPS}?limit=1", None, JSON, 200, ["\"continue\""])]),
    ("nested item schemas are owned, formats are checked against types, and lists have their own kinds", [
        ("POST", CRDS, definition("items", {"type": "array", "items": {"type": "number", "default": 2, "enum": [1, 2]}}), JSON, 201, ["managedFields", "f:versions"]),
        ("POST", f"{CRDS}?dryRun=All", definition("formats", {"type": "number", "format": "int32"}), JSON, 201, ["^unrecognized format"]),
        ("POST", f"{CRDS}?dryRun=All", definition("formats", {"type": "integer", "format": "int32"}), JSON, 201, ["^!unrecognized format"])]),
    ("a claim that is bound to a volume without a size shows 0", [
        ("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}}, JSON, 201, []),
        ("TABLE", f"{CLAIMS}/c", None, JSON, 200, ['"c","Pending","v","0"'])]),
    ("the data source of a claim must be in its own namespace", [
        ("PATCH", f"{CLAIMS}/c", {"spec": {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "x", "namespace": "other"}}}, MERGE, 200, ['!"dataSourceRef"'])]),
    ("a dry run of a create only checks the name", [
        ("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "dry", "resourceVersion": "5"}}, JSON, 201, ['"resourceVersion":"5"']),
        ("POST", MAPS, {"metadata": {"name": "dry", "resourceVersion": "5"}}, JSON, 500, ["resourceVersion should not be set on objects to be created"]),
        ("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "page", "resourceVersion": "5"}}, JSON, 409, ['configmaps "page" already exists'])]),
    ("problems of a JSON patch are listed by operation", [
        ("PATCH", f"{MAPS}/page?fieldValidation=Strict", '[{"op":"add","path":"/data","value":{},"foo":1},{"op":"add","op":"add","path":"/data/z","value":"y","bar":1,"bar":2},'
         '{"op":"add","path":"/bogus","value":"y"}]', PATCH, 422,
         ['strict decoding error: json patch unknown field "[0].foo", json patch duplicate field "[1].op", json patch unknown field "[1].bar", unknown field "bogus"'])]),
    ("a continue token is checked before other options", [
        ("GET", f"{MAPS}?limit=1&continue=e30&resourceVersion=5", None, JSON, 400, ["continue key is not valid: server does not recognize this encoded version"])]),
    ("export is rejected", [("GET", "/api/v1/namespaces/default?export=true", None, JSON, 400, ["the export parameter, deprecated since v1.14, is no longer supported"])]),
    ("the core group has one scalable kind", [
        ("POST", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
         {"metadata": {"name": "rc"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "ReplicationController", "name": "x"}}}, JSON, 201, []),
        ("POST", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
         {"metadata": {"name": "d"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "v1"}}}, JSON, 422, ["apiVersion must specify API group"])]),
    ("a patched document is decoded as the kind it names", [
        ("PATCH", f"{MAPS}/kind", {"kind": "Secret"}, MERGE, 422, ["illegal base64 data at input byte 0"]),
        ("PATCH", f"{MAPS}/kind", {"kind": "Pod", "spec": {"containers": 1}}, MERGE, 422,
         ["json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container"])]),
    ("an exempt level has no shares", [("TABLE", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt", None, JSON, 200, ['"exempt","Exempt","<none>","<none>"'])]),
    ("a status update cannot set deletionTimestamp", [
        ("POST", ATTACHMENTS, {"metadata": {"name": "a"}, "spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}, JSON, 201, []),
        ("PATCH", f"{ATTACHMENTS}/a/status", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, MERGE, 200, ["!deletionTimestamp"])]),
    ("shared counters of devices have validated names", [
        ("POST", "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "s"}, "spec": {
            "driver": "d.example.com", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": True,
            "sharedCounters": [{"name": "A_b", "counters": {"a": {"value": "1"}}}, {"name": "b", "counters": {"A_c": {"value": "1"}}}, {}]}}, JSON, 422,
            ['spec.sharedCounters[0].name: Invalid value: "A_b": a lowercase RFC 1123 label', 'spec.sharedCounters[1].counters: Invalid value: "A_c"',
             "spec.sharedCounters[2].name: Required value", "spec.sharedCounters[2].counters: Required value"]),
        ("POST", "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "s"}, "spec": {
            "driver": "d.example.com", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": True,
            "devices": [{"name": "d", "nodeName": "n", "consumesCounters": [{"counterSet": "A_b"}]}]}}, JSON, 422,
            ['spec.devices[0].consumesCounters[0].counterSet: Invalid value: "A_b"', "spec.devices[0].consumesCounters[0].counters: Required value",
             "spec.devices[0]: Invalid value: null: `nodeName`"])]),
    ("a CRD without versions is reported as null", [
        ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "as.b.c"}, "spec": {
            "group": "b.c", "scope": "Cluster", "names": {"plural": "as", "kind": "A"}}}, JSON, 422,
            ["spec.versions: Invalid value: null: must have exactly one version marked as storage version"])]),
    ("the group of the aggregator only supports GET", [
        ("POST", "/apis/apiregistration.k8s.io", {}, JSON, 405, ["the server does not allow this method on the requested resource"]),
        ("POST", "/apis/apps", {}, JSON, 200, ['"name":"apps"'])]),
]


def responses_match_rows(server):
    for sentence, steps in ROWS:
        for method, path, body, content_type, code, texts in steps:
            accept = "application/json;as=Table;v=v1;g=meta.k8s.io" if method == "TABLE" else JSON
            got, headers, data = server.request("GET" if method == "TABLE" else method, path, body, content_type=content_type, accept=accept)
            check(got == code, f"{sentence}: {method} {path}: {got} {data}")
            answer = json.loads(data)
            said = answer["message"] if answer.get("kind") == "Status" and "message" in answer else json.dumps(answer, separators=(",", ":"))
            for text in texts:
                where = headers.get("Warning") or "" if text.startswith("^") else said
                text = text.removeprefix("^")
                check((text.removeprefix("!") in where) != text.startswith("!"), f"{sentence}: {method} {path}: {text!r} in {where}")


def objects_of_other_versions_begin_with_their_kind(server):
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    _, _, made = server.request("POST", path, {"metadata": {"name": "first"}, "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}})
    for data in (made, server.request("GET", f"{path}/first")[2]):
        check(list(json.loads(data))[:3] == ["kind", "apiVersion", "metadata"], f"{data[:100]}")
    server.request("DELETE", f"{path}/first")


def pages_have_their_types(server):
    for path, accept, want in (("/version", "application/yaml", 406), ("/version", "application/json", 200), ("/version", "text/html, */*", 200),
                               ("/flagz", "application/json", 406), ("/statusz", "image/png", 406), ("/statusz", "text/plain", 200),
                               ("/flagz", "application/json, */*", 200), ("/version/x", "application/json", 404)):
        code, _, data = server.request("GET", path, accept=accept)
        check(code == want, f"{path} as {accept}: {code} {data[:200]}")
        if code == 406:
            check((b"Available representations: application/json" if path == "/version" else b"only the following media types are accepted") in data, f"{path}: {data}")


def groups_are_not_described_in_cbor(server):
    """Only versions of built-in groups are."""
    for path, want in (("/api", 406), ("/apis", 406), ("/apis/apps", 406), ("/apis/apps/v1", 200), ("/api/v1", 200)):
        code, headers, data = server.request("GET", path, accept="application/cbor")
        kind = headers["Content-Type"]
        check((code, kind) == (want, "application/cbor" if want == 200 else "application/json"), f"{path}: {code} {kind} {data[:200]}")
        if want == 406:
            check(json.loads(data)["message"] == "only the following media types are accepted: application/json, application/yaml, "
                  "application/vnd.kubernetes.protobuf", f"{path}: {data[:200]}")
        code, headers, _ = server.request("GET", path, accept="application/cbor, application/json")
        check((code, headers["Content-Type"]) == (200, "application/cbor" if want == 200 else "application/json"), f"{path}: {code} {headers}")


def debugging_pages_are_objects_on_request(server):
    for path, kind in (("/statusz", "Statusz"), ("/flagz", "Flagz")):
        for version in ("v1beta1", "v1alpha1"):
            code, headers, data = server.request("GET", path, accept=f"application/json;v={version};g=config.k8s.io;as={kind}")
            check(code == 200, f"{path}: {code} {data[:200]}")
            page = json.loads(data)
            check((page["kind"], page["apiVersion"], page["metadata"]) == (kind, f"config.k8s.io/{version}", {"name": "apiserver"}), f"{page}")
            check(headers["Content-Type"] == f"application/json;g=config.k8s.io;v={version};as={kind}", f"{headers}")
            check(("deprecated" in (headers.get("Warning") or "")) == (version == "v1alpha1"), f"{path} {version}: {headers}")
        for accept, want in ((f"application/json;g=config.k8s.io;as={kind}", 406), (f"text/plain;v=v1beta1;g=config.k8s.io;as={kind}", 406),
                             (f"application/json;v=v1beta1;g=config.k8s.io;as={kind};stream=watch", 406),
                             (f"application/json;v=v9;g=config.k8s.io;as={kind}, */*", "text/plain"), (" ", "text/plain"),
                             (f"*/*;v=v1beta1;g=config.k8s.io;as={kind}", "application/json"), (f"application/yaml;v=v1beta1;g=config.k8s.io;as={kind}", "application/yaml"),
                             (f"application/cbor;v=v1beta1;g=config.k8s.io;as={kind}", "application/cbor")):
            code, headers, data = server.request("GET", path, accept=accept)
            check(code == 406 if want == 406 else code == 200 and headers["Content-Type"].startswith(want), f"{path} as {accept}: {code} {headers}")
    flags = json.loads(server.request("GET", "/flagz", accept="application/json;v=v1beta1;g=config.k8s.io;as=Flagz")[2])["flags"]
    check("data-dir" in flags and flags == dict(sorted(flags.items())), f"{flags}")
    status = json.loads(server.request("GET", "/statusz", accept="application/json;v=v1beta1;g=config.k8s.io;as=Statusz")[2])
    check(status["paths"] == ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"] and status["uptimeSeconds"] >= 0, f"{status}")


def flow_schemas_are_printed_in_their_order(server):
    table = json.loads(server.request("GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", accept="application/json;as=Table;v=v1;g=meta.k8s.io")[2])
    order = [(row["cells"][2], row["cells"][0]) for row in table["rows"]]
    check(order == sorted(order) and order[0][1] == "exempt" and len(order) > 5, f"{order}")
    listed = send(server, "GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas")[1]["items"]
    names = [item["metadata"]["name"] for item in listed]
    check(names == sorted(names), "a list is sorted by name as usual")


def a_head_has_no_subresource(server):
    code, _, _ = server.request("HEAD", f"{PODS}/p/status")
    check(code == 405, f"{code}")


def bookmarks_carry_an_empty_object(server):
    """The result of Kubernetes' conversion of an empty internal object, byte for byte except for the revision."""
    template = '"template":{"metadata":{},"spec":{"containers":null}}'
    for path, annotation, rest in (
            ("/api/v1/configmaps", "", ""),
            ("/apis/apps/v1/deployments", "", '"spec":{"replicas":0,"selector":null,' + template + ',"strategy":{}},"status":{}'),
            ("/apis/apps/v1/replicasets", "", '"spec":{"replicas":0,"selector":null,' + template + '},"status":{"replicas":0}'),
            ("/apis/apps/v1/controllerrevisions", "", '"data":null,"revision":0'),
            ("/apis/apps/v1/daemonsets", '"deprecated.daemonset.template.generation":"0",',
             '"spec":{"selector":null,' + template + ',"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,'
             '"desiredNumberScheduled":0,"numberReady":0}')):
        _, _, data = server.request("GET", path + "?watch=1&timeoutSeconds=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan")
        line = [line for line in data.splitlines() if b'"BOOKMARK"' in line][0].decode()
        event = json.loads(line)["object"]
        want = ('{"type":"BOOKMARK","object":{"kind":"' + event["kind"] + '","apiVersion":"' + event["apiVersion"] + '","metadata":{"resourceVersion":"'
                + event["metadata"]["resourceVersion"] + '","annotations":{' + annotation + '"k8s.io/initial-events-end":"true"}}' + (rest and "," + rest) + "}}")
        check(line == want, f"{path}: {line}, not {want}")


def bytes_are_bytes_in_cbor(server):
    assert send(server, "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "data": {"k": "YWJj"}})[0] == 201
    for path in ("/api/v1/namespaces/default/secrets/s", "/api/v1/namespaces/default/secrets"):
        _, data = send(server, "GET", path, accept="application/cbor")
        check(b"\x41k\xd6\x43abc" in data, f"{path}: a tag that says base64, and the bytes: {data!r}")


def a_custom_kind_is_published_as_its_schema_reads(server):
    spec = {"type": "object", "properties": {
        "either": {"x-kubernetes-int-or-string": True}, "color": {"type": "string"},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}}}
    assert send(server, "POST", CRDS, definition("published", spec, selectableFields=[{"jsonPath": ".spec.color"}]))[0] == 201
    for _ in range(100):
        code, _, data = server.request("GET", "/openapi/v3/apis/published.example.com/v1")
        if code == 200:
            break
    schemas = json.loads(data)["components"]["schemas"]
    check("com.example.published.v1.Widgets" in schemas, f"the list has the chosen kind: {list(schemas)}")
    widget = schemas["com.example.published.v1.Widget"]
    check(widget["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}], f"{widget}")
    parts = widget["properties"]["spec"]["properties"]
    check(parts["either"]["anyOf"] == [{"type": "integer"}, {"type": "string"}], f"{parts}")
    check(parts["inner"]["required"] == ["kind", "apiVersion"] and "metadata" in parts["inner"]["properties"], f"{parts}")
    code, answer = send(server, "GET", "/openapi/v3/api/v1")
    modes = answer["components"]["schemas"]["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]["accessModes"]
    check("ReadWriteOnce" in modes["items"].get("enum", []), f"an enum of a list is that of its items: {modes}")


def a_restart_repairs_roles(server):
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role, binding = rbac + "/clusterroles/", rbac + "/clusterrolebindings/"
    extra = {"verbs": ["get"], "apiGroups": ["extra.example.com"], "resources": ["things"]}
    protect = {"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}}
    before = {name: send(server, "GET", role + name)[1] for name in ("system:basic-user", "system:discovery", "view", "system:kube-scheduler")}
    for path, patch in ((role + "system:basic-user", {"rules": [extra]}), (role + "system:kube-scheduler", {"rules": [], **protect}),
                        (role + "view", {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-edit": None}}}),
                        (binding + "system:basic-user", {"subjects": [{"kind": "User", "name": "extra", "apiGroup": "rbac.authorization.k8s.io"}]}),
                        (binding + "system:discovery", {"subjects": [{"kind": "User", "name": "seer", "apiGroup": "rbac.authorization.k8s.io"}], **protect})):
        assert send(server, "PATCH", path, patch, MERGE)[0] == 200, path
    assert send(server, "DELETE", binding + "system:public-info-viewer")[0] == 200
    swapped = send(server, "GET", binding + "system:monitoring")[1]
    assert send(server, "DELETE", binding + "system:monitoring")[0] == 200
    del swapped["metadata"]["uid"], swapped["metadata"]["resourceVersion"]
    assert send(server, "POST", rbac + "/clusterrolebindings", {**swapped, "roleRef": {**swapped["roleRef"], "name": "view"}})[0] == 201
    server.restart()
    rules = lambda name: send(server, "GET", role + name)[1]["rules"]
    subjects = lambda name: [one["name"] for one in send(server, "GET", binding + name)[1].get("subjects", [])]
    check(extra in rules("system:basic-user") and len(rules("system:basic-user")) > 1, f"missing rules are restored, added ones are kept: {rules('system:basic-user')}")
    check(not rules("system:kube-scheduler"), "a protected role is not changed")
    check(send(server, "GET", role + "view")[1]["metadata"]["labels"] == before["view"]["metadata"]["labels"], "labels are restored")
    check(subjects("system:basic-user") == ["extra", "system:authenticated"], f"{subjects('system:basic-user')}")
    check(subjects("system:discovery") == ["seer"] == subjects("system:public-info-viewer"), f"both bindings have the same subjects: {subjects('system:public-info-viewer')}")
    check(send(server, "GET", binding + "system:monitoring")[1]["roleRef"]["name"] == "system:monitoring", "a binding to another role is recreated")
    check(send(server, "GET", role + "system:discovery")[1]["metadata"]["resourceVersion"] == before["system:discovery"]["metadata"]["resourceVersion"], "complete objects are not written")


def claims_and_devices(server):
    """The status of a ResourceClaim, and the conditions under which a device is bound."""
    root = "/apis/resource.k8s.io/v1"
    claims = root + "/namespaces/default/resourceclaims"
    server.json("POST", claims, {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}}}, want=201)
    device = {"driver": "gpu.example.com", "pool": "p", "device": "d"}
    state = lambda status: server.json("PATCH", claims + "/one/status", {"status": status}, content_type="application/merge-patch+json")
    allocated = lambda **more: {"allocation": {"devices": {"results": [{"request": "r", **device, **more}]}}}
    for status, piece in (
            ({"devices": [device]}, 'status.devices[0]: Invalid value: {"Driver":"gpu.example.com","Pool":"p","Device":"d","ShareID":""}: must be an allocated device in the claim'),
            ({"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}, "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"),
            (allocated(request="x"), 'status.allocation.devices.results[0].request: Invalid value: "x": must be the name of a request in the claim'),
            ({**allocated(), "devices": [device, device]}, 'status.devices[1]: Duplicate value: {"Driver":"gpu.example.com","Pool":"p","Device":"d","ShareID":""}'),
            ({**allocated(), "reservedFor": [{"resource": "pods", "name": name, "uid": "u"} for name in "pq"]}, 'status.reservedFor[1]: Duplicate value: "u"'),
            (allocated(driver=""), "status.allocation.devices.results[0].driver: Required value"),
            (allocated(bindingConditions=["a"]), "status.allocation.devices.results[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"),
            (allocated(bindingConditions=["a"], bindingFailureConditions=["a"]), 'bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions')):
        answer = state(status)
        check(answer.get("code") == 422 and piece in answer["message"], piece, answer.get("message"))
    check("code" not in state(allocated()), "a valid allocation is accepted")
    check("code" not in state({"devices": [{**device, "data": {"a": 1}}], "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}), "then its devices can have a status")
    piece = server.json("POST", root + "/resourceslices", {"metadata": {"name": "s"}, "spec": {
        "driver": "gpu.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d", "bindingFailureConditions": ["a"]}]}})["message"]
    check("spec.devices[0].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions" in piece, "devices of a slice", piece)


def objects_that_are_too_large(server):
    """Larger than etcd accepts, larger than its client sends, larger than the body limit; managedFields are dropped first."""
    named = lambda size: {"metadata": {"name": "large"}, "data": {"a": "x" * size}}
    for size, code, message in ((1_100_000, 422, "Too long: may not be more than 1048576 bytes"), (3 << 20, 413, "Request entity too large: limit is 3145728")):
        answer = server.json("POST", MAPS, named(size), want=code)["message"]
        check(message in answer, message, answer)
    job = lambda size: {"metadata": {"name": "large", "finalizers": ["example.com/" + "f" * 40 + str(n) for n in range(size // 60)]}}
    for size, message in ((1_700_000, "etcdserver: request is too large"), (2_300_000, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (")):
        answer = server.json("POST", MAPS, job(size), want=500)
        check(answer["message"].startswith(message) and "reason" not in answer, message, answer["message"][:300])


def websocket(server, path, **headers):
    """The response to a handshake, and the connection."""
    connection = server.tls.wrap_socket(socket.create_connection(server.host.rsplit(":", 1)), server_hostname="127.0.0.1")
    connection.settimeout(30)
    fields = {"Host": server.host, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
              "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": "https://dashboard.example.com", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.sendall(f"GET {path} HTTP/1.1\r\n{''.join(f'{name}: {value}' + chr(13) + chr(10) for name, value in fields.items() if value is not None)}\r\n".encode())
    stream = connection.makefile("rb")
    head = stream.readline().decode().split(" ", 2)[1:]
    answered = {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, value = line.decode().split(": ", 1)
        answered[name.lower()] = value.strip()
    return int(head[0]), answered, stream, connection


def message(stream):
    """-> (opcode, payload) of a frame."""
    first, length = stream.read(2)
    if length == 126:
        length, = struct.unpack(">H", stream.read(2))
    elif length == 127:
        length, = struct.unpack(">Q", stream.read(8))
    return first & 15, stream.read(length)


def watches_over_websockets(server):
    """Watches over WebSocket, as in browsers: one message per event."""
    maps = "/api/v1/namespaces/default/configmaps"
    server.json("POST", maps, {"metadata": {"name": "small"}}, want=201)
    server.json("POST", maps, {"metadata": {"name": "xlarge"}, "data": {"a": "x" * 70000}}, want=201)
    code, head, stream, connection = websocket(server, maps + "?watch=1&fieldSelector=metadata.namespace%3Ddefault")
    check(code == 101 and head == {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="}, "the handshake", (code, head))
    found = {}
    while "xlarge" not in found:
        opcode, payload = message(stream)
        event = json.loads(payload)
        found[event["object"]["metadata"]["name"]] = (opcode, event["type"], payload.endswith(b"\n"))
    check(found["small"] == found["xlarge"] == (1, "ADDED", True), "events are text messages", found)
    server.json("DELETE", maps + "/small", want=200)
    check(json.loads(message(stream)[1])["type"] == "DELETED", "and continue")
    connection.sendall(b"\x89\x82\x00\x00\x00\x00hi")
    check(message(stream) == (10, b"hi"), "a ping is answered")
    connection.sendall(b"\x88\x82\x00\x00\x00\x00\x03\xe8")
    check(message(stream) == (8, b"\x03\xe8") and stream.read() == b"", "so is a close frame, and the connection ends")
    connection.close()
    code, _, stream, connection = websocket(server, maps + "?watch=1&resourceVersion=1&timeoutSeconds=1", Accept="application/vnd.kubernetes.protobuf;stream=watch")
    check(code == 101, "also with Protobuf", code)
    opcode, payload = message(stream)
    check(opcode == 2 and payload[:1] == b"\n", "in binary messages, without a length prefix", payload[:20].hex())
    connection.close()
    for why, headers, want in (("no origin", {"Origin": None}, 403), ("no key", {"Sec_WebSocket_Key": None}, 400), ("an old version", {"Sec_WebSocket_Version": "8"}, 400),
                               ("a choice of protocols", {"Sec_WebSocket_Protocol": "a, b"}, 400)):
        code, head, _, connection = websocket(server, maps + "?watch=1", **headers)
        check(code == want and (code != 400 or why != "an old version" or head.get("sec-websocket-version") == "13"), why, (code, head))
        connection.close()
    # Browsers have no other way to send a token.
    token = server.json("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "viewer"}}, want=201) and server.json(
        "POST", "/api/v1/namespaces/default/serviceaccounts/viewer/token", {"spec": {}}, want=201)["status"]["token"]
    offered = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    anonymous, server.tls = server.tls, ssl.create_default_context(cafile=server.data_dir / "pki" / "ca.crt")
    server.tls.check_hostname = False
    try:
        code, head, stream, connection = websocket(server, maps + "?watch=1", Sec_WebSocket_Protocol=f"{offered}, v1.example.com")
        check(code == 403 and b"system:serviceaccount:default:viewer" in stream.read(int(head["content-length"])), "the token identifies the user", code)
        connection.close()
        code, *_, connection = websocket(server, maps + "?watch=1", Sec_WebSocket_Protocol=offered)
        check(code == 401, "the client must also offer another protocol", code)
        connection.close()
    finally:
        server.tls = anonymous


def a_restart_brings_the_own_service_back(server):
    service, addresses = "/api/v1/namespaces/default/services/kubernetes", "/apis/networking.k8s.io/v1/ipaddresses"
    made = server.json("GET", service, want=200)
    ip = made["spec"]["clusterIP"]
    check(server.json("GET", f"{addresses}/{ip}", want=200)["spec"]["parentRef"]["name"] == "kubernetes", "its address has an IPAddress")
    server.json("DELETE", service, want=200)
    # The state after an interrupted start.
    server.json("POST", addresses, {"metadata": {"name": ip}, "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}}, want=201)
    server.restart()
    check(server.json("GET", service, want=200)["spec"]["clusterIP"] == ip, "it is restored with its address")
    check(server.json("GET", f"{addresses}/{ip}", want=200)["metadata"]["labels"]["ipaddress.kubernetes.io/managed-by"] == "ipallocator.k8s.io", "and so is the IPAddress")


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, [a_patch_cannot_make_an_object_another_kind, options_of_lists_are_refused_in_order,
                           an_address_has_an_object_while_a_service_holds_it, deleting_a_job_warns_about_its_pods,
                           responses_match_rows, objects_of_other_versions_begin_with_their_kind, pages_have_their_types, groups_are_not_described_in_cbor, debugging_pages_are_objects_on_request, flow_schemas_are_printed_in_their_order, bytes_are_bytes_in_cbor, a_head_has_no_subresource,
                           bookmarks_carry_an_empty_object, a_custom_kind_is_published_as_its_schema_reads, claims_and_devices,
                           objects_that_are_too_large, watches_over_websockets, a_restart_repairs_roles, a_restart_brings_the_own_service_back])
    finish()

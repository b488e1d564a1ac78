#!/usr/bin/env python3
"""Answers that random comparisons with kube-apiserver found to differ once: answers_test.py HOLDFAST"""
import json
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
    check(code == 400, f"what cannot be read comes first: {answer}")
    code, answer = send(server, "GET", f"{MAPS}?fieldSelector=spec.x%3D1&{unfit}")
    check(code == 422, f"then what does not fit together: {answer}")
    code, answer = send(server, "GET", f"{MAPS}?watch=true&continue=x")
    check(code == 422 and "forbidden when continue is provided" in answer["message"], f"{answer}")
    code, body = send(server, "GET", f"{MAPS}?{bad}", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    check(code == 400, f"the form of an answer is looked at when there is one: {body}")
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
    check(send(server, "GET", f"{addresses}/10.0.0.77")[0] == 404, "it goes with the service")
    taken = {"metadata": {"name": "10.0.0.78"}, "spec": {"parentRef": {"resource": "x", "name": "y"}}}
    assert send(server, "POST", addresses, taken)[0] == 201
    body["spec"]["clusterIP"] = "10.0.0.78"
    code, answer = send(server, "POST", services, body)
    check(code == 422 and "already allocated" in answer["message"], f"an address that somebody took by hand: {answer}")


def deleting_a_job_warns_about_its_pods(server):
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}
    assert send(server, "POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": pod}})[0] == 201
    _, headers, _ = server.request("DELETE", f"{jobs}/j?dryRun=All")
    check("child pods are preserved" in (headers.get("Warning") or ""), "a deletion that does not say what to do")
    _, headers, _ = server.request("DELETE", f"{jobs}/j?propagationPolicy=Background")
    check(headers.get("Warning") is None, "one that does")


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, [a_patch_cannot_make_an_object_another_kind, options_of_lists_are_refused_in_order,
                           an_address_has_an_object_while_a_service_holds_it, deleting_a_job_warns_about_its_pods])
    finish()

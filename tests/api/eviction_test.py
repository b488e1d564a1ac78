#!/usr/bin/env python3
"""Evictions and the other ways to reach a pod: eviction_test.py HOLDFAST"""
import json
import sys

from serve import Server, check, finish, run_parts

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
JSON, MERGE = "application/json", "application/merge-patch+json"


def send(server, method, path, body=None, content_type=JSON):
    code, _, data = server.request(method, path, body, content_type=content_type)
    return code, json.loads(data)


def run_pod(server, name, node="somewhere", ready=True):
    pod = {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    if node:
        pod["spec"]["nodeName"] = node
    assert send(server, "POST", PODS, pod)[0] == 201
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"status": {"phase": "Running", "conditions": conditions}}
    assert send(server, "PATCH", f"{PODS}/{name}/status", status, MERGE)[0] == 200


def budget(server, name, **status):
    body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}}
    assert send(server, "POST", BUDGETS, body)[0] == 201
    if status:
        assert send(server, "PATCH", f"{BUDGETS}/{name}/status", {"status": {"observedGeneration": 1, **status}}, MERGE)[0] == 200


def evict(server, name, **options):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **options}
    return send(server, "POST", f"{PODS}/{name}/eviction", body)


def cause(answer):
    return answer["details"]["causes"][0]["message"]


def a_budget_that_nobody_has_looked_at_refuses(server):
    run_pod(server, "early")
    budget(server, "early")
    code, answer = evict(server, "early")
    check(code == 429 and answer["details"]["retryAfterSeconds"] == 10, f"too early: {answer}")
    check(cause(answer) == "The disruption budget early is still being processed by the server.", f"{answer}")


def a_budget_that_is_used_up_refuses_and_says_why(server):
    run_pod(server, "full")
    budget(server, "full", disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1, expectedPods=1)
    code, answer = evict(server, "full")
    check(code == 429 and answer["reason"] == "TooManyRequests", f"{answer}")
    check(cause(answer) == "The disruption budget full needs 1 healthy pods and has 1 currently", f"{answer}")


def an_eviction_is_counted_and_the_pod_is_marked(server):
    run_pod(server, "free")
    budget(server, "free", disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, expectedPods=2)
    check(evict(server, "free", deleteOptions={"dryRun": ["All"]})[0] == 201, "a dry run passes")
    check(send(server, "GET", f"{BUDGETS}/free")[1]["status"]["disruptionsAllowed"] == 1, "and counts nothing")
    check(evict(server, "free")[0] == 201, "the budget allows one")
    status = send(server, "GET", f"{BUDGETS}/free")[1]["status"]
    check(status["disruptionsAllowed"] == 0 and list(status["disruptedPods"]) == ["free"], f"{status}")
    check(status["conditions"][0]["reason"] == "InsufficientPods", f"{status}")
    pod = send(server, "GET", f"{PODS}/free")[1]
    check("deletionTimestamp" in pod["metadata"], "it is being deleted")
    check([c["reason"] for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"] == ["EvictionByEvictionAPI"],
          f"{pod['status']}")


def a_pod_that_is_not_ready_goes_when_enough_others_are(server):
    run_pod(server, "sick", ready=False)
    budget(server, "sick", disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1, expectedPods=2)
    check(evict(server, "sick")[0] == 201, "the budget holds without it")


def two_budgets_are_one_too_many(server):
    run_pod(server, "both")
    budget(server, "both")
    other = {"metadata": {"name": "both-again"}, "spec": {"selector": {"matchLabels": {"app": "both"}}}}
    send(server, "POST", BUDGETS, other)
    code, answer = evict(server, "both")
    check(code == 500 and "more than one PodDisruptionBudget" in answer["message"], f"{answer}")


def what_needs_a_kubelet_is_refused(server):
    run_pod(server, "here", node=None)
    for path in ("exec?command=x", "attach", "portforward"):
        for method in ("GET", "POST"):
            code, answer = send(server, method, f"{PODS}/here/{path}")
            check(code == 400 and answer["message"] == "pod here does not have a host assigned", f"{method} {path}: {answer}")
    code, answer = send(server, "GET", f"{PODS}/here/proxy/x")
    check(code == 400 and answer["message"] == "address not allowed", f"proxy: {answer}")
    check(send(server, "GET", f"{PODS}/none/exec?command=x")[0] == 404, "no such pod")
    code, answer = send(server, "GET", "/api/v1/nodes/n/proxy/x")
    check(code == 404 and answer["message"] == 'nodes "n" not found', f"node: {answer}")


def a_pod_is_bound_the_older_way(server):
    pod = {"metadata": {"name": "old"}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    send(server, "POST", PODS, pod)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "old"}, "target": {"kind": "Node", "name": "n"}}
    check(send(server, "POST", "/api/v1/namespaces/default/bindings", binding)[0] == 201, "bindings are served")
    check(send(server, "GET", f"{PODS}/old")[1]["spec"].get("nodeName") == "n", "and bind")


if __name__ == "__main__":
    with Server(sys.argv[1]) as server:
        run_parts(server, [a_budget_that_nobody_has_looked_at_refuses, a_budget_that_is_used_up_refuses_and_says_why,
                           an_eviction_is_counted_and_the_pod_is_marked, a_pod_that_is_not_ready_goes_when_enough_others_are,
                           two_budgets_are_one_too_many, what_needs_a_kubelet_is_refused, a_pod_is_bound_the_older_way])
    finish()

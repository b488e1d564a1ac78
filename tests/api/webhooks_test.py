#!/usr/bin/env python3
"""webhooks_test.py HOLDFAST: admission webhooks, with a webhook server in this process."""
import base64, json, sys, tempfile, time

from hook_server import HookServer
from serve import Server, check, finish

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1/"


def configmap(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"k": "v"}}


def answer(review, allowed=True, patch=None, **more):
    response = {"uid": review["request"]["uid"], "allowed": allowed, **more}
    if patch is not None:
        response.update(patch=base64.b64encode(json.dumps(patch).encode()).decode(), patchType="JSONPatch")
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


class Story:
    """One server, one hook server; configurations are deleted after each story."""

    def __init__(self, server, hooks):
        self.server, self.hooks, self.made = server, hooks, []

    def client(self, path, **more):
        return {"url": self.hooks.url(path), "caBundle": base64.b64encode(self.hooks.ca).decode(), **more}

    def configure(self, kind, name, *webhooks):
        plural = kind.lower() + "webhookconfigurations"
        defaults = {"admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5}
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration", "metadata": {"name": name},
                "webhooks": [{**defaults, **hook} for hook in webhooks]}
        self.server.json("POST", REGISTRATION + plural, body, want=201)
        self.made.append(REGISTRATION + plural + "/" + name)

    def rule(self, *resources, operations=("CREATE",), groups=("",), versions=("v1",), **more):
        return {"operations": list(operations), "apiGroups": list(groups), "apiVersions": list(versions), "resources": list(resources), **more}

    def hook(self, name, path, *rules, **more):
        return {"name": name, "clientConfig": self.client(path), "rules": list(rules) or [self.rule("configmaps")], **more}

    def done(self):
        for path in self.made:
            self.server.json("DELETE", path, want=200)
        self.made.clear()
        self.hooks.handlers.clear()
        self.hooks.take()
        self.server.request("DELETE", CONFIGMAPS)


def a_webhook_has_no_more_time_than_its_request(s):
    s.hooks.on("/m", answer)
    s.hooks.on("/v", answer)
    s.configure("Mutating", "hurried", s.hook("m.example.com", "/m", timeoutSeconds=30))
    s.configure("Validating", "hurried", s.hook("v.example.com", "/v", timeoutSeconds=30))
    # In seconds, rounded up; on a slow machine some have already passed.
    for asked, least, most in (("", 30, 30), ("?timeout=59s", 29, 30), ("?timeout=19500ms", 10, 20), ("?timeout=0s", 30, 30)):
        s.server.json("POST", CONFIGMAPS + asked, configmap("t" + str(len(asked))), want=201)
        paths = [seen["path"].split("?timeout=") for seen in s.hooks.take()]
        check([path for path, _ in paths] == ["/m", "/v"] and all(least <= int(told.rstrip("s")) <= most for _, told in paths), f"{asked or 'no timeout'} leaves {most} seconds", paths)


def the_review_is_kubernetes_own(s):
    s.hooks.on("/v", answer)
    s.configure("Validating", "reviews", s.hook("v.example.com", "//./v/", s.rule("configmaps", operations=["*"])))  # envtest sends two slashes.
    s.server.json("POST", CONFIGMAPS + "?fieldManager=fm", configmap("a"), want=201)
    seen = s.hooks.take()
    check(len(seen) == 1, "one create is one review", seen and len(seen))
    one = seen[0]
    check(one["path"] == "/v?timeout=5s", "the path is cleaned, the timeout is sent", one["path"])
    check(one["headers"].get("User-Agent") == "kube-apiserver-admission", "user agent", one["headers"])
    request = one["review"]["request"]
    check(list(request) == ["uid", "kind", "resource", "requestKind", "requestResource", "name", "namespace", "operation",
                            "userInfo", "object", "oldObject", "dryRun", "options"], "members and their order", list(request))
    check(request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}, "kind", request["kind"])
    check(request["operation"] == "CREATE" and request["oldObject"] is None and request["dryRun"] is False, "create", request)
    check(request["object"]["metadata"]["managedFields"][0]["manager"] == "fm", "managedFields are shown", request["object"])
    check(request["object"]["kind"] == "ConfigMap" and request["object"]["metadata"].get("uid"), "uid is set", request["object"])
    check(request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "fm"}, "options", request["options"])
    check(request["userInfo"]["username"] == "kubernetes-admin" and "system:masters" in request["userInfo"]["groups"], "user", request["userInfo"])

    s.server.json("PATCH", CONFIGMAPS + "/a", {"data": {"k": "w"}}, content_type="application/merge-patch+json", want=200)
    request = s.hooks.take()[0]["review"]["request"]
    check(request["operation"] == "UPDATE" and request["options"]["kind"] == "UpdateOptions", "a patch is an update", request["options"])
    check(request["oldObject"]["data"] == {"k": "v"} and request["object"]["data"] == {"k": "w"}, "old and new", request)
    check(request["oldObject"]["metadata"].get("managedFields"), "the old one has its managedFields", request["oldObject"])

    s.server.json("PATCH", CONFIGMAPS + "/b?fieldManager=ap&force=true", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"x": "y"}},
                  content_type="application/apply-patch+yaml", want=201)
    request = s.hooks.take()[0]["review"]["request"]
    check(request["operation"] == "CREATE" and request["options"]["kind"] == "CreateOptions" and "force" not in request["options"],
          "an apply that creates is a create", request["options"])

    s.server.json("DELETE", CONFIGMAPS + "/a", {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}, want=200)
    request = s.hooks.take()[0]["review"]["request"]
    check(request["operation"] == "DELETE" and request["object"] is None and request["oldObject"]["data"] == {"k": "w"}, "delete", request)
    check(request["name"] == "a" and request["options"]["propagationPolicy"] == "Background", "its options", request["options"])

    s.server.json("POST", CONFIGMAPS, configmap("c"), want=201)
    s.hooks.take()
    s.server.request("DELETE", CONFIGMAPS)
    requests = [one["review"]["request"] for one in s.hooks.take()]
    check(sorted(request["oldObject"]["metadata"]["name"] for request in requests) == ["b", "c"], "each object of a collection is reviewed", requests)
    check(not any("name" in request for request in requests), "without its name, as in Kubernetes", requests)
    check(s.hooks.connections <= 8, "connections are reused", s.hooks.connections)


def refusals(s):
    statuses = {"plain": {}, "chosen": {"status": {"code": 418, "message": "nope", "reason": "Because"}}}
    s.hooks.on("/v", lambda review: answer(review, False, **statuses[review["request"]["name"]]))
    s.configure("Validating", "refuses", s.hook("v.example.com", "/v"))
    code, _, data = s.server.request("POST", CONFIGMAPS, configmap("plain"))
    status = json.loads(data)
    check(code == 400 and status["message"] == 'admission webhook "v.example.com" denied the request without explanation'
          and "reason" not in status, "without a status", status)
    code, _, data = s.server.request("POST", CONFIGMAPS, configmap("chosen"))
    status = json.loads(data)
    check(code == 418 and status["reason"] == "Because" and status["message"] == 'admission webhook "v.example.com" denied the request: nope',
          "with one", status)


def failures_of_calls(s):
    def configured(path, **more):
        s.done()
        s.configure("Validating", "fails", {**s.hook("v.example.com", path), **more})
    text = 'Internal error occurred: failed calling webhook "v.example.com": '

    def refused(what, want):
        status = s.server.json("POST", CONFIGMAPS, configmap("x"))
        check(status.get("message", "").startswith(text + want), what, status)
        check(status.get("code") == 500 and status["reason"] == "InternalError"
              and status["details"]["causes"][0]["message"] == status["message"].removeprefix("Internal error occurred: "), what + ": its status", status)

    configured("/v")
    s.hooks.on("/v", lambda review: (500, b""))
    refused("HTTP 500", 'failed to call webhook: an error on the server ("unknown") has prevented the request from succeeding')
    s.hooks.on("/v", lambda review: (404, b"x"))
    refused("HTTP 404", "failed to call webhook: the server could not find the requested resource")
    s.hooks.on("/v", lambda review: {**answer(review), "apiVersion": ""})
    refused("no apiVersion", "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=")
    s.hooks.on("/v", lambda review: {**answer(review), "response": {"uid": "x", "allowed": True}})
    refused("another uid", 'received invalid webhook response: expected response.uid="')
    configured("/slow", timeoutSeconds=1)
    s.hooks.on("/slow", lambda review: time.sleep(1.5) or answer(review))
    refused("too slow", f'failed to call webhook: Post "{s.hooks.url("/slow")}?timeout=1s": context deadline exceeded')
    configured("/v", clientConfig={"url": "https://127.0.0.1:1/v"})
    refused("nobody there", 'failed to call webhook: Post "https://127.0.0.1:1/v?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused')
    configured("/v", clientConfig={"url": s.hooks.url("/v")})
    refused("an unknown authority", f'failed to call webhook: Post "{s.hooks.url("/v")}?timeout=5s": tls: failed to verify certificate: x509: '
            "certificate signed by unknown authority")
    configured("/v", clientConfig={"service": {"namespace": "default", "name": "nosuch", "path": "/v"}})
    refused("no service", 'failed to call webhook: Post "https://nosuch.default.svc:443/v?timeout=5s": service "nosuch" not found')
    configured("/v", failurePolicy="Ignore", clientConfig={"url": "https://127.0.0.1:1/v"})
    s.server.json("POST", CONFIGMAPS, configmap("ignored"), want=201)


def mutations(s):
    def first(review):
        return answer(review, patch=[{"op": "add", "path": "/metadata/labels", "value": {"first": "1"}}])

    def second(review):
        labels = review["request"]["object"]["metadata"].get("labels", {})
        return answer(review, patch=[{"op": "add", "path": "/data/saw", "value": ",".join(sorted(labels))}], warnings=['careful "x"'])
    s.hooks.on("/first", first)
    s.hooks.on("/second", second)
    s.configure("Mutating", "b", s.hook("second.example.com", "/second"))
    s.configure("Mutating", "a", s.hook("first.example.com", "/first"))
    code, headers, data = s.server.request("POST", CONFIGMAPS + "?fieldManager=me", configmap("m"))
    made = json.loads(data)
    check(code == 201 and made["data"] == {"k": "v", "saw": "first"} and made["metadata"]["labels"] == {"first": "1"}, "in order of name, one after the other", made)
    check(headers.get_all("Warning") == ['299 - "careful \\"x\\""'], "warnings", headers.get_all("Warning"))
    fields = made["metadata"]["managedFields"]
    check(len(fields) == 1 and fields[0]["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}, "fields added by webhooks are unowned", fields)
    s.done()

    # A webhook adds a container to a Deployment: its missing fields are defaulted.
    s.hooks.on("/d", lambda review: answer(review, patch=[{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "side", "image": "side"}}]))
    s.configure("Mutating", "defaults", s.hook("d.example.com", "/d", s.rule("deployments", groups=["apps"])))
    labels = {"app": "x"}
    made = s.server.json("POST", "/apis/apps/v1/namespaces/default/deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}}, want=201)
    side = made["spec"]["template"]["spec"]["containers"][1]
    check(side.get("imagePullPolicy") == "Always" and side.get("terminationMessagePath") == "/dev/termination-log", "defaults after a mutation", side)
    s.server.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/d")
    s.done()

    # A patch that does not apply, and one for a delete.
    s.hooks.on("/bad", lambda review: answer(review, patch=[{"op": "remove", "path": "/nowhere/x"}]))
    s.configure("Mutating", "bad", s.hook("bad.example.com", "/bad", s.rule("configmaps", operations=["CREATE"])))
    status = s.server.json("POST", CONFIGMAPS, configmap("bad"))
    check(status["code"] == 500 and status["reason"] == "InternalError", "a patch that does not apply", status)
    s.done()
    s.server.json("POST", CONFIGMAPS, configmap("del"), want=201)
    s.hooks.on("/del", lambda review: answer(review, patch=[{"op": "add", "path": "/data/x", "value": "y"}]))
    s.configure("Mutating", "del", s.hook("del.example.com", "/del", s.rule("configmaps", operations=["DELETE"])))
    status = s.server.json("DELETE", CONFIGMAPS + "/del")
    check(status.get("message") == 'Internal error occurred: admission webhook "del.example.com" attempted to modify the object, which is not supported '
          "for this operation", "a delete cannot be changed", status)


def reinvocation(s):
    calls = []

    def early(review):
        calls.append("early")
        return answer(review)

    def late(review):
        calls.append("late")
        if "late" in review["request"]["object"]["data"]:
            return answer(review)
        return answer(review, patch=[{"op": "add", "path": "/data/late", "value": "1"}])
    s.hooks.on("/early", early)
    s.hooks.on("/late", late)
    s.configure("Mutating", "r", s.hook("early.example.com", "/early", reinvocationPolicy="IfNeeded"), s.hook("late.example.com", "/late"))
    s.server.json("POST", CONFIGMAPS, configmap("r"), want=201)
    check(calls == ["early", "late", "early"], "webhooks with reinvocation see later changes", calls)
    s.done()
    calls.clear()
    s.hooks.on("/early", early)
    s.hooks.on("/late", late)
    s.configure("Mutating", "r", s.hook("early.example.com", "/early"), s.hook("late.example.com", "/late"))
    s.server.json("POST", CONFIGMAPS, configmap("r2"), want=201)
    check(calls == ["early", "late"], "not by default", calls)


def match_conditions(s):
    s.hooks.on("/v", lambda review: answer(review, False))
    wanted = {"name": "wanted", "expression": "object.data.wanted == 'yes'"}
    first = {"name": "not-system", "expression": "!request.userInfo.username.startsWith('system:')"}
    s.configure("Validating", "c", s.hook("v.example.com", "/v", matchConditions=[first, wanted]))
    status = s.server.json("POST", CONFIGMAPS, configmap("asked", {"wanted": "yes"}))
    check(status.get("message") == 'admission webhook "v.example.com" denied the request without explanation', "all conditions hold: it is called", status)
    s.hooks.take()
    s.server.json("POST", CONFIGMAPS, configmap("not-asked", {"wanted": "no"}), want=201)
    check(s.hooks.take() == [], "one condition is false: it is not called")
    code, _, data = s.server.request("POST", CONFIGMAPS, configmap("error"))
    status = json.loads(data)
    check(code == 403 and status.get("message") == "configmaps \"error\" is forbidden: expression 'object.data.wanted == 'yes'' resulted in error: no such key: wanted",
          "an error rejects under failurePolicy Fail", status)
    s.done()
    s.hooks.on("/v", lambda review: answer(review, False))
    s.configure("Validating", "c", s.hook("v.example.com", "/v", matchConditions=[wanted], failurePolicy="Ignore"))
    s.server.json("POST", CONFIGMAPS, configmap("ignored"), want=201)
    check(s.hooks.take() == [], "under Ignore the request passes without a call")
    bad = {"name": "bad", "expression": "object.data.wanted +"}
    status = s.server.json("POST", REGISTRATION + "validatingwebhookconfigurations", {
        "metadata": {"name": "bad"}, "webhooks": [{**s.hook("bad.example.com", "/v", matchConditions=[bad]), "admissionReviewVersions": ["v1"], "sideEffects": "None"}]})
    check(status.get("code") == 422 and "webhooks[0].matchConditions[0].expression: Invalid value" in status["message"] and "Syntax error: mismatched input '<EOF>'" in status["message"],
          "a condition that does not compile is rejected", status)


def reinvocation_across_policies(s):
    """Policies run before webhooks, and again after changes by webhooks."""
    def register(kind, name, spec):
        plural = "mutatingadmissionpolic" + ("ybindings" if kind.endswith("Binding") else "ies")
        s.server.json("POST", REGISTRATION + plural, {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}, want=201)
        s.made.append(REGISTRATION + plural + "/" + name)

    def policy(reinvocation):
        match = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]}
        expression = "Object{metadata: Object.metadata{annotations: {'keys': string(size(object.data))}}}"
        register("MutatingAdmissionPolicy", "counts", {"matchConstraints": match, "reinvocationPolicy": reinvocation, "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]})
        register("MutatingAdmissionPolicyBinding", "counts", {"policyName": "counts"})

    def adds(review):
        seen.append(review["request"]["object"]["metadata"]["annotations"]["keys"])
        return answer(review, patch=[{"op": "add", "path": "/data/added", "value": "1"}] if "added" not in review["request"]["object"]["data"] else None)
    for policy_again, hook_again, keys, calls in (("IfNeeded", "IfNeeded", "2", ["1", "2"]), ("IfNeeded", "Never", "2", ["1"]), ("Never", "Never", "1", ["1"])):
        seen = []
        s.hooks.on("/adds", adds)
        policy(policy_again)
        s.configure("Mutating", "adds", s.hook("adds.example.com", "/adds", reinvocationPolicy=hook_again))
        made = s.server.json("POST", CONFIGMAPS, configmap("again"), want=201)
        check(made["metadata"]["annotations"] == {"keys": keys}, f"policy {policy_again}, webhook {hook_again}: the final result of the policy", made["metadata"]["annotations"])
        check(seen == calls, f"policy {policy_again}, webhook {hook_again}: what the webhook saw", seen)
        s.done()


def who_is_asked(s):
    def count(what, want, method, path, body=None, **more):
        s.hooks.take()
        s.server.request(method, path, body, **more)
        seen = len(s.hooks.take())
        check(seen == want, what, seen)

    s.hooks.on("/v", answer)
    s.configure("Validating", "selects", s.hook("v.example.com", "/v", s.rule("configmaps", operations=["CREATE", "UPDATE"]),
                                               objectSelector={"matchLabels": {"watch": "me"}}))
    count("no label", 0, "POST", CONFIGMAPS, configmap("s1"))
    count("the new object has it", 1, "PUT", CONFIGMAPS + "/s1", configmap("s1", labels={"watch": "me"}))
    count("the old object has it", 1, "PUT", CONFIGMAPS + "/s1", configmap("s1"))
    count("neither", 0, "PUT", CONFIGMAPS + "/s1", configmap("s1", data={"z": "z"}))
    s.done()

    s.server.json("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "picked", "labels": {"hooks": "on"}}}, want=201)
    s.hooks.on("/v", answer)
    s.configure("Validating", "selects", s.hook("v.example.com", "/v", s.rule("configmaps", "namespaces", "persistentvolumes"),
                                               namespaceSelector={"matchExpressions": [{"key": "hooks", "operator": "In", "values": ["on"]}]}))
    count("a namespace that is not selected", 0, "POST", CONFIGMAPS, configmap("n1"))
    count("one that is", 1, "POST", "/api/v1/namespaces/picked/configmaps", configmap("n1"))
    count("a namespace is selected by its own labels", 1, "POST", "/api/v1/namespaces",
          {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own", "labels": {"hooks": "on"}}})
    count("cluster-scoped objects are never exempted", 1, "POST", "/api/v1/persistentvolumes?dryRun=All", {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}})
    s.done()

    # The same object in another version: reviewed in the version of the rule, or not at all.
    s.hooks.on("/v", answer)
    autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    autoscaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
                  "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                           "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}]}}
    rule = s.rule("horizontalpodautoscalers", groups=["autoscaling"], versions=["v1"])
    s.configure("Validating", "exact", s.hook("v.example.com", "/v", rule, matchPolicy="Exact"))
    count("Exact", 0, "POST", autoscalers + "?dryRun=All", autoscaler)
    s.configure("Validating", "equivalent", s.hook("v.example.com", "/v", rule))
    s.server.json("POST", autoscalers + "?dryRun=All", autoscaler, want=201)
    seen = s.hooks.take()
    request = seen[0]["review"]["request"] if seen else {}
    check(request.get("kind", {}).get("version") == "v1" and request.get("requestKind", {}).get("version") == "v2"
          and request.get("object", {}).get("spec", {}).get("targetCPUUtilizationPercentage") == 70, "Equivalent converts", request)
    check(request.get("dryRun") is True and request["options"].get("dryRun") == ["All"], "a dry run is indicated", request)
    s.done()

    s.hooks.on("/v", answer)
    s.configure("Validating", "effects", s.hook("v.example.com", "/v", sideEffects="NoneOnDryRun"))
    count("a dry run without effects", 1, "POST", CONFIGMAPS + "?dryRun=All", configmap("dry"))
    s.done()

    # Subresources by name only; Scale as a Scale.
    s.hooks.on("/v", answer)
    s.configure("Validating", "subresources", s.hook("v.example.com", "/v", s.rule("deployments/scale", "deployments/status", groups=["apps"], operations=["UPDATE"])))
    labels = {"app": "x"}
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    count("the main resource is another", 0, "POST", deployments, {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "sub"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}})
    s.server.json("PATCH", deployments + "/sub/scale", {"spec": {"replicas": 2}}, content_type="application/merge-patch+json", want=200)
    seen = s.hooks.take()
    request = seen[0]["review"]["request"] if seen else {}
    check(len(seen) == 1 and request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"} and request["subResource"] == "scale"
          and request["object"]["spec"]["replicas"] == 2 and request["oldObject"]["spec"]["replicas"] == 1, "scale", request)
    count("status", 1, "PATCH", deployments + "/sub/status", {"status": {"observedGeneration": 1}}, content_type="application/merge-patch+json")
    s.server.request("DELETE", deployments + "/sub")
    s.done()

    # Never for webhook configurations.
    s.hooks.on("/v", lambda review: answer(review, False))
    s.configure("Validating", "all", s.hook("v.example.com", "/v", s.rule("*/*", operations=["*"], groups=["*"], versions=["*"])))
    count("webhooks are never called for webhook configurations", 0, "DELETE", REGISTRATION + "validatingwebhookconfigurations/nosuch")


def by_service(s):
    s.server.json("POST", "/api/v1/namespaces/default/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}, want=201)
    s.hooks.on("/v", answer)
    client = {"service": {"namespace": "default", "name": "hook", "path": "/v", "port": s.hooks.port}, "caBundle": base64.b64encode(s.hooks.ca).decode()}
    s.configure("Validating", "service", {**s.hook("v.example.com", "/v"), "clientConfig": client})
    s.server.json("POST", CONFIGMAPS, configmap("svc"), want=201)
    seen = s.hooks.take()
    check(len(seen) == 1 and seen[0]["headers"]["Host"] == f"hook.default.svc:{s.hooks.port}", "a service by its name", seen and seen[0]["headers"])


def access_and_token_reviews(s):
    """Reviews are created like any other object: webhooks are called, and may change them."""
    access = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    question = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "nobody", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}}
    asked = {"/apis/authentication.k8s.io/v1/tokenreviews": {"spec": {"token": "x"}}, "/apis/authentication.k8s.io/v1/selfsubjectreviews": {},
             "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": {"spec": {"namespace": "default"}},
             "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {"spec": question["spec"] | {"user": None}},
             "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews": question, access: question}
    rule = s.rule("*", groups=("authentication.k8s.io", "authorization.k8s.io"))
    s.hooks.on("/m", answer)
    s.hooks.on("/v", answer)
    s.configure("Mutating", "reviews", s.hook("m.example.com", "/m", rule))
    s.configure("Validating", "reviews", s.hook("v.example.com", "/v", rule))
    for path, body in asked.items():
        code, _, data = s.server.request("POST", path, {"spec": body.get("spec", {})} if body else {})
        seen = [(one["path"].split("?")[0], one["review"]["request"]["operation"], one["review"]["request"]["resource"]["resource"]) for one in s.hooks.take()]
        check(code == 201 and seen == [(hook, "CREATE", path.split("/")[-1]) for hook in ("/m", "/v")], f"{path.split('/')[-1]} is shown", (code, data[:200], seen))
    code, _, _ = s.server.request("POST", access, {"spec": {}})
    check(code == 422 and [one["path"].split("?")[0] for one in s.hooks.take()] == ["/m"], "an invalid review is not validated by webhooks", code)
    patch = [{"op": "replace", "path": "/spec/groups", "value": ["system:masters"]}, {"op": "replace", "path": "/spec/user", "value": "root"}]
    s.hooks.on("/m", lambda review: answer(review, patch=patch))
    changed = s.server.json("POST", access, question | {"spec": question["spec"] | {"groups": ["a"]}}, want=201)
    check(changed["status"]["allowed"] is True and changed["spec"]["user"] == "root", "the review is answered as changed by the webhook", changed)
    s.hooks.on("/v", lambda review: answer(review, allowed=False, status={"message": "no"}))
    refused = s.server.json("POST", access, question, want=400)
    check(refused["message"].endswith("denied the request: no"), "a webhook may reject it", refused)


def old_reviews(s):
    s.hooks.on("/old", lambda review: {"response": {"allowed": review["apiVersion"] == "admission.k8s.io/v1beta1"}})
    s.configure("Validating", "old", s.hook("old.example.com", "/old", admissionReviewVersions=["v1beta1", "v1"]))
    s.server.json("POST", CONFIGMAPS, configmap("old"), want=201)


def custom_resources(s):
    s.server.json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.hooks.example.com"},
        "spec": {"group": "hooks.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                     "spec": {"type": "object", "properties": {"a": {"type": "string"}, "size": {"type": "integer"},
                              "part": {"type": "object", "properties": {"kind": {"type": "string", "default": "round"}}}}}}}}}]}}, want=201)
    s.hooks.on("/w", lambda review: answer(review, patch=[{"op": "add", "path": "/spec/part", "value": {"unknown": 1}}]))
    s.configure("Mutating", "w", s.hook("w.example.com", "/w", s.rule("widgets", groups=["hooks.example.com"])))
    made = s.server.json("POST", "/apis/hooks.example.com/v1/namespaces/default/widgets",
                         {"apiVersion": "hooks.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": "b"}}, want=201)
    check(made["spec"] == {"a": "b", "part": {"kind": "round"}}, "defaulted and pruned after the patch", made)
    s.server.request("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.hooks.example.com")


def main():
    with tempfile.TemporaryDirectory() as folder, Server(sys.argv[1]) as server:
        hooks = HookServer(folder)
        story = Story(server, hooks)
        only = sys.argv[2:]
        for told in (a_webhook_has_no_more_time_than_its_request, the_review_is_kubernetes_own, refusals, failures_of_calls, mutations, reinvocation, match_conditions, reinvocation_across_policies, who_is_asked, by_service, access_and_token_reviews, old_reviews,
                     custom_resources):
            if only and told.__name__ not in only:
                continue
            told(story)
            story.done()
        hooks.stop()
    finish()


main()

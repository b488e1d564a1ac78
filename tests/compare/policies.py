#!/usr/bin/env python3
"""Compares random admission policies on Holdfast and on a real kube-apiserver: whether they are accepted, and their effects.

  policies.py --ours URL --theirs URL --token T [--rounds N] [--seed N] [--show N] [--status]

`run.sh --policies HOLDFAST` starts both. Each round creates policies with bindings, params and custom resources, the same on
both servers, and sends both the same requests, some as a user with fewer permissions. Code, body (the Status or the object)
and warnings of every response are compared: rejections of policies, of CRDs with rules and of device classes, denials,
messages, mutated objects, the authorizer in expressions. With --status, the type checking in the status of policies is
compared as well; that needs kube-controller-manager. Each policy applies to objects with its own label, because the order of
policies in kube-apiserver is unspecified.
"""
import argparse
import json
import random
import sys
import time

from cel_expressions import Maker
from cel_schemas import SchemaMaker
from compare import Server, comparable, differences

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "policies"
KINDS = {  # apiVersion, path, resources that a rule may name
    "ConfigMap": ("v1", f"/api/v1/namespaces/{NAMESPACE}/configmaps", [["", "v1", "configmaps"]]),
    "Deployment": ("apps/v1", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", [["apps", "v1", "deployments"], ["apps", "v1", "deployments/scale"], ["apps", "v1", "deployments/*"]]),
    "Widget": ("compare.example.com/v1", f"/apis/compare.example.com/v1/namespaces/{NAMESPACE}/widgets", [["compare.example.com", "v1", "widgets"], ["compare.example.com", "*", "*"]]),
}
ROLE = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "policies-writer"}, "rules": [
    {"apiGroups": ["", "apps", "compare.example.com"], "resources": ["configmaps", "deployments", "deployments/scale", "widgets"], "verbs": ["*"]},
    {"apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": ["one"], "verbs": ["get", "update"]}, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}
ROLE_BINDING = {"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "policies-writer"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "policies-writer"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]}
WIDGET_SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
    "size": {"type": "integer", "default": 3}, "mode": {"type": "string"}, "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
              "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}},
    "limits": {"type": "object", "additionalProperties": {"type": "integer"}}, "port": {"x-kubernetes-int-or-string": True}, "at": {"type": "string", "format": "date-time"},
    "fixed": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}
CHECK_SUBJECTS = ["authorizer", "authorizer.serviceAccount('kube-system', 'replicaset-controller')", "authorizer.serviceAccount('policies', 'nobody')"]
CHECKS = ["group('').resource('configmaps').namespace('policies').check('create')", "group('apps').resource('daemonsets').name('one').check('get')", "group('apps').resource('daemonsets').check('get')",
          "path('/metrics').check('get')", "path('/nowhere').check('post')", "group('apps').resource('deployments').subresource('scale').check('update')", "group('').resource('secrets').check('list')",
          "group('').resource('pods').fieldSelector('spec.nodeName=a').check('list')", "group('').resource('pods').labelSelector('a in (b').check('list')", "group('').resource('').check('get')"]


def leaves(kind, rng, spec):
    """The building blocks for expressions of a policy for this kind; `spec` is the policy so far."""
    check = rng.choice(CHECK_SUBJECTS) + "." + rng.choice(CHECKS) if rng.random() < 0.9 else "authorizer.requestResource.check('delete')"
    made = {
        "dyn": ["object", "oldObject", "request", "params", "namespaceObject", "object.metadata", "object.nope", "request.object", "variables.v", "params.data", "request.options"],
        "string": ["object.metadata.name", "request.operation", "request.userInfo.username", "namespaceObject.metadata.name", "request.resource.resource", "request.namespace", "variables.text", "params.data.s",
                   "object.apiVersion", "request.requestKind.kind", "oldObject.metadata.name", check + ".reason()", "(request.uid == '' ? 'none' : 'some')", "request.subResource"],
        "int": ["size(object.metadata.labels)", "int(params.data.n)", "variables.number", "size(request.userInfo.groups)", "object.metadata.generation"],
        "bool": ["has(oldObject.metadata)", "oldObject == null", "object != null", "request.dryRun", "has(params.data)", "params == null", "variables.flag", check + ".allowed()", check + ".errored()",
                 "has(object.metadata.labels)", "request.operation == 'CREATE'", "'system:masters' in request.userInfo.groups"],
        "map": ["object.metadata.labels", "params.data", "namespaceObject.metadata.labels"], "list": ["request.userInfo.groups", "object.metadata.finalizers"],
        "optional": ["object.?metadata.?labels", "params.?data.?s", "oldObject.?metadata", "object.metadata.?annotations"],
    }
    own = {"ConfigMap": {"map": ["object.data"], "string": ["object.data.s", "object.data['n']"], "bool": ["has(object.data.s)", "object.data == oldObject.data"], "int": ["int(object.data.n)"]},
           "Deployment": {"int": ["object.spec.replicas", "size(object.spec.template.spec.containers)"], "list": ["object.spec.template.spec.containers", "object.spec.template.spec.containers.map(c, c.image)"],
                          "string": ["object.spec.template.spec.containers[0].image", "object.spec.strategy.type"], "bool": ["object.spec.replicas <= 2", "has(object.spec.paused)", "object.spec.nope"]},
           "Widget": {"int": ["object.spec.size", "object.spec.limits.a", "size(object.spec.parts)"], "list": ["object.spec.names", "object.spec.parts", "object.spec.parts.map(p, p.name)"],
                      "string": ["object.spec.mode"], "bool": ["has(object.spec.size)", "object.spec.size == oldObject.spec.size", "object.spec.port == 80"], "map": ["object.spec.limits", "object.spec.any"],
                      "time": ["timestamp(object.spec.at)"]}}[kind]
    declared = [f"variables.{variable['name']}" for variable in spec.get("variables", [])]
    absent = ("variables.",) if "paramKind" in spec else ("variables.", "params")
    def usable(text):
        return rng.random() < 0.01 or text in declared or not any(word in text for word in absent)
    return {name: [text for text in made.get(name, []) + own.get(name, []) if usable(text)] for name in sorted({*made, *own})}


DEVICE_LEAVES = {
    "string": ["device.driver", "device.attributes['d'].name"], "dyn": ["device", "device.attributes['d'].x", "device.attributes['d']['y']", "device.capacity['d'].memory", "device.attributes['d'].x.y"],
    "bool": ["device.allowMultipleAllocations", "device.driver == 'x'", "device.attributes['d'].flag", "'d' in device.attributes", "has(device.attributes['d'].x)", "device.attributes.exists(k, k.contains('a'))"],
    "quantity": ["device.capacity['d'].memory", "device.capacity['d']['memory']"], "map": ["device.attributes", "device.capacity", "device.attributes['d']", "device.capacity['d']"],
    "semver": ["device.attributes['d'].version"], "int": ["device.attributes['d'].count", "size(device.driver)"], "optional": ["device.attributes['d'].?x", "device.?driver", "device.attributes[?'d']"]}
DEVICE_TEMPLATES = ["{bool}", "{bool}", "cel.bind(v, {any}, {bool/v})", "cel.bind(v, device.attributes['d'], v.a == {string} && {bool/v})", "{any}",
                    "device.attributes.all(k, device.attributes[k].all(l, {bool/k,l}))", "device.attributes.exists(k, x, {bool/k,x})", "device.attributes['d'].x.matches({string})"]


class Generator:
    def __init__(self, seed, number):
        self.rng = random.Random(f"{seed}/{number}")

    def chance(self, share):
        return self.rng.random() < share

    def expression(self, kind, wanted, spec):
        rng = self.rng
        return Maker(rng, False, leaves(kind, rng, spec), plain=True).make(wanted, rng.choice([0, 1, 1, 1, 2]))

    def common(self, number, kind):
        """The common part of both kinds of policies."""
        rng = self.rng
        group, version, resource = rng.choice(KINDS[kind][2])
        spec = {"matchConstraints": {"objectSelector": {"matchLabels": {"policy": f"p{number}"}},
                                     "resourceRules": [{"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": rng.choice([["*"], ["CREATE", "UPDATE"], ["CREATE", "UPDATE", "DELETE"]])}]}}
        if resource.endswith("/scale"):
            del spec["matchConstraints"]["objectSelector"]  # A Scale has no labels.
            spec["matchConditions"] = [{"name": "mine", "expression": f"request.name == 'p{number}'"}]
        if self.chance(0.7):
            spec["failurePolicy"] = rng.choice(["Fail", "Ignore"])
        if self.chance(0.4):
            spec["paramKind"] = rng.choice([{"apiVersion": "v1", "kind": "ConfigMap"}] * 3 + [{"apiVersion": "compare.example.com/v1", "kind": "Widget"}, {"apiVersion": "v1", "kind": "Nothing"}])
        if self.chance(0.25):
            spec.setdefault("matchConditions", []).append({"name": "c", "expression": self.expression(kind, "bool", spec)})
        for name, wanted in rng.sample([("text", "string"), ("number", "int"), ("flag", "bool"), ("v", "any")], rng.randrange(3)):
            spec.setdefault("variables", []).append({"name": name, "expression": self.expression(kind, wanted, spec)})
        return spec

    def validating(self, number, kind):
        spec, rng = self.common(number, kind), self.rng
        spec["validations"] = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            validation = {"expression": self.expression(kind, "bool", spec)}
            if self.chance(0.3):
                validation["message"] = rng.choice(["it is wrong", "  spaces  ", "wrong äöü", "x" * 200, "two\nlines"])
            if self.chance(0.4):
                validation["messageExpression"] = self.expression(kind, "string", spec)
            if self.chance(0.3):
                validation["reason"] = rng.choice(["Forbidden", "Invalid", "RequestEntityTooLarge", "Forbidden", "Invalid", "Unauthorized"])
            spec["validations"].append(validation)
        if self.chance(0.2):
            spec["auditAnnotations"] = [{"key": "note", "valueExpression": self.expression(kind, "string", spec)}]
        return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": f"p{number}"}, "spec": spec}

    CONFIGURATIONS = ["Object{metadata: Object.metadata{labels: Object.metadata.labels{extra: {string}}}}", "Object{metadata: Object.metadata{annotations: {'a': {string}, 'b': 'c'}}}",
                      "Object{metadata: Object.metadata{finalizers: [{string}]}}", "has(object.metadata.labels.extra) ? Object{} : Object{metadata: Object.metadata{labels: {'extra': 'x'}}}", "{object}"]
    OWN_CONFIGURATIONS = {
        "ConfigMap": ["Object{data: {'added': {string}}}", "Object{data: Object.data{s: {string}}}", "Object{immutable: {bool}}", "Object{data: {map}}"],
        "Deployment": ["Object{spec: Object.spec{replicas: {int}}}", "Object{spec: Object.spec{paused: {bool}}}", "Object{spec: Object.spec{wrong: 1}}",
                       "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'c0', image: {string}}]}}}}",
                       "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, tty: {bool}})}}}}",
                       "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"],
        "Widget": ["Object{spec: Object.spec{size: {int}}}", "Object{spec: Object.spec{names: ['z', {string}]}}", "Object{spec: Object.spec{parts: [Object.spec.parts{name: 'a', count: {int}}, Object.spec.parts{name: {string}}]}}",
                   "Object{spec: Object.spec{limits: {'a': {int}}}}", "Object{spec: Object.spec{mode: {string}, port: {any}}}", "Object{spec: Object.spec{any: {map}}}", "Object{spec: Object.spec{fixed: Object.spec.fixed{a: 'x'}}}"]}
    PATCHES = ["[JSONPatch{op: 'add', path: '/metadata/labels/extra', value: {string}}]", "[JSONPatch{op: 'test', path: '/metadata/name', value: {string}}, JSONPatch{op: 'remove', path: '/metadata/labels'}]",
               "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {map}}]", "[JSONPatch{op: 'remove', path: {string}}]", "[JSONPatch{op: 'replace', path: '/spec/replicas', value: {int}}]",
               "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey({string}), value: {string}}]", "[JSONPatch{op: 'copy', from: '/metadata/name', path: '/metadata/labels/copied'}]",
               "[JSONPatch{op: 'add', path: '/spec', value: Object.spec{size: {int}}}]", "{bool} ? [JSONPatch{op: 'add', path: '/metadata/labels/x', value: 'y'}] : []", "[{patch}, {patch}]",
               "[JSONPatch{op: 'add', path: '/spec/names/-', value: {string}}]", "[JSONPatch{op: 'move', from: '/data/s', path: '/data/t'}]"]

    def mutating(self, number, kind):
        spec, rng = self.common(number, kind), self.rng
        spec["reinvocationPolicy"] = rng.choice(["Never", "IfNeeded"])
        spec["mutations"] = []
        maker = Maker(rng, True, leaves(kind, rng, spec), plain=True)
        for _ in range(rng.choice([1, 1, 2])):
            if self.chance(0.5):
                template = rng.choice(self.CONFIGURATIONS + self.OWN_CONFIGURATIONS[kind] * 2)
                spec["mutations"].append({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": maker.fill(template, rng.choice([0, 0, 1, 2]))}})
            else:
                spec["mutations"].append({"patchType": "JSONPatch", "jsonPatch": {"expression": maker.fill(rng.choice(self.PATCHES), rng.choice([0, 0, 1, 2]))}})
        return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": f"p{number}"}, "spec": spec}

    def binding(self, policy):
        rng, validating = self.rng, policy["kind"] == "ValidatingAdmissionPolicy"
        spec = {"policyName": policy["metadata"]["name"]}
        if validating:
            spec["validationActions"] = rng.choice([["Deny"], ["Deny"], ["Warn"], ["Deny", "Audit"], ["Warn", "Audit"], ["Audit"]])
        if "paramKind" in policy["spec"] and self.chance(0.9):
            spec["paramRef"] = {"parameterNotFoundAction": rng.choice(["Allow", "Deny"]),
                                **rng.choice([{"name": "param-0"}, {"name": "param-1", "namespace": NAMESPACE}, {"name": "no-such"}, {"selector": {"matchLabels": {"param": "yes"}}}])}
        if self.chance(0.2):
            spec["matchResources"] = rng.choice([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}, {"namespaceSelector": {"matchLabels": {"no": "such"}}},
                                                 {"objectSelector": {"matchExpressions": [{"key": "extra", "operator": "DoesNotExist"}]}}])
        return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": policy["kind"] + "Binding", "metadata": {"name": policy["metadata"]["name"]}, "spec": spec}

    def object(self, kind, number):
        rng = self.rng
        metadata = {"name": f"p{number}", "labels": {"policy": f"p{number}", **({"extra": "1"} if self.chance(0.2) else {})}}
        made = {"apiVersion": KINDS[kind][0], "kind": kind, "metadata": metadata}
        if kind == "ConfigMap":
            if self.chance(0.85):
                made["data"] = {key: rng.choice(["", "a", "12", "-1", "long " * 9, "äöü"]) for key in rng.sample(["s", "n", "t", "a/b"], rng.randrange(4))}
                made["data"] = {key.replace("/", "."): value for key, value in made["data"].items()}
        elif kind == "Deployment":
            containers = [{"name": f"c{i}", "image": rng.choice(["registry.example.com/a:1", "b", "c:latest"])} for i in range(rng.randrange(1, 4))]
            made["spec"] = {"replicas": rng.randrange(5), "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}}
        else:
            choices = {"size": rng.randrange(-2, 9), "mode": rng.choice(["", "fast", "slow"]), "names": rng.sample(["a", "b", "c"], rng.randrange(4)), "parts": [{"name": n, "count": i} for i, n in enumerate("ab"[:rng.randrange(3)])],
                       "limits": {k: rng.randrange(5) for k in "ab"[:rng.randrange(3)]}, "port": rng.choice([80, "http"]), "at": "2024-01-02T03:04:05Z", "any": {"x": [1, {"y": "z"}]}, "fixed": {"a": "b"}}
            made["spec"] = {key: choices[key] for key in rng.sample(list(choices), rng.randrange(len(choices) + 1))}
        return made

    def device_class(self, name):
        maker = Maker(self.rng, False, DEVICE_LEAVES, plain=True)
        selectors = [{"cel": {"expression": maker.fill(self.rng.choice(DEVICE_TEMPLATES), self.rng.choice([0, 1, 2]))}} for _ in range(3)]
        return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}

    def requests(self, kind, number):
        """The requests for the object of one policy."""
        rng, path = self.rng, KINDS[kind][1]
        as_user = {"Impersonate-User": "alice"} if self.chance(0.4) else {}
        headers = {"Content-Type": "application/json", **as_user}
        first = self.object(kind, number)
        yield {"method": "POST", "path": path + rng.choice(["", "", "?dryRun=All"]), "body": first, "headers": headers}
        yield {"method": "POST", "path": path, "body": first, "headers": headers}
        yield {"method": "PUT", "path": f"{path}/p{number}", "body": self.object(kind, number), "headers": headers}
        yield {"method": "PATCH", "path": f"{path}/p{number}?fieldManager=x&force=true", "body": self.object(kind, number), "headers": {**headers, "Content-Type": "application/apply-patch+yaml"}}
        yield {"method": "PATCH", "path": f"{path}/p{number}", "body": {"metadata": {"annotations": {"by": "merge"}}}, "headers": {**headers, "Content-Type": "application/merge-patch+json"}}
        if kind == "Deployment":
            yield {"method": "PATCH", "path": f"{path}/p{number}/scale", "body": {"spec": {"replicas": rng.randrange(6)}}, "headers": {**headers, "Content-Type": "application/merge-patch+json"}}
        yield {"method": "DELETE", "path": f"{path}/p{number}", "headers": headers}


def definition(group, plural, kind, schema):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": kind + "List"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


class Comparison:
    def __init__(self, options):
        self.servers = (Server(options.ours, options.token), Server(options.theirs, options.token))
        self.options, self.sent, self.differing = options, 0, 0

    def both(self, request, about=""):
        """Sends a request to both servers and compares the responses. Returns whether both accepted it."""
        request.setdefault("headers", {"Content-Type": "application/json"})
        answers = [server.send(request) for server in self.servers]
        self.sent += 1
        found = list(differences(*(comparable(answer) for answer in answers)))
        if found:
            self.differing += 1
            if self.differing <= self.options.show:
                print("-" * 100, request["method"], request["path"], json.dumps(request.get("body"), ensure_ascii=False)[:3000], about[:3000], sep="\n")
                for path, ours, theirs in found[:8]:
                    print(f"  {path}\n    holdfast       {json.dumps(ours, ensure_ascii=False)[:1500]}\n    kube-apiserver {json.dumps(theirs, ensure_ascii=False)[:1500]}")
                sys.stdout.flush()
        return all(answer["code"] < 300 for answer in answers)

    def quietly(self, method, path, body=None):
        for server in self.servers:
            server.send({"method": method, "path": path, "body": body, "headers": {"Content-Type": "application/json"}})

    def wait(self, request, good, seconds=30):
        end = time.monotonic() + seconds
        for server in self.servers:
            while not good(server.send(dict(request))):
                if time.monotonic() > end:
                    return False
                time.sleep(0.2)
        return True

    def set_up(self):
        self.quietly("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": {"team": "one"}}})
        self.quietly("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", ROLE)
        self.quietly("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", ROLE_BINDING)
        self.quietly("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("compare.example.com", "widgets", "Widget", WIDGET_SCHEMA))
        assert self.wait({"method": "GET", "path": KINDS["Widget"][1]}, lambda answer: answer["code"] == 200), "widgets are not served"
        for i in range(3):
            metadata = {"name": f"param-{i}", **({"labels": {"param": "yes"}} if i == 2 else {})}
            self.quietly("POST", KINDS["ConfigMap"][1], {"metadata": metadata, "data": {"s": f"text {i}", "n": str(i)}})
            self.quietly("POST", KINDS["Widget"][1], {"apiVersion": KINDS["Widget"][0], "kind": "Widget", "metadata": metadata, "spec": {"size": i}})

    def settle(self, number):
        """Waits until new policies take effect on both servers, by creating one of each kind and testing it."""
        name = f"settled-{number}"
        constraints = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}], "objectSelector": {"matchLabels": {"settled": name}}}
        for kind, plural, own in (("ValidatingAdmissionPolicy", "validatingadmissionpolicies", {"validations": [{"expression": "!has(object.metadata.labels.mutated)", "message": "settled"}]}),
                                  ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", {"reinvocationPolicy": "Never", "mutations": [
                                      {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/metadata/labels/mutated', value: 'yes'}]"}}]})):
            self.quietly("POST", f"{REGISTRATION}/{plural}", {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, **own}})
            actions = {"validationActions": ["Deny"]} if kind.startswith("Validating") else {}
            self.quietly("POST", f"{REGISTRATION}/{plural[:-3]}ybindings", {"metadata": {"name": name}, "spec": {"policyName": name, **actions}})
        body = {"metadata": {"name": "settled", "labels": {"settled": name}}}
        asked = {"method": "POST", "path": KINDS["ConfigMap"][1] + "?dryRun=All", "body": body, "headers": {"Content-Type": "application/json"}}
        if not self.wait(asked, lambda answer: answer["code"] == 422):
            print("policies.py: policies do not take effect")
        time.sleep(0.5)

    def round(self, number):
        make = Generator(self.options.seed, number)
        policies = []
        for i in range(100):
            if len(policies) == 24:
                break
            kind, validating = make.rng.choice(list(KINDS)), make.chance(0.55)
            policy = make.validating(f"{number}-{i}", kind) if validating else make.mutating(f"{number}-{i}", kind)
            plural = "validatingadmissionpolicies" if validating else "mutatingadmissionpolicies"
            if self.both({"method": "POST", "path": f"{REGISTRATION}/{plural}", "body": policy}):
                binding = make.binding(policy)
                self.both({"method": "POST", "path": f"{REGISTRATION}/{plural[:-3]}ybindings", "body": binding})
                policies.append((plural, kind, policy, binding, f"{number}-{i}"))
        self.settle(number)
        for _, kind, policy, binding, name in policies:
            for request in make.requests(kind, name):
                self.both(request, json.dumps([policy["spec"], binding["spec"]], ensure_ascii=False))
        if self.options.status:
            for plural, _, policy, _, name in policies:
                if plural.startswith("validating"):
                    path = f"{REGISTRATION}/{plural}/p{name}"
                    self.wait({"method": "GET", "path": path}, lambda answer: "status" in answer["body"] and "observedGeneration" in answer["body"]["status"], 10)
                    self.both({"method": "GET", "path": path + "/status", "headers": {"Accept": "application/json"}})
        for plural, _, _, _, name in [*policies, ("validatingadmissionpolicies", 0, 0, 0, None), ("mutatingadmissionpolicies", 0, 0, 0, None)]:
            name = f"p{name}" if name else f"settled-{number}"
            self.quietly("DELETE", f"{REGISTRATION}/{plural[:-3]}ybindings/{name}")
            self.quietly("DELETE", f"{REGISTRATION}/{plural}/{name}")
        for i in range(8):
            self.both({"method": "POST", "path": "/apis/resource.k8s.io/v1/deviceclasses?dryRun=All", "body": make.device_class(f"class-{number}-{i}")})
        for i in range(8):  # Definitions with rules, valid or not.
            schema = SchemaMaker(make.rng).query()["schema"]
            crd = definition("compare.example.com", f"things{number}x{i}", f"Thing{number}x{i}", schema)
            self.both({"method": "POST", "path": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", "body": crd})


    def subresources(self):
        """Mutations of subresource requests that have their own kind."""
        core = f"/api/v1/namespaces/{NAMESPACE}"
        pod = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.quietly("POST", f"{core}/pods", pod)
        self.quietly("POST", f"{core}/serviceaccounts", {"metadata": {"name": "account"}})
        sent = {"pods/binding": (f"{core}/pods/pod/binding?dryRun=All", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "pod"}, "target": {"kind": "Node", "name": "n"}}),
                "pods/eviction": (f"{core}/pods/pod/eviction?dryRun=All", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "pod"}}),
                "serviceaccounts/token": (f"{core}/serviceaccounts/account/token?dryRun=All", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}})}
        mutations = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{annotations: {'a': 'b'}}}"}},
                     {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{nope: 1}"}},
                     {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}]"}}]
        for number, mutation in enumerate(mutations):
            for resource in sent:
                rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["*"]}
                name = f"sub-{number}-{resource.split('/')[1]}"
                self.quietly("POST", f"{REGISTRATION}/mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": {
                    "matchConstraints": {"resourceRules": [rule]}, "reinvocationPolicy": "Never", "mutations": [mutation]}})
                self.quietly("POST", f"{REGISTRATION}/mutatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": {"policyName": name}})
            self.settle(f"sub-{number}")
            for path, body in sent.values():
                self.both({"method": "POST", "path": path, "body": body}, json.dumps(mutation))
            for resource in sent:
                for plural in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
                    self.quietly("DELETE", f"{REGISTRATION}/{plural}/sub-{number}-{resource.split('/')[1]}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--ours", "--theirs", "--token"):
        parser.add_argument(name, required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    parser.add_argument("--status", action="store_true")
    options = parser.parse_args()
    comparison = Comparison(options)
    comparison.set_up()
    comparison.subresources()
    for number in range(options.rounds):
        comparison.round(number)
    print(f"policies.py: {comparison.sent} requests, seed {options.seed}: {comparison.differing} differ")
    return 1 if comparison.differing else 0


if __name__ == "__main__":
    sys.exit(main())

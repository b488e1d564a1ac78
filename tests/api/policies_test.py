#!/usr/bin/env python3
"""policies_test.py HOLDFAST [NAME]: admission policies, as described by the stories in tests/scenario/policies. Anyone who knows
kubectl can write one:

  story: what it shows
  gates: ServerSideApplyUnsettingFields=true   # of the server; default gates if absent
  steps:
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}    # or replace, apply, delete: an object, or Kind/name
    code: 422                  # default: any success
    message: ...               # the whole message of the Status
    warnings: [...]            # all Warning texts
    audit: {key: value}        # annotations of the audit event, among others
    object: {data: {k: v}}     # contained in the response, among others
    absent: [data.x]           # not contained in it
    owners: [alice]            # all field managers in the response
    managed: unchanged         # managedFields are the same as before the step, except for times
    user: carol                # who sends the request; an administrator if absent

Each story has its own namespace; its objects are deleted afterwards. Texts may contain ${ns}."""
import json, pathlib, sys, tempfile, time, uuid

import yaml

from serve import Server, check, finish

STORIES = pathlib.Path(__file__).resolve().parent.parent / "scenario" / "policies"
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
KINDS = {  # base, plural, namespaced
    "ConfigMap": ("/api/v1", "configmaps", True), "Secret": ("/api/v1", "secrets", True), "Namespace": ("/api/v1", "namespaces", False),
    "Pod": ("/api/v1", "pods", True), "Service": ("/api/v1", "services", True), "Deployment": ("/apis/apps/v1", "deployments", True),
    "Event": ("/api/v1", "events", True), "Limit": ("/apis/example.com/v1", "limits", True),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "ValidatingAdmissionPolicy": (REGISTRATION, "validatingadmissionpolicies", False),
    "ValidatingAdmissionPolicyBinding": (REGISTRATION, "validatingadmissionpolicybindings", False),
    "MutatingAdmissionPolicy": (REGISTRATION, "mutatingadmissionpolicies", False),
    "MutatingAdmissionPolicyBinding": (REGISTRATION, "mutatingadmissionpolicybindings", False),
}


def find(tree, path):
    for part in path.split("."):
        if not isinstance(tree, dict) or part not in tree:
            return None
        tree = tree[part]
    return tree


def differences(wanted, got, at="answer"):
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            yield from differences(value, got.get(key), f"{at}.{key}")
    elif wanted != got:
        yield f"{at}: wanted {json.dumps(wanted)}, got {json.dumps(got)}"


class Player:
    def __init__(self, server, log, ns):
        self.server, self.log, self.ns, self.made = server, log, ns, []
        self.server.json("POST", "/api/v1/namespaces", {"metadata": {"name": ns}}, want=201)

    def path(self, kind, name=None):
        base, plural, namespaced = KINDS[kind]
        return f"{base}/namespaces/{self.ns}/{plural}" * namespaced + f"{base}/{plural}" * (not namespaced) + (f"/{name}" if name else "")

    def send(self, step):
        verb = next(verb for verb in ("create", "replace", "apply", "delete") if verb in step)
        what, audit_id = step[verb], str(uuid.uuid4())
        headers = {"Audit-ID": audit_id, **({"Impersonate-User": step["user"]} if "user" in step else {})}
        query = "?" + step["query"] if "query" in step else ""
        if isinstance(what, str):
            kind, name = what.split("/")
            what = {"kind": kind, "metadata": {"name": name}}
        kind, name = what["kind"], what["metadata"].get("name")
        if verb == "create":
            answer = self.server.request("POST", self.path(kind) + query, what, headers=headers)
            if answer[0] == 201 and not query:
                self.made.append(self.path(kind, name or json.loads(answer[2])["metadata"]["name"]))
        elif verb == "replace":
            what["metadata"]["resourceVersion"] = self.server.json("GET", self.path(kind, name), want=200)["metadata"]["resourceVersion"]
            answer = self.server.request("PUT", self.path(kind, name) + query, what, headers=headers)
        elif verb == "apply":
            answer = self.server.request("PATCH", self.path(kind, name) + "?force=true&fieldManager=" + step.get("as", "test"), what,
                                         content_type="application/apply-patch+yaml", headers=headers)
            if answer[0] == 201:
                self.made.append(self.path(kind, name))
        else:
            answer = self.server.request("DELETE", self.path(kind, name) + query, headers=headers)
        return answer, audit_id

    def annotations(self, audit_id):
        """Annotations of the audit event, which is written when the response is complete."""
        for _ in range(200):
            for line in self.log.read_text().splitlines():
                if audit_id in line:
                    return json.loads(line).get("annotations", {})
            time.sleep(0.02)
        return {}

    def managed(self, step):
        """Current managedFields of the object of a step."""
        what = next(step[verb] for verb in ("replace", "apply") if verb in step)
        entries = self.server.json("GET", self.path(what["kind"], what["metadata"]["name"]), want=200)["metadata"]["managedFields"]
        return [{**entry, "time": None} for entry in entries]

    def play(self, story):
        for number, step in enumerate(story["steps"]):
            step = json.loads(json.dumps(step).replace("${ns}", self.ns))
            managed = self.managed(step) if "managed" in step else None
            (code, headers, body), audit_id = self.send(step)
            answer = json.loads(body)
            where = f"{story['story']}: step {number}"
            if "code" in step:
                check(code == step["code"], f"{where}: code {code}", answer)
            else:
                check(code < 300, f"{where}: code {code}", answer)
            if "message" in step:
                check(answer.get("message") == step["message"], f"{where}: message", answer.get("message"))
            if "reason" in step:
                check(answer.get("reason") == step["reason"], f"{where}: reason", answer.get("reason"))
            warnings = [text.split(" ", 2)[2].strip('"').replace('\\"', '"') for text in headers.get_all("Warning") or []]
            check(warnings == step.get("warnings", []), f"{where}: warnings", warnings)
            for difference in differences(step.get("object", {}), answer):
                check(False, f"{where}: {difference}")
            for path in step.get("absent", []):
                check(find(answer, path) is None, f"{where}: {path} exists", answer)
            if "owners" in step:
                owners = [entry["manager"] for entry in answer["metadata"].get("managedFields", [])]
                check(owners == step["owners"], f"{where}: owners", answer["metadata"].get("managedFields"))
            if managed is not None:
                check(self.managed(step) == managed, f"{where}: managedFields were {json.dumps(managed)}", self.managed(step))
            if "audit" in step:
                annotations = self.annotations(audit_id)
                for key, value in step["audit"].items():
                    check(annotations.get(key) == value, f"{where}: annotation {key}", annotations)

    def clean(self):
        for path in reversed(self.made):
            self.server.request("DELETE", path)
        self.server.request("DELETE", f"/api/v1/namespaces/{self.ns}")


def metrics(server):
    """The effects of the stories are counted under kube-apiserver's metric names."""
    text = server.request("GET", "/metrics", accept="text/plain")[2].decode()
    for wanted in ('apiserver_validating_admission_policy_check_total{policy="%s",policy_binding="%s",error_type="invalid_error",enforcement_action="deny"} ' % ("sizes.example.com", "sizes"),
                   'apiserver_mutating_admission_policy_check_total{policy="', 'error_type="no_error"} ', 'apiserver_validating_admission_policy_check_duration_seconds_bucket{',
                   'apiserver_mutating_admission_policy_check_duration_seconds_count{'):
        check(wanted in text, f"metrics contain {wanted}")


def main():
    stories = [story for file in sorted(STORIES.glob("*.yaml")) for story in yaml.safe_load_all(file.read_text())
               if len(sys.argv) < 3 or sys.argv[2] in file.name]
    check(stories, "stories were found")
    with tempfile.TemporaryDirectory() as folder:
        policy, log = pathlib.Path(folder, "audit.json"), pathlib.Path(folder, "audit.log")
        policy.write_text(json.dumps(AUDIT_POLICY))
        for gates in sorted({story.get("gates", "") for story in stories}):
            with Server(sys.argv[1], gates, flags=("--audit-policy-file", str(policy), "--audit-log-path", str(log))) as server:
                for number, story in enumerate(stories):
                    if story.get("gates", "") != gates:
                        continue
                    player = Player(server, log, f"story-{number}")
                    try:
                        player.play(story)
                    finally:
                        player.clean()
                if gates == "" and len(sys.argv) < 3:
                    metrics(server)
    finish()


if __name__ == "__main__":
    main()

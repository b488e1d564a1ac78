#!/usr/bin/env python3
"""Access control scenarios: authentication, impersonation, priority and fairness, and auditing.

access_test.py PATH/TO/holdfast
"""
import base64
import json
import os
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import access_helper  # noqa: E402
from access_helper import RBAC, grant, rule  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/release/bin/holdfast"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  users: ["system:apiserver"]
- level: Request
  verbs: [create]
  resources: [{group: "", resources: [secrets]}]
  omitStages: [RequestReceived]
- level: RequestResponse
  resources: [{group: "", resources: [configmaps]}]
  omitStages: [RequestReceived]
- level: RequestResponse
  resources: [{group: "*", resources: [deployments/scale]}]
  omitStages: [RequestReceived]
- level: Metadata
"""
users = None


def setUpModule():
    global users
    server = access_helper.Server(BINARY)
    policy = server.data_dir / "policy.yaml"
    policy.write_text(POLICY)
    (server.data_dir / "tokens.csv").write_text(access_helper.TOKENS)
    server.flags += ["--token-auth-file", str(server.data_dir / "tokens.csv"), "--audit-policy-file", str(policy),
                     "--audit-log-path", str(server.data_dir / "audit.log")]
    server.start()
    users = access_helper.Users(server)


def tearDownModule():
    users.server.stop()
    users.server.folder.cleanup()


def events(audit_id, count):
    """The events of one request, once that many exist."""
    found = []

    def all_there():
        lines = (users.server.data_dir / "audit.log").read_text().splitlines()
        found[:] = [event for event in map(json.loads, lines) if event["auditID"] == audit_id]
        return len(found) >= count

    users.when(all_there)
    return found


class AuditTest(unittest.TestCase):
    def test_requests_are_audited_at_the_level_of_the_policy(self):
        secret = {"metadata": {"name": "au"}, "stringData": {"a": "b"}}
        users.admin("POST", "/api/v1/namespaces/default/secrets", secret, headers={"Audit-ID": "sec", "User-Agent": "test/1"})
        event, = events("sec", 1)
        self.assertEqual(list(event), ["kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "sourceIPs",
                                       "userAgent", "objectRef", "responseStatus", "requestObject", "requestReceivedTimestamp",
                                       "stageTimestamp", "annotations"])
        self.assertEqual(event["user"], {"username": "admin", "uid": "admin-uid", "groups": ["system:masters", "system:authenticated"]})
        self.assertEqual(event["objectRef"], {"resource": "secrets", "namespace": "default", "name": "au", "apiVersion": "v1"})
        self.assertEqual(event["responseStatus"], {"metadata": {}, "code": 201})
        self.assertEqual(event["requestObject"]["data"], {"a": "Yg=="})
        self.assertEqual(event["requestObject"]["type"], "Opaque")
        self.assertEqual(event["annotations"], {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "",
                                                "holdfast/field-manager": "test"})

    def test_audited_responses_omit_managed_fields(self):
        users.admin("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "au"}, "data": {"a": "b"}},
                    headers={"Audit-ID": "made"})
        event, = events("made", 1)
        self.assertEqual(event["responseObject"]["data"], {"a": "b"})
        self.assertNotIn("managedFields", event["responseObject"]["metadata"])
        users.admin("PATCH", "/api/v1/namespaces/default/configmaps/au", {"data": {"a": "c"}},
                    headers={"Audit-ID": "patched", "Content-Type": "application/merge-patch+json"})
        self.assertEqual(events("patched", 1)[0]["requestObject"], {"data": {"a": "c"}})
        # Options in another encoding than JSON: {"gracePeriodSeconds": 0} as Protobuf.
        options = b"k8s\0" + b"\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions" + b"\x12\x02\x08\x00"
        users.admin("DELETE", "/api/v1/namespaces/default/configmaps/au", options, headers={"Audit-ID": "gone", "Content-Type": "application/vnd.kubernetes.protobuf"})
        event, = events("gone", 1)
        self.assertEqual(event["requestObject"], {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        self.assertEqual(event["responseStatus"]["status"], "Success")
        self.assertEqual(event["responseObject"]["details"]["name"], "au")

    def test_an_updated_scale_is_audited_with_its_request(self):
        deployments, labels = "/apis/apps/v1/namespaces/default/deployments", {"a": "b"}
        users.admin("POST", deployments, {"metadata": {"name": "au"}, "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "au", "namespace": "default"}, "spec": {"replicas": 3}}
        users.admin("PUT", deployments + "/au/scale", scale, headers={"Audit-ID": "scaled"})
        event, = events("scaled", 1)
        self.assertEqual((event["verb"], event["objectRef"]["subresource"]), ("update", "scale"))
        self.assertEqual(event["requestObject"]["spec"], {"replicas": 3})
        self.assertEqual((event["requestObject"]["kind"], event["responseObject"]["kind"]), ("Scale", "Scale"))
        users.admin("DELETE", deployments + "/au")

    def test_events_are_written_before_the_response_arrives(self):
        log = users.server.data_dir / "audit.log"
        def told(audit_id):
            return [event["stage"] for event in map(json.loads, log.read_text().splitlines()) if event["auditID"] == audit_id]
        for i in range(40):
            users.admin("GET", "/api/v1/namespaces/default", headers={"Audit-ID": f"now-{i}"})
            self.assertEqual(told(f"now-{i}"), ["RequestReceived", "ResponseComplete"])
            users.admin("GET", "/api/v1/namespaces", headers={"Audit-ID": f"list-{i}"})
            self.assertEqual(told(f"list-{i}"), ["RequestReceived", "ResponseComplete"])
            users.call("GET", "/api/v1/secrets", token="plain-token", headers={"Audit-ID": f"no-{i}"})
            self.assertEqual(told(f"no-{i}"), ["RequestReceived", "ResponseComplete"])
            users.call("GET", "/api/v1/secrets", token="unknown", headers={"Audit-ID": f"who-{i}"})
            self.assertEqual(told(f"who-{i}"), ["ResponseStarted"])

    def test_a_watch_has_three_events(self):
        users.admin("GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1", headers={"Audit-ID": "watch"})
        self.assertEqual([event["stage"] for event in events("watch", 3)], ["RequestReceived", "ResponseStarted", "ResponseComplete"])

    def test_denied_requests_are_audited(self):
        users.call("GET", "/api/v1/secrets", token="plain-token", headers={"Audit-ID": "no"})
        received, complete = events("no", 2)
        self.assertNotIn("responseStatus", received)
        self.assertEqual(complete["responseStatus"]["reason"], "Forbidden")
        self.assertEqual(complete["annotations"]["authorization.k8s.io/decision"], "forbid")
        users.call("GET", "/api/v1/secrets", token="wrong", headers={"Audit-ID": "who"})
        event, = events("who", 1)
        self.assertEqual((event["stage"], event["user"], event["responseStatus"]["code"]), ("ResponseStarted", {}, 401))

    def test_impersonation_records_both_users(self):
        users.admin("GET", "/api/v1/pods", headers={"Audit-ID": "as", "Impersonate-User": "jane", "Impersonate-Group": "ops"})
        event = events("as", 2)[1]
        self.assertEqual(event["user"]["username"], "admin")
        self.assertEqual(event["impersonatedUser"], {"username": "jane", "groups": ["ops", "system:authenticated"]})
        self.assertEqual(event["authenticationMetadata"], {"impersonationConstraint": "impersonate:user-info"})

    def annotations(self, name, method, path, body=None, content_type="application/json"):
        answer = users.admin(method, path, body, headers={"Audit-ID": name, "Content-Type": content_type})
        found = events(name, 2)[-1]["annotations"]
        self.assertEqual((found.pop("authorization.k8s.io/decision"), found.pop("authorization.k8s.io/reason")), ("allow", ""))
        found.pop("holdfast/field-manager", None)
        return answer, found

    def test_pod_security_annotates_enforced_and_audited_levels(self):
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        prefix = "pod-security.kubernetes.io/"
        users.made("/api/v1/namespaces", {"metadata": {"name": "plain"}})
        users.made("/api/v1/namespaces", {"metadata": {"name": "strict", "labels": {
            prefix + "enforce": "baseline", prefix + "audit": "restricted", prefix + "audit-version": "v1.30"}}})
        merge = "application/merge-patch+json"
        # Wait for the service account of the pods.
        for namespace in ("plain", "strict"):
            users.when(lambda: users.admin("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default").code == 200)
        answer, found = self.annotations("ps1", "POST", "/api/v1/namespaces/plain/pods", pod)
        self.assertEqual((answer.code, found), (201, {prefix + "enforce-policy": "privileged:latest"}), answer.text)
        _, found = self.annotations("ps2", "PATCH", "/api/v1/namespaces/plain/pods/p", {"metadata": {"labels": {"a": "b"}}}, merge)
        self.assertEqual(found, {prefix + "enforce-policy": "privileged:latest"})
        answer, found = self.annotations("ps3", "POST", "/api/v1/namespaces/strict/pods", pod)
        self.assertEqual((answer.code, sorted(found)), (201, [prefix + "audit-violations", prefix + "enforce-policy"]), answer.text)
        self.assertEqual(found[prefix + "enforce-policy"], "baseline:latest")
        self.assertTrue(found[prefix + "audit-violations"].startswith('would violate PodSecurity "restricted:v1.30": allowPrivilegeEscalation != false'))
        _, found = self.annotations("ps4", "PATCH", "/api/v1/namespaces/strict/pods/p", {"metadata": {"labels": {"a": "b"}}}, merge)
        self.assertEqual(found, {})
        bad = {"metadata": {"name": "b"}, "spec": {"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]}}
        answer, found = self.annotations("ps5", "POST", "/api/v1/namespaces/strict/pods", bad)
        self.assertEqual((answer.code, sorted(found)), (403, [prefix + "audit-violations", prefix + "enforce-policy"]))
        deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}}}
        self.assertEqual(sorted(self.annotations("ps6", "POST", "/apis/apps/v1/namespaces/strict/deployments", deployment)[1]), [prefix + "audit-violations"])
        self.assertEqual(self.annotations("ps7", "POST", "/apis/apps/v1/namespaces/plain/deployments", deployment)[1], {})

    def test_deprecated_apis_tokens_and_failed_webhooks_are_annotated(self):
        self.assertEqual(self.annotations("old", "GET", "/api/v1/namespaces/default/endpoints")[1], {"k8s.io/deprecated": "true"})
        users.made("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "told"}})
        _, found = self.annotations("token", "POST", "/api/v1/namespaces/default/serviceaccounts/told/token", {"spec": {}})
        self.assertRegex(found["authentication.kubernetes.io/issued-credential-id"], "^JTI=[0-9a-f-]{36}$")
        hook = {"metadata": {"name": "h"}, "webhooks": [{
            "name": "x.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore", "timeoutSeconds": 1,
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["limitranges"]}],
            "clientConfig": {"url": "https://127.0.0.1:1/x"}}]}
        for kind in ("mutating", "validating"):
            users.made(f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations", hook)
        expected = {"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "x.example.com",
                    "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "x.example.com",
                    "mutation.webhook.admission.k8s.io/round_0_index_0": '{"configuration":"h","webhook":"x.example.com","mutated":false}'}
        made = []

        def told():
            name = f"l{len(made)}"
            made.append(self.annotations("hook" + name, "POST", "/api/v1/namespaces/default/limitranges", {"metadata": {"name": name}})[1])
            return made[-1] == expected

        users.when(told)
        for kind in ("mutating", "validating"):
            users.admin("DELETE", f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/h")


class ImpersonationTest(unittest.TestCase):
    def me(self, headers, token=access_helper.ADMIN):
        answer = users.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token, headers=headers)
        return answer.json["status"]["userInfo"] if answer.code == 201 else answer.message

    def test_impersonation_headers(self):
        self.assertEqual(self.me({"Impersonate-User": "jane", "Impersonate-Uid": "7", "Impersonate-Extra-example.com%2fscopes": "a"}),
                         {"username": "jane", "uid": "7", "groups": ["system:authenticated"], "extra": {"example.com/scopes": ["a"]}})
        self.assertEqual(self.me({"Impersonate-User": "system:serviceaccount:default:robot"})["groups"],
                         ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
        self.assertEqual(self.me({"Impersonate-User": "system:node:n1"})["groups"], ["system:nodes", "system:authenticated"])
        self.assertEqual(self.me({"Impersonate-User": "system:anonymous"}), 'selfsubjectreviews.authentication.k8s.io is forbidden: User '
                         '"system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope')
        # Only the older permission goes that far.
        self.assertEqual(self.me({"Impersonate-User": "root", "Impersonate-Group": "system:masters"})["groups"],
                         ["system:masters", "system:authenticated"])

    def test_constrained_impersonation(self):
        grant(users, "as-jane", [rule("impersonate:user-info", ["authentication.k8s.io"], "users", ["jane"]),
                                 rule("impersonate-on:user-info:create", ["authentication.k8s.io"], "selfsubjectreviews")], "plain")
        as_plain = lambda headers: self.me(headers, "plain-token")
        users.when(lambda: isinstance(as_plain({"Impersonate-User": "jane"}), dict))
        self.assertIn('cannot impersonate:user-info resource "users"', as_plain({"Impersonate-User": "john"}))
        answer = users.call("GET", "/api/v1/pods", token="plain-token", headers={"Impersonate-User": "jane"})
        self.assertIn('cannot impersonate-on:user-info:list resource "pods"', answer.message)


class RolesTest(unittest.TestCase):
    def test_aggregated_roles_are_filled(self):
        rules = lambda name: users.admin("GET", f"{RBAC}/clusterroles/{name}").json["rules"]
        users.when(lambda: all(rules(name) for name in ("admin", "edit", "view")))
        managed = users.admin("GET", f"{RBAC}/clusterroles/view").json["metadata"]["managedFields"]
        self.assertIn(("clusterrole-aggregation-controller", "Apply"), [(entry["manager"], entry["operation"]) for entry in managed])
        mine = rule("get", ["example.com"], "widgets")
        users.made(f"{RBAC}/clusterroles", {"metadata": {"name": "widgets", "labels": {
            "rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": [mine]})
        users.when(lambda: mine in rules("view") and mine in rules("edit") and mine in rules("admin"))
        users.admin("DELETE", f"{RBAC}/clusterroles/widgets")
        users.when(lambda: mine not in rules("admin"))

    def test_claim_status_requires_its_own_permissions(self):
        claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        users.made("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpus"}, "spec": {}})
        users.made(claims, {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}}})
        patch = lambda token, status: users.call("PATCH", claims + "/one/status", {"status": status}, token=token, headers={"Content-Type": "application/merge-patch+json"})
        device = {"driver": "gpu.example.com", "pool": "p", "device": "d"}
        allocated = {"allocation": {"devices": {"results": [{"request": "r", **device}]}}}
        grant(users, "claim-status", [rule("patch", ["resource.k8s.io"], "resourceclaims/status")], "plain")
        users.when(lambda: patch("plain-token", allocated).code == 422)
        self.assertEqual(patch("plain-token", allocated).message,
                         'ResourceClaim.resource.k8s.io "one" is invalid: status.allocation: Forbidden: changing status.allocation or status.reservedFor '
                         'requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "plain" cannot '
                         'patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope')
        grant(users, "claim-binding", [rule("patch", ["resource.k8s.io"], "resourceclaims/binding")], "plain")
        users.when(lambda: patch("plain-token", allocated).code == 200)
        state = {"devices": [{**device, "data": {"a": 1}}]}
        self.assertEqual(patch("plain-token", state).message,
                         'ResourceClaim.resource.k8s.io "one" is invalid: status.devices: Forbidden: changing status.devices requires '
                         'resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "gpu.example.com" is '
                         'forbidden: User "plain" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"')
        grant(users, "claim-driver", [rule("arbitrary-node:patch", ["resource.k8s.io"], "resourceclaims/driver", ["gpu.example.com"])], "plain")
        users.when(lambda: patch("plain-token", state).code == 200)

    def test_read_permission_does_not_allow_streams(self):
        """A WebSocket request begins with GET, but can run commands."""
        users.made("/api/v1/namespaces/default/pods", {"metadata": {"name": "streamed"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        grant(users, "stream-reader", [rule("get", [""], "pods/exec pods/attach pods/portforward")], "tenant", "default")
        ask = lambda what: users.call("GET", f"/api/v1/namespaces/default/pods/streamed/{what}", token="tenant-token")
        users.when(lambda: "cannot get" not in ask("exec").message)
        for what in ("exec", "attach", "portforward"):
            self.assertEqual((ask(what).code, ask(what).message), (403, 'pods "streamed" is forbidden: '), what)
        grant(users, "stream-maker", [rule("create", [""], "pods/exec")], "tenant", "default")
        users.when(lambda: ask("exec").code == 400)
        self.assertEqual(ask("exec").message, "pod streamed does not have a host assigned")

    def test_self_subject_rules_review(self):
        grant(users, "reader", [rule("get list", [""], "pods")], "tenant", "default")
        ask = lambda: users.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}},
                                 token="tenant-token").json["status"]
        users.when(lambda: rule("get list", [""], "pods") in ask()["resourceRules"])
        self.assertFalse(ask()["incomplete"])


class ServiceAccountTest(unittest.TestCase):
    def test_pods_get_a_service_account_with_a_token(self):
        users.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
        pod = users.made("/api/v1/namespaces/team/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        self.assertEqual(pod["spec"]["serviceAccountName"], "default")
        volume, = pod["spec"]["volumes"]
        self.assertRegex(volume["name"], "^kube-api-access-.{5}$")
        self.assertEqual(pod["spec"]["containers"][0]["volumeMounts"], [
            {"name": volume["name"], "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
        refused = users.admin("POST", "/api/v1/namespaces/team/pods", {"metadata": {"name": "q"}, "spec": {
            "serviceAccountName": "nosuch", "containers": [{"name": "c", "image": "i"}]}})
        self.assertEqual(refused.message, 'pods "q" is forbidden: error looking up service account team/nosuch: '
                         'serviceaccount "nosuch" not found')

        token = users.made("/api/v1/namespaces/team/serviceaccounts/default/token", {"spec": {
            "expirationSeconds": 3607, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}})["status"]["token"]
        claims = access_helper.claims_of(token)
        self.assertEqual(claims["exp"] - claims["iat"], 365 * 24 * 3600)
        self.assertEqual(claims["kubernetes.io"]["warnafter"] - claims["iat"], 3607)
        me = users.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token).json["status"]["userInfo"]
        self.assertEqual(me["username"], "system:serviceaccount:team:default")
        self.assertEqual(me["extra"]["authentication.kubernetes.io/pod-name"], ["p"])
        self.assertEqual(me["extra"]["authentication.kubernetes.io/credential-id"], ["JTI=" + claims["jti"]])


class FairnessTest(unittest.TestCase):
    FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"

    def test_responses_name_their_flow(self):
        answer = users.call("GET", "/healthz")
        schema = users.admin("GET", self.FLOW + "/flowschemas/probes").json
        level = users.admin("GET", self.FLOW + "/prioritylevelconfigurations/exempt").json
        self.assertEqual(answer.headers["X-Kubernetes-PF-FlowSchema-UID"], schema["metadata"]["uid"])
        self.assertEqual(answer.headers["X-Kubernetes-PF-PriorityLevel-UID"], level["metadata"]["uid"])
        self.assertIsNone(users.call("GET", "/healthz", token="wrong").headers["X-Kubernetes-PF-FlowSchema-UID"])

    def test_requests_over_the_limit_get_429(self):
        users.made(self.FLOW + "/prioritylevelconfigurations", {"metadata": {"name": "narrow"}, "spec": {
            "type": "Limited", "limited": {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}}})
        users.made(self.FLOW + "/flowschemas", {"metadata": {"name": "narrow"}, "spec": {
            "matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "narrow"}, "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "plain"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]}})
        ask = lambda token: users.call("GET", "/apis", token=token)
        users.when(lambda: ask("plain-token").code == 429)
        answer = ask("plain-token")
        self.assertEqual(answer.text, "Too many requests, please try again later.\n")
        self.assertEqual(answer.headers["Retry-After"], "1")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain"))
        self.assertEqual(ask("tenant-token").code, 200)  # Other flows are not affected.
        metrics = users.admin("GET", "/metrics").text
        self.assertRegex(metrics, r'apiserver_flowcontrol_rejected_requests_total\{flow_schema="narrow",priority_level="narrow",'
                         r'reason="concurrency-limit"\} [1-9]')
        users.admin("DELETE", self.FLOW + "/flowschemas/narrow")
        users.when(lambda: ask("plain-token").code == 200)

    def test_requests_without_a_seat_are_queued(self):
        server = access_helper.start(BINARY, "--max-requests-inflight=1", "--max-mutating-requests-inflight=0")
        try:
            own = access_helper.Users(server)
            grant(own, "maker", [rule("create list", [""], "configmaps")], "plain", "default")
            path = "/api/v1/namespaces/default/configmaps"
            own.when(lambda: own.call("GET", path, token="plain-token").code == 200)
            # Sixty concurrent requests for one seat: all are served, one at a time.
            codes = []
            threads = [threading.Thread(target=lambda i=i: codes.append(
                own.call("POST", path, {"metadata": {"name": f"c{i}"}}, token="plain-token").code)) for i in range(60)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(codes, [201] * 60)
        finally:
            server.stop()
            server.folder.cleanup()


class SecretTokens(unittest.TestCase):
    """Tokens in Secrets: issued for the account named by the Secret, valid while both exist."""
    SECRETS, ACCOUNTS = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/serviceaccounts"

    def make(self, name, account):
        users.made(self.SECRETS, {"metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}},
                                  "type": "kubernetes.io/service-account-token"})

    def token(self, name):
        path = f"{self.SECRETS}/{name}"
        users.when(lambda: "token" in users.admin("GET", path).json.get("data", {}))
        secret = users.admin("GET", path).json
        return secret, base64.b64decode(secret["data"]["token"]).decode()

    def whoami(self, token):
        return users.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                          {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, token=token)

    def test_secret_tokens_are_valid_while_the_secret_exists(self):
        account = users.made(self.ACCOUNTS, {"metadata": {"name": "ci"}})
        self.make("ci-token", "ci")
        secret, token = self.token("ci-token")
        self.assertEqual(secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"], account["metadata"]["uid"])
        self.assertEqual(base64.b64decode(secret["data"]["namespace"]), b"default")
        self.assertIn(b"BEGIN CERTIFICATE", base64.b64decode(secret["data"]["ca.crt"]))
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        self.assertEqual(claims, {"iss": "kubernetes/serviceaccount", "kubernetes.io/serviceaccount/namespace": "default",
                                  "kubernetes.io/serviceaccount/secret.name": "ci-token", "kubernetes.io/serviceaccount/service-account.name": "ci",
                                  "kubernetes.io/serviceaccount/service-account.uid": account["metadata"]["uid"],
                                  "sub": "system:serviceaccount:default:ci"})
        me = self.whoami(token)
        self.assertEqual((me.code, me.json["status"]["userInfo"]["username"]), (201, "system:serviceaccount:default:ci"), me.text)
        self.assertIn("system:serviceaccounts:default", me.json["status"]["userInfo"]["groups"])
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": ["elsewhere"]}}
        self.assertIn("is invalid for the target audiences", users.admin("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).json["status"]["error"])

        merge = {"Content-Type": "application/merge-patch+json"}
        label = lambda value: users.admin("PATCH", self.SECRETS + "/ci-token", {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": value}}}, headers=merge)
        label("2026-01-01")
        self.assertEqual(self.whoami(token).code, 401)
        label(None)
        self.assertEqual(self.whoami(token).code, 201)
        users.admin("PATCH", self.SECRETS + "/ci-token", {"data": {"token": base64.b64encode(b"another").decode()}}, headers=merge)
        self.assertEqual(self.whoami(token).code, 401)

    def test_secrets_record_the_day_of_last_use(self):
        users.made(self.ACCOUNTS, {"metadata": {"name": "daily"}})
        self.make("daily-token", "daily")
        _, token = self.token("daily-token")
        secret = lambda: users.admin("GET", self.SECRETS + "/daily-token").json["metadata"]
        self.assertNotIn("labels", secret())
        label, days = "kubernetes.io/legacy-token-last-used", [time.strftime("%Y-%m-%d", time.gmtime())]
        self.assertEqual(self.whoami(token).code, 201)
        users.when(lambda: label in secret().get("labels", {}))
        days.append(time.strftime("%Y-%m-%d", time.gmtime()))
        labelled = secret()
        self.assertIn(labelled["labels"][label], days)
        if days[0] == days[1]:  # It is not written again on the same day.
            self.assertEqual(self.whoami(token).code, 201)
            self.assertEqual(secret()["resourceVersion"], labelled["resourceVersion"])
        merge = {"Content-Type": "application/merge-patch+json"}
        users.admin("PATCH", self.SECRETS + "/daily-token", {"metadata": {"labels": {label: "2020-01-01"}}}, headers=merge)
        self.assertEqual(self.whoami(token).code, 201)
        users.when(lambda: secret()["labels"][label] != "2020-01-01")

    def test_secrets_are_deleted_with_their_account(self):
        users.made(self.ACCOUNTS, {"metadata": {"name": "gone"}})
        self.make("gone-token", "gone")
        _, token = self.token("gone-token")
        self.assertEqual(self.whoami(token).code, 201)
        users.admin("DELETE", self.ACCOUNTS + "/gone")
        self.assertEqual(self.whoami(token).code, 401)
        users.when(lambda: users.admin("GET", self.SECRETS + "/gone-token").code == 404)
        self.make("nobody", "never-there")
        users.when(lambda: users.admin("GET", self.SECRETS + "/nobody").code == 404)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Checks that every attack path is closed.

security_test.py PATH/TO/holdfast
"""
import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

for folder in (".", "api", "clients", "store"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / folder))
import access_helper  # noqa: E402
import attacks  # noqa: E402
from access_helper import RBAC, grant, role_ref, rule  # noqa: E402
from etcd import Etcd  # noqa: E402
from hook_server import HookServer  # noqa: E402
from server import Server  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/release/bin/holdfast"
SECRET = "aHVudGVyMg=="
users = None


class Users(access_helper.Users):
    """A server that does not respond is a failure of the test, not an error."""

    def call(self, *arguments, **more):
        try:
            return super().call(*arguments, **more)
        except (OSError, http.client.HTTPException) as error:
            raise AssertionError(f"no response: {error!r}") from error


def start(*flags):
    try:
        return access_helper.start(BINARY, *flags)
    except RuntimeError as error:
        raise AssertionError(error) from error


def setUpModule():
    global users
    server = start()
    users = Users(server)
    for name in ("mine", "theirs"):
        users.made("/api/v1/namespaces", {"metadata": {"name": name}})
        users.made(f"/api/v1/namespaces/{name}/secrets", {"metadata": {"name": "s"}, "data": {"password": SECRET}})
    # The tenant may do anything in its own namespace except extend its permissions.
    everything = [{"verbs": "get list watch create update patch delete deletecollection".split(), "apiGroups": ["*"],
                   "resources": ["*"]}]
    grant(users, "tenant", everything, "tenant", "mine")
    users.when(lambda: tenant("GET", "/api/v1/namespaces/mine/secrets").code == 200)


def tearDownModule():
    users.server.stop()
    users.server.folder.cleanup()


def tenant(method, path, body=None, **more):
    return users.call(method, path, body, token="tenant-token", **more)


class SecurityTest(unittest.TestCase):
    def refused(self, answer, code, text=""):
        self.assertEqual(answer.code, code, answer.text)
        self.assertIn(text, answer.message)
        self.assertNotIn(SECRET, answer.text)


class AnonymousTest(SecurityTest):
    def test_without_credentials_only_health_and_version_are_served(self):
        for path in ("/api", "/apis", "/openapi/v2", "/metrics", "/", "/api/v1/namespaces/mine/secrets", "/openid/v1/jwks"):
            self.refused(users.call("GET", path), 403, 'User "system:anonymous" cannot')
        for path in ("/healthz", "/readyz", "/livez", "/version"):
            self.assertEqual(users.call("GET", path).code, 200)

    def test_anonymous_requests_can_be_disabled(self):
        server = start("--anonymous-auth=false")
        try:
            self.refused(Users(server).call("GET", "/healthz"), 401, "Unauthorized")
        finally:
            server.stop()
            server.folder.cleanup()

    def test_wrong_credentials_are_never_anonymous(self):
        for header in ("Bearer wrong", "bearer wrong", "Bearer  ", "Bearer a.b.c", "Basic YWRtaW46YWRtaW4="):
            answer = users.call("GET", "/healthz", headers={"Authorization": header})
            if header.split()[0].lower() == "bearer" and len(header.split()) > 1:
                self.refused(answer, 401, "Unauthorized")
            self.refused(users.call("GET", "/api/v1/secrets", headers={"Authorization": header}),
                         401 if answer.code == 401 else 403)


class CertificateTest(SecurityTest):
    FAR = "20990101000000Z"

    def certificate(self, name, ca, begin="20200101000000Z", end=FAR):
        folder = users.server.data_dir / "certificates" / name
        return access_helper.make_certificate(folder, "/O=system:masters/CN=intruder", ca, begin, end)

    def authority(self):
        return users.pki / "ca.crt", users.pki / "ca.key"

    def test_valid_credentials_are_accepted(self):
        self.assertEqual(users.call("GET", "/api/v1/secrets", certificate=self.certificate("good", self.authority())).code, 200)

    def test_expired_certificates_are_rejected(self):
        expired = self.certificate("expired", self.authority(), end="20200102000000Z")
        self.refused(users.call("GET", "/healthz", certificate=expired), 401, "Unauthorized")

    def test_requests_are_rejected_once_the_certificate_expires(self):
        end = time.gmtime(time.time() + 4)
        brief = self.certificate("brief", self.authority(), end=time.strftime("%Y%m%d%H%M%SZ", end))
        connection = users.connect(brief)

        def code():
            connection.request("GET", "/api/v1/secrets")
            answer = connection.getresponse()
            answer.read()
            return answer.status

        self.assertEqual(code(), 200)
        users.when(lambda: code() == 401)
        self.assertGreaterEqual(time.gmtime(), end)  # The certificate expires at the beginning of that second.
        connection.close()

    def test_certificates_that_are_not_valid_yet_are_rejected(self):
        early = self.certificate("early", self.authority(), begin="20980101000000Z")
        self.refused(users.call("GET", "/healthz", certificate=early), 401, "Unauthorized")

    def test_certificates_of_another_ca_are_rejected(self):
        folder = users.server.data_dir / "other-authority"
        folder.mkdir()
        # The same name as the real CA, but another key.
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                        "/CN=holdfast-ca", "-days", "10", "-keyout", "ca.key", "-out", "ca.crt"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        foreign = self.certificate("foreign", (folder / "ca.crt", folder / "ca.key"))
        self.refused(users.call("GET", "/healthz", certificate=foreign), 401, "Unauthorized")

    def test_the_serving_certificate_is_not_a_client_certificate(self):
        own = (users.pki / "apiserver.crt", users.pki / "apiserver.key")
        self.refused(users.call("GET", "/healthz", certificate=own), 401, "Unauthorized")

    def test_front_proxy_headers_are_ignored_from_other_clients(self):
        headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
        self.refused(users.call("GET", "/api/v1/secrets", headers=headers), 403, "system:anonymous")
        self.refused(tenant("GET", "/api/v1/secrets", headers=headers), 403, 'User "tenant"')

    def test_front_proxy_uids_require_the_flag_for_their_header(self):
        headers = {"X-Remote-User": "proxied", "X-Remote-Uid": "7"}

        def seen(*flags):
            server = start("--requestheader-client-ca-file", str(users.pki / "ca.crt"), *flags)
            try:
                answer = Users(server).call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers, certificate=self.proxy)
                self.assertEqual(answer.code, 201, answer.text)
                return answer.json["status"]["userInfo"]
            finally:
                server.stop()
                server.folder.cleanup()

        self.proxy = self.certificate("proxy", self.authority())
        self.assertEqual(seen()["username"], "proxied")
        self.assertNotIn("uid", seen())
        self.assertEqual(seen("--requestheader-uid-headers=X-Remote-Uid")["uid"], "7")


class TokenTest(SecurityTest):
    ACCOUNTS = "/api/v1/namespaces/mine/serviceaccounts"

    @classmethod
    def setUpClass(cls):
        users.made(cls.ACCOUNTS, {"metadata": {"name": "robot"}})
        cls.token = cls.issue("robot")

    @classmethod
    def issue(cls, account, **spec):
        return users.made(f"{cls.ACCOUNTS}/{account}/token", {"spec": spec})["status"]["token"]

    def works(self, token):
        return users.call("GET", "/apis", token=token).code == 200

    def test_valid_credentials_are_accepted(self):
        self.assertTrue(self.works(self.token))

    def test_modified_tokens_are_rejected(self):
        header, payload, signature = self.token.split(".")
        claims = access_helper.claims_of(self.token)
        claims["sub"] = "system:serviceaccount:kube-system:admin"
        forged = access_helper.base64url(json.dumps(claims).encode())
        for token in (f"{header}.{forged}.{signature}", f"{header}.{payload}.{signature[:-4]}AAAA", f"{header}.{payload}.",
                      f"{header}.{payload}", f"{payload}.{payload}.{signature}", self.token + ".x"):
            self.refused(users.call("GET", "/healthz", token=token), 401, "Unauthorized")

    def test_other_algorithms_are_rejected(self):
        _, payload, _ = self.token.split(".")
        none = access_helper.base64url(b'{"alg":"none"}') + "." + payload + "."
        text = access_helper.base64url(b'{"alg":"HS256"}') + "." + payload
        public = (users.pki / "sa.pub").read_bytes()  # A classic attack: the public key as an HMAC secret.
        shared = text + "." + access_helper.base64url(hmac.new(public, text.encode(), hashlib.sha256).digest())
        for token in (none, shared):
            self.refused(users.call("GET", "/healthz", token=token), 401, "Unauthorized")

    def signed(self, key=None, **changes):
        claims = {**access_helper.claims_of(self.token), **changes}
        return access_helper.make_token(claims, key or users.pki / "sa.key", access_helper.header_of(self.token))

    def test_claims_are_checked_even_with_the_right_key(self):
        self.assertTrue(self.works(self.signed()))
        now = int(time.time())
        for why, token in {
                "expired": self.signed(exp=now - 3600, nbf=now - 7200, iat=now - 7200),
                "not valid yet": self.signed(nbf=now + 3600),
                "another issuer": self.signed(iss="https://elsewhere"),
                "another audience": self.signed(aud=["vault"]),
                "another subject": self.signed(sub="system:serviceaccount:mine:other"),
        }.items():
            with self.subTest(why):
                self.refused(users.call("GET", "/healthz", token=token), 401, "Unauthorized")

    def test_critical_extensions_are_not_ignored(self):
        token = access_helper.make_token(access_helper.claims_of(self.token), users.pki / "sa.key",
                                         {**access_helper.header_of(self.token), "crit": ["b64"], "b64": True})
        self.refused(users.call("GET", "/healthz", token=token), 401, "Unauthorized")

    def test_oversized_tokens_are_rejected_even_with_the_right_key(self):
        self.assertTrue(self.works(self.signed(padding="x" * 1000)))
        self.refused(users.call("GET", "/healthz", token=self.signed(padding="x" * 20_000)), 401, "Unauthorized")

    def test_tokens_signed_by_another_key_are_rejected(self):
        key = users.server.data_dir / "other.key"
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)], check=True)
        self.refused(users.call("GET", "/healthz", token=self.signed(key)), 401, "Unauthorized")

    def test_tokens_for_another_audience_are_only_valid_there(self):
        token = self.issue("robot", audiences=["vault"])
        self.refused(users.call("GET", "/healthz", token=token), 401, "Unauthorized")
        review = lambda audiences: users.made("/apis/authentication.k8s.io/v1/tokenreviews",
                                              {"spec": {"token": token, "audiences": audiences}})["status"]
        self.assertNotIn("authenticated", review([]))
        self.assertEqual(review(["vault"])["user"]["username"], "system:serviceaccount:mine:robot")

    def test_tokens_end_with_their_account_and_bound_object(self):
        users.made(self.ACCOUNTS, {"metadata": {"name": "brief"}})
        users.made("/api/v1/namespaces/mine/secrets", {"metadata": {"name": "bond"}})
        bound = self.issue("brief", boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "bond"})
        free = self.issue("brief")
        users.when(lambda: self.works(bound) and self.works(free))
        users.admin("DELETE", "/api/v1/namespaces/mine/secrets/bond")
        users.when(lambda: not self.works(bound))
        users.made("/api/v1/namespaces/mine/secrets", {"metadata": {"name": "bond"}})  # Recreating the name is not enough.
        self.assertFalse(self.works(bound))
        self.assertTrue(self.works(free))
        users.admin("DELETE", self.ACCOUNTS + "/brief")
        users.when(lambda: not self.works(free))
        users.made(self.ACCOUNTS, {"metadata": {"name": "brief"}})
        self.assertFalse(self.works(free))


class EscalationTest(SecurityTest):
    """The tenant may write roles and bindings in its namespace, but must not gain permissions by that."""
    ROLES, BINDINGS = f"{RBAC}/namespaces/mine/roles", f"{RBAC}/namespaces/mine/rolebindings"
    MORE = [rule("escalate", ["rbac.authorization.k8s.io"], "roles")]
    SAME = [rule("get list", [""], "pods")]

    @classmethod
    def setUpClass(cls):
        assert tenant("POST", cls.ROLES, {"metadata": {"name": "small"}, "rules": cls.SAME}).code == 201

    def test_roles_with_more_than_ones_own_permissions_are_denied(self):
        text = "is attempting to grant RBAC permissions not currently held"
        self.refused(tenant("POST", self.ROLES, {"metadata": {"name": "big"}, "rules": self.MORE}), 403, text)
        self.refused(tenant("PUT", self.ROLES + "/small", {"metadata": {"name": "small"}, "rules": self.MORE}), 403, text)
        for kind, patch in {"application/merge-patch+json": {"rules": self.MORE},
                            "application/strategic-merge-patch+json": {"rules": self.MORE},
                            "application/json-patch+json": [{"op": "replace", "path": "/rules", "value": self.MORE}]}.items():
            self.refused(tenant("PATCH", self.ROLES + "/small", patch, headers={"Content-Type": kind}), 403, text)
        for name in ("small", "new"):
            config = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": self.MORE}
            self.refused(tenant("PATCH", f"{self.ROLES}/{name}?fieldManager=m&force=true", config,
                                headers={"Content-Type": "application/apply-patch+yaml"}), 403, text)

    def test_bindings_to_more_powerful_roles_are_denied(self):
        text = "is attempting to grant RBAC permissions not currently held"
        binding = lambda role: {"metadata": {"name": "b"}, "roleRef": role, "subjects": [{"kind": "User", "name": "tenant"}]}
        self.refused(tenant("POST", self.BINDINGS, binding(role_ref("ClusterRole", "cluster-admin"))), 403, text)
        self.refused(tenant("POST", self.BINDINGS, binding(role_ref("ClusterRole", "nosuch"))), 404)
        self.refused(tenant("POST", RBAC + "/clusterrolebindings", binding(role_ref("ClusterRole", "cluster-admin"))), 403,
                     "at the cluster scope")
        self.assertEqual(tenant("POST", self.BINDINGS, binding(role_ref("Role", "small"))).code, 201)

    def test_aggregated_roles_require_cluster_admin(self):
        grant(users, "role-writer", [rule("create update get", ["rbac.authorization.k8s.io"], "clusterroles")], "plain")
        users.when(lambda: users.call("GET", RBAC + "/clusterroles/view", token="plain-token").code == 200)
        gathers = {"metadata": {"name": "g"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
        self.refused(users.call("POST", RBAC + "/clusterroles", gathers, token="plain-token"), 403,
                     "must have cluster-admin privileges to use the aggregationRule")

    def test_selectors_do_not_provide_a_name_for_creates(self):
        grant(users, "named", [rule("create", [""], "configmaps", ["allowed"])], "named-user", "mine")
        headers = {"Impersonate-User": "named-user"}
        path = "/api/v1/namespaces/mine/configmaps?fieldSelector=metadata.name=allowed"
        self.refused(users.admin("POST", path, {"metadata": {"name": "allowed"}}, headers=headers), 403, "cannot create")


class ImpersonationTest(SecurityTest):
    def test_impersonation_requires_permission(self):
        for name, headers, code, text in (
                ("user", {"Impersonate-User": "admin"}, 403, "cannot impersonate-on:user-info:list"),
                ("group", {"Impersonate-User": "tenant", "Impersonate-Group": "system:masters"}, 403, "cannot impersonate"),
                ("account", {"Impersonate-User": "system:serviceaccount:kube-system:x"}, 403, "impersonate-on:serviceaccount:list"),
                ("node", {"Impersonate-User": "system:node:n"}, 403, "cannot impersonate-on:arbitrary-node:list"),
                ("group alone", {"Impersonate-Group": "system:masters"}, 400, "without impersonating a user"),
                ("uid alone", {"Impersonate-Uid": "1"}, 400, "without impersonating a user"),
                ("extra alone", {"Impersonate-Extra-scopes": "all"}, 400, "without impersonating a user")):
            with self.subTest(name):
                self.refused(tenant("GET", "/api/v1/namespaces/theirs/secrets", headers=headers), code, text)
        self.refused(users.call("GET", "/api", headers={"Impersonate-User": "admin"}), 403, "system:anonymous")

    def test_impersonation_is_limited_to_the_permitted_user_and_groups(self):
        grant(users, "as-plain", [rule("impersonate", [""], "users", ["plain"])], "tenant")
        path = "/api/v1/namespaces/theirs/secrets"
        users.when(lambda: 'User "plain"' in tenant("GET", path, headers={"Impersonate-User": "plain"}).message)
        for more in ({"Impersonate-Group": "system:masters"}, {"Impersonate-Uid": "7"}, {"Impersonate-Extra-scopes": "all"}):
            self.refused(tenant("GET", path, headers={"Impersonate-User": "plain", **more}), 403, "cannot impersonate")
        self.refused(tenant("GET", path, headers={"Impersonate-User": "admin"}), 403, "cannot impersonate")

    def test_permissions_are_those_of_the_impersonated_user(self):
        self.refused(users.admin("GET", "/api/v1/secrets", headers={"Impersonate-User": "nobody"}), 403, 'User "nobody"')


class PathTest(SecurityTest):
    def test_path_variations_do_not_reach_other_resources(self):
        for path in ("/api/v1/namespaces/mine/../theirs/secrets/s", "/api/v1/namespaces/mine/%2e%2e/theirs/secrets/s",
                     "/api/v1/namespaces/mine%2f..%2ftheirs/secrets/s", "/api/v1/namespaces/mine/secrets/..%2f..%2ftheirs%2fsecrets%2fs",
                     "/api/v1/namespaces/mine/secrets/%2e%2e%2f%2e%2e%2ftheirs%2fsecrets%2fs", "/api/v1/namespaces/mine/..;/theirs/secrets/s",
                     "//api/v1/namespaces/theirs/secrets/s", "/api//v1/namespaces/theirs/secrets/s",
                     "/api/v1//namespaces/theirs/secrets/s", "/./api/v1/namespaces/theirs/secrets/s",
                     "/healthz/../api/v1/namespaces/theirs/secrets/s", "/healthz/%2e%2e/api/v1/namespaces/theirs/secrets/s",
                     "/api/v1/namespaces/theirs/secrets/s/", "/api/v1/namespaces/theirs/secrets/s%00", "/api/v1/namespaces/theirs%00/secrets/s",
                     "/API/v1/namespaces/theirs/secrets/s", "/api/v1/namespaces//secrets/s", "/api/v1/secrets/s",
                     "/api/v1/watch/namespaces/theirs/secrets/s", "/api/v1/proxy/namespaces/theirs/secrets/s",
                     "/api/v1/namespaces/mine/secrets/s?namespace=theirs/../", "/api/v1/namespaces/theirs/secrets/s#/mine",
                     "/api/v1/namespaces/mine\\..\\theirs/secrets/s", "/api/v1/namespaces/%74heirs/secrets/s"):
            with self.subTest(path):
                answer = tenant("GET", path)
                if path.startswith("/api/v1/namespaces/mine/secrets/s?"):
                    self.assertEqual(answer.json["metadata"]["namespace"], "mine")
                else:
                    self.assertIn(answer.code, (301, 400, 403, 404), answer.text)
                    self.assertNotIn(SECRET, answer.text)

    def test_a_body_cannot_name_another_namespace_or_object(self):
        self.refused(tenant("POST", "/api/v1/namespaces/mine/configmaps", {"metadata": {"name": "c", "namespace": "theirs"}}), 400,
                     "does not match the namespace sent on the request")
        other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}}
        self.refused(tenant("PUT", "/api/v1/namespaces/mine/secrets/s", other), 400, "does not match the name on the URL")
        for name in ("../x", "a/b", "..", "%2e%2e"):
            self.refused(tenant("POST", "/api/v1/namespaces/mine/secrets", {"metadata": {"name": name}}), 422)


class AmbiguousRequestTest(SecurityTest):
    """A user who may only see one object: ambiguous requests are authorized for what they are served."""

    SECRETS = "/api/v1/namespaces/one/secrets"

    @classmethod
    def setUpClass(cls):
        users.made("/api/v1/namespaces", {"metadata": {"name": "one"}})
        for name in ("a", "b"):
            users.made(cls.SECRETS, {"metadata": {"name": name}, "data": {"password": SECRET if name == "b" else ""}})
        named = [rule("list watch deletecollection", [""], "secrets", ["a"])]
        grant(users, "only-a", named, "only-a", "one")
        grant(users, "only-a-everywhere", named, "only-a-everywhere")
        grant(users, "lister", [rule("list", [""], "configmaps")], "lister", "one")
        grant(users, "watcher", [rule("watch", [""], "configmaps")], "watcher", "one")
        for user, resource in (("only-a", "secrets?fieldSelector=metadata.name%3Da"), ("only-a-everywhere", "secrets?fieldSelector=metadata.name%3Da"),
                               ("lister", "configmaps"), ("watcher", "configmaps?watch=1&timeoutSeconds=1")):
            users.when(lambda: cls.ask(user, "GET", "/api/v1/namespaces/one/" + resource).code == 200)

    @staticmethod
    def ask(user, method, path):
        return users.admin(method, path, headers={"Impersonate-User": user})

    # The query, and whether kube-apiserver treats it as a request for only the Secret a.
    NAMES = (("", False),
             ("fieldSelector=metadata.name%3Da", True),
             ("fieldSelector=metadata.name==a", True),
             ("fieldSelector=metadata.name=a&fieldSelector=", True),
             ("fieldSelector=&fieldSelector=metadata.name%3Da", False),
             ("fieldSelector&fieldSelector=metadata.name%3Da", False),
             ("fieldSelector=metadata.name=a&fieldSelector=metadata.name=b", True),
             ("fieldSelector=metadata.name=b&fieldSelector=metadata.name=a", False),
             ("fieldSelector=metadata.name=b,metadata.name=a", True),  # Terms are sorted; no object has both names.
             ("fieldSelector=metadata.name!=a", False),
             ("fieldSelector=metadata.name=", False),
             ("fieldselector=metadata.name=a", False),
             ("FieldSelector=metadata.name=a", False),
             ("fieldSelector=metadata.Name=a", False),
             ("FIELDSELECTOR=metadata.name=a&fieldSelector=metadata.name=b", False),
             ("%66ieldSelector=metadata.name=a&fieldSelector=", True),
             ("%66ieldSelector=&fieldSelector=metadata.name=a", False),
             ("field%20Selector=metadata.name=a", False),
             ("fieldSelector=metadata%2ename%3da", True),
             ("fieldSelector=metadata.name=a;", False),
             ("fieldSelector=metadata.name=a;fieldSelector=", False),
             ("fieldSelector=metadata.name=b;&fieldSelector=metadata.name=a", True),
             ("fieldSelector=%zz&fieldSelector=metadata.name=a", True),
             ("fieldSelector=metadata.name=a%5C,b", False),  # Another name: a,b.
             ("fieldSelector=metadata.name=a,", True),
             ("fieldSelector=metadata.name=a,b", False),  # Not parsable.
             ("fieldSelector=metadata.name=a&limit=x", False),
             ("fieldSelector=metadata.name=a&limit=1&limit=x", True),
             ("fieldSelector=metadata.name=a&labelSelector=(", False),
             ("labelSelector=metadata.name=a", False))

    def shown(self, answer):
        self.assertNotIn(SECRET, answer.text)
        if answer.code == 200:
            self.assertNotIn('"name":"b"', answer.text)

    def test_lists_and_watches_by_name(self):
        for user, path in (("only-a", self.SECRETS), ("only-a-everywhere", self.SECRETS), ("only-a-everywhere", "/api/v1/secrets")):
            for query, about_a in self.NAMES:
                for verb, watch in (("list", ""), ("watch", "&watch=1&resourceVersion=0&timeoutSeconds=1")):
                    with self.subTest(f"{user} {verb} {path}?{query}"):
                        answer = self.ask(user, "GET", f"{path}?{query}{watch}")
                        self.shown(answer)
                        self.assertEqual(answer.code, 200 if about_a else 403, answer.text)
                        if not about_a:
                            self.assertIn("cannot " + verb, answer.message)

    def test_deletecollection_ignores_names_in_selectors(self):
        for query, _ in self.NAMES:
            with self.subTest(query):
                self.refused(self.ask("only-a", "DELETE", f"{self.SECRETS}?{query}"), 403, "cannot deletecollection")
        self.assertEqual([users.admin("GET", f"{self.SECRETS}/{name}").code for name in ("a", "b")], [200, 200])

    def test_deprecated_watch_paths_ignore_names_in_selectors(self):
        old = "/api/v1/watch/namespaces/one/secrets"
        for query, _ in self.NAMES:
            with self.subTest(query):
                self.refused(self.ask("only-a", "GET", f"{old}?{query}&timeoutSeconds=1"), 403, "cannot watch")
        answer = self.ask("only-a", "GET", f"{old}/a?resourceVersion=0&timeoutSeconds=1")
        self.assertEqual(answer.code, 200)
        self.assertIn('"name":"a"', answer.text)
        self.shown(answer)
        for query in ("fieldSelector=metadata.name=b", "fieldSelector=metadata.name!=a", "fieldSelector=metadata.name=b&fieldSelector=metadata.name=a"):
            with self.subTest(query):
                self.refused(self.ask("only-a", "GET", f"{old}/a?{query}&timeoutSeconds=1"), 400, "doesn't match requested name")
        answer = self.ask("only-a", "GET", f"{old}/a?fieldSelector=&fieldSelector=metadata.name=b&resourceVersion=0&timeoutSeconds=1")
        self.assertEqual(answer.code, 200, answer.text)
        self.shown(answer)

    # The query, and whether it asks for a watch.
    WATCHES = (("", False), ("watch", True), ("watch=", True), ("watch=1", True), ("watch=no", True), ("watch=0", False), ("watch=FALSE", False),
               ("watch=1&watch=0", True), ("watch=0&watch=1", False), ("watch=&watch=0", True), ("watch=false&watch=true", False),
               ("Watch=1", False), ("WATCH=1&watch=0", False), ("w%61tch=1", True), ("w%61tch=1&watch=0", True), ("%77atch=0&watch=1", False),
               ("watch=1;", False), ("watch=1;watch=0", False), ("watch=0;&watch=1", True), ("watch=%zz", False), ("watch=%zz&watch=1", True),
               ("watch%20=1", False), ("watch=%30", False), ("limit=x&watch=1", True), ("limit=x&watch=0&watch=1", False))

    def test_a_list_is_not_a_watch(self):
        for query, is_watch in self.WATCHES:
            path = f"/api/v1/namespaces/one/configmaps?timeoutSeconds=1&{query}"
            served = 400 if "limit=x" in query else 200
            with self.subTest(query):
                answer = self.ask("lister", "GET", path)
                self.assertEqual(answer.code, 403 if is_watch else served, answer.text)
                if is_watch:
                    self.assertIn("cannot watch", answer.message)
                answer = self.ask("watcher", "GET", path)
                self.assertEqual(answer.code, served if is_watch else 403, answer.text)
                if not is_watch:
                    self.assertIn("cannot list", answer.message)

    def test_the_audit_log_records_what_was_served(self):
        metrics = users.admin("GET", "/metrics").text
        watched = 'apiserver_request_total{verb="WATCH",'
        lines = [line for line in metrics.splitlines() if line.startswith(watched) and 'resource="nodes"' in line]
        self.assertEqual(lines, [])
        users.admin("GET", "/api/v1/nodes?watch=1&watch=0&timeoutSeconds=1")
        users.admin("GET", "/api/v1/nodes?watch=0&watch=1&dryRun=x")
        metrics = users.admin("GET", "/metrics").text
        lines = [line for line in metrics.splitlines() if line.startswith(watched) and 'resource="nodes"' in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].endswith(" 1"), lines)
        self.assertIn('apiserver_request_total{verb="LIST",dry_run="invalid",group="",version="v1",resource="nodes"', metrics)


class NamespaceOwnerTest(SecurityTest):
    """A user with all permissions in one namespace."""

    @staticmethod
    def ask(method, path):
        return users.admin(method, path, headers={"Impersonate-User": "owner"})

    def test_all_permissions_in_a_namespace_reach_nothing_outside(self):
        """Cluster-scoped resources, namespaces among them, are not served below a namespace, where its owner is authorized."""
        grant(users, "owner", [rule("*", ["*"], "*")], "owner", "mine")
        users.when(lambda: self.ask("GET", "/api/v1/namespaces/mine/secrets").code == 200)
        groups = users.admin("GET", "/apis").json["groups"]
        tried = 0
        for root in ["/api/v1"] + ["/apis/" + version["groupVersion"] for group in groups for version in group["versions"]]:
            for resource in users.admin("GET", root).json["resources"]:
                if resource["namespaced"] or "/" in resource["name"]:
                    continue
                found = users.admin("GET", f"{root}/{resource['name']}").json.get("items") or [] if "list" in resource["verbs"] else []
                name = found[0]["metadata"]["name"] if found else "any"
                for below in ("namespaces/mine", "watch/namespaces/mine"):
                    for path in (resource["name"], *(f"{resource['name']}/{name}{sub}" for sub in ("", "/status", "/finalize"))):
                        for method in ("GET", "PUT", "PATCH", "POST", "DELETE"):
                            answer = self.ask(method, f"{root}/{below}/{path}?dryRun=All")
                            self.assertIn(answer.code, (403, 404, 405), f"{method} {root}/{below}/{path}: {answer.text[:200]}")
                            tried += 1
        self.assertGreater(tried, 1000)
        self.assertEqual(self.ask("GET", "/api/v1/namespaces/mine").code, 200)


class TenantTest(SecurityTest):
    """Objects of another namespace cannot be read or written in any way."""

    def test_reading(self):
        text = 'User "tenant" cannot'
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        for path in ("/api/v1/namespaces/theirs/secrets/s", "/api/v1/namespaces/theirs/secrets", "/api/v1/secrets",
                     "/api/v1/secrets?fieldSelector=metadata.namespace=mine", "/api/v1/secrets?fieldSelector=metadata.name=s",
                     "/api/v1/secrets?labelSelector=a", "/api/v1/secrets?limit=1", "/api/v1/secrets?resourceVersion=0",
                     "/api/v1/namespaces/theirs/secrets?watch=true&timeoutSeconds=1", "/api/v1/secrets?watch=1&timeoutSeconds=1",
                     "/api/v1/watch/secrets?timeoutSeconds=1", "/api/v1/watch/namespaces/theirs/secrets?timeoutSeconds=1",
                     "/api/v1/namespaces/theirs/secrets?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                     "&allowWatchBookmarks=true&timeoutSeconds=1", "/api/v1/namespaces/theirs/pods/p/log",
                     "/apis/apps/v1/namespaces/theirs/deployments/d/scale", "/api/v1/namespaces/theirs", "/api/v1/namespaces",
                     "/api/v1/nodes", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                     "/api/v1/namespaces/kube-system/configmaps"):
            for accept in ("application/json", table, metadata, "application/vnd.kubernetes.protobuf"):
                with self.subTest(path + " as " + accept):
                    answer = tenant("GET", path, headers={"Accept": accept})
                    self.assertEqual(answer.code, 403, answer.text)
                    self.assertIn(text, answer.text.replace('\\"', '"'))
                    self.assertNotIn(SECRET, answer.text)
        self.assertIn(SECRET, tenant("GET", "/api/v1/namespaces/mine/secrets/s").text)

    def test_lists_show_only_the_own_namespace(self):
        continued = users.admin("GET", "/api/v1/secrets?limit=1").json["metadata"]["continue"]
        for query in ("", "?fieldSelector=metadata.namespace=theirs", "?fieldSelector=metadata.namespace!=mine",
                      "?limit=500&continue=" + continued):
            answer = tenant("GET", "/api/v1/namespaces/mine/secrets" + query)
            if answer.code == 200:
                self.assertTrue(all(item["metadata"]["namespace"] == "mine" for item in answer.json["items"] or []), answer.text)
            else:
                self.assertIn(answer.code, (400, 410), answer.text)

    def test_watches_show_only_the_own_namespace(self):
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        for accept, query in (("application/json", ""), (table, "&includeObject=Object"), ("application/json", "&fieldSelector=metadata.name=w"),
                              ("application/json", "&fieldSelector=metadata.namespace!=mine"),
                              ("application/json", "&fieldSelector=metadata.namespace=theirs")):
            with self.subTest(accept + query):
                connection = users.connect()
                connection.request("GET", "/api/v1/namespaces/mine/configmaps?watch=1&timeoutSeconds=2&resourceVersion=0" + query,
                                   headers={"Authorization": "Bearer tenant-token", "Accept": accept})
                answer = connection.getresponse()
                self.assertEqual(answer.status, 200)
                for namespace in ("theirs", "mine"):
                    users.made(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "w"}, "data": {"of": "it-is-of-" + namespace}})
                seen = answer.read().decode()
                connection.close()
                for namespace in ("theirs", "mine"):
                    users.admin("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/w")
                self.assertNotIn("it-is-of-theirs", seen)
                self.assertEqual("it-is-of-mine" in seen, "metadata.namespace" not in query, seen)

    def test_custom_resources(self):
        users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "metadata": {"name": "safes.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "safes", "kind": "Safe"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "additionalPrinterColumns": [{"name": "Code", "type": "string", "jsonPath": ".code"}],
                                   "selectableFields": [{"jsonPath": ".code"}],
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"code": {"type": "string"}}}}}]}})
        for namespace in ("mine", "theirs"):
            users.made(f"/apis/example.com/v1/namespaces/{namespace}/safes",
                       {"apiVersion": "example.com/v1", "kind": "Safe", "metadata": {"name": "s"}, "code": SECRET})
        self.assertIn(SECRET, tenant("GET", "/apis/example.com/v1/namespaces/mine/safes/s").text)
        for path in ("/apis/example.com/v1/safes", "/apis/example.com/v1/namespaces/theirs/safes", "/apis/example.com/v1/namespaces/theirs/safes/s",
                     "/apis/example.com/v1/namespaces/theirs/safes/s/status", "/apis/example.com/v1/safes?watch=1&timeoutSeconds=1",
                     "/apis/example.com/v1/safes?fieldSelector=code=x", "/apis/example.com/v1/watch/namespaces/theirs/safes?timeoutSeconds=1"):
            for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/cbor"):
                with self.subTest(path + " as " + accept):
                    answer = tenant("GET", path, headers={"Accept": accept})
                    self.assertEqual(answer.code, 403, answer.text)
                    self.assertNotIn(SECRET, answer.text)

    def test_writing(self):
        theirs = "/api/v1/namespaces/theirs"
        for method, path, body in (("POST", theirs + "/configmaps", {"metadata": {"name": "x"}}), ("PUT", theirs + "/secrets/s", {}),
                                   ("PATCH", theirs + "/secrets/s", {}), ("DELETE", theirs + "/secrets/s", None),
                                   ("DELETE", theirs + "/secrets", None), ("POST", theirs + "/serviceaccounts/default/token", {}),
                                   ("POST", theirs + "/pods/p/eviction", {}), ("POST", theirs + "/pods/p/binding", {}),
                                   ("PUT", theirs + "/finalize", {}), ("DELETE", theirs, None), ("DELETE", "/api/v1/namespaces/mine/", None),
                                   ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
                                   ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {}),
                                   ("POST", "/apis/authorization.k8s.io/v1/namespaces/theirs/localsubjectaccessreviews", {})):
            with self.subTest(method + " " + path):
                if path == "/api/v1/namespaces/mine/":
                    continue  # Its own, which the role permits.
                self.refused(tenant(method, path, body), 403, 'User "tenant" cannot')
        self.assertEqual(users.admin("GET", theirs + "/secrets/s").code, 200)


class WireTest(SecurityTest):
    """Requests that two parsers could read differently, and requests that are too expensive."""

    def raw(self, text, wait=5):
        """The response of the server to these bytes, until it closes the connection or stops sending."""
        context = ssl.create_default_context(cafile=str(users.pki / "ca.crt"))
        said = b""
        with socket.create_connection((users.host, users.port), timeout=wait) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
                try:
                    stream.sendall(text if isinstance(text, bytes) else text.encode())
                    stream.settimeout(0.5)
                    while chunk := stream.recv(65536):
                        said += chunk
                except (OSError, ssl.SSLError):
                    pass
        return said.decode(errors="replace")

    def test_smuggled_requests_are_not_served(self):
        hidden = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
        token = "Authorization: Bearer tenant-token\r\n"
        head = "POST /api/v1/namespaces/mine/configmaps HTTP/1.1\r\nHost: x\r\n" + token
        for name, request in {
                "two lengths": head + f"Content-Length: 0\r\nContent-Length: {len(hidden)}\r\n\r\n" + hidden,
                "length and chunks": head + f"Content-Length: {len(hidden) + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
                "unknown coding": head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
                "coding twice": head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
                "space before the colon": head + "Content-Length : 5\r\n\r\n" + hidden,
                "folded header": head + "X-A: b\r\n Content-Length: 5\r\n\r\n" + hidden,
                "signed length": head + "Content-Length: +5\r\n\r\n" + hidden,
                "length that is none": head + "Content-Length: 0x5\r\n\r\n" + hidden,
                "header without a name": head + ": v\r\n\r\n" + hidden,
        }.items():
            with self.subTest(name):
                said = self.raw(request)
                self.assertNotIn("gitVersion", said)
                self.assertRegex(said, r"^(HTTP/1\.1 (400|501) |$)")

    def test_headers_cannot_be_injected(self):
        said = self.raw("GET /api/v1/namespaces/theirs/secrets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tenant-token\r\n"
                        "Authorization: Bearer " + access_helper.ADMIN + "\r\nConnection: close\r\n\r\n")
        self.assertRegex(said, r"^HTTP/1\.1 (400|403) ")
        self.assertNotIn(SECRET, said)

    def test_oversized_requests_are_rejected(self):
        big = json.dumps({"metadata": {"name": "big"}, "data": {"a": "x" * (3 << 20)}})
        self.refused(tenant("POST", "/api/v1/namespaces/mine/configmaps", big), 413, "Request entity too large")
        said = self.raw("GET /version HTTP/1.1\r\nHost: x\r\nX-A: " + "y" * (2 << 20) + "\r\n\r\n", wait=20)
        self.assertRegex(said, r"^(HTTP/1\.1 (400|413|431) |$)")
        deep = '{"metadata":{"name":"d"},"data":' + "[" * 20000 + "]" * 20000 + "}"
        self.assertIn(tenant("POST", "/api/v1/namespaces/mine/configmaps", deep).code, (400, 413, 422))
        # A megabyte of YAML that expands to gigabytes.
        bomb = "a0: &a0 [x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join(['*a%d' % (i - 1)] * 8)}]\n" for i in range(1, 30))
        self.assertIn(tenant("POST", "/api/v1/namespaces/mine/configmaps", bomb, headers={"Content-Type": "application/yaml"}).code,
                      (400, 413, 422))
        self.assertEqual(users.call("GET", "/healthz").code, 200)

    @contextlib.contextmanager
    def unfinished(self, count, *texts):
        """Opens that many connections for each text in turn, without closing or reading them."""
        context = ssl.create_default_context(cafile=str(users.pki / "ca.crt"))
        with contextlib.ExitStack() as held:
            streams = []
            for text in texts * count:
                connection = socket.create_connection((users.host, users.port), timeout=10)
                streams.append(held.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1")))
                streams[-1].sendall(text.encode())
            yield streams

    def test_slow_senders_do_not_block_others(self):
        headers = "GET /api HTTP/1.1\r\nHost: x\r\n"
        body = ("POST /api/v1/namespaces/mine/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tenant-token\r\n"
                "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        with self.unfinished(30, body, headers):
            begin = time.monotonic()
            self.assertEqual(users.admin("GET", "/api/v1/namespaces/mine/secrets/s").code, 200)
            self.assertEqual(users.call("GET", "/apis", token="plain-token").code, 200)
            self.assertLess(time.monotonic() - begin, 5)

    def test_trickling_senders_and_stalled_readers_do_not_block_others(self):
        # Headers that never end, and a document of megabytes that is never read.
        asked = "GET /openapi/v2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer plain-token\r\n"
        with self.unfinished(15, asked + "X-Slow: ", asked + "\r\n") as slow:
            begin = time.monotonic()
            for _ in range(5):
                for stream in slow[::2]:
                    stream.sendall(b"z")
                self.assertEqual(users.admin("GET", "/api/v1/namespaces/mine/secrets/s").code, 200)
            self.assertLess(time.monotonic() - begin, 20)

    def test_malformed_request_lines_are_rejected(self):
        token = "Authorization: Bearer tenant-token\r\n"
        for line in ("GET /api/v1/namespaces/theirs/secrets/s", "GET  /api/v1/namespaces/theirs/secrets/s HTTP/1.1", "GET /api\x00 HTTP/1.1",
                     "GET http://127.0.0.1/api/v1/namespaces/theirs/secrets/s HTTP/1.1", "GET /api/v1/namespaces/theirs/secrets/s HTTP/9.9",
                     "GET /api/v1/namespaces/theirs/secrets/s HTTP/1.1\rX: y", "CONNECT theirs:443 HTTP/1.1"):
            with self.subTest(line):
                said = self.raw(line + "\r\nHost: x\r\n" + token + "Connection: close\r\n\r\n")
                self.assertNotIn(SECRET, said)
                self.assertRegex(said, r"^(HTTP/1\.[01] [45]\d\d |$)")

    def test_control_characters_in_a_target_are_rejected(self):
        # They would be forwarded to aggregated servers, together with what follows them.
        for character in "\n\r\t\x01\x0b\x1f\x7f":
            with self.subTest(repr(character)):
                said = self.raw(f"GET /version{character}X-Remote-User:admin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertRegex(said, r"^HTTP/1\.1 400 ")


class Own(SecurityTest):
    """Tests with their own server, which they may harm."""
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = start(*cls.FLAGS)
        cls.users = Users(cls.server)
        cls.users.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.server.folder.cleanup()

    def alive(self):
        self.assertIsNone(self.server.process.poll(), "the server has exited")
        self.assertEqual(self.users.call("GET", "/healthz").code, 200)

    def memory(self, what="VmHWM"):
        """In bytes; the peak unless another line is requested."""
        for line in pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) << 10
        return 0

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @classmethod
    def define(cls, preserve=True):
        name = "things" if preserve else "stricts"
        definition = attacks.definition(preserve)
        cls.users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        cls.users.when(lambda: cls.users.admin("GET", f"/apis/{attacks.GROUP}/v1/namespaces/mine/{name}").code == 200)


def aggregate(users, hooks, group):
    """Registers that server for version v1 of the group."""
    users.made("/api/v1/namespaces/default/services", {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
    users.made("/apis/apiregistration.k8s.io/v1/apiservices", {
        "metadata": {"name": f"v1.{group}"}, "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, "caBundle": base64.b64encode(hooks.ca).decode(),
            "service": {"namespace": "default", "name": "hook", "port": hooks.port}}})
    users.when(lambda: users.admin("GET", f"/apis/{group}/v1/answers").code == 200, 30)


class NestingTest(Own):
    """Nesting is limited everywhere, and nothing stored can crash the process."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.define()

    def test_json_patches_cannot_double_the_depth_indefinitely(self):
        self.users.made(attacks.THINGS, attacks.thing("doubled", '{"a":{}}'))
        answer = self.users.admin("PATCH", attacks.THINGS + "/doubled", attacks.doubling_patch(16),
                                  headers={"Content-Type": "application/json-patch+json"})
        self.assertIn(answer.code, (400, 413, 422), answer.text[:300])
        self.alive()

    def test_component_statuses_are_served(self):
        self.assertEqual(self.users.admin("GET", "/api/v1/componentstatuses").code, 200)
        self.users.admin("GET", "/api/v1/componentstatuses/scheduler")
        self.alive()

    def test_objects_that_would_crash_readers_are_not_stored(self):
        stored = []
        for levels in (900, 996, 997, 998, 999, 1000, 1001, 1020, 1100, 5000, 9999):
            answer = self.users.admin("POST", attacks.THINGS, attacks.thing(f"deep-{levels}", attacks.nested(levels)))
            self.assertIn(answer.code, (201, 400), answer.text[:300])
            if answer.code == 201:
                stored.append(f"deep-{levels}")
        self.assertIn("deep-900", stored)
        self.assertNotIn("deep-1001", stored)
        self.alive()
        self.server.stop()
        self.server.start()
        type(self).users = Users(self.server)
        self.assertEqual(self.users.admin("GET", attacks.THINGS).code, 200)
        for name in stored:
            read = self.users.admin("GET", f"{attacks.THINGS}/{name}")
            self.assertEqual(read.code, 200, name)
            # What was read can be written back, including managedFields.
            self.assertEqual(self.users.admin("PUT", f"{attacks.THINGS}/{name}", read.text).code, 200, name)
            self.assertEqual(self.users.admin("DELETE", f"{attacks.THINGS}/{name}").code, 200, name)

    def test_field_sets_that_are_nested_too_deeply_are_rejected(self):
        fields = '{"f:a":' * 5000 + "{}" + "}" * 5000
        entry = ',"managedFields":[{"manager":"m","operation":"Update","apiVersion":"%s/v1","fieldsType":"FieldsV1","fieldsV1":%s}]'
        answer = self.users.admin("POST", attacks.THINGS, attacks.thing("owned", metadata=entry % (attacks.GROUP, fields)))
        self.assertIn(answer.code, (201, 400), answer.text[:300])
        self.alive()
        self.assertEqual(self.users.admin("GET", attacks.THINGS).code, 200)


class FloodTest(Own):
    """Small requests do not use large amounts of memory, and all of it is released."""

    def test_cost_of_repeated_members_is_linear(self):
        before = self.memory()
        answer = self.users.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", attacks.repeated_members(20_000),
                                 token="plain-token")
        self.assertIn(answer.code, (201, 400), answer.text[:300])
        self.assertLess(self.memory() - before, 256 << 20)

    def test_metrics_do_not_grow_with_unauthenticated_requests(self):
        lines = lambda: self.users.admin("GET", "/metrics").text.count("\n")
        before, memory = lines(), self.memory("VmRSS")
        for i in range(200):
            long = f"x{i}" * 2000
            self.users.call(f"METHOD{i}", "/healthz")
            self.users.call("GET", f"/apis/{long}/v1/{long}?timeout=nonsense")
            self.users.call("GET", f"/apis/group{i}/v1/resource{i}?timeout=1s")
            self.users.call("GET", f"/path{i}?timeout=nonsense", token="plain-token")
            self.users.call("GET", f"/apis/apps/v1/deployments/name/sub{i}?timeout=nonsense", token="plain-token")
        self.assertLess(lines() - before, 2000)
        self.assertLess(self.memory("VmRSS") - memory, 64 << 20)

    def test_authentication_precedes_timeout_validation(self):
        off = start("--anonymous-auth=false")
        try:
            self.refused(Users(off).call("GET", "/api/v1/pods?timeout=nonsense"), 401, "Unauthorized")
        finally:
            off.stop()
            off.folder.cleanup()
        self.refused(self.users.admin("GET", "/api/v1/pods?timeout=nonsense"), 400, "invalid timeout")

    def test_colliding_claims_cost_nothing_without_a_signature(self):
        # CPU time with a difference so large (formerly 2.3 s, now nothing) that the load of the machine does not matter.
        token, before = attacks.colliding_token(30_000), self.cpu_seconds()
        self.refused(self.users.call("GET", "/healthz", token=token), 401, "Unauthorized")
        self.assertLess(self.cpu_seconds() - before, 1)


class UnreadTest(Own):
    """Clients that send little, read nothing, and leave the server with what it keeps for them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.maps = "/api/v1/namespaces/mine/configmaps"
        cls.users.made(cls.maps, {"metadata": {"name": "large"}, "data": {"a": "x" * 1_000_000}})
        grant(cls.users, "maps", [rule("get list", [""], "configmaps")], "tenant", "mine")
        cls.users.when(lambda: cls.users.call("GET", cls.maps, token="tenant-token").code == 200)

    def seats(self):
        text = self.users.admin("GET", "/metrics").text
        return sum(float(value) for value in re.findall(r'^apiserver_flowcontrol_current_executing_requests\{.*priority_level="(?!exempt).*\} (\S+)$', text, re.M))

    def test_headers_that_refer_to_earlier_ones_are_limited(self):
        # Each request of some 300 bytes has a megabyte of headers: 16 connections once kept 700 MB, for a minute.
        before, refused = self.memory("VmRSS"), 0
        with contextlib.ExitStack() as stack:
            for _ in range(16):
                peer = attacks.Http2(self.users, stack, window=0)
                peer.get("/version", peer.header("x-a", "y" * 3900, indexed=True) + b"\xbe" * 200)
                for _ in range(90):
                    peer.get("/version", b"\xbe" * 255)
                refused += sum(kind == peer.RST_STREAM and int.from_bytes(payload, "big") == peer.REFUSED_STREAM for kind, payload in peer.frames(0.2))
            self.assertLess(self.memory("VmRSS") - before, 450 << 20)
            self.assertGreater(refused, 0)
            # Ordinary requests are served, also on new connections of HTTP/2.
            self.alive()
            other = attacks.Http2(self.users, stack)
            other.get("/version")
            self.assertIn(b"gitVersion", b"".join(payload for _, payload in other.frames()))
        # Nothing remains counted.
        with contextlib.ExitStack() as stack:
            peer = attacks.Http2(self.users, stack)
            peer.get("/version", peer.header("x-a", "y" * 3900, indexed=True) + b"\xbe" * 200)
            self.assertIn(b"gitVersion", b"".join(payload for _, payload in peer.frames()))

    def test_a_user_whose_responses_are_not_read_is_held_back(self):
        get = lambda token: self.users.call("GET", self.maps + "/large", token=token).code

        def held_back():
            try:
                return get("tenant-token") == 429
            except AssertionError:
                return False  # Cut off, like the others.

        grant(self.users, "other", [rule("get", [""], "configmaps")], "plain", "mine")
        self.users.when(lambda: get("plain-token") == 200)
        before = self.memory("VmRSS")
        with contextlib.ExitStack() as stack:
            # 1,600 responses of a megabyte each.
            for _ in range(16):
                peer = attacks.Http2(self.users, stack, window=0)
                for _ in range(100):
                    peer.get(self.maps + "/large", peer.header("authorization", "Bearer tenant-token") + peer.header("accept", "application/json"))
            self.users.when(held_back)
            self.users.when(lambda: self.seats() == 0, 30)
            self.assertLess(self.memory("VmRSS") - before, 900 << 20)
            # They keep no seats, and hold back nobody else.
            self.assertEqual(get("plain-token"), 200)
            self.alive()
        self.users.when(lambda: get("tenant-token") == 200)

    def test_an_unread_response_is_cut_off_at_its_deadline(self):
        self.users.when(lambda: self.users.call("GET", self.maps, token="tenant-token").code == 200)
        with contextlib.ExitStack() as stack:
            peer = attacks.Http2(self.users, stack, window=0)
            peer.get(self.maps + "/large?timeout=1s", peer.header("authorization", "Bearer tenant-token") + peer.header("accept", "application/json"))
            self.users.when(lambda: any(kind == peer.RST_STREAM for kind, _ in peer.frames(0.1)), 30)
        self.users.when(lambda: self.seats() == 0)


class WriteCostTest(Own):
    """The cost of writes is linear in their size: each of these once took seconds or more. Only the responses are checked
    here; tests/cost/cost_test.py measures the cost."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.define()
        cls.define(preserve=False)

    def test_a_role_with_a_million_combinations(self):
        everything = [rule("create", ["rbac.authorization.k8s.io"], "roles")]
        grant(self.users, "writer", everything, "tenant", "mine")
        path = f"{RBAC}/namespaces/mine/roles"
        self.users.when(lambda: self.users.call("POST", path, {}, token="tenant-token").code != 403)
        self.refused(self.users.call("POST", path, attacks.large_role(100), token="tenant-token"), 403, "not currently held")

    def test_a_role_with_a_long_verb_and_many_resources(self):
        # The error once named the verb with each of the resources: 12 s of CPU time and 3.5 GB.
        path = f"{RBAC}/namespaces/mine/roles"
        grant(self.users, "writer-of-long-verbs", [rule("create", ["rbac.authorization.k8s.io"], "roles")], "tenant", "mine")
        self.users.when(lambda: self.users.call("POST", path, {}, token="tenant-token").code != 403)
        long = {"metadata": {"name": "long"}, "rules": [rule("v" * 900_000, [""], " ".join(f"r{i}" for i in range(1000)))]}
        answer = self.users.call("POST", path, long, token="tenant-token")
        self.refused(answer, 403, "not currently held")
        self.assertLess(len(answer.text), 4_000_000)
        self.assertLess(self.memory(), 1 << 30)
        self.alive()

    def test_a_role_that_is_bound_hundreds_of_times(self):
        # Each binding once added all rules to the list, and to what the user is compared with when writing a role.
        names = [f"n{i}" for i in range(20_000)]
        self.users.made(f"{RBAC}/namespaces/mine/roles", {"metadata": {"name": "often"}, "rules": [rule("get", [""], "pods", names)]})
        for i in range(50):
            self.users.made(f"{RBAC}/namespaces/mine/rolebindings", {"metadata": {"name": f"often-{i}"}, "roleRef": role_ref("Role", "often"),
                                                                     "subjects": [{"kind": "User", "name": "plain"}]})
        review = lambda: self.users.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "mine"}}, token="plain-token")
        self.users.when(lambda: '"n19999"' in review().text)
        self.assertEqual(review().text.count('"n19999"'), 1)

    def test_a_pod_of_an_account_with_thousands_of_pull_secrets(self):
        # Each of them once copied all others: the request reached its limit of memory.
        secrets = [{"name": f"s{i}"} for i in range(40_000)]
        self.users.made("/api/v1/namespaces/mine/serviceaccounts", {"metadata": {"name": "puller"}, "imagePullSecrets": secrets})
        pod = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "puller", "containers": [{"name": "c", "image": "i"}]}}
        answer = self.users.admin("POST", "/api/v1/namespaces/mine/pods?dryRun=All", pod)
        self.assertEqual(answer.code, 201, answer.text[:300])
        self.assertEqual(len(answer.json["spec"]["imagePullSecrets"]), len(secrets))

    def test_thousands_of_unset_markers_in_structs_that_do_not_exist(self):
        # Each of them once copied the map that the structs are in: the request reached its limit of memory.
        inner = {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string", "default": "d"}}}
        definition = attacks.definition(preserve=False)
        definition["metadata"]["name"], definition["spec"]["names"] = f"marks.{attacks.GROUP}", {"plural": "marks", "singular": "mark", "kind": "Mark"}
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
            "type": "object", "additionalProperties": {"type": "object", "properties": {"s": inner}}}
        self.users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        path = f"/apis/{attacks.GROUP}/v1/namespaces/mine/marks"
        self.users.when(lambda: self.users.admin("GET", path).code == 200)
        config = {"apiVersion": f"{attacks.GROUP}/v1", "kind": "Mark", "metadata": {"name": "m"},
                  "spec": {f"k{i}": {"s": {"b": {"k8s_io__value": "unset"}}} for i in range(15_000)}}
        answer = self.users.admin("PATCH", path + "/m?fieldManager=m", config, headers={"Content-Type": "application/apply-patch+yaml"})
        self.assertEqual(answer.code, 201, answer.text[:300])

    def test_large_numbers_of_items(self):
        for what, body in {"owners": attacks.owner_references(10_000), "values": attacks.value_keys(50_000)}.items():
            with self.subTest(what):
                self.assertEqual(self.users.admin("POST", attacks.THINGS, body).code, 201)
        answer = self.users.admin("POST", f"/apis/{attacks.GROUP}/v1/namespaces/mine/stricts?fieldValidation=Warn", attacks.unknown_fields(40_000))
        self.assertEqual(answer.code, 201, answer.text[:300])


class ManagedFieldsTest(Own):
    """Clients may send managedFields; what Kubernetes does not store is not stored."""
    CONFIG_MAPS = "/api/v1/namespaces/mine/configmaps"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.define()

    def entry(self, **members):
        return {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:z": {}}}} | members

    def config_map(self, name, *entries):
        return {"metadata": {"name": name, "managedFields": list(entries)}, "data": {"a": "b"}}

    def test_invalid_entries_are_rejected(self):
        long, control = "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes", "metadata.managedFields[0].manager: Invalid value: "
        for entry, want in ((self.entry(manager="x" * 129), long),
                            (self.entry(manager="a\nb"), control + '"a\\nb": invalid character U+000A (at position 1)'),
                            (self.entry(manager="\x1b"), control + '"\\x1b": invalid character U+001B (at position 0)'),
                            (self.entry(manager="é\u202e"), control + '"é\\u202e": invalid character U+202E (at position 2)'),
                            (self.entry(subresource="s" * 257), "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes")):
            with self.subTest(want):
                for path in (self.CONFIG_MAPS, self.CONFIG_MAPS + "?dryRun=All"):
                    self.refused(self.users.admin("POST", path, self.config_map("invalid", entry)), 422, want)
                thing = {"apiVersion": f"{attacks.GROUP}/v1", "kind": "Thing", "metadata": {"name": "invalid", "managedFields": [dict(entry, apiVersion=f"{attacks.GROUP}/v1")]}}
                self.refused(self.users.admin("POST", attacks.THINGS, thing), 422, want)
                self.users.admin("DELETE", self.CONFIG_MAPS + "/valid")
                self.users.made(self.CONFIG_MAPS, self.config_map("valid", self.entry()))
                self.refused(self.users.admin("PUT", self.CONFIG_MAPS + "/valid", self.config_map("valid", entry)), 422, want)
                patch = {"metadata": {"managedFields": [entry]}}
                self.refused(self.users.admin("PATCH", self.CONFIG_MAPS + "/valid", patch, headers={"Content-Type": "application/merge-patch+json"}), 422, want)
        self.assertEqual(self.users.admin("POST", self.CONFIG_MAPS, self.config_map("longest", self.entry(manager="x" * 128, subresource="s" * 256))).code, 201)

    def test_an_invalid_name_of_a_megabyte_is_not_shown_for_each_of_its_characters(self):
        answer = self.users.admin("POST", self.CONFIG_MAPS, self.config_map("loud", self.entry(manager="\x07" * 400_000)))
        self.assertEqual(answer.code, 422)
        self.assertLess(len(answer.text), 20_000_000)
        self.alive()

    def test_the_number_of_managers_is_limited(self):
        protobuf = {"Content-Type": "application/vnd.kubernetes.protobuf", "Accept": "application/json"}
        post = lambda count, query="": self.users.admin("POST", self.CONFIG_MAPS + query, attacks.forged_managers("many", map(str, range(count))), headers=protobuf)
        most = int(re.search(r"kMaxManagers = ([\d']+);", (LimitsTest.SOURCE / "core/ownership/manager_places.h").read_text()).group(1).replace("'", ""))
        self.refused(post(most + 1, "?dryRun=All"), 422, f"metadata.managedFields: Too many: {most + 1}: must have at most {most} items")
        self.assertEqual(post(most, "?dryRun=All").code, 201)
        # As many as kube-apiserver stores.
        answer = post(34_000)
        self.assertEqual(answer.code, 201)
        self.assertEqual(len(answer.json["metadata"]["managedFields"]), 34_000)
        self.alive()


class LimitsTest(Own):
    """Each limit in src/core/base/limits.h and call_limits.h is enforced, as checked here or by a unit test that names it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.define()
        cls.folder = tempfile.TemporaryDirectory()
        cls.hooks = HookServer(cls.folder.name)
        cls.hooks.on("*", lambda seen: {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "long.example.com/v1", "resources": []})
        aggregate(cls.users, cls.hooks, "long.example.com")

    @classmethod
    def tearDownClass(cls):
        cls.hooks.stop()
        super().tearDownClass()
        cls.folder.cleanup()

    SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"

    def limits(self):
        limits = {}
        for name, value in re.findall(r"^inline constexpr \w+ k(\w+) = ([^;]+);", "".join((self.SOURCE / "core/base" / header).read_text() for header in ("limits.h", "call_limits.h", "reservation.h")), re.M):
            value = re.sub(r"size_t\{(\d+)\}", r"\1", value.replace("'", ""))
            limits[name] = eval(re.sub(r"k(\w+)", lambda found: str(limits[found.group(1)]), value))  # pylint: disable=eval-used
        self.assertGreater(len(limits), 10)
        return limits

    def test_every_limit_has_a_test(self):
        limits = self.limits()
        tests = "".join(path.read_text() for path in self.SOURCE.rglob("*_test.cc"))
        for name, limit in limits.items():
            with self.subTest(name):
                check = getattr(self, "check_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(), None)
                if check:
                    check(limit)
                else:
                    self.assertIn("limits::k" + name, tests, "no test names this limit")
                self.alive()

    def test_every_limit_is_documented(self):
        page = (pathlib.Path(__file__).resolve().parent.parent / "docs/security.md").read_text()
        table = re.sub(r"[^0-9A-Za-z, ]", " ", page[page.index("## Limits"):page.index("## Damaged objects")])
        for name, limit in self.limits().items():
            shown = f"{limit} s" if name.endswith("Seconds") else f"{limit:,}"
            if name.endswith("Bytes"):
                power = max(power for power in (0, 10, 20, 30) if limit % (1 << power) == 0)
                shown = f"{limit >> power} {('bytes', 'KiB', 'MiB', 'GiB')[power // 10]}"
            with self.subTest(name):
                self.assertIn(f" {shown} ", table.replace(", ", "  ").replace("; ", "  "))

    def post(self, spec, name, metadata=""):
        return self.users.admin("POST", attacks.THINGS, attacks.thing(name, spec, metadata))

    def check_decoded_depth(self, levels):
        deep = lambda count: self.users.admin("POST", "/api/v1/namespaces/mine/configmaps", "[" * count + "]" * count).message
        self.assertIn("exceeded max depth", deep(levels + 1))
        self.assertNotIn("exceeded max depth", deep(levels))

    def check_body_bytes(self, count):
        sized = lambda size: self.users.admin("POST", "/api/v1/namespaces/mine/configmaps?dryRun=All", "{" + " " * (size - 2) + "}")
        self.refused(sized(count + 1), 413, f"Request entity too large: limit is {count}")
        self.assertNotEqual(sized(count).code, 413)

    def check_header_bytes(self, count):
        for size, codes in ((count + 1, (431,)), (count // 2, (200,))):
            context = ssl.create_default_context(cafile=str(self.users.pki / "ca.crt"))
            with socket.create_connection((self.users.host, self.users.port), timeout=20) as plain:
                with context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
                    with contextlib.suppress(OSError):
                        stream.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\nX-A: " + b"y" * size + b"\r\n\r\n")
                    self.assertIn(int(stream.recv(12).split()[1]), codes)

    def check_request_seconds(self, seconds):
        # HungTest checks what happens then.
        self.assertIn(f"request-timeout=1m{seconds - 60}s\n", self.users.admin("GET", "/flagz").text)

    def check_webhook_answer_bytes(self, count):
        hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        self.users.made(hooks, {"metadata": {"name": "long"}, "webhooks": [{
            "name": "long.example.com", "clientConfig": {"url": self.hooks.url("/long"), "caBundle": base64.b64encode(self.hooks.ca).decode()},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 30}]})
        allowed = lambda review: json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                                             "response": {"uid": review["request"]["uid"], "allowed": True}}).encode()
        write = lambda: self.users.admin("POST", "/api/v1/namespaces/mine/configmaps?dryRun=All", {"metadata": {"name": "x"}})
        self.hooks.on("/long", lambda review: (200, allowed(review) + b" " * 100))
        self.assertEqual(write().code, 201)
        self.hooks.on("/long", lambda review: (200, allowed(review) + b" " * count))
        self.refused(write(), 500, 'failed calling webhook "long.example.com"')
        self.assertEqual(self.users.admin("DELETE", hooks + "/long").code, 200)

    def check_proxied_body_bytes(self, count):
        for size, code in ((count, 200), (count + 1, 413)):
            self.assertEqual(self.users.admin("POST", "/apis/long.example.com/v1/things", "[" + " " * (size - 2) + "]").code, code)

    def check_all_proxied_bytes(self, count):
        # Uploads that do not end; each counts twice.
        context = ssl.create_default_context(cafile=str(self.users.pki / "ca.crt"))
        each = (16 << 20) - 4096
        with contextlib.ExitStack() as open_uploads:
            streams = []
            for _ in range(count // (2 * each)):
                plain = open_uploads.enter_context(socket.create_connection((self.users.host, self.users.port), timeout=30))
                stream = open_uploads.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
                stream.sendall(f"POST /apis/long.example.com/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {access_helper.ADMIN}\r\n"
                               f"Content-Length: {each + 1000}\r\n\r\n".encode())
                stream.sendall(b" " * each)
                streams.append(stream)
            counted = lambda: float(re.search(r"^holdfast_request_memory_bytes (\S+)$", self.users.admin("GET", "/metrics").text, re.M).group(1))
            self.users.when(lambda: counted() >= 2 * each * len(streams))
            refused = self.users.admin("POST", "/apis/long.example.com/v1/things", "[" + " " * each + "]")
            self.assertEqual(refused.code, 429, refused.text)
            self.assertEqual(self.users.admin("GET", "/apis/long.example.com/v1/answers").code, 200)
        self.users.when(lambda: counted() < each)

    @contextlib.contextmanager
    def watching(self, selector):
        """-> the code of a watch with this label selector, which stays open."""
        connection = self.users.connect()
        connection.request("GET", "/api/v1/namespaces/mine/configmaps?watch=1&labelSelector=" + selector, headers={"Authorization": "Bearer " + access_helper.ADMIN})
        yield connection.getresponse().status
        connection.close()

    def check_watch_selector_bytes(self, count):
        with self.watching(",".join(["a"] * (count // 75))) as code:
            self.assertEqual(code, 413)

    def check_all_watch_selector_bytes(self, count):
        each = 120_000
        selector = "a%20in%20(" + ",".join(f"{i:x}" for i in range(each)) + ")"
        with contextlib.ExitStack() as watches:
            codes = [watches.enter_context(self.watching(selector)) for _ in range(count // (2 * 32 * each) + 1)]
            self.assertEqual(codes[0], 200)
            self.assertEqual(codes[-1], 429)
            # Ordinary selectors do not count.
            self.assertEqual(watches.enter_context(self.watching("app%20in%20(a,b,c)")), 200)
            self.assertEqual(self.users.admin("GET", "/api/v1/namespaces/mine/configmaps?labelSelector=" + selector).code, 200)

    def check_small_selector_bytes(self, count):
        # check_all_watch_selector_bytes opens a watch with a selector of this size.
        self.assertLess(count, 64 << 10)

    def check_aggregated_document_bytes(self, count):
        document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {"/apis/long.example.com/v1/": {"get": {
            "operationId": "readLong", "responses": {"200": {"description": "OK"}}}}}}
        there = lambda: "readLong" in self.users.admin("GET", "/openapi/v2").text
        self.hooks.on("/openapi/v2", lambda _: (200, json.dumps(document).encode() + b" " * (count - 1000)))
        self.users.when(there, 60)
        self.hooks.on("/openapi/v2", lambda _: (200, json.dumps(document).replace("readLong", "readLonger").encode() + b" " * count))
        time.sleep(2)
        self.assertFalse("readLonger" in self.users.admin("GET", "/openapi/v2").text)

    def check_object_depth(self, levels):
        # The object and its spec are two levels, the innermost map one more.
        self.assertEqual(self.post(attacks.nested(levels - 2), "deepest").code, 201)
        self.refused(self.post(attacks.nested(levels - 1), "too-deep"), 400, f"more than {levels} levels")

    def check_token_bytes(self, count):
        self.refused(self.users.call("GET", "/healthz", token="x" * (count + 1)), 401, "Unauthorized")

    def check_json_patch_operations(self, count):
        self.assertEqual(self.post('{"a":{}}', "patched").code, 201)
        patch = lambda operations: self.users.admin("PATCH", attacks.THINGS + "/patched", json.dumps([{"op": "test", "path": "/spec/a", "value": {}}] * operations),
                                                    headers={"Content-Type": "application/json-patch+json"})
        self.assertEqual(patch(count).code, 200)
        self.refused(patch(count + 1), 413, "The allowed maximum operations in a JSON patch")

    def check_json_patch_copied_bytes(self, count):
        self.assertEqual(self.post(json.dumps({"a": "x" * (count // 4), "b": {}}), "copied").code, 201)
        copies = lambda times: self.users.admin("PATCH", attacks.THINGS + "/copied?dryRun=All", json.dumps(
            [{"op": "copy", "from": "/spec/a", "path": f"/spec/b/c{i}"} for i in range(times)]), headers={"Content-Type": "application/json-patch+json"})
        self.refused(copies(4), 422)


class HeaderInjectionTest(SecurityTest):
    def test_headers_cannot_be_injected_into_requests_to_aggregated_servers(self):
        group = "forwarded.example.com"
        with tempfile.TemporaryDirectory() as folder:
            hooks, seen = HookServer(folder), []

            def answer(request):
                seen.append(request["path"])
                return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": []}

            hooks.on("*", answer)
            try:
                aggregate(users, hooks, group)
                for character in "\n\r\t\x01\x0b\x1f\x7f":
                    target = f"/apis/{group}/v1/bent\tHTTP/1.1{character}X-Remote-User:\tadmin{character}X-A:"
                    said = WireTest.raw(self, f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {access_helper.ADMIN}\r\nConnection: close\r\n\r\n")
                    self.assertRegex(said, r"^HTTP/1\.1 400 ", repr(character))
                self.assertEqual([path for path in seen if "bent" in path], [])
            finally:
                users.admin("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}")
                users.admin("DELETE", "/api/v1/namespaces/default/services/hook")
                hooks.stop()

    def test_aggregated_servers_do_not_receive_tokens(self):
        group = "tokens.example.com"
        token = base64.urlsafe_b64encode(access_helper.ADMIN.encode()).decode().rstrip("=")
        with tempfile.TemporaryDirectory() as folder:
            hooks, seen = HookServer(folder), []

            def answer(request):
                seen.append(request)
                return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": []}

            hooks.on("*", answer)
            try:
                aggregate(users, hooks, group)
                for offered in (f"base64url.bearer.authorization.k8s.io.{token}, v4.channel.k8s.io", f"v4.channel.k8s.io,base64url.bearer.authorization.k8s.io.{token}"):
                    seen.clear()
                    WireTest.raw(self, f"GET /apis/{group}/v1/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                                       f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: {offered}\r\n\r\n")
                    sockets = [request for request in seen if request["path"].endswith("/socket")]
                    self.assertEqual([request["headers"].get("X-Remote-User") for request in sockets], ["admin"])
                    self.assertEqual(sockets[0]["all_headers"].get_all("Sec-WebSocket-Protocol"), ["v4.channel.k8s.io"])
                    self.assertNotIn(token, str(sockets[0]["all_headers"]))
                seen.clear()
                self.assertEqual(users.admin("GET", f"/apis/{group}/v1/plain").code, 200)
                self.assertNotIn(access_helper.ADMIN, "".join(str(request["all_headers"]) for request in seen))
            finally:
                users.admin("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}")
                users.admin("DELETE", "/api/v1/namespaces/default/services/hook")
                hooks.stop()

    def test_webhook_requests_cannot_be_redirected_or_split(self):
        hook = lambda url: {"metadata": {"name": "h"}, "webhooks": [
            {"name": "h.example.com", "clientConfig": {"url": url}, "admissionReviewVersions": ["v1"], "sideEffects": "None"}]}
        for url, text in {"https://user:secret@host/": "user information is not permitted in the URL",
                          "https://host/?a=b": "query parameters are not permitted in the URL",
                          "https://host/#f": "fragments are not permitted in the URL",
                          "https://host/\r\nX-Remote-User: admin": "url must be a valid URL"}.items():
            for kind in ("validating", "mutating"):
                with self.subTest(url):
                    path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
                    self.refused(users.admin("POST", path, hook(url)), 422, text)
        definition = attacks.definition()
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a@host/"}}}
        self.refused(users.admin("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition), 422,
                     "user information is not permitted in the URL")


class FileTest(unittest.TestCase):
    """No other local user can read or change the files of the server."""

    def start(self, folder, **more):
        """The output of a server that fails to start."""
        try:
            return subprocess.run([BINARY, "serve", "--data-dir", str(folder), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=20, check=False, **more)
        except subprocess.TimeoutExpired:
            raise AssertionError("the server started") from None

    def test_files_are_private_regardless_of_the_umask(self):
        with tempfile.TemporaryDirectory() as folder:
            data = pathlib.Path(folder) / "data"
            before = os.umask(0)
            try:
                server = access_helper.Server(BINARY, data_dir=data)
                data.mkdir(mode=0o755)
                server.start()
            finally:
                os.umask(before)
            try:
                for path in [data, *data.rglob("*")]:
                    if path.name == "server.log":  # Created by the test.
                        continue
                    mode = path.stat().st_mode & 0o777
                    public = path.suffix in (".crt", ".pub")
                    self.assertEqual(mode, 0o700 if path.is_dir() else 0o644 if public else 0o600, path)
            finally:
                server.stop()

    def test_directories_writable_by_others_are_rejected(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            ended = self.start(folder)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn("can be written by others", ended.stdout)

    @unittest.skipUnless(os.geteuid() == 0, "only root gives folders away")
    def test_directories_of_another_user_are_rejected(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chown(folder, 12345, 12345)
            ended = self.start(folder)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn("belongs to another user", ended.stdout)


class DescriptorTest(Own):
    """Idle connections affect neither other connections nor the store."""

    @classmethod
    def setUpClass(cls):
        cls.limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, cls.limit[1]))
        try:
            super().setUpClass()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, cls.limit[1]), cls.limit[1]))

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        resource.setrlimit(resource.RLIMIT_NOFILE, cls.limit)

    def test_the_limit_is_raised_and_unauthenticated_connections_are_limited(self):
        if self.limit[1] < 4096:
            self.skipTest("the hard limit of open files is too low")
        with attacks.idle_connections(self.users, 1200) as idle:
            self.assertEqual(self.users.admin("POST", "/api/v1/namespaces/mine/configmaps", {"metadata": {"name": "among-many"}}).code, 201)
            self.alive()
            self.assertEqual(len(idle), 1000)
            # A failed accept is not retried in a busy loop.
            before = self.cpu_seconds()
            time.sleep(1)
            self.assertLess(self.cpu_seconds() - before, 0.5)


class BinaryTest(unittest.TestCase):
    def test_the_binary_is_hardened(self):
        """Position independent, with full RELRO."""
        image = pathlib.Path(BINARY).read_bytes()
        kind, = struct.unpack_from("<H", image, 16)
        table, = struct.unpack_from("<Q", image, 32)
        entry_bytes, count = struct.unpack_from("<HH", image, 54)
        segments = [struct.unpack_from("<IIQQQQQQ", image, table + i * entry_bytes) for i in range(count)]
        DYNAMIC, STACK, RELRO = 2, 0x6474E551, 0x6474E552
        self.assertEqual(kind, 3, "not position independent")
        self.assertIn(RELRO, [segment[0] for segment in segments])
        self.assertFalse(any(segment[0] == STACK and segment[1] & 1 for segment in segments), "an executable stack")
        _, _, offset, _, _, length, _, _ = next(segment for segment in segments if segment[0] == DYNAMIC)
        dynamic = dict(struct.iter_unpack("<QQ", image[offset:offset + length]))
        FLAGS, FLAGS_1 = 30, 0x6FFFFFFB
        self.assertTrue(dynamic.get(FLAGS, 0) & 8 or dynamic.get(FLAGS_1, 0) & 1, "symbols are bound lazily")


class HardeningTest(SecurityTest):
    def test_always_allow_requires_authentication(self):
        server = start("--authorization-mode=AlwaysAllow")
        try:
            open_to_all = Users(server)
            self.refused(open_to_all.call("GET", "/api/v1/secrets"), 401, "Unauthorized")
            self.assertEqual(open_to_all.call("GET", "/api/v1/secrets", token="plain-token").code, 200)
        finally:
            server.stop()
            server.folder.cleanup()

    def test_weak_tls_1_2_suites_are_off_by_default_and_can_be_enabled(self):
        def handshake(users, suites, version=ssl.TLSVersion.TLSv1_2):
            context = ssl.create_default_context(cafile=str(users.pki / "ca.crt"))
            context.maximum_version = version
            context.set_ciphers(suites)
            with socket.create_connection((users.host, users.port), timeout=10) as plain:
                with context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
                    return stream.cipher()[0]
        weak = "ECDHE-ECDSA-AES128-SHA"
        with self.assertRaises(ssl.SSLError):
            handshake(users, weak)
        self.assertEqual(handshake(users, "ECDHE-ECDSA-AES128-GCM-SHA256"), "ECDHE-ECDSA-AES128-GCM-SHA256")
        server = start("--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA")
        try:
            self.assertEqual(handshake(Users(server), weak), weak)
        finally:
            server.stop()
            server.folder.cleanup()
        # Former Go names.
        server = start("--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305")
        try:
            self.assertEqual(handshake(Users(server), "ALL"), "ECDHE-ECDSA-CHACHA20-POLY1305")
        finally:
            server.stop()
            server.folder.cleanup()
        server = start("--tls-min-version=VersionTLS13")
        try:
            with self.assertRaises(ssl.SSLError):
                handshake(Users(server), "ALL")
        finally:
            server.stop()
            server.folder.cleanup()

    def test_host_names_have_their_own_certificates(self):
        with tempfile.TemporaryDirectory() as folder:
            def issue(name):
                subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                                "-addext", f"subjectAltName=DNS:{name}", "-days", "10", "-keyout", f"{name}.key", "-out", f"{name}.crt"],
                               cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            for name in ("one.example.com", "two.example.com"):
                issue(name)
            pair = lambda name: f"--tls-sni-cert-key={folder}/{name}.crt,{folder}/{name}.key"
            server = start(pair("one.example.com"), pair("two.example.com") + ":*.other.example.com")
            try:
                served = Users(server)

                def shown_for(asked):
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                    with socket.create_connection((served.host, served.port), timeout=10) as plain:
                        with context.wrap_socket(plain, server_hostname=asked) as stream:
                            return stream.getpeercert(binary_form=True)

                shown = {asked: shown_for(asked) for asked in ("one.example.com", "a.other.example.com", "two.example.com", "elsewhere")}
                certificate = lambda name: ssl.PEM_cert_to_DER_cert((pathlib.Path(folder) / f"{name}.crt").read_text())
                own = ssl.PEM_cert_to_DER_cert((served.pki / "apiserver.crt").read_text())
                self.assertEqual(shown, {"one.example.com": certificate("one.example.com"), "a.other.example.com": certificate("two.example.com"),
                                         "two.example.com": own, "elsewhere": own})
                # A renewed certificate is used after SIGHUP; an invalid one changes nothing.
                issue("one.example.com")
                server.process.send_signal(signal.SIGHUP)
                served.when(lambda: shown_for("one.example.com") == certificate("one.example.com"))
                (pathlib.Path(folder) / "one.example.com.key").write_text((pathlib.Path(folder) / "two.example.com.key").read_text())
                server.process.send_signal(signal.SIGHUP)
                served.when(lambda: "certificates not reloaded" in server.text())
                self.assertEqual(shown_for("one.example.com"), certificate("one.example.com"))
                metrics = served.admin("GET", "/metrics").text
                for result in ("success", "failure"):
                    self.assertIn(f'holdfast_certificate_reloads_total{{result="{result}"}} 1\n', metrics)
            finally:
                server.stop()
                server.folder.cleanup()


class DamagedTest(SecurityTest):
    """Stored values that cannot be decoded affect only those objects."""
    MAPS = "/api/v1/namespaces/mine/configmaps"
    IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential"

    @staticmethod
    def config_map(name):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}

    def damage(self, server, etcd):
        """Objects, some of which are damaged as by a foreign server or a bad disk."""
        users = Users(server)
        for name in ("mine", "theirs"):
            users.made("/api/v1/namespaces", {"metadata": {"name": name}})
        users.made(self.MAPS, self.config_map("good"))
        users.made(self.MAPS, self.config_map("turned"))
        users.made("/api/v1/namespaces/theirs/configmaps", self.config_map("good"))
        users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", attacks.definition())
        users.when(lambda: users.admin("GET", attacks.THINGS).code == 200)
        users.made(attacks.THINGS, attacks.thing("good"))
        users.made(attacks.THINGS, attacks.thing("turned"))
        crds, things, maps = ("/registry/apiextensions.k8s.io/customresourcedefinitions/", f"/registry/{attacks.GROUP}/things/mine/",
                              "/registry/configmaps/mine/")
        values = etcd.values()
        definition = values[crds + "things." + attacks.GROUP][0]
        etcd.put(maps + "turned", b"k8s\0garbage")
        etcd.put(maps + "text", b"{not json")
        etcd.put(maps + "nothing", b"")
        etcd.put(maps + "secret", b"k8s:enc:aescbc:v1:key1:xyz")
        etcd.put(maps + "cut", values[maps + "good"][0][:-20])
        etcd.put(maps + "list", b"[]")
        etcd.put(things + "turned", attacks.thing("turned", attacks.nested(5000)).encode())
        etcd.put(things + "number", b"7")
        etcd.put(things + "odd", json.dumps({"apiVersion": attacks.GROUP + "/v1", "kind": "Thing", "metadata": "x", "spec": [], "status": 1}).encode())
        etcd.put(things + "members", json.dumps({"apiVersion": attacks.GROUP + "/v1", "kind": "Thing", "metadata": {
            "name": "members", "namespace": 7, "ownerReferences": "x", "finalizers": {"a": 1}, "labels": [1], "managedFields": 7, "generation": "x",
            "deletionTimestamp": 5, "annotations": {"a": {}}}}).encode())
        etcd.put(things + "finalizers", json.dumps({"apiVersion": attacks.GROUP + "/v1", "kind": "Thing", "metadata": {
            "name": "finalizers", "namespace": "mine", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": [7]}}).encode())
        for name, change in {"no-versions": lambda d: d["spec"].update(versions=[]), "no-names": lambda d: d["spec"].update(names={}),
                             "no-spec": lambda d: d.update(spec="x"), "wrong": lambda d: d["spec"].update(versions="v1", group=7),
                             "no-schema": lambda d: d["spec"]["versions"][0].update(schema=7)}.items():
            changed = json.loads(definition)
            changed["metadata"]["name"] = name + "." + attacks.GROUP
            change(changed)
            etcd.put(crds + changed["metadata"]["name"], json.dumps(changed).encode())
        for path in ("clusterroles", "clusterrolebindings", "roles/mine", "rolebindings/mine", "services/specs/mine", "namespaces", "nodes", "secrets/mine",
                     "serviceaccounts/mine", "apiregistration.k8s.io/apiservices", "flowschemas", "prioritylevelconfigurations", "leases/mine",
                     "endpointslices/mine", "ipaddresses", "pods/mine", "priorityclasses", "runtimeclasses", "storageclasses"):
            etcd.put(f"/registry/{path}/damaged", b"k8s\0\xff")
        return users

    def judge(self, server, users):
        alive = lambda: self.assertIsNone(server.process.poll(), server.text()[-3000:])
        get = lambda path, **more: users.admin("GET", path, **more)
        users.when(lambda: get("/readyz").code == 200, 30)
        # Readable objects can be read and written.
        for path in (self.MAPS + "/good", self.MAPS + "/good?resourceVersion=0", "/api/v1/namespaces/theirs/configmaps", attacks.THINGS + "/good",
                     self.MAPS + "?fieldSelector=metadata.name%3Dgood", "/api/v1/namespaces/default", "/api/v1/namespaces/theirs/secrets",
                     RBAC + "/clusterroles/admin"):
            self.assertEqual(get(path).code, 200, path)
        self.assertEqual(users.admin("PATCH", self.MAPS + "/good", {"data": {"c": "d"}}, headers={"Content-Type": "application/merge-patch+json"}).code, 200)
        users.made(self.MAPS, self.config_map("another"))
        # Unreadable objects cause an error that names them.
        key = lambda name: f"/configmaps/mine/{name}"
        corrupt = lambda name, prefix="": f"StorageError: corrupt object, Code: 7, Key: {prefix}{key(name)}, ResourceVersion: 0, AdditionalErrorMsg: "
        for suffix in ("", "?resourceVersion=0"):
            answer = get(self.MAPS + "/turned" + suffix)
            self.refused(answer, 500, "Internal error occurred: " + corrupt("turned") + "object not decodable revision=")
            self.assertEqual(answer.json["reason"], "InternalError")
        listed = get(self.MAPS)
        self.refused(listed, 500, "failed to read one or more configmaps from the storage")
        self.assertEqual((listed.json["reason"], listed.json["details"]["name"], listed.json["details"]["kind"]), ("StorageReadError", "list", "configmaps"))
        causes = {cause["field"]: cause for cause in listed.json["details"]["causes"]}
        damaged = ["cut", "list", "nothing", "secret", "text", "turned"]
        self.assertEqual(sorted(causes), [f"/registry{key(name)}" for name in damaged])
        for name in damaged:
            cause = causes[f"/registry{key(name)}"]
            self.assertEqual(cause["reason"], "UnexpectedServerResponse")
            self.assertTrue(cause["message"].startswith(corrupt(name, "/registry")), cause)
        self.assertIn("encrypted", causes["/registry/configmaps/mine/secret"]["message"])
        self.assertEqual(get("/api/v1/configmaps").json["reason"], "StorageReadError")
        self.assertEqual(get(self.MAPS + "?watch=1&timeoutSeconds=1").json["reason"], "StorageReadError")
        self.assertEqual(get(f"{self.MAPS}?watch=1&timeoutSeconds=1&resourceVersion={get('/api/v1/namespaces/theirs/configmaps').json['metadata']['resourceVersion']}").code, 200)
        for name in ("turned", "number", "odd"):
            self.assertEqual(get(f"{attacks.THINGS}/{name}").code, 500, name)
        # Invalid members of metadata are dropped, as in Kubernetes.
        self.assertEqual(set(get(f"{attacks.THINGS}/members").json["metadata"]), {"name", "resourceVersion", "generation"})
        change = users.admin("PATCH", attacks.THINGS + "/finalizers", {"metadata": {"labels": {"a": "b"}}}, headers={"Content-Type": "application/merge-patch+json"})
        self.assertEqual(change.code, 200, change.text)
        self.assertNotIn("finalizers", change.json["metadata"])
        for path in ("/api/v1/nodes", RBAC + "/clusterroles", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"):
            get(path)
            alive()
        # Writes.
        self.refused(users.admin("POST", self.MAPS, self.config_map("turned")), 409, 'configmaps "turned" already exists')
        for method, kind in (("PUT", "application/json"), ("PATCH", "application/merge-patch+json"), ("PATCH", "application/apply-patch+yaml")):
            answer = users.admin(method, self.MAPS + "/turned?fieldManager=m", self.config_map("turned"), headers={"Content-Type": kind})
            self.refused(answer, 500, "object not decodable revision=")
            self.assertNotIn("reason", answer.json)
        self.refused(users.admin("DELETE", self.MAPS + "/turned"), 500, corrupt("turned"))
        self.refused(users.admin("DELETE", self.MAPS), 500, "failed to read one or more configmaps")
        # Deleting it requires a special option, on its own, and a special permission.
        invalid = lambda path, text: self.refused(users.admin("DELETE", path), 422, text)
        option = f"?{self.IGNORE}=true"
        for other, text in {"dryRun=All": "dryRun", "gracePeriodSeconds=0": "gracePeriodSeconds", "propagationPolicy=Orphan": "propagationPolicy",
                            "orphanDependents=true": "orphanDependents"}.items():
            invalid(self.MAPS + f"/turned{option}&{other}", f"{self.IGNORE}: Invalid value: true: cannot be set together with .{text}")
        invalid(self.MAPS + option, f'DeleteOptions.meta.k8s.io "" is invalid: {self.IGNORE}: Invalid value: true: is not allowed with DELETECOLLECTION')
        for name in ("good", "absent"):
            invalid(f"{self.MAPS}/{name}{option}", f'configmaps "{name}" is invalid: {self.IGNORE}: Invalid value: true: is exclusively used to delete corrupt object(s)')
        grant(users, "deletes", [rule("delete", [""], "configmaps")], "plain", "mine")
        plain = lambda: users.call("DELETE", self.MAPS + "/turned" + option, token="plain-token")
        users.when(lambda: plain().message != "" and "cannot delete" not in plain().message)
        self.refused(plain(), 403, 'configmaps "turned" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: ')
        self.refused(users.admin("DELETE", f"{self.MAPS}/turned?{self.IGNORE}=false"), 500, corrupt("turned"))
        for name in damaged:
            body = {"apiVersion": "v1", "kind": "DeleteOptions", self.IGNORE: True} if name == "text" else None
            answer = users.admin("DELETE", f"{self.MAPS}/{name}" + ("" if body else option), body)
            self.assertEqual(answer.code, 200, answer.text)
            self.assertEqual(answer.json, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                                           "details": {"name": name, "kind": "ConfigMap"}, "code": 200})
            self.assertEqual(get(f"{self.MAPS}/{name}").code, 404)
        users.when(lambda: get(self.MAPS).code == 200)
        self.assertEqual([item["metadata"]["name"] for item in get(self.MAPS).json["items"]][:2], ["another", "good"])
        # A namespace with an unreadable object is removed only after that object.
        users.admin("DELETE", "/api/v1/namespaces/mine")
        time.sleep(1)
        self.assertEqual(get("/api/v1/namespaces/mine").code, 200)
        alive()

    def test_a_damaged_object_affects_only_itself_in_etcd(self):
        etcd = Etcd()
        server = start("--etcd-servers", etcd.url)
        try:
            users = self.damage(server, etcd)
            self.judge(server, users)
            server.stop()
            server.start()
            self.assertEqual(Users(server).admin("GET", "/api/v1/namespaces/theirs/configmaps").code, 200)
        finally:
            server.stop()
            server.folder.cleanup()
            etcd.stop()

    def test_a_damaged_object_affects_only_itself_in_the_embedded_store(self):
        etcd = Etcd()
        source = start("--etcd-servers", etcd.url)
        with tempfile.TemporaryDirectory() as folder:
            try:
                self.damage(source, etcd)
                source.stop()
                subprocess.run([BINARY, "store", "copy", "--from", etcd.url, "--to", folder + "/data"], check=True, stdout=subprocess.DEVNULL)
            finally:
                source.stop()
                source.folder.cleanup()
                etcd.stop()
            server = Server(BINARY, data_dir=folder + "/data")
            (server.data_dir / "tokens.csv").write_text(access_helper.TOKENS)
            server.flags += ["--token-auth-file", str(server.data_dir / "tokens.csv")]
            server.start()
            try:
                self.judge(server, Users(server))
            finally:
                server.stop()

    def test_addresses_of_an_unreadable_service_are_not_reallocated(self):
        etcd = Etcd()
        server = start("--etcd-servers", etcd.url)
        path = "/api/v1/namespaces/default/services"
        made = lambda name, **spec: {"metadata": {"name": name}, "spec": {"ports": [{"port": 80, **spec.pop("port", {})}], **spec}}
        try:
            first = Users(server).made(path, made("first", type="NodePort"))["spec"]
            etcd.put("/registry/services/specs/default/first", b"k8s\0\xff")
            server.stop()
            server.start()  # Allocations are read again.
            served = Users(server)
            served.when(lambda: served.admin("GET", "/readyz").code == 200, 30)
            self.refused(served.admin("POST", path, made("same-ip", clusterIP=first["clusterIP"])), 422, "provided IP is already allocated")
            same_port = {"nodePort": first["ports"][0]["nodePort"]}
            self.refused(served.admin("POST", path, made("same-port", type="NodePort", port=same_port)), 422, "provided port is already allocated")
            served.made(path, made("other-port", type="NodePort"))
            # Without the allocation record, its node port is unknown.
            etcd.call("kv/deleterange", key=etcd.text(b"/registry/ranges/servicenodeports"))
            for name, port in (("same-port", same_port), ("any-port", {})):
                self.refused(served.admin("POST", path, made(name, type="NodePort", port=port)), 500,
                             "corrupt object, Code: 7, Key: /registry/services/specs/default/first")
            served.made(path, made("without-port"))
            self.assertEqual(served.admin("DELETE", f"{path}/first?{self.IGNORE}=true").code, 200)
            served.when(lambda: served.admin("POST", path, made("any-port", type="NodePort")).code == 201)
        finally:
            server.stop()
            server.folder.cleanup()
            etcd.stop()

    def test_unreadable_admission_configuration_blocks_writes(self):
        etcd = Etcd()
        server = start("--etcd-servers", etcd.url)
        try:
            served = Users(server)
            served.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})
            write = lambda path=self.MAPS: served.admin("POST", path + "?dryRun=All", self.config_map("x"))
            self.assertEqual(write().code, 201)
            for key, path in {"validatingwebhookconfigurations/hook": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook",
                              "mutatingwebhookconfigurations/hook": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hook",
                              "resourcequotas/mine/quota": "/api/v1/namespaces/mine/resourcequotas/quota"}.items():
                with self.subTest(key):
                    etcd.put("/registry/" + key, b"k8s\0\xff")
                    served.when(lambda: write().code == 500)
                    self.refused(write(), 500, f"corrupt object, Code: 7, Key: /registry/{key}")
                    self.assertEqual(served.admin("DELETE", f"{path}?{self.IGNORE}=true").code, 200)
                    served.when(lambda: write().code == 201)
        finally:
            server.stop()
            server.folder.cleanup()
            etcd.stop()


class HungTest(Own):
    """Other servers that accept a request and never respond: requests that wait for them hold a seat."""
    GROUP = "hung.example.com"
    PATH = f"/apis/{GROUP}/v1/things"

    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.hooks = HookServer(cls.folder.name)
        cls.go_on = threading.Event()

        def begins():
            yield b"some"
            cls.go_on.wait(120)

        def hang(seen):
            path = seen["path"].split("?")[0]
            if path == f"/apis/{cls.GROUP}/v1":
                return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{cls.GROUP}/v1", "resources": []}
            if path.startswith("/openapi"):
                return 404, b""
            if path.endswith("/begins"):
                return 200, begins()
            if path.endswith("/answers"):
                return {}
            cls.go_on.wait(120)
            return {}

        cls.hooks.on("*", hang)
        aggregate(cls.users, cls.hooks, cls.GROUP)
        grant(cls.users, "things", [rule("get list create", ["", cls.GROUP], "things configmaps")], "plain")
        grant(cls.users, "maps", [rule("get list", [""], "configmaps")], "tenant")
        cls.users.when(lambda: cls.users.call("GET", cls.PATH + "/answers", token="plain-token").code == 200, 30)

    @classmethod
    def tearDownClass(cls):
        cls.go_on.set()
        cls.hooks.stop()
        super().tearDownClass()
        cls.folder.cleanup()

    @contextlib.contextmanager
    def asking(self, count, request):
        """Opens that many connections of one user, each with a request whose response is not read."""
        context = ssl.create_default_context(cafile=str(self.users.pki / "ca.crt"))
        with contextlib.ExitStack() as held:
            streams = []
            for _ in range(count):
                connection = socket.create_connection((self.users.host, self.users.port), timeout=20)
                streams.append(held.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1")))
                streams[-1].sendall(request.encode())
            yield streams

    def request(self, path, method="GET", body=""):
        return (f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer plain-token\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}")

    def seats(self):
        text = self.users.admin("GET", "/metrics").text
        return sum(float(value) for value in re.findall(r'^apiserver_flowcontrol_current_executing_requests\{.*priority_level="(?!exempt).*\} (\S+)$', text, re.M))

    def others_are_served(self):
        self.assertEqual(self.users.call("GET", "/api/v1/namespaces/mine/configmaps", token="tenant-token").code, 200)
        self.alive()

    def test_requests_to_a_hung_server_end_when_their_clients_disconnect(self):
        with self.asking(700, self.request(self.PATH)):
            self.users.when(lambda: self.seats() > 0)
        self.users.when(lambda: self.seats() == 0)
        self.others_are_served()

    def test_requests_to_a_hung_server_end_at_their_deadline(self):
        with self.asking(700, self.request(self.PATH + "?timeout=3s")) as streams:
            self.users.when(lambda: self.seats() > 0)
            self.users.when(lambda: self.seats() == 0, 30)
            self.others_are_served()
            streams[0].settimeout(30)
            self.assertRegex(streams[0].recv(100), rb"^HTTP/1\.1 (504|429) ")

    def test_a_server_that_stops_responding_midway_is_cut_off(self):
        with self.asking(5, self.request(self.PATH + "/begins?timeout=3s")) as streams:
            self.users.when(lambda: self.seats() > 0)
            self.users.when(lambda: self.seats() == 0, 30)
            streams[0].settimeout(30)
            said = b""
            with contextlib.suppress(OSError, ssl.SSLError):
                while piece := streams[0].recv(1000):
                    said += piece
            self.assertTrue(said.startswith(b"HTTP/1.1 200 "), said)
            self.assertFalse(said.endswith(b"0\r\n\r\n"), said)

    def test_calls_to_a_hung_webhook_end_with_the_client_and_at_the_deadline(self):
        maps = "/api/v1/namespaces/mine/configmaps"
        for kind in ("validating", "mutating"):
            for policy in ("Fail", "Ignore"):
                with self.subTest(f"{kind} {policy}"):
                    hooks = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
                    self.users.made(hooks, {"metadata": {"name": "hung"}, "webhooks": [{
                        "name": "hung.example.com", "clientConfig": {"url": self.hooks.url("/hang"), "caBundle": base64.b64encode(self.hooks.ca).decode()},
                        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
                        "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy, "timeoutSeconds": 30}]})
                    body = lambda name: json.dumps({"metadata": {"name": name}})
                    with self.asking(50, self.request(maps, "POST", body("left"))):
                        self.users.when(lambda: self.seats() > 0)
                    self.users.when(lambda: self.seats() == 0)
                    answer = self.users.call("POST", maps + "?timeout=2s", body("late"), token="plain-token")
                    self.assertEqual(answer.code, 504, answer.text)
                    self.users.when(lambda: self.seats() == 0)
                    self.assertEqual(self.users.admin("DELETE", hooks + "/hung").code, 200)
                    # Objects not reviewed by the webhook are not written, regardless of its failurePolicy.
                    for name in ("left", "late"):
                        self.assertEqual(self.users.admin("GET", f"{maps}/{name}").code, 404)
                    self.others_are_served()


if __name__ == "__main__":
    unittest.main(verbosity=2)

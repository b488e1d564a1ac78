#!/usr/bin/env python3
"""Compares authorization by Holdfast and by a real kube-apiserver: random roles, bindings, users and requests.

  access.py --ours URL --theirs URL --token T [--requests N] [--seed N]

`run.sh --access HOLDFAST` starts both. Roles and bindings are the same on both servers; each request is sent to both as the
same impersonated user, and both must reject it with the same message (403) or both allow it. Further processing is not
compared: requests that may pass are built to fail or to change nothing (a bad resourceVersion, dryRun).
"""
import argparse
import http.client
import itertools
import json
import random
import ssl
import sys
import time
from urllib.parse import quote, urlsplit

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACES = ["access-a", "access-b"]
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"]
RESOURCES = ["secrets", "configmaps", "pods", "pods/log", "pods/status", "*/status", "*/scale", "deployments", "deployments/scale",
             "namespaces", "nodes", "*", "things", "serviceaccounts/token"]
GROUPS = ["", "apps", "*", "rbac.authorization.k8s.io", "nosuch.example.com"]
NAMES = ["mine", "other", "x"]
PATHS = ["/healthz", "/healthz/*", "/metrics", "/version", "/openapi/*", "/api", "/apis/*", "*", "/logs"]
USERS = [f"user-{i}" for i in range(8)]
TEAMS = [f"team-{i}" for i in range(4)]


class Server:
    def __init__(self, url, token):
        self.where, self.token, self.open = urlsplit(url).netloc, token, None

    def send(self, method, path, body=None, headers=None):
        sent = {"Authorization": "Bearer " + self.token, "Accept": "application/json", **(headers or {})}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, str) else json.dumps(body)
        for attempt in (0, 1):
            try:
                if self.open is None:
                    context = ssl.create_default_context()
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                    self.open = http.client.HTTPSConnection(self.where, context=context, timeout=30)
                self.open.request(method, path, body, sent)
                response = self.open.getresponse()
                data = response.read()
                return response.status, data.decode(errors="replace")
            except (http.client.HTTPException, OSError):
                self.open = None
                if attempt:
                    raise
        return 0, ""


class Generator:
    def __init__(self, seed):
        self.dice = random.Random(seed)

    def some(self, values, most=3):
        return self.dice.sample(values, self.dice.randint(1, min(most, len(values))))

    def rule(self, cluster):
        if cluster and self.dice.random() < 0.2:
            return {"verbs": self.some(["get", "post", "put", "delete", "*"]), "nonResourceURLs": self.some(PATHS)}
        rule = {"verbs": self.some(VERBS), "apiGroups": self.some(GROUPS), "resources": self.some(RESOURCES)}
        if self.dice.random() < 0.4:
            rule["resourceNames"] = self.some(NAMES, 2)
        return rule

    def subject(self):
        kind = self.dice.choice(["User", "User", "Group", "ServiceAccount"])
        if kind == "ServiceAccount":
            return {"kind": kind, "name": "robot", "namespace": self.dice.choice(NAMESPACES)}
        return {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": self.dice.choice(USERS if kind == "User" else TEAMS)}

    def objects(self, count):
        """(path, object) of roles first, then of bindings."""
        roles, bindings = [], []
        for i in range(count):
            cluster = self.dice.random() < 0.4
            kind = "ClusterRole" if cluster else "Role"
            namespace = self.dice.choice(NAMESPACES)
            where = RBAC if cluster else f"{RBAC}/namespaces/{namespace}"
            roles.append((f"{where}/{kind.lower()}s", {"metadata": {"name": f"role-{i}"}, "rules": [self.rule(cluster) for _ in range(self.dice.randint(1, 3))]}))
            everywhere = cluster and self.dice.random() < 0.5
            binding = {"metadata": {"name": f"binding-{i}"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": f"role-{i}"},
                       "subjects": [self.subject() for _ in range(self.dice.randint(1, 2))]}
            if self.dice.random() < 0.05:
                binding["roleRef"]["name"] = "no-such-role"
            bindings.append((f"{RBAC}/clusterrolebindings" if everywhere else f"{RBAC}/namespaces/{namespace}/rolebindings", binding))
        return roles + bindings

    def who(self):
        if self.dice.random() < 0.15:
            return {"Impersonate-User": f"system:serviceaccount:{self.dice.choice(NAMESPACES)}:robot"}
        headers = {"Impersonate-User": self.dice.choice(USERS)}
        if self.dice.random() < 0.5:
            headers["Impersonate-Group"] = self.dice.choice(TEAMS)
        return headers

    def query(self, method, collection):
        """Odd, repeated and unknown parameters in addition to the usual ones."""
        parts = []
        if method == "GET" and collection:
            for _ in range(self.dice.randint(0, 2)):
                parts.append("watch=" + self.dice.choice(["1", "0", "true", "false", "", "yes", "TRUE"]))
        for _ in range(self.dice.choice([0, 0, 1, 2])):
            selector = self.dice.choice(["metadata.name=mine", "metadata.name=other", "metadata.name==x", "", "metadata.namespace=access-a",
                                         "metadata.name=mine,metadata.name=other", "metadata.name!=mine", "metadata.name=a/b"])
            parts.append("fieldSelector=" + (quote(selector) if self.dice.random() < 0.7 else selector))
        if self.dice.random() < 0.1:
            parts.append(self.dice.choice(["labelSelector=a", "limit=1", "pretty=1", "name=mine", "namespace=access-b", "fieldSelector", "watch", "a;watch=1", "%zz"]))
        self.dice.shuffle(parts)
        # Authorized requests fail here.
        parts.append("resourceVersion=nonsense" if method == "GET" else "dryRun=All")
        return "?" + "&".join(parts)

    def request(self):
        if self.dice.random() < 0.1:
            return self.dice.choice(["GET", "POST", "HEAD"]), self.dice.choice(PATHS).replace("*", self.dice.choice(["", "etcd", "x/y"])) or "/", None
        group, plural, namespaced = self.dice.choice([("", "secrets", True), ("", "configmaps", True), ("", "pods", True), ("apps", "deployments", True),
                                                      ("", "namespaces", False), ("", "nodes", False), ("", "serviceaccounts", True), ("nosuch.example.com", "things", True)])
        path = "/api/v1" if not group else f"/apis/{group}/v1"
        legacy = self.dice.random() < 0.05
        if legacy:
            path += "/watch"
        if namespaced and self.dice.random() < 0.85:
            path += "/namespaces/" + self.dice.choice(NAMESPACES)
        path += "/" + plural
        name = self.dice.choice(NAMES) if self.dice.random() < 0.5 else ""
        if name:
            path += "/" + name
            if self.dice.random() < 0.25:
                path += "/" + self.dice.choice(["status", "scale", "log", "token", "finalize", "nosuch"])
        if self.dice.random() < 0.03:
            path = self.dice.choice([path + "/", path.replace("/v1/", "/v1//", 1), "/" + path, path.replace("secrets", "%73ecrets")])
        method = self.dice.choice(["GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "DELETE"]) if not legacy else "GET"
        body = "{}" if method in ("POST", "PUT", "PATCH") else None
        return method, path + self.query(method, not name), body


def wait_for_rules(servers):
    """Waits for the object written last to take effect; everything before it has then taken effect as well."""
    marker = {"metadata": {"name": "marker"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/marker"]}]}
    binding = {"metadata": {"name": "marker"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "marker"},
               "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "marker"}]}
    for server in servers:
        server.send("POST", RBAC + "/clusterroles", marker)
        server.send("POST", RBAC + "/clusterrolebindings", binding)
        for _ in range(600):
            if server.send("GET", "/marker", headers={"Impersonate-User": "marker"})[0] != 403:
                break
            time.sleep(0.05)
        else:
            raise SystemExit(f"the rules never took effect on {server.where}")


def verdict(answer):
    """What was denied and why, or that it was allowed."""
    code, text = answer
    if code != 403:
        return "allowed"
    try:
        return json.loads(text)["message"]
    except (ValueError, KeyError):
        return text


def main():
    parser = argparse.ArgumentParser()
    for name in ("--ours", "--theirs", "--token"):
        parser.add_argument(name, required=True)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    servers = [Server(url, options.token) for url in (options.ours, options.theirs)]
    generator = Generator(options.seed)
    for server, namespace in itertools.product(servers, NAMESPACES):
        server.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for path, obj in generator.objects(40):
        codes = [server.send("POST", path, obj)[0] for server in servers]
        assert codes[0] == codes[1], (path, obj, codes)
    wait_for_rules(servers)
    differences = allowed = 0
    for i in range(options.requests):
        method, path, body = generator.request()
        headers = generator.who()
        ours, theirs = (verdict(server.send(method, path, body, headers)) for server in servers)
        allowed += theirs == "allowed"
        if ours != theirs:
            differences += 1
            print(f"DIFFERENCE {i}: {method} {path} as {headers}\n  ours:   {ours}\n  theirs: {theirs}", flush=True)
    print(f"{options.requests} requests, {allowed} allowed, {differences} differences (seed {options.seed})")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

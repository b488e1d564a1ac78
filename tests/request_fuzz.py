#!/usr/bin/env python3
"""request_fuzz.py HOLDFAST [--requests N | --seconds N] [--seed N]: structure-aware random requests.

Paths, queries, headers, encodings and bodies are derived from real ones (tests/vectors) and from attacks, then mutated:
members moved, repeated, renamed, nested, given another type; bytes flipped; the request truncated. The server, preferably
built with sanitizers (`./dev fuzz`), must respond or close the connection, and must not crash. The seed reproduces a run.
"""
import argparse
import base64
import copy
import json
import os
import pathlib
import random
import socket
import ssl
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import access_helper  # noqa: E402
import attacks  # noqa: E402

TOKENS = [access_helper.ADMIN] * 16 + ["tenant-token", "plain-token", "", "a.b.c", "eyJhbGciOiJFUzI1NiJ9.e30.AAAA"]
METHODS = ["GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]
PATCHES = ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
           "application/apply-patch+cbor"]
TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/plain", "", "a/b;c=d"]
ACCEPTS = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "*/*", "",
           "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"]
PARAMETERS = ["watch=1", "watch=0", "limit=2", "limit=-1", "continue=abc", "resourceVersion=1", "resourceVersion=x", "resourceVersionMatch=Exact",
              "fieldSelector=metadata.name%3Dx", "fieldSelector=a=b,c!=d", "labelSelector=a in (b,c),!d", "labelSelector=%00", "dryRun=All", "dryRun=x",
              "fieldManager=m", "fieldManager=" + "m" * 200, "force=true", "fieldValidation=Strict", "fieldValidation=Warn", "timeout=1s", "timeout=x",
              "timeoutSeconds=1", "sendInitialEvents=true", "allowWatchBookmarks=true", "pretty=1", "propagationPolicy=Foreground", "gracePeriodSeconds=-1",
              "orphanDependents=true", "a;b", "%zz", "=", "&&", "showManagedFields=false", "ignoreStoreReadErrorWithClusterBreakingPotential=true"]
ODD = [None, True, False, 0, -1, 1 << 63, 1e308, "", "x", "\x00", "\ud800", "a" * 300, [], {}, [[]], [None], {"": None}, {"k8s_io__value": "unset"}, "$patch", "*"]


class Fuzzer:
    def __init__(self, binary, seed):
        self.dice = random.Random(seed)
        self.server = access_helper.start(binary)
        self.users = access_helper.Users(self.server)
        self.users.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})
        for preserve in (True, False):
            self.users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", attacks.definition(preserve))
        self.objects = []
        for path in sorted((HERE / "vectors").glob("*.json")):
            try:
                value = json.loads(path.read_text())
            except ValueError:
                continue
            if isinstance(value, dict) and "kind" in value:
                self.objects.append(value)
        self.objects += [json.loads(attacks.thing("thing", '{"a":{"b":[1,2,{"c":null}]}}'))]
        discovered = self.users.admin("GET", "/apis", headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}).json
        core = self.users.admin("GET", "/api", headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}).json
        self.resources = []
        for group in core["items"] + discovered["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                root = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                for resource in version.get("resources", []):
                    subresources = [sub["subresource"] for sub in resource.get("subresources", [])]
                    self.resources.append((root, resource["resource"], resource["scope"] == "Namespaced", resource["responseKind"].get("kind", ""), subresources))
        self.context = ssl.create_default_context(cafile=str(self.users.pki / "ca.crt"))

    def bend(self, value, depth=0):
        """A mutated copy."""
        dice = self.dice
        if dice.random() < 0.02 or depth > 12:
            return copy.deepcopy(dice.choice(ODD))
        if isinstance(value, dict):
            result = {}
            for key, inner in value.items():
                luck = dice.random()
                if luck < 0.04:
                    continue
                if luck < 0.08:
                    key = dice.choice(["", "metadata", "spec", "$patch", "$retainKeys", "k8s_io__value", key.upper(), key + "\x00", "a/b~1"])
                result[key] = self.bend(inner, depth + 1) if dice.random() < 0.25 else inner
            if dice.random() < 0.05:
                result[dice.choice(["unknown", "managedFields", "ownerReferences", "finalizers", "labels"])] = copy.deepcopy(dice.choice(ODD))
            return result
        if isinstance(value, list):
            result = [self.bend(inner, depth + 1) if dice.random() < 0.4 else inner for inner in value]
            if result and dice.random() < 0.2:
                result += [copy.deepcopy(dice.choice(result))] * dice.choice([1, 2, 50])
            return result
        return value if dice.random() < 0.7 else copy.deepcopy(dice.choice(ODD))

    def patch(self, kind, value):
        if "json-patch" in kind:
            paths = ["", "/", "/metadata", "/metadata/labels/a", "/spec", "/spec/a", "/spec/a/b/-", "/spec/a/b/0", "/spec/a/a", "/metadata/name", "/a~1b~0"]
            return [{"op": self.dice.choice(["add", "remove", "replace", "move", "copy", "test", "x"]), "path": self.dice.choice(paths),
                     "from": self.dice.choice(paths), "value": self.bend(value)} for _ in range(self.dice.choice([1, 3, 40]))]
        return self.bend(value)

    def body(self, method, kind_name):
        dice = self.dice
        if method in ("GET", "HEAD", "OPTIONS") and dice.random() < 0.9:
            return "", b""
        fitting = [obj for obj in self.objects if obj.get("kind") == kind_name] or self.objects
        obj = copy.deepcopy(dice.choice(fitting))
        if dice.random() < 0.6 and isinstance(obj.get("metadata"), dict):
            obj["metadata"]["name"] = dice.choice(["x", "mine", "thing"])
            obj["metadata"].pop("namespace", None)
        kind = dice.choice(PATCHES) if method == "PATCH" else dice.choice(TYPES[:1] * 6 + TYPES)
        value = self.patch(kind, obj) if method == "PATCH" else self.bend(obj) if dice.random() < 0.6 else obj
        text = json.dumps(value).encode()
        luck = dice.random()
        if luck < 0.05:
            text = text[:dice.randrange(len(text) + 1)]
        elif luck < 0.15 and text:
            flipped = bytearray(text)
            for _ in range(dice.choice([1, 1, 5])):
                flipped[dice.randrange(len(flipped))] = dice.randrange(256)
            text = bytes(flipped)
        elif luck < 0.18:
            text = dice.choice([attacks.nested(dice.choice([10, 999, 1023, 3000])), attacks.repeated_members(500), attacks.doubling_patch(12),
                                attacks.value_keys(300), attacks.owner_references(200)]).encode()
        elif luck < 0.22:
            encoded = sorted((HERE / "vectors").glob("*.b64"))
            if encoded:
                text = base64.b64decode(dice.choice(encoded).read_text())
        return kind, text

    def request(self):
        dice = self.dice
        method = dice.choice(METHODS)
        root, plural, namespaced, kind, subresources = dice.choice(self.resources)
        path = root
        if namespaced and dice.random() < 0.9:
            path += "/namespaces/" + dice.choice(["mine", "mine", "default", "nosuch"])
        path += "/" + plural
        if dice.random() < 0.6 and method != "POST":
            path += "/" + dice.choice(["x", "mine", "thing", "nosuch", "%00", "a%2fb"])
            if subresources and dice.random() < 0.3:
                path += "/" + dice.choice(subresources)
        if dice.random() < 0.05:
            path = dice.choice(["/", "/healthz", "/metrics", "/version", "/openapi/v2", "/openapi/v3", "/flagz", "//" + path, path + "//", "/apis/" + "x" * 500, "*"])
        query = "&".join(dice.choice(PARAMETERS) for _ in range(dice.choice([0, 0, 1, 2, 4])))
        kind, body = self.body(method, kind)
        if "watch=1" in query or "sendInitialEvents" in query or "/watch" in path:
            query += "&timeoutSeconds=1"
        headers = ["Host: x", f"Accept: {dice.choice(ACCEPTS)}", "Connection: close"]
        if kind:
            headers.append("Content-Type: " + kind)
        if token := dice.choice(TOKENS):
            headers.append("Authorization: Bearer " + token)
        if dice.random() < 0.05:
            headers.append(dice.choice(["Impersonate-User: x", "Impersonate-Group: y", "Accept-Encoding: gzip", "X-Remote-User: admin", "Expect: 100-continue", "Audit-ID: " + "z" * 300]))
        if dice.random() < 0.1:
            pieces = [body[i:i + 700] for i in range(0, len(body), 700)] + [b""]
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
            headers.append("Transfer-Encoding: chunked")
        else:
            headers.append(f"Content-Length: {len(body)}")
        dice.shuffle(headers)
        return f"{method} {path}{'?' + query if query else ''} HTTP/1.1\r\n".encode() + "\r\n".join(headers).encode("utf-8", "replace") + b"\r\n\r\n" + body

    def send(self, request):
        try:
            with socket.create_connection((self.users.host, self.users.port), timeout=20) as plain:
                with self.context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
                    stream.sendall(request)
                    said = b""
                    while chunk := stream.recv(65536):
                        said += chunk
                    return said
        except (OSError, ssl.SSLError):
            return b""

    def alive(self):
        return self.server.process.poll() is None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="", help="resources to exclude: plural,plural")
    options = parser.parse_args()
    fuzzer = Fuzzer(os.path.abspath(options.binary), options.seed)
    fuzzer.resources = [resource for resource in fuzzer.resources if resource[1] not in options.without.split(",")]
    codes, recent = {}, []
    end = time.monotonic() + options.seconds
    sent = 0
    try:
        while (time.monotonic() < end) if options.seconds else (sent < options.requests):
            request = fuzzer.request()
            recent = recent[-4:] + [request]
            answer = fuzzer.send(request)
            sent += 1
            code = answer[9:12].decode(errors="replace") if answer.startswith(b"HTTP/1.1 ") else "none"
            codes[code] = codes.get(code, 0) + 1
            if not fuzzer.alive() or b"The server failed while serving this request" in answer:
                print(f"after {sent} requests (seed {options.seed}) the server {'failed' if fuzzer.alive() else 'ended'}; the last ones:")
                for text in recent:
                    print(text[:3000])
                print((fuzzer.server.data_dir / "server.log").read_text(errors="replace")[-5000:])
                return 1
    finally:
        fuzzer.server.stop()
        fuzzer.server.folder.cleanup()
    print(f"{sent} requests, answers: " + ", ".join(f"{code} x {count}" for code, count in sorted(codes.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""aggregation_test.py HOLDFAST: a group version served by another server, which runs in this process."""
import base64, contextlib, json, socket, ssl, sys, tempfile, threading, time

from hook_server import HookServer
from serve import Server, check, finish

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GROUP = "agg.example.com"


def api_service(hooks, version, service, port):
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"{version}.{GROUP}"},
            "spec": {"group": GROUP, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10, "caBundle": base64.b64encode(hooks.ca).decode(),
                     "service": {"namespace": "default", "name": service, "port": port}}}


def condition_of(server, name, status, tries=100):
    for _ in range(tries):
        found = server.json("GET", f"{SERVICES}/{name}", want=200)
        for condition in found.get("status", {}).get("conditions", []):
            if condition["type"] == "Available" and condition["status"] == status:
                return condition
        time.sleep(0.1)
    return found.get("status")


def remote(seen):
    """The other server."""
    path = seen["path"].split("?")[0]
    if path == f"/apis/{GROUP}/v1":
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": [
            {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get", "list", "watch", "create"], "shortNames": ["th"]},
            {"name": "things/status", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]}]}
    if path == "/openapi/v3":
        return {"paths": {"version": {"serverRelativeURL": "/openapi/v3/version?hash=V"},
                          f"apis/{GROUP}/v1": {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/v1?hash=H"}}}
    if path == "/openapi/v2":
        meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        operation = {"operationId": "readThing", "parameters": [{"$ref": "#/parameters/theirs"}],
                     "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/com.example.agg.Thing"}}}}
        return {"swagger": "2.0", "info": {"title": "theirs", "version": "1"},
                "paths": {f"/apis/{GROUP}/v1/namespaces/{{namespace}}/things": {"get": operation}, "/version/": {"get": operation}},
                "parameters": {"theirs": {"name": "theirs", "in": "query", "type": "string", "uniqueItems": True}},
                "definitions": {"com.example.agg.Thing": {"type": "object", "properties": {
                                    "metadata": {"$ref": "#/definitions/" + meta}, "more": {"$ref": "#/definitions/com.example.agg.More"}}},
                                "com.example.agg.More": {"type": "object", "properties": {"again": {"$ref": "#/definitions/com.example.agg.More"}}},
                                "com.example.agg.Unused": {"type": "object"}, meta: {"type": "object", "description": "another one than ours"}}}
    if "watch=1" in seen["path"]:
        return 200, [b'{"type":"ADDED","object":{"n":%d}}\n' % i for i in range(3)]
    if path.endswith("/missing"):
        return 404, b"not here"
    return {"path": seen["path"], "method": seen["method"], "body": seen["review"]}


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def groups_of(server):
    """The names of the groups in both forms of discovery."""
    plain = [group["name"] for group in server.json("GET", "/apis", want=200)["groups"]]
    return plain, [item["metadata"]["name"] for item in server.json("GET", "/apis", want=200, accept=AGGREGATED)["items"]]


def discovered(server, group, freshness):
    """The versions of a group in aggregated discovery, once the first of them has this freshness."""
    found = None
    for _ in range(200):
        found = next((item["versions"] for item in server.json("GET", "/apis", want=200, accept=AGGREGATED)["items"] if item["metadata"]["name"] == group), None)
        if found and found[0]["freshness"] == freshness:
            break
        time.sleep(0.05)
    return found


def aggregated_discovery(server, hooks):
    """Aggregated discovery is requested from servers that support it; until they respond, their versions are stale."""
    group = "modern.example.com"
    document = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [{"metadata": {"name": group}, "versions": [
        {"version": "v1", "freshness": "Current", "resources": [{"resource": "jobs", "scope": "Namespaced", "verbs": ["list"], "shortNames": ["jz"], "singularResource": "job"}]}]}]}
    answers, lame = threading.Event(), threading.Event()

    def modern(seen):
        if seen["path"].split("?")[0] == "/apis":
            if not answers.is_set():
                return 503, b"not yet"
            return 200, json.dumps(document).encode(), AGGREGATED
        if seen["path"].startswith("/apis/"):  # Availability probes do not ask for a form, because a server may have only one.
            return (406, b"another form") if "Accept" in seen["headers"] or lame.is_set() else (200, b"")
        return 404, b"no"
    hooks.on("*", modern)
    service = api_service(hooks, "v1", "hook", hooks.port)
    service["metadata"]["name"], service["spec"]["group"] = "v1." + group, group
    service["spec"].update(groupPriorityMinimum=20000, versionPriority=5)
    server.json("POST", SERVICES, service, want=201)
    root = lambda: server.json("GET", "/", want=200)["paths"]
    for _ in range(200):
        if f"/apis/{group}" in root():
            break
        time.sleep(0.05)
    check(f"/apis/{group}" in root() and f"/apis/{group}/v1" in root(), "its group is in the list of paths")
    check(condition_of(server, "v1." + group, "True").get("reason") == "Passed", "it is available")
    found = discovered(server, group, "Stale")
    check(found == [{"version": "v1", "freshness": "Stale"}], "it is stale until its discovery is known", found)
    answers.set()
    found = discovered(server, group, "Current")
    want = dict(document["items"][0]["versions"][0]["resources"][0], responseKind={"group": "", "version": "", "kind": ""})
    check(found[0].get("resources") == [want], "its own discovery is shown", found)
    plain, form = groups_of(server)
    first = ["apiregistration.k8s.io", group]
    check(plain[:2] == first and form[:2] == first, "a group with a high priority comes right after the aggregator's group", (plain[:3], form[:3]))
    # One that is not available, because it has only aggregated discovery, is shown as well.
    server.json("DELETE", f"{SERVICES}/v1.{group}", want=200)
    lame.set()
    server.json("POST", SERVICES, service, want=201)
    found = discovered(server, group, "Current")
    check(found and found[0].get("resources") == [want], "it has only aggregated discovery", found)
    check(condition_of(server, "v1." + group, "False").get("reason") == "FailedDiscoveryCheck", "it is not available")
    # A version of one of our groups, with a higher priority than the built-in ones.
    later = api_service(hooks, "v7", "nosuch", 443)
    later["metadata"]["name"], later["spec"]["group"] = "v7.autoscaling", "autoscaling"
    later["spec"].update(groupPriorityMinimum=17500, versionPriority=200)
    server.json("POST", SERVICES, later, want=201)
    found = discovered(server, "autoscaling", "Stale")
    check([version["version"] for version in found] == ["v7", "v2", "v1"] and "resources" not in found[0], "versions are ordered by priority; one that cannot be reached is stale", found and found[0])
    versions = server.json("GET", "/apis/autoscaling", want=200)
    check([version["version"] for version in versions["versions"]] == ["v7", "v2", "v1"] and versions["preferredVersion"]["version"] == "v7", "also in the group", versions)
    for name in ("v1." + group, "v7.autoscaling"):
        server.json("DELETE", f"{SERVICES}/{name}", want=200)


def published(server):
    """OpenAPI of the other server merged with ours."""
    for _ in range(100):
        index = server.json("GET", "/openapi/v3", want=200)["paths"]
        if f"apis/{GROUP}/v1" in index:
            break
        time.sleep(0.1)
    check(index.get(f"apis/{GROUP}/v1") == {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/v1?hash=H"}, "listed in the index of v3", list(index))
    check(index["version"]["serverRelativeURL"].startswith("/openapi/v3/version?hash=") and not index["version"]["serverRelativeURL"].endswith("=V"),
          "only its own group version", index["version"])
    document = server.json("GET", f"/openapi/v3/apis/{GROUP}/v1?hash=H", want=200)
    check(document["path"] == f"/openapi/v3/apis/{GROUP}/v1?hash=H", "its document is fetched from it", document)
    whole = server.json("GET", "/openapi/v2", want=200)
    things = whole["paths"].get(f"/apis/{GROUP}/v1/namespaces/{{namespace}}/things")
    check(things and things["get"]["operationId"] == "readThing" and things["get"]["parameters"] == [{"$ref": "#/parameters/theirs"}], "its paths in v2", things)
    check(whole["paths"]["/version/"]["get"]["operationId"] != "readThing", "but not those of others")
    check("theirs" in whole["parameters"] and "com.example.agg.More" in whole["definitions"], "with the definitions they refer to")
    check("com.example.agg.Unused" not in whole["definitions"], "and nothing else")
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    check(whole["definitions"]["com.example.agg.Thing"]["properties"]["metadata"] == {"$ref": f"#/definitions/{meta}_v2"}
          and whole["definitions"][meta + "_v2"]["description"] == "another one than ours" and "properties" in whole["definitions"][meta],
          "a name that is already taken gets a number", whole["definitions"]["com.example.agg.Thing"])
    code, _, data = server.request("GET", "/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    check(code == 200 and b"readThing" in data, "also in Protobuf", code)


def converted(server, hooks):
    """A server that only has v2 is published in v3 as well."""
    hooks.on("*", lambda seen: (404, b"no") if seen["path"].startswith("/openapi/v3") else remote(seen))
    service = api_service(hooks, "v1", "hook", hooks.port)
    server.json("POST", SERVICES, service, want=201)
    path = f"/openapi/v3/apis/{GROUP}/v1"
    for _ in range(100):
        found = server.json("GET", "/openapi/v3", want=200)["paths"].get(f"apis/{GROUP}/v1")
        if found:
            break
        time.sleep(0.1)
    check(found and found["serverRelativeURL"].startswith(path + "?hash="), "it is in the index", found)
    document = server.json("GET", found["serverRelativeURL"], want=200)
    read = document["paths"][f"/apis/{GROUP}/v1/namespaces/{{namespace}}/things"]["get"]
    check(document["openapi"] == "3.0.0" and read["operationId"] == "readThing" and read["parameters"] == [{"$ref": "#/components/parameters/theirs"}], "its paths", read)
    check(document["components"]["schemas"]["com.example.agg.Thing"]["properties"]["more"] == {"$ref": "#/components/schemas/com.example.agg.More"}, "its schemas")
    code, headers, data = server.request("GET", path, accept="application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
    check(code == 200 and headers["Content-Type"] == "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" and b"readThing" in data, "also in Protobuf", (code, headers))
    server.json("DELETE", f"{SERVICES}/v1.{GROUP}", want=200)
    for _ in range(100):
        if f"apis/{GROUP}/v1" not in server.json("GET", "/openapi/v3", want=200)["paths"]:
            break
        time.sleep(0.1)
    check(server.request("GET", path)[0] == 404, "removed with it")


def tunnels(server, hooks):
    """Upgrade requests, and everything after the upgrade, are passed through unchanged."""
    things = f"/apis/{GROUP}/v1/namespaces/default/things/a/console"

    def echo(seen, connection, lines):
        """The other server's end: reports the request, then echoes each line in upper case until it receives bye."""
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: {seen['headers']['Upgrade']}\r\nConnection: Upgrade\r\nX-Stream: yes\r\n\r\n"
        connection.sendall(head.encode() + b"hello " + seen["headers"]["X-Remote-User"].encode() + b"\n")
        for line in lines:
            connection.sendall(line.upper())
            if line == b"bye\n":
                break
    hooks.upgrade = echo
    server.json("POST", SERVICES, api_service(hooks, "v1", "hook", hooks.port), want=201)
    check(condition_of(server, f"v1.{GROUP}", "True").get("reason") == "Passed", "it is available")
    for protocol in ("SPDY/3.1", "websocket"):
        connection = server.connect()
        connection.connect()
        connection.sock.settimeout(30)
        # The first line is sent before the upgrade completes.
        connection.sock.sendall(f"POST {things}?command=x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nContent-Length: 0\r\n\r\nfirst\n".encode())
        stream = connection.sock.makefile("rb")
        status, headers = stream.readline(), {}
        while (line := stream.readline().strip()):
            name, value = line.decode().split(": ", 1)
            headers[name.lower()] = value
        check(status.startswith(b"HTTP/1.1 101 ") and headers["upgrade"] == protocol and headers["connection"] == "Upgrade" and headers["x-stream"] == "yes", "the protocol is upgraded", (status, headers))
        check(stream.readline() == b"hello kubernetes-admin\n" and stream.readline() == b"FIRST\n", "data from the server, and data sent early")
        large = b"x" * 300_000 + b"\n"
        # Not from another thread: before 3.13, Python's TLS connections must not be read and written concurrently.
        connection.sock.sendall(large)
        check(stream.readline() == large.upper(), "a large message")
        connection.sock.sendall(b"bye\n")
        check(stream.readline() == b"BYE\n" and stream.read() == b"", "closing by the server closes the tunnel")
        connection.close()
    ended = threading.Event()

    def half_close(seen, connection, lines):
        """The other server's end: stops reading and closes its direction while the client sends."""
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: flood\r\nConnection: Upgrade\r\n\r\n")
        lines.readline()
        connection.shutdown(socket.SHUT_WR)
        ended.wait(30)
    hooks.upgrade = half_close
    connection = server.connect()
    connection.connect()
    connection.sock.settimeout(30)
    connection.sock.sendall(f"POST {things} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: flood\r\nContent-Length: 0\r\n\r\n".encode())
    stream = connection.sock.makefile("rb")
    check(stream.readline().startswith(b"HTTP/1.1 101 "), "a tunnel that the other server will close")

    def flood():
        with contextlib.suppress(OSError):
            connection.sock.sendall(b"line\n" + b"x" * (64 << 20))
    sender = threading.Thread(target=flood)
    sender.start()
    with contextlib.suppress(ConnectionError, ssl.SSLEOFError):  # How it ends depends on what is still in flight, but a timeout is a failure.
        stream.read()
    sender.join()
    ended.set()
    connection.close()
    hooks.upgrade = None
    code, _, data = server.request("POST", things, headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    check(code == 200 and json.loads(data)["method"] == "POST", "a server that does not upgrade responds normally", (code, data))
    server.json("DELETE", f"{SERVICES}/v1.{GROUP}", want=200)


def definition(plural, group, **versions):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": plural.capitalize()},
                     "versions": [{"name": name, "served": served, "storage": name == "v1", "schema": schema} for name, served in versions.items()]}}


def api_service_over_crd(server, hooks):
    """An APIService created for a version that a CRD serves: the other server takes precedence, and the version is listed
    once."""
    group, crds = "covered.example.com", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    service = api_service(hooks, "v1", "nosuch", 443)
    service["metadata"]["name"], service["spec"]["group"] = f"v1.{group}", group
    server.json("POST", SERVICES, service, want=201)
    server.json("POST", crds, definition("bars", group, v1=True, v2=True), want=201)
    found = None
    for _ in range(200):
        found = next((item["versions"] for item in server.json("GET", "/apis", want=200, accept=AGGREGATED)["items"] if item["metadata"]["name"] == group), [])
        if {(version["version"], version["freshness"]) for version in found} == {("v1", "Stale"), ("v2", "Current")}:
            break
        time.sleep(0.05)
    check(sorted((version["version"], version["freshness"]) for version in found) == [("v1", "Stale"), ("v2", "Current")], "it is stale, the other version is not", found)
    plain = [version["version"] for version in server.json("GET", f"/apis/{group}", want=200)["versions"]]
    check(sorted(plain) == ["v1", "v2"], "each version is named once", plain)
    server.json("DELETE", f"{SERVICES}/v1.{group}", want=200)
    check(discovered(server, group, "Current") is not None, "without it the CRD is served again")
    server.json("DELETE", f"{crds}/bars.{group}", want=200)


def until(server, name, condition):
    for _ in range(100):
        code, _, data = server.request("GET", f"{SERVICES}/{name}")
        found = json.loads(data) if code == 200 else None
        if condition(found):
            return found
        time.sleep(0.05)
    check(False, f"{name} did not reach the expected state", found)
    return found or {}


def custom_services(server):
    """Each group version of custom resources has an APIService as long as a CRD serves it."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    group = "local.example.com"
    server.json("POST", crds, definition("ones", group, v1=True, v1beta1=True, v1alpha1=False), want=201)
    server.json("POST", crds, definition("twos", group, v1=True), want=201)
    made = until(server, f"v1.{group}", bool)
    check(made["spec"] == {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}, "its spec", made["spec"])
    check(made["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}, "its label", made["metadata"])
    check([(entry["manager"], entry["operation"]) for entry in made["metadata"]["managedFields"]] == [("kube-apiserver", "Update")], "its manager")
    condition = made["status"]["conditions"][0]
    check((condition["type"], condition["status"], condition["reason"], condition["message"])
          == ("Available", "True", "Local", "Local APIServices are always available"), "local", condition)
    until(server, f"v1beta1.{group}", bool)
    check(server.request("GET", f"{SERVICES}/v1alpha1.{group}")[0] == 404, "none for a version that is not served")
    # Restored when it is changed or deleted.
    server.json("PATCH", f"{SERVICES}/v1.{group}", {"spec": {"versionPriority": 7}}, want=200, content_type="application/merge-patch+json")
    until(server, f"v1.{group}", lambda found: found and found["spec"]["versionPriority"] == 100)
    server.json("DELETE", f"{SERVICES}/v1beta1.{group}", want=200)
    until(server, f"v1beta1.{group}", bool)
    server.restart()
    until(server, f"v1.{group}", bool)
    # Deleted with the last CRD that serves it.
    server.json("DELETE", f"{crds}/ones.{group}", want=200)
    until(server, f"v1beta1.{group}", lambda found: found is None)
    check(server.request("GET", f"{SERVICES}/v1.{group}")[0] == 200, "another CRD still serves v1")
    server.json("DELETE", f"{crds}/twos.{group}", want=200)
    until(server, f"v1.{group}", lambda found: found is None)
    # A user's own APIService is left unchanged.
    own = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.own.{group}"},
           "spec": {"group": f"own.{group}", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 5}}
    server.json("POST", SERVICES, own, want=201)
    server.json("POST", crds, definition("threes", f"own.{group}", v1=True), want=201)
    server.json("DELETE", f"{crds}/threes.own.{group}", want=200)
    time.sleep(0.3)
    kept = server.json("GET", f"{SERVICES}/v1.own.{group}", want=200)
    check(kept["spec"]["versionPriority"] == 5 and "labels" not in kept["metadata"], "one without the label is left alone", kept)


def main():
    with Server(sys.argv[1]) as server:
        custom_services(server)
    with tempfile.TemporaryDirectory() as folder, Server(sys.argv[1]) as server:
        hooks = HookServer(folder, client_ca=str(server.data_dir / "pki" / "front-proxy-ca.crt"))
        hooks.on("*", remote)
        server.json("POST", "/api/v1/namespaces/default/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}, want=201)

        made = server.json("POST", SERVICES, api_service(hooks, "v1", "hook", hooks.port), want=201)
        check(made["status"] == {}, "the response has no condition yet", made.get("status"))
        condition = condition_of(server, f"v1.{GROUP}", "True")
        check(condition and condition.get("reason") == "Passed" and condition.get("message") == "all checks passed", "available", condition)
        probe = hooks.take()[0]
        check(probe["path"] == f"/apis/{GROUP}/v1" and probe["headers"]["X-Remote-User"] == "system:kube-aggregator"
              and probe["headers"]["X-Remote-Group"] == "system:masters", "the probe", probe["headers"])

        things = f"/apis/{GROUP}/v1/namespaces/default/things"
        answer = server.json("POST", things + "?x=%2Fy&dryRun=All", {"a": 1}, want=200, headers={"X-Remote-User": "evil", "X-Remote-Group": "evil", "X-Custom": "kept"})
        check(answer == {"path": things + "?x=%2Fy&dryRun=All", "method": "POST", "body": {"a": 1}}, "requests are forwarded unchanged", answer)
        seen = next(one for one in hooks.take() if one["method"] == "POST")  # There are probes in between.
        headers = seen["all_headers"]
        check(headers.get_all("X-Remote-User") == ["kubernetes-admin"] and "system:masters" in headers.get_all("X-Remote-Group")
              and "evil" not in headers.get_all("X-Remote-Group"), "only we set the identity headers", headers.items())
        check(headers["X-Custom"] == "kept" and headers["X-Forwarded-Proto"] == "https" and "Authorization" not in headers and headers["Audit-Id"],
              "other headers", headers.items())
        subject = dict(pair[0] for pair in (seen["certificate"] or {}).get("subject", ()))
        check(subject.get("commonName") == "front-proxy-client", "authenticated by the front-proxy certificate", seen["certificate"])
        code, _, data = server.request("GET", things + "/missing")
        check(code == 404 and data == b"not here", "errors are returned unchanged", code)
        lines = server.watch(things + "?watch=1", 3)
        check([json.loads(line)["object"]["n"] for line in lines] == [0, 1, 2], "a watch streams", [line.decode() for line in lines])

        groups = {group["name"]: group for group in server.json("GET", "/apis", want=200)["groups"]}
        check(groups.get(GROUP, {}).get("preferredVersion") == {"groupVersion": f"{GROUP}/v1", "version": "v1"}, "in the list of groups", groups.get(GROUP))
        group = server.json("GET", f"/apis/{GROUP}", want=200)
        check(group["kind"] == "APIGroup" and len(group["versions"]) == 1, "the group itself", group)
        mine = discovered(server, GROUP, "Current")
        resource = mine[0]["resources"][0] if mine else {}
        check(resource.get("resource") == "things" and resource.get("scope") == "Namespaced" and resource.get("shortNames") == ["th"]
              and resource["responseKind"]["kind"] == "Thing" and resource["subresources"][0]["subresource"] == "status", "aggregated discovery", mine)

        published(server)

        # Unreachable servers.
        server.json("POST", SERVICES, api_service(hooks, "v2", "nosuch", 443), want=201)
        condition = condition_of(server, f"v2.{GROUP}", "False")
        check(condition and condition.get("reason") == "ServiceNotFound" and condition.get("message") == 'service/nosuch in "default" is not present', "no service", condition)
        code, _, data = server.request("GET", f"/apis/{GROUP}/v2/things")
        check(code == 503 and data == b"service unavailable\n", "unavailable", data.decode())
        server.json("POST", "/api/v1/namespaces/default/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "ip"}, "spec": {"ports": [{"port": 443}]}}, want=201)
        server.json("POST", SERVICES, api_service(hooks, "v3", "ip", 444), want=201)
        condition = condition_of(server, f"v3.{GROUP}", "False")
        check(condition and condition.get("reason") == "ServicePortError" and condition.get("message") == 'service/ip in "default" is not listening on port 444', "no port", condition)
        server.json("POST", SERVICES, api_service(hooks, "v4", "ip", 443), want=201)
        condition = condition_of(server, f"v4.{GROUP}", "False")
        check(condition and condition.get("reason") == "EndpointsNotFound", "no endpoints", condition)
        for version in ("v1", "v2", "v3", "v4"):
            server.json("DELETE", f"{SERVICES}/{version}.{GROUP}", want=200)
        for _ in range(50):
            code, _, _ = server.request("GET", f"/apis/{GROUP}/v1")
            if code == 404:
                break
            time.sleep(0.1)
        check(code == 404, "removed with its APIService", code)
        hooks.on("*", remote)
        tunnels(server, hooks)
        converted(server, hooks)
        aggregated_discovery(server, hooks)
        api_service_over_crd(server, hooks)
        hooks.stop()
    finish()


main()

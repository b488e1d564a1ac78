#!/usr/bin/env python3
"""Metrics: requests are counted as kube-apiserver counts them, the series that the dashboards, rules and alerts of the
kubernetes-mixin read exist, and docs/metrics.md lists every metric. `metrics_test.py HOLDFAST --write` rewrites that page."""
import base64, http.client, os, re, ssl, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hook_server import HookServer  # noqa: E402
from serve import Server, check, finish  # noqa: E402

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "metrics.md")
MAPS = "/api/v1/namespaces/default/configmaps"
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# What the API server's dashboards, recording rules and alerts of the kubernetes-mixin read, with the labels that they group by
# or select.
MIXIN = {
    "apiserver_request_total": ["verb", "code", "resource"],
    "apiserver_request_duration_seconds_bucket": ["verb", "le"],
    "apiserver_request_sli_duration_seconds_bucket": ["verb", "scope", "subresource", "le", "resource"],
    "apiserver_request_sli_duration_seconds_count": ["verb", "scope", "subresource"],
    "apiserver_request_sli_duration_seconds_sum": ["verb"],
    "apiserver_client_certificate_expiration_seconds_bucket": ["le"],
    "apiserver_client_certificate_expiration_seconds_count": [],
    "apiserver_current_inflight_requests": ["request_kind"],
    "aggregator_unavailable_apiservice": ["name"],
    "process_resident_memory_bytes": [],
    "process_cpu_seconds_total": [],
}
# Others that tools for kube-apiserver read.
COMMON = {
    "apiserver_longrunning_requests": ["verb", "resource"],
    "apiserver_response_sizes_bucket": ["verb", "le"],
    "apiserver_watch_events_total": ["group", "version", "resource"],
    "apiserver_watch_events_sizes_bucket": ["le"],
    "apiserver_resource_objects": ["group", "resource"],
    "apiserver_storage_objects": ["resource"],
    "apiserver_admission_step_admission_duration_seconds_bucket": ["type", "operation", "rejected", "le"],
    "apiserver_admission_webhook_admission_duration_seconds_bucket": ["name", "type", "operation", "rejected", "le"],
    "apiserver_admission_webhook_request_total": ["name", "type", "operation", "code", "rejected"],
    "apiserver_admission_webhook_rejection_count": ["name", "type", "operation", "error_type", "rejection_code"],
    "apiserver_flowcontrol_request_wait_duration_seconds_bucket": ["priority_level", "flow_schema", "execute", "le"],
    "apiserver_flowcontrol_request_execution_seconds_bucket": ["priority_level", "flow_schema", "type", "le"],
    "apiserver_flowcontrol_current_executing_seats": ["priority_level", "flow_schema"],
    "apiserver_flowcontrol_nominal_limit_seats": ["priority_level"],
    "apiserver_flowcontrol_current_limit_seats": ["priority_level"],
    "authentication_attempts": ["result"],
    "authentication_duration_seconds_bucket": ["result", "le"],
    "authenticated_user_requests": ["username"],
    "authorization_attempts_total": ["result"],
    "authorization_duration_seconds_bucket": ["result", "le"],
    "process_open_fds": [],
    "process_max_fds": [],
    "process_virtual_memory_bytes": [],
    "process_start_time_seconds": [],
    "kubernetes_feature_enabled": ["name", "stage"],
    "version_info": ["component", "binary", "emulation", "min_compat"],
    "holdfast_certificate_expiration_seconds": ["name"],
}

LINE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_A-Z0-9]+)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """-> {series: [(labels, value)]}, {family: (type, help)}"""
    series, families = {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, meaning = line[7:].split(" ", 1)
            families[name] = (None, meaning)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            families[name] = (kind, families[name][1])
        elif line:
            name, labels, value = LINE.match(line).groups()
            series.setdefault(name, []).append((dict(LABEL.findall(labels or "")), float(value)))
    return series, families


def scrape(server):
    return parse(server.request("GET", "/metrics")[2].decode())


def counted(series, **labels):
    return sum(value for have, value in series.get("apiserver_request_total", []) if all(have.get(k) == v for k, v in labels.items()))


def load(server):
    """Requests of every kind, each once; -> the number of times that each combination of verb, scope and code is expected."""
    path = MAPS + "/a"
    server.json("POST", MAPS, MAP, want=201)
    server.json("POST", MAPS + "?dryRun=All", dict(MAP, metadata={"name": "b"}), want=201)
    server.json("GET", path, want=200)
    server.json("GET", MAPS, want=200)
    server.json("GET", "/api/v1/configmaps", want=200)
    server.request("GET", MAPS + "?watch=1&timeoutSeconds=1")
    server.request("GET", "/api/v1/watch/configmaps?timeoutSeconds=1")
    server.json("PUT", path, MAP, want=200)
    server.json("PATCH", path, {"data": {"y": "2"}}, content_type="application/merge-patch+json", want=200)
    server.json("PATCH", path + "?fieldManager=m&force=true", MAP, content_type="application/apply-patch+yaml", want=200)
    server.json("DELETE", path, want=200)
    server.json("DELETE", MAPS, want=200)
    server.json("GET", MAPS + "/none", want=404)
    server.json("GET", "/api/v1/namespaces/default/pods/none/log", want=404)
    for free in ("/healthz", "/livez", "/readyz", "/metrics", "/version", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1",
                 "/openapi/v3", "/openapi/v3/apis/apps/v1", "/", "/none", "/api/v1/none", "/apis/none/v1/none"):
        server.request("GET", free)
    for free in ("/api", "/apis"):
        server.request("GET", free, accept=AGGREGATED)
    for free in ("/statusz", "/flagz"):
        server.request("GET", free, accept="text/plain")
    return {
        ("POST", "resource", "201", ""): 1, ("POST", "resource", "201", "All"): 1,
        ("GET", "resource", "200", ""): 1, ("GET", "resource", "404", ""): 1,
        ("LIST", "namespace", "200", ""): 1, ("LIST", "cluster", "200", ""): 1,
        ("WATCH", "namespace", "200", ""): 1, ("WATCH", "cluster", "200", ""): 1,
        ("PUT", "resource", "200", ""): 1, ("PATCH", "resource", "200", ""): 1, ("APPLY", "resource", "200", ""): 1,
        ("DELETE", "resource", "200", ""): 1, ("DELETE", "namespace", "200", ""): 1,
    }


def refusals(server):
    """One request that nobody may send, one with a bad token."""
    connection = http.client.HTTPSConnection(server.host, context=ssl._create_unverified_context(), timeout=60)
    connection.request("GET", MAPS)
    assert connection.getresponse().status == 403
    connection.close()
    connection = http.client.HTTPSConnection(server.host, context=ssl._create_unverified_context(), timeout=60)
    connection.request("GET", MAPS, headers={"Authorization": "Bearer nonsense"})
    assert connection.getresponse().status == 401
    connection.close()


def webhook(server, hooks):
    server.json("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "deny"},
        "webhooks": [{"name": "deny.example.com", "clientConfig": {"url": hooks.url("/deny"), "caBundle": base64.b64encode(hooks.ca).decode()}, "sideEffects": "None",
                      "admissionReviewVersions": ["v1"],
                      "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}]}]}, want=201)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    code, _, body = server.request("POST", "/api/v1/namespaces/default/secrets", secret)
    assert code >= 400, body


def declared():
    """{family: (type, meaning, labels)} of all that the source declares: one without series is not in an answer."""
    root = os.path.join(os.path.dirname(PAGE), "..", "src")
    text = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    call = re.compile(r"\b(counters|gauges|histograms)\(\s*\"(\w+)\",\s*" + text + r"(?:,\s*[\w()]+)?(?:,\s*\{([^}]*)\})?\s*\)")
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.endswith(".cc") or name.endswith("_test.cc"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for kind, family, meaning, labels in call.findall(file.read()):
                    found[family] = (kind.removesuffix("s"), "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', meaning)), re.findall(r'"(\w+)"', labels))
    return found


def page_of(families, labels):
    rows = []
    for name, (kind, meaning) in sorted(families.items()):
        rows.append(f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels[name]) or ''} | {meaning} |")
    own = [row for row in rows if row.startswith("| `holdfast_")]
    others = [row for row in rows if not row.startswith("| `holdfast_")]
    head = "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
    return ("# Metrics\n\n`GET /metrics` answers in Prometheus' text format to users who may `get` that path. `tests/api/metrics_test.py`\n"
            "writes this page from the answer of a server under load, and from the source for what that load does not count, and checks it.\n\n"
            "## Named as in kube-apiserver\n\nLabels, types and buckets are those of kube-apiserver v1.36, so its dashboards, recording rules and\n"
            "alerts work unchanged. Metrics of the Go runtime (`go_*`) do not exist.\n\n" + head + "\n".join(others) +
            "\n\n## Holdfast's own\n\n" + head + "\n".join(own) + "\n")


def main():
    with tempfile.TemporaryDirectory() as folder, Server(sys.argv[1]) as server:
        hooks = HookServer(folder)
        hooks.on("/deny", lambda review: {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": review["request"]["uid"], "allowed": False, "status": {"code": 403, "message": "no"}}})
        before, _ = scrape(server)
        want = load(server)
        refusals(server)
        webhook(server, hooks)
        series, families = scrape(server)
        hooks.stop()

        for (verb, scope, code, dry_run), times in want.items():
            labels = dict(resource="configmaps", verb=verb, scope=scope, code=code, dry_run=dry_run)
            check(f"{verb} of a {scope} answered with {code}{' as a dry run' if dry_run else ''} is counted",
                  counted(series, **labels) - counted(before, **labels) == times)
        total = sum(want.values())
        check("nothing else is counted for these resources",
              counted(series, resource="configmaps") - counted(before, resource="configmaps") == total)
        check("a connection is counted as CONNECT", counted(series, resource="pods", subresource="log", verb="CONNECT", code="404") == 1)
        paths = {have["subresource"] or have["resource"] for have, _ in series["apiserver_request_total"] if have["scope"] == ""}
        check("of other paths, those that kube-apiserver counts",
              paths == {"/healthz", "/livez", "/readyz", "openapi/v3", "openapi/v3/", "api", "apis", "statusz", "flagz"})
        check("verbs are those of kube-apiserver", {have["verb"] for have, _ in series["apiserver_request_total"]} <=
              {"GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "APPLY", "DELETE", "CONNECT"})
        check("refused requests are counted by authentication and authorization only",
              counted(series, code="401") == 0 and counted(series, code="403", resource="configmaps") == 0 and
              dict((have["result"], value) for have, value in series["authentication_attempts"])["failure"] == 1 and
              dict((have["result"], value) for have, value in series["authorization_attempts_total"])["no-opinion"] == 1)
        check("dry runs have no latency of their own",
              sum(value for have, value in series["apiserver_request_sli_duration_seconds_count"] if have["verb"] == "POST" and
                  have["resource"] == "configmaps") == 1)
        certificates = series["apiserver_client_certificate_expiration_seconds_bucket"]
        below = {have["le"]: value for have, value in certificates}
        check("the administrator's certificate has between half a year and a year left",
              below["15552000"] == 0 and below["+Inf"] > 10)

        for wanted in (MIXIN, COMMON):
            for name, labels in wanted.items():
                have = series.get(name)
                check(f"{name} exists, with labels {labels}", bool(have) and set(labels) <= set(have[0][0]))
        check("a webhook's denial is counted", [value for have, value in series["apiserver_admission_webhook_rejection_count"]
                                                if have["name"] == "deny.example.com" and have["operation"] == "CREATE"] == [1])
        objects = {(have["group"], have["resource"]): value for have, value in series["apiserver_resource_objects"]}
        check("objects are counted by resource", objects[("", "namespaces")] >= 4 and objects[("", "configmaps")] >= 1)

        labels = {}
        for name in families:
            have = series.get(name) or series.get(name + "_bucket")
            labels[name] = [label for label in have[0][0] if label != "le"]
        known = declared()
        check("the source declares what it can count", len(known) > 60)
        for name, (kind, meaning, names) in known.items():
            if name in families:
                check(f"{name} is as declared in the source: {families[name]} {labels[name]}", (kind, meaning, names) == (*families[name], labels[name]))
            else:
                families[name], labels[name] = (kind, meaning), names
        page = page_of(families, labels)
        if "--write" in sys.argv:
            with open(PAGE, "w", encoding="utf-8") as file:
                file.write(page)
        else:
            with open(PAGE, encoding="utf-8") as file:
                check("docs/metrics.md lists every metric (metrics_test.py HOLDFAST --write)", file.read() == page)
    finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""admission_config_test.py HOLDFAST: --admission-control-config-file on running servers, with a webhook server in this process."""
import base64, json, os, subprocess, sys, tempfile

from hook_server import HookServer
from serve import Server, check, finish, run_parts

SPACE = "/api/v1/namespaces/default"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1/"


def pod(name, privileged=False, **spec):
    container = {"name": "c", "image": "i", "securityContext": {"privileged": privileged}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def admission_configuration(**plugins):
    """plugins: maps a name to its configuration, or to the path of one."""
    entries = [{"name": name, **({"path": given} if isinstance(given, str) else {"configuration": given})} for name, given in plugins.items()]
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": entries}


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def quotas_are_needed(server):
    def refused(path, body, why, code=403, reason="Forbidden"):
        status = server.json("POST", path, body, want=code)
        check(status["message"] == why and status.get("reason", "") == reason, why, status)

    server.json("POST", "/api/v1/namespaces", {"metadata": {"name": "limited"}}, want=201)
    space = "/api/v1/namespaces/limited"
    refused(space + "/pods", pod("a"), 'pods "a" is forbidden: insufficient quota to consume: count/pods,pods')
    refused(space + "/pods?dryRun=All", pod("a"), 'pods "a" is forbidden: insufficient quota to consume: count/pods,pods')
    service = {"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    refused(space + "/services", service, 'services "s" is forbidden: insufficient quota to consume: services.loadbalancers')
    server.json("POST", space + "/services", {"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}]}}, want=201)
    status = server.json("PATCH", space + "/services/t", {"spec": {"type": "LoadBalancer"}}, want=403, content_type="application/merge-patch+json")
    check(status["message"] == 'services "t" is forbidden: insufficient quota to consume: services.loadbalancers', "an update that increases usage", status)
    server.json("POST", space + "/configmaps", {"metadata": {"name": "c"}}, want=201)

    def limit(name, hard, **spec):
        """A quota with usage as counted by the controller, which does not run here."""
        quota = server.json("POST", space + "/resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}, want=201)
        quota["status"] = {"hard": hard, "used": {what: "0" for what in hard}}
        server.json("PUT", f"{space}/resourcequotas/{name}/status", quota, want=200)

    limit("pods", {"pods": "10"})
    refused(space + "/pods", pod("a"), 'pods "a" is forbidden: insufficient quota to consume: count/pods')
    limit("count", {"count/pods": "3"})
    server.json("POST", space + "/pods", pod("a"), want=201)
    refused(space + "/pods", pod("b", priorityClassName="high"), "insufficient quota to match these scopes: [{PriorityClass In [high]}]", 500, "")
    limit("important", {"pods": "1"}, scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]})
    server.json("POST", space + "/pods", pod("b", priorityClassName="high"), want=201)
    refused(space + "/pods", pod("c", priorityClassName="high"),
            'pods "c" is forbidden: exceeded quota: important, requested: pods=1, used: pods=1, limited: pods=1')


def pods_are_checked_by_default(server):
    def as_user(name):
        return {"Impersonate-User": name, "Impersonate-Group": "system:masters"}

    def create(space, body, user="alice", kind="pods"):
        group = "/api/v1" if kind == "pods" else "/apis/apps/v1"
        code, headers, data = server.request("POST", f"{group}/namespaces/{space}/{kind}", body, headers=as_user(user))
        return code, json.loads(data).get("message", ""), headers.get_all("Warning") or []

    why = 'privileged (container "c" must not set securityContext.privileged=true)'
    for space, labels in (("plain", {}), ("free", {"enforce": "privileged", "warn": "privileged"}), ("builds", {})):
        body = {"metadata": {"name": space, "labels": {"pod-security.kubernetes.io/" + mode: level for mode, level in labels.items()}}}
        server.json("POST", "/api/v1/namespaces", body, want=201)
    code, message, _ = create("plain", pod("a", privileged=True))
    check((code, message) == (403, f'pods "a" is forbidden: violates PodSecurity "baseline:v1.30": {why}'), "the default level is enforced", message)
    code, _, warnings = create("plain", pod("a"))
    check(code == 201 and len(warnings) == 1 and 'would violate PodSecurity \\"restricted:latest\\"' in warnings[0], "the default level is warned about", warnings)
    check(create("free", pod("a", privileged=True))[::2] == (201, []), "labels replace the defaults")
    check(create("builds", pod("a", privileged=True))[::2] == (201, []), "an exempt namespace")
    check(create("plain", pod("b", privileged=True), user="builder")[::2] == (201, []), "an exempt user")
    server.json("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "box"}, "handler": "box"}, want=201)
    check(create("plain", pod("c", privileged=True, runtimeClassName="box"))[::2] == (201, []), "an exempt runtime class")
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": pod("", privileged=True)["spec"]}}}
    code, _, warnings = create("plain", deployment, kind="deployments")
    check(code == 201 and len(warnings) == 1, "the author of a Deployment is warned", warnings)
    check(create("builds", deployment, kind="deployments")[::2] == (201, []), "but not in an exempt namespace")
    code, headers, _ = server.request("PATCH", "/api/v1/namespaces/builds", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
                                      content_type="application/merge-patch+json")
    check(code == 200 and headers.get_all("Warning") == [
        '299 - "namespace \\"builds\\" is exempt from Pod Security, and the policy (enforce=restricted:v1.30) will be ignored"'], "its labels are ignored",
        headers.get_all("Warning"))
    exempt = [line for line in server.request("GET", "/metrics")[2].decode().splitlines() if line.startswith("pod_security_exemptions_total{")]
    counted = {tuple(line.split('"')[1:4:2]): int(line.split()[-1]) for line in exempt}
    check(counted[("create", "pod")] == 3 and counted[("create", "controller")] == 1, "exemptions are counted", exempt)


def limits_and_levels(holdfast, folder):
    quota = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration", "limitedResources": [
        {"resource": "pods", "matchContains": ["pods"], "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]},
        {"resource": "services", "matchContains": ["loadbalancers"]}]}
    path = write(folder, "quota.yaml", admission_configuration(ResourceQuota=quota))
    with Server(holdfast, flags=["--admission-control-config-file=" + path]) as server:
        run_parts(server, [quotas_are_needed])
    write(folder, "pods.yaml", "\n".join([
        "apiVersion: pod-security.admission.config.k8s.io/v1", "kind: PodSecurityConfiguration",
        "defaults: {enforce: baseline, enforce-version: v1.30, warn: restricted}",
        "exemptions: {usernames: [builder], namespaces: [builds], runtimeClasses: [box]}"]))
    path = write(folder, "security.yaml", admission_configuration(PodSecurity="pods.yaml"))
    with Server(holdfast, flags=["--admission-control-config-file=" + path]) as server:
        run_parts(server, [pods_are_checked_by_default])


def webhooks_know_who_calls(holdfast, folder):
    hooks = HookServer(folder, client_ca=os.path.join(folder, "ca.crt"))
    address = f"127.0.0.1:{hooks.port}"
    write(folder, "token", "from-a-file\n")
    kubeconfigs = {
        "Mutating": [{"name": address, "user": {"client-certificate": "tls.crt", "client-key": "tls.key", "token": "exact"}},
                     {"name": "127.0.0.1", "user": {"token": "without the port"}}, {"name": "*", "user": {"token": "any"}}],
        "Validating": [{"name": f"*.default.svc:{hooks.port}", "user": {"username": "me", "password": "secret"}}, {"name": "*", "user": {"tokenFile": "token"}}]}
    plugins = {}
    for side, users in kubeconfigs.items():
        plugins[side + "AdmissionWebhook"] = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                                              "kubeConfigFile": write(folder, side, {"apiVersion": "v1", "kind": "Config", "users": users})}
    path = write(folder, "webhooks.yaml", admission_configuration(**plugins))
    with Server(holdfast, flags=["--admission-control-config-file=" + path]) as server:
        hooks.on("/", lambda review: {**review, "response": {"uid": review["request"]["uid"], "allowed": True}})
        server.json("POST", SPACE + "/services", {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}, want=201)
        bundle = base64.b64encode(hooks.ca).decode()
        by_url = {"url": hooks.url("/"), "caBundle": bundle}
        by_service = {"service": {"namespace": "default", "name": "hook", "port": hooks.port}, "caBundle": bundle}

        def seen_by(side, client):
            kind = side + "WebhookConfiguration"
            rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            hook = {"name": "h.example.com", "clientConfig": client, "rules": [rule], "admissionReviewVersions": ["v1"], "sideEffects": "None"}
            made = server.json("POST", REGISTRATION + kind.lower() + "s", {"metadata": {"name": "h"}, "webhooks": [hook]}, want=201)
            server.json("POST", SPACE + "/configmaps?dryRun=All", {"metadata": {"name": "c"}}, want=201)
            server.json("DELETE", f"{REGISTRATION}{kind.lower()}s/{made['metadata']['name']}", want=200)
            (seen,) = hooks.take()
            subject = dict(pair[0] for pair in (seen["certificate"] or {}).get("subject", ()))
            return seen["all_headers"].get_all("Authorization"), subject.get("commonName")

        check(seen_by("Mutating", by_url) == (["Bearer exact"], "hook"), "a certificate and a token, by address and port")
        check(seen_by("Mutating", by_service) == (["Bearer any"], None), "a token for all others")
        check(seen_by("Validating", by_url) == (["Bearer from-a-file"], None), "a token from a file")
        basic = "Basic " + base64.b64encode(b"me:secret").decode()
        check(seen_by("Validating", by_service) == ([basic], None), "a password, by part of a service name")
    hooks.stop()


def namespaces_are_provided(server):
    path = "/api/v1/namespaces/fresh/configmaps"
    create = lambda path, body: server.json("POST", path, body)
    status = create(path + "?dryRun=All", {"metadata": {"name": "c"}})
    check(status["message"] == 'namespaces "fresh" not found', "a dry run creates no namespace", status)
    status = server.json("PUT", path + "/c", {"metadata": {"name": "c"}}, want=404)
    check(server.request("GET", "/api/v1/namespaces/fresh")[0] == 404, "an update creates no namespace", status)
    server.json("POST", path, {"metadata": {"name": "c"}}, want=201)
    check(server.json("GET", "/api/v1/namespaces/fresh", want=200)["status"]["phase"] == "Active", "the namespace of a new object is created")
    server.json("POST", path, {"metadata": {"generateName": "c-"}}, want=201)
    server.json("PATCH", "/api/v1/namespaces/applied/configmaps/c?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
                want=201, content_type="application/apply-patch+yaml")
    for body, shown in (({"metadata": {"name": "c"}}, '"c" '), ({"metadata": {"generateName": "c-"}}, '"c-" '), ({"metadata": {}}, '"Unknown" ')):
        status = create("/api/v1/namespaces/Not_A_Name/configmaps", body)
        check(status["code"] == 403 and status["message"].startswith(f'configmaps {shown}is forbidden: Namespace "Not_A_Name" is invalid: metadata.name: Invalid value'),
              f"a namespace that cannot be created, for {body}", status)


def plugins_that_need_no_configuration(holdfast, folder):
    with Server(holdfast, flags=["--enable-admission-plugins=NamespaceAutoProvision"]) as server:
        run_parts(server, [namespaces_are_provided])


def mistakes_are_refused(holdfast, folder):
    kube_apiserver = os.path.join(folder, "kube-apiserver")
    os.symlink(os.path.abspath(holdfast), kube_apiserver)

    def start(content):
        path = write(folder, "wrong.yaml", content) if content is not None else os.path.join(folder, "nowhere.yaml")
        flags = ["--data-dir=" + os.path.join(folder, "data"), "--listen=127.0.0.1:0", "--admission-control-config-file=" + path]
        for command in ([holdfast, "serve"], [kube_apiserver]):
            done = subprocess.run(command + flags, capture_output=True, text=True, timeout=60)
            yield done.returncode, done.stderr

    hook = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration"}
    for what, content, why in (
            ("a missing file", None, f"--admission-control-config-file: cannot read {folder}/nowhere.yaml: No such file or directory"),
            ("an unknown plugin", admission_configuration(NoSuch={}), f'{folder}/wrong.yaml: plugins[0] "NoSuch": unknown admission plugin'),
            ("an unknown plugin", admission_configuration(ImagePolicyWebhook="limits"), 'plugins[0] "ImagePolicyWebhook": this plugin is not supported by Holdfast'),
            ("an unknown field", {**admission_configuration(), "plugin": []}, 'strict decoding error: unknown field "plugin"'),
            ("another kind", admission_configuration(PodSecurity=hook), 'no kind "WebhookAdmissionConfiguration" is registered'),
            ("a missing kubeconfig", admission_configuration(MutatingAdmissionWebhook={**hook, "kubeConfigFile": folder + "/none"}), folder + "/none")):
        for code, said in start(content):
            check(code == 1 and why in said, what, said)


def main():
    holdfast = sys.argv[1]
    for part in (limits_and_levels, webhooks_know_who_calls, plugins_that_need_no_configuration, mistakes_are_refused):
        with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
            part(holdfast, folder)
    finish()


main()

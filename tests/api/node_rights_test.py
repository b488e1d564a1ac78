#!/usr/bin/env python3
"""node_rights_test.py HOLDFAST: what the certificates of nodes may do with --authorization-mode=Node,RBAC and NodeRestriction; the
other authorization modes; plugins that are configured with --admission-control-config-file."""
import json, pathlib, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import access_helper  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
from check import check, finish, run_parts  # noqa: E402

NS = "/api/v1/namespaces/default"
NODES = "/api/v1/nodes"
PATCH = {"Content-Type": "application/merge-patch+json"}


def certificate(users, name, group="system:nodes"):
    """-> (certificate, key): files, signed by the server's CA."""
    folder, file = users.server.data_dir, name.replace(":", "-")
    cert, key, request = folder / f"{file}.crt", folder / f"{file}.key", folder / f"{file}.csr"
    run = lambda *args: subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)
    run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request, "-subj", f"/O={group}/CN={name}")
    run("x509", "-req", "-in", request, "-CA", users.pki / "ca.crt", "-CAkey", users.pki / "ca.key", "-set_serial", "7", "-days", "2", "-out", cert)
    return cert, key


class Nodes:
    """Requests as the nodes n1 and n2; n1 runs the pod web, n2 the pod other."""

    def __init__(self, users):
        self.users = users
        self.certificates = {name: certificate(users, "system:node:" + name) for name in ("n1", "n2")}

    def call(self, node, method, path, body=None, headers=None):
        return self.users.call(method, path, body, certificate=self.certificates[node], headers=headers)

    def refused(self, what, answer, message, code=403):
        text = answer.message
        check(answer.code == code and text == message, what, f"{answer.code} {text}")

    def allowed(self, what, answer):
        check(answer.code in (200, 201), what, f"{answer.code} {answer.text[:300]}")


def pod(name, node=None, **spec):
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}


def set_up(users):
    nodes = Nodes(users)
    for name in ("n1", "n2"):
        answer = nodes.call(name, "POST", NODES, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
        nodes.allowed(f"{name} registers", answer)
    users.made(f"{NS}/serviceaccounts", {"metadata": {"name": "robot"}})
    users.made(f"{NS}/serviceaccounts", {"metadata": {"name": "foreign"}})
    for name in ("key", "foreign", "stage"):
        users.made(f"{NS}/secrets", {"metadata": {"name": name}})
    users.made("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "d"}, "spec": {"tokenRequests": [{"audience": "cloud"}]}})
    users.made("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": {"namespace": "default", "name": "disk"},
        "csi": {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {"namespace": "default", "name": "stage"}}}})
    users.made(f"{NS}/persistentvolumeclaims", {"metadata": {"name": "disk"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v", "storageClassName": ""}})
    users.made(f"{NS}/pods", pod("web", "n1", serviceAccountName="robot", volumes=[
        {"name": "s", "secret": {"secretName": "key"}}, {"name": "d", "persistentVolumeClaim": {"claimName": "disk"}},
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault", "path": "t"}}]}}]))
    users.made(f"{NS}/pods", pod("other", "n2"))
    return nodes


def nodes_read_what_their_pods_need(nodes):
    users = nodes.users
    unrelated = "no relationship found between node '{}' and this object"
    get = lambda node, path: nodes.call(node, "GET", path)
    users.when(lambda: get("n1", f"{NS}/secrets/key").code == 200)
    for path in ("/secrets/key", "/serviceaccounts/robot", "/persistentvolumeclaims/disk", "/secrets/stage", "/pods/web"):
        nodes.allowed(f"n1 reads {path}", get("n1", NS + path))
        kind = path.split("/")[1]
        nodes.refused(f"n2 does not read {path}", get("n2", NS + path),
                      f'{kind} "{path.split("/")[2]}" is forbidden: User "system:node:n2" cannot get resource "{kind}" in API group "" '
                      f'in the namespace "default": {unrelated.format("n2")}')
    nodes.allowed("n1 reads its volume", get("n1", "/api/v1/persistentvolumes/v"))
    nodes.refused("n1 does not read other secrets", get("n1", f"{NS}/secrets/foreign"),
                  'secrets "foreign" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace '
                  f'"default": {unrelated.format("n1")}')
    nodes.refused("n1 does not list secrets", get("n1", f"{NS}/secrets"),
                  'secrets is forbidden: User "system:node:n1" cannot list resource "secrets" in API group "" in the namespace "default": '
                  'No Object name found')
    nodes.allowed("n1 lists one secret", get("n1", f"{NS}/secrets?fieldSelector=metadata.name%3Dkey"))
    nodes.refused("n1 does not list all secrets", get("n1", "/api/v1/secrets"),
                  'secrets is forbidden: User "system:node:n1" cannot list resource "secrets" in API group "" at the cluster scope: '
                  'can only read namespaced object of this type')
    nodes.allowed("n1 lists its pods", get("n1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"))
    nodes.refused("n1 does not list those of n2", get("n1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"),
                  'pods is forbidden: User "system:node:n1" cannot list resource "pods" in API group "" at the cluster scope: '
                  'can only list/watch pods with spec.nodeName field selector')
    nodes.refused("n1 does not read other nodes", get("n1", f"{NODES}/n2"),
                  'nodes "n2" is forbidden: User "system:node:n1" cannot get resource "nodes" in API group "" at the cluster scope: '
                  "node 'n1' cannot read 'n2', only its own Node object")
    nodes.allowed("all nodes read services", get("n2", "/api/v1/services"))
    review = {"spec": {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": {
        "verb": "list", "resource": "pods", "version": "v1",
        "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]}}}}
    asked = users.admin("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).json["status"]
    check(asked.get("allowed") is True, "an access review takes the field selector into account", asked)
    rules = nodes.call("n1", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}).json
    check(rules["status"]["incomplete"] and rules["status"]["evaluationError"] == "node authorizer does not support user rule resolution",
          "the rules of a node are incomplete", rules["status"])


def access_ends_with_the_pod(nodes):
    users = nodes.users
    users.made(f"{NS}/secrets", {"metadata": {"name": "short"}})
    read = lambda: nodes.call("n2", "GET", f"{NS}/secrets/short").code
    check(read() == 403, "n2 has no pod with this secret")
    users.made(f"{NS}/pods", pod("brief", imagePullSecrets=[{"name": "short"}]))
    check(read() == 403, "the pod runs nowhere yet")
    users.made(f"{NS}/pods/brief/binding", {"metadata": {"name": "brief"}, "target": {"kind": "Node", "name": "n2"}})
    users.when(lambda: read() == 200)
    users.admin("DELETE", f"{NS}/pods/brief?gracePeriodSeconds=0")
    users.when(lambda: read() == 403)


def nodes_change_themselves(nodes):
    patch = lambda node, path, body: nodes.call(node, "PATCH", path, body, PATCH)
    nodes.allowed("a label of its own", patch("n1", f"{NODES}/n1", {"metadata": {"labels": {"x": "y"}}}))
    nodes.allowed("its own status", patch("n1", f"{NODES}/n1/status", {"status": {"phase": "Running"}}))
    forbidden = 'nodes "n1" is forbidden: '
    nodes.refused("restricted labels", patch("n1", f"{NODES}/n1", {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}),
                  forbidden + "is not allowed to modify labels: node-restriction.kubernetes.io/x")
    nodes.refused("taints", patch("n1", f"{NODES}/n1", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
                  forbidden + 'node "n1" is not allowed to modify taints')
    nodes.refused("another node", patch("n1", f"{NODES}/n2", {"metadata": {"labels": {"x": "y"}}}),
                  'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"')
    nodes.refused("the status of another node", patch("n1", f"{NODES}/n2/status", {"status": {"phase": "Running"}}),
                  'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"')
    nodes.refused("a new node of another name", nodes.call("n1", "POST", NODES, {"metadata": {"name": "n3"}}),
                  'nodes "n3" is forbidden: node "n1" is not allowed to modify node "n3"')
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    nodes.users.when(lambda: nodes.users.admin("GET", "/api/v1/namespaces/kube-node-lease").code == 200)
    nodes.allowed("its lease", nodes.call("n1", "POST", leases, {"metadata": {"name": "n1"}}))
    nodes.refused("a lease of another node", nodes.call("n1", "POST", leases, {"metadata": {"name": "n2"}}),
                  'leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name as the requesting node')
    csi = lambda name: {"metadata": {"name": name}, "spec": {"drivers": []}}
    nodes.allowed("its CSINode", nodes.call("n1", "POST", "/apis/storage.k8s.io/v1/csinodes", csi("n1")))
    nodes.refused("that of another node", nodes.call("n1", "POST", "/apis/storage.k8s.io/v1/csinodes", csi("n2")),
                  'csinodes.storage.k8s.io "n2" is forbidden: can only access CSINode with the same name as the requesting node')


def nodes_change_their_pods(nodes):
    status = {"status": {"message": "x"}}
    nodes.allowed("the status of its pod", nodes.call("n1", "PATCH", f"{NS}/pods/web/status", status, PATCH))
    nodes.refused("that of another pod", nodes.call("n1", "PATCH", f"{NS}/pods/other/status", status, PATCH),
                  'pods "other" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself')
    nodes.refused("another pod", nodes.call("n1", "DELETE", f"{NS}/pods/other"),
                  'pods "other" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself')
    eviction = lambda name: nodes.call("n1", "POST", f"{NS}/pods/{name}/eviction?dryRun=All", {"metadata": {"name": name}})
    nodes.allowed("its pod is evicted", eviction("web"))
    nodes.refused("another pod is not evicted", eviction("other"),
                  'pods "other" is forbidden: node n1 can only evict pods with spec.nodeName set to itself')
    nodes.refused("a plain pod", nodes.call("n1", "POST", f"{NS}/pods", pod("evil", "n1")),
                  'pods "evil" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods')
    mirror = pod("mirror", "n1")
    mirror["metadata"].update(annotations={"kubernetes.io/config.mirror": "x"}, ownerReferences=[
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": nodes.users.admin("GET", f"{NODES}/n1").json["metadata"]["uid"], "controller": True}])
    nodes.allowed("a mirror pod", nodes.call("n1", "POST", f"{NS}/pods", mirror))
    nodes.allowed("a mirror pod is deleted", nodes.call("n1", "DELETE", f"{NS}/pods/mirror?gracePeriodSeconds=0"))
    nodes.allowed("the status of a claim", nodes.call("n1", "PATCH", f"{NS}/persistentvolumeclaims/disk/status", {"status": {"capacity": {"storage": "1Gi"}}}, PATCH))
    refused = nodes.call("n1", "PATCH", f"{NS}/persistentvolumeclaims/disk/status", {"metadata": {"labels": {"a": "b"}}}, PATCH)
    check(refused.code == 403 and "is not allowed to update fields other than" in refused.message, "but not its labels", refused.text)


def nodes_get_tokens_for_their_pods(nodes):
    uid = lambda name: nodes.users.admin("GET", f"{NS}/pods/{name}").json["metadata"]["uid"]
    bound = lambda name: {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid(name)}}
    ask = lambda account, spec: nodes.call("n1", "POST", f"{NS}/serviceaccounts/{account}/token",
                                           {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    forbidden = 'serviceaccounts "robot" is forbidden: '
    nodes.allowed("a token for its pod", ask("robot", {"audiences": ["vault"], **bound("web")}))
    nodes.allowed("a token for the driver of its volume", ask("robot", {"audiences": ["cloud"], **bound("web")}))
    nodes.refused("a token for nothing", ask("robot", {"audiences": ["vault"]}), forbidden + "node requested token not bound to a pod")
    nodes.refused("a token for a pod elsewhere", ask("robot", {"audiences": ["vault"], **bound("other")}),
                  forbidden + "node requested token bound to a pod scheduled on a different node")
    nodes.refused("a token for another audience", ask("robot", {"audiences": ["bank"], **bound("web")}),
                  forbidden + 'audience "bank" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience')
    refused = ask("foreign", {"audiences": ["vault"], **bound("web")})
    check(refused.code == 403 and refused.message.endswith("no relationship found between node 'n1' and this object"), "a token of another account", refused.text)


def nodes_ask_for_their_own_certificates(nodes):
    import base64
    request = base64.b64encode((nodes.users.server.data_dir / "system-node-n1.csr").read_bytes()).decode()
    body = lambda name: {"metadata": {"name": name}, "spec": {"signerName": "kubernetes.io/kubelet-serving", "request": request,
                                                              "usages": ["digital signature", "server auth"]}}
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    nodes.allowed("n1 asks for its certificate", nodes.call("n1", "POST", path, body("a")))
    nodes.refused("n2 does not ask for that of n1", nodes.call("n2", "POST", path, body("b")),
                  'certificatesigningrequests.certificates.k8s.io "b" is forbidden: can only create a node CSR with CN=system:node:n2')


def others_are_not_restricted(nodes):
    users = nodes.users
    binding = users.admin("GET", access_helper.RBAC + "/clusterrolebindings/system:node").json
    check(not binding.get("subjects"), "system:node is bound to nobody", binding)
    stranger = certificate(users, "system:node:n9", group="strangers")
    refused = users.call("GET", "/api/v1/services", certificate=stranger)
    check(refused.code == 403, "a node has the group system:nodes", refused.text)
    check(users.admin("PATCH", f"{NODES}/n2", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, headers=PATCH).code == 200,
          "administrators set taints")


def with_server(flags, use):
    server = access_helper.start(sys.argv[1], "--controllers=none", "--disable-admission-plugins=ServiceAccount", *flags)
    try:
        use(access_helper.Users(server))
    finally:
        server.stop()


def without_node_mode_they_may_do_nothing(users):
    answer = users.call("GET", "/api/v1/services", certificate=certificate(users, "system:node:n1"))
    check(answer.code == 403 and answer.message.endswith("at the cluster scope"), "RBAC alone grants nodes nothing", answer.text)


def a_restart_knows_the_pods(users):
    nodes = set_up(users)
    users.when(lambda: nodes.call("n1", "GET", f"{NS}/secrets/key").code == 200)
    users.server.stop()
    users.server.start()
    users.__init__(users.server)
    check(nodes.call("n1", "GET", f"{NS}/secrets/key").code == 200, "a server that is ready knows which pods run where")


def everything_is_forbidden(users):
    answer = users.call("GET", "/api/v1/pods", token="plain-token")
    check(answer.code == 403 and answer.message.endswith("at the cluster scope: Everything is forbidden."), "AlwaysDeny", answer.text)
    check(users.admin("GET", "/api/v1/pods").code == 200, "except for system:masters")


def policies_allow(users):
    check(users.call("GET", f"{NS}/pods", token="tenant-token").code == 200, "a policy allows tenants to read")
    answer = users.call("DELETE", f"{NS}/pods", token="tenant-token")
    check(answer.code == 403 and answer.message.endswith('"default": No policy matched.'), "but not to delete", answer.text)


def events_are_limited(users):
    event = lambda name: {"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}
    codes = [users.admin("POST", f"{NS}/events", event(f"e{i}")) for i in range(3)]
    check([a.code for a in codes] == [201, 201, 429], "two events, then none", [a.text for a in codes])
    check(codes[2].message == "limit reached on type Namespace for key default", "the limit is named", codes[2].message)
    made = users.made(f"{NS}/pods", pod("p"))
    check(made["spec"].get("nodeSelector") == {"pool": "shared"}, "pods get the cluster's node selector", made["spec"])


def plugin_configuration(folder):
    file = folder / "admission.json"
    file.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
        {"name": "EventRateLimit", "configuration": {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
                                                     "limits": [{"type": "Namespace", "qps": 1, "burst": 2}]}},
        {"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "pool=shared"}}}]}))
    return file


def main():
    import tempfile
    restricted = ["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"]
    parts = [nodes_read_what_their_pods_need, access_ends_with_the_pod, nodes_change_themselves, nodes_change_their_pods,
             nodes_get_tokens_for_their_pods, nodes_ask_for_their_own_certificates, others_are_not_restricted]
    with_server(restricted, lambda users: run_parts(set_up(users), parts))
    with_server([], without_node_mode_they_may_do_nothing)
    with_server(["--authorization-mode=AlwaysDeny"], everything_is_forbidden)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "modes.json").write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": [
            {"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"}]}))
        with_server([f"--authorization-config={folder}/modes.json"], a_restart_knows_the_pods)
        (folder / "policies.jsonl").write_text(
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":'
            '{"group":"tenants","namespace":"default","resource":"*","apiGroup":"*","readonly":true}}\n')
        with_server(["--authorization-mode=ABAC", f"--authorization-policy-file={folder}/policies.jsonl"], policies_allow)
        with_server(["--enable-admission-plugins=EventRateLimit,PodNodeSelector", f"--admission-control-config-file={plugin_configuration(folder)}"], events_are_limited)
    finish()


if __name__ == "__main__":
    main()

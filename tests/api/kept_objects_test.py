"""kept_objects_test.py HOLDFAST: the built-in objects of a server are restored when deleted or changed, as in
kube-apiserver: most within ten seconds, namespaces and flow control within a minute."""
import os, sys

sys.path.insert(0, os.path.dirname(__file__))
from serve import Server, check, finish, wait_until  # noqa: E402

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1/"
SERVICE = "/api/v1/namespaces/default/services/kubernetes"
ADDRESS = "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1"
AUTHENTICATION = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
OFTEN = [SERVICE, ADDRESS, AUTHENTICATION, "/api/v1/namespaces/default/endpoints/kubernetes",
         "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
         "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"]
EVERY_MINUTE = ["/api/v1/namespaces/kube-node-lease", FLOW + "flowschemas/exempt", FLOW + "flowschemas/probes",
                FLOW + "prioritylevelconfigurations/workload-low"]
ANNOTATION = "apf.kubernetes.io/autoupdate-spec"


def main():
    with Server(sys.argv[1]) as server:
        get = lambda path: server.json("GET", path)
        untouched = get(FLOW + "flowschemas/catch-all")["metadata"]["resourceVersion"]
        before = {path: get(path) for path in OFTEN + EVERY_MINUTE}
        for path in OFTEN + EVERY_MINUTE:
            if path != ADDRESS:  # Deleted with its Service.
                server.json("DELETE", path, want=200)
        # As the namespace controller does.
        server.json("PUT", "/api/v1/namespaces/kube-node-lease/finalize", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}, "spec": {"finalizers": []}}, want=200)
        for name in ("system-node-critical", "system-cluster-critical"):
            refused = server.json("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/" + name, want=403)
            check("this is a system priority class and cannot be deleted" in refused["message"], refused["message"])

        def change(path, spec, annotation=None):
            patch = {"spec": spec}
            if annotation:
                patch["metadata"] = {"annotations": {ANNOTATION: annotation}}
            server.json("PATCH", FLOW + path, patch, want=200, content_type="application/merge-patch+json")

        change("prioritylevelconfigurations/exempt", {"exempt": {"nominalConcurrencyShares": 77}}, "false")
        change("prioritylevelconfigurations/system", {"limited": {"nominalConcurrencyShares": 77}})
        change("prioritylevelconfigurations/node-high", {"limited": {"nominalConcurrencyShares": 77}}, "false")
        old = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
               "spec": {"priorityLevelConfiguration": {"name": "system"}, "matchingPrecedence": 7}}
        for name, annotations in (("of-an-older-server", {ANNOTATION: "true"}), ("mine", {})):
            server.json("POST", FLOW + "flowschemas", {**old, "metadata": {"name": name, "annotations": annotations}}, want=201)

        def is_back(path):
            code, _, _ = server.request("GET", path)
            return code == 200 and get(path)["metadata"]["uid"] != before[path]["metadata"]["uid"]

        shares = lambda name: get(FLOW + "prioritylevelconfigurations/" + name)["spec"]["limited"]["nominalConcurrencyShares"]
        for path in OFTEN:
            wait_until(path + " is restored", lambda: is_back(path), 30)
            check(get(path).get("data") == before[path].get("data"), path + " has its previous content")
        check(get(SERVICE)["spec"]["clusterIP"] == "10.0.0.1", "the Service has its address")
        for path in EVERY_MINUTE:
            wait_until(path + " is restored", lambda: is_back(path), 120)
        exempt = lambda: get(FLOW + "prioritylevelconfigurations/exempt")
        wait_until("mandatory objects are restored", lambda: exempt()["metadata"]["annotations"][ANNOTATION] == "true", 120)
        check(exempt()["spec"]["exempt"]["nominalConcurrencyShares"] == 77, "with lendable shares as set by the user")
        wait_until("auto-updated objects have their spec restored", lambda: shares("system") == 30, 120)
        check(shares("node-high") == 77, "user-managed objects are left alone")
        wait_until("obsolete objects are deleted", lambda: server.request("GET", FLOW + "flowschemas/of-an-older-server")[0] == 404, 120)
        check(server.request("GET", FLOW + "flowschemas/mine")[0] == 200, "user-created objects are kept")
        check(get(FLOW + "flowschemas/catch-all")["metadata"]["resourceVersion"] == untouched, "correct objects are not written")

        # The condition about a missing priority level.
        def dangling():
            conditions = get(FLOW + "flowschemas/mine").get("status", {}).get("conditions", [])
            return [(c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == "Dangling"]

        said = 'This FlowSchema references the PriorityLevelConfiguration object named "%s" '
        wait_until("its level exists", lambda: dangling() == [("False", "Found", said % "system" + "and it exists")], 30)
        change("flowschemas/mine", {"priorityLevelConfiguration": {"name": "later"}})
        wait_until("its level is missing", lambda: dangling() == [("True", "NotFound", said % "later" + "but there is no such object")], 30)
        level = get(FLOW + "prioritylevelconfigurations/system")
        server.json("POST", FLOW + "prioritylevelconfigurations", {
            "apiVersion": level["apiVersion"], "kind": level["kind"], "metadata": {"name": "later"}, "spec": level["spec"]}, want=201)
        wait_until("its level was created", lambda: dangling() == [("False", "Found", said % "later" + "and it exists")], 30)
        check(sorted((e["manager"], e.get("subresource", "")) for e in get(FLOW + "flowschemas/mine")["metadata"]["managedFields"])
              == [("api-priority-and-fairness-config-consumer-v1", "status"), ("test", "")], "its status is owned by kube-apiserver")

        # The certificate of another server is kept in the ConfigMap, and ours is added.
        other = "-----BEGIN CERTIFICATE-----\nb3RoZXI=\n-----END CERTIFICATE-----\n"
        server.json("PATCH", AUTHENTICATION, {"data": {"client-ca-file": other}}, want=200, content_type="application/merge-patch+json")
        ours = before[AUTHENTICATION]["data"]["client-ca-file"]
        wait_until("both certificates are present", lambda: get(AUTHENTICATION)["data"]["client-ca-file"] == other + ours, 30)
    finish()


if __name__ == "__main__":
    main()

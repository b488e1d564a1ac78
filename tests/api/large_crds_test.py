#!/usr/bin/env python3
"""large_crds_test.py HOLDFAST: large CustomResourceDefinitions as installed in practice, and typical operations on their
objects."""
import copy, sys

import large_crds
from serve import Server, check, finish

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROOT = "/apis/large.example.com/v1/namespaces/default/"
APPLY = "application/apply-patch+yaml"


def thing(kind, name, spec):
    return {"apiVersion": "large.example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def owners(object):
    return {entry["manager"]: entry["fieldsV1"] for entry in object["metadata"]["managedFields"]}


def definitions_are_accepted(server):
    for made in (large_crds.database(), large_crds.pipeline(), large_crds.gateway()):
        fields = large_crds.count_fields(made["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        check(fields > 300, f"{made['metadata']['name']} is large", fields)
        server.json("POST", DEFINITIONS, made, want=201)
        stored = server.json("GET", DEFINITIONS + "/" + made["metadata"]["name"], want=200)
        check(stored["spec"]["versions"][0]["schema"] == made["spec"]["versions"][0]["schema"], "the schema is returned as sent")
        conditions = {condition["type"]: condition["status"] for condition in stored["status"]["conditions"]}
        check(conditions.get("Established") == "True", "established", conditions)
    published = server.json("GET", "/openapi/v3/apis/large.example.com/v1", want=200)
    check("com.example.large.v1.Database" in published["components"]["schemas"], "published", list(published["components"]["schemas"])[:5])


def a_database(server):
    spec = {"storage": {"size": "10Gi", "unknown": 1}, "users": [{"name": "app", "roles": ["a", "b"]}], "backup": {"destinations": [
        {"name": "s3", "target": {"bucket": "b", "extra": {"anything": {"goes": [1, None, "x"]}}}}]},
        "databases": [{"name": "main", "extensions": [{"name": "vector", "config": {"lists": 100}}]}]}
    made = server.json("POST", ROOT + "databases", thing("Database", "db", spec), want=201)
    check("unknown" not in made["spec"]["storage"] and made["spec"]["storage"]["resizeInUseVolumes"] is True, "pruned and defaulted", made["spec"]["storage"])
    check(made["spec"]["instances"] == 1 and made["spec"]["backup"]["destinations"][0]["target"]["compression"] == "zstd", "defaults deep down", made["spec"])
    check(made["spec"]["backup"]["destinations"][0]["target"]["extra"] == {"anything": {"goes": [1, None, "x"]}}, "unknown fields are kept where the schema allows it", made["spec"]["backup"])
    refused = server.json("POST", ROOT + "databases", thing("Database", "bad", {
        "instances": 100, "version": "x", "storage": {"size": "ten"}, "users": [{"name": "a"}, {"name": "a"}], "backup": {"destinations": [{"name": "d", "target": {"bucket": "b", "compression": "rar"}}]}}))
    for part in ("spec.instances: Invalid value: 100: spec.instances in body should be less than or equal to 99", "spec.version in body should match", "spec.storage.size",
                 'spec.users[1]: Duplicate value: {"name":"a"}', 'Unsupported value: "rar": supported values: "none", "gzip", "zstd"'):
        check(part in refused["message"], "rejected with " + part, refused)
    status = {"apiVersion": "large.example.com/v1", "kind": "Database", "metadata": {"name": "db"}, "status": {"readyInstances": 1, "phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]}}
    shown = server.json("PATCH", ROOT + "databases/db/status?fieldManager=operator", status, content_type=APPLY, want=200)
    check(shown["status"]["phase"] == "Up" and shown["metadata"]["generation"] == 1, "status is separate", shown["metadata"])
    table = server.json("GET", ROOT + "databases", accept="application/json;as=Table;v=v1;g=meta.k8s.io", want=200)
    check([column["name"] for column in table["columnDefinitions"]] == ["Name", "Ready", "Phase"] and table["rows"][0]["cells"] == ["db", 1, "Up"], "columns", table["rows"])


def two_appliers_of_keyed_lists(server):
    one = thing("Pipeline", "p", {"steps": [{"name": "build", "template": {"spec": {"containers": [{"name": "main", "image": "a", "env": [{"name": "A", "value": "1"}]}]}}}]})
    two = thing("Pipeline", "p", {"steps": [{"name": "build", "template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}], "ports": [{"containerPort": 80}]}]}}},
                                            {"name": "test", "after": ["build"], "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"k": "v"}}}]})
    server.json("PATCH", ROOT + "pipelines/p?fieldManager=one", one, content_type=APPLY, want=201)
    both = server.json("PATCH", ROOT + "pipelines/p?fieldManager=two", two, content_type=APPLY, want=200)
    main = both["spec"]["steps"][0]["template"]["spec"]["containers"][0]
    check([entry["name"] for entry in main["env"]] == ["A", "B"] and main["image"] == "a", "items of both, by key", main)
    check(main["ports"] == [{"containerPort": 80, "protocol": "TCP"}], "a defaulted key", main["ports"])
    check(both["spec"]["steps"][1]["resource"]["data"] == {"k": "v"}, "an embedded resource", both["spec"]["steps"][1])
    check('k:{"name":"test"}' in owners(both)["two"]["f:spec"]["f:steps"] and 'k:{"name":"test"}' not in owners(both)["one"]["f:spec"]["f:steps"], "ownership of the steps", owners(both))
    conflict = copy.deepcopy(two)
    conflict["spec"]["steps"][0]["template"]["spec"]["containers"][0]["image"] = "b"
    answer = server.json("PATCH", ROOT + "pipelines/p?fieldManager=two", conflict, content_type=APPLY)
    check(answer.get("code") == 409 and answer["message"].endswith('.spec.steps[name="build"].template.spec.containers[name="main"].image'), "a conflict names the field", answer)
    before = both["metadata"]["resourceVersion"]
    again = server.json("PATCH", ROOT + "pipelines/p?fieldManager=two", two, content_type=APPLY, want=200)
    check(again["metadata"]["resourceVersion"] == before, "repeating it writes nothing")
    del two["spec"]["steps"][1]
    less = server.json("PATCH", ROOT + "pipelines/p?fieldManager=two", two, content_type=APPLY, want=200)
    check([step["name"] for step in less["spec"]["steps"]] == ["build"], "unowned items are removed", less["spec"]["steps"])


def a_gateway_and_a_new_schema(server):
    spec = {"listeners": [{"name": "web", "port": 80}], "providerConfig": {"any": {"thing": True}}, "policy": {"timeout": None, "retries": {"codes": [502, "gateway-error"]}},
            "routes": [{"name": "r", "hosts": ["b", "a"], "rules": [{"name": "all", "matches": [{"path": {}}], "backends": [{"name": "svc", "port": "http"}]}]}]}
    made = server.json("PATCH", ROOT + "gateways/g?fieldManager=me", thing("Gateway", "g", spec), content_type=APPLY, want=201)
    rule = made["spec"]["routes"][0]["rules"][0]
    check(rule["matches"][0]["path"] == {"type": "PathPrefix", "value": "/"} and rule["backends"] == [{"name": "svc", "port": "http", "weight": 1}], "defaults in lists", rule)
    check(made["spec"]["policy"]["timeout"] is None and made["spec"]["policy"]["retries"]["codes"] == [502, "gateway-error"], "nullable, int-or-string", made["spec"]["policy"])
    # The keyed list of listeners becomes atomic: the next apply owns it as a whole.
    changed = large_crds.gateway()
    listeners = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["listeners"]
    listeners["x-kubernetes-list-type"] = "atomic"
    del listeners["x-kubernetes-list-map-keys"]
    changed["metadata"] = server.json("GET", DEFINITIONS + "/gateways.large.example.com", want=200)["metadata"]
    server.json("PUT", DEFINITIONS + "/gateways.large.example.com", changed, want=200)
    spec["listeners"].append({"name": "tls", "port": 443})
    shown = server.json("PATCH", ROOT + "gateways/g?fieldManager=me", thing("Gateway", "g", spec), content_type=APPLY, want=200)
    check(owners(shown)["me"]["f:spec"]["f:listeners"] == {} and len(shown["spec"]["listeners"]) == 2, "owned as a whole after the change", owners(shown)["me"]["f:spec"]["f:listeners"])


def main():
    with Server(sys.argv[1]) as server:
        for told in (definitions_are_accepted, a_database, two_appliers_of_keyed_lists, a_gateway_and_a_new_schema):
            told(server)
    finish()


main()

#!/usr/bin/env python3
"""gates_test.py HOLDFAST: the gates for the representation of ownership never change what is owned.

The same writes are sent to a server whose gates are toggled between them, to two servers with different gates that share an
etcd, and to a reference server: all have the same objects and owners after every step.
"""
import json, os, sys

from serve import Server, check, finish, run_parts
import widgets

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "store"))
from etcd import Etcd  # noqa: E402

HOLDFAST = sys.argv[1]
GATES = ("ManagedFieldsPool", "CompressManagedFieldsInCache", "FieldsV2", "FieldsV2AtRest", "ManagedFieldsOptOut")
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


def off(*gates):
    return ",".join(gate + "=false" for gate in gates)


def alone(gate):
    return off(*(other for other in GATES if other != gate))


CHOICES = {"": "all on", off(*GATES): "all off", **{off(gate): gate + " off" for gate in GATES}, **{alone(gate): gate + " alone" for gate in GATES}}


def write(server, step):
    """Steps that cover everything that creates owners: several managers, subresources, shared and unset fields, forced
    applies."""
    configmap = lambda data: {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": 1 + step, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": f"c{i}", "image": f"i:{step}", "env": [{"name": f"E{n}", "value": str(n)} for n in range(10)]} for i in range(3)]}}}}
    apply = lambda path, manager, body: server.json("PATCH", f"{path}?fieldManager={manager}&force=true", body, content_type=APPLY)
    apply(CONFIGMAPS + "/c", f"applier{step % 3}", configmap({"shared": "1", f"k{step}": "v", "gone": {"k8s_io__value": "unset"}} if step % 2 else {"shared": "1"}))
    server.json("PATCH", f"{CONFIGMAPS}/c?fieldManager=editor{step % 4}", {"data": {f"e{step}": "v", f"e{step - 2}": None}}, content_type=MERGE)
    apply(DEPLOYMENTS + "/d", f"deployer{step % 2}", deployment)
    server.json("PATCH", f"{DEPLOYMENTS}/d/scale?fieldManager=scaler", {"spec": {"replicas": 20 + step}}, content_type=MERGE)
    server.json("PATCH", f"{DEPLOYMENTS}/d/status?fieldManager=controller", {"status": {"observedGeneration": step}}, content_type=MERGE)
    apply(widgets.WIDGETS + "/w", f"applier{step % 2}", widgets.widget("w", replicas=step, size=1))
    server.json("PATCH", f"{widgets.WIDGETS}/w/status?fieldManager=controller", {"status": {"replicas": step}}, content_type=MERGE)


def everything(server):
    """Each object as read on its own and in a list."""
    found = {}
    for collection, name in ((CONFIGMAPS, "c"), (DEPLOYMENTS, "d"), (widgets.WIDGETS, "w")):
        found[name] = server.json("GET", f"{collection}/{name}", want=200)
        listed = [item for item in server.json("GET", collection, want=200)["items"] if item["metadata"]["name"] == name]
        assert [item["metadata"] for item in listed] == [found[name]["metadata"]], f"{name} in a list: {listed}"
    return found


def comparable(objects):
    """Without values that differ between servers."""
    text = json.loads(json.dumps(objects))
    for value in text.values():
        for member in ("uid", "resourceVersion", "creationTimestamp"):
            value["metadata"].pop(member)
        for entry in value["metadata"]["managedFields"]:
            entry.pop("time", None)
        value["metadata"]["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    return text


def left_alone():
    """The expected state of all servers after each step."""
    with Server(HOLDFAST) as server:
        widgets.define(server)
        steps = []
        for step in range(len(CHOICES)):
            write(server, step)
            steps.append(comparable(everything(server)))
    return steps


def gates_that_change_between_writes(expected):
    with Server(HOLDFAST) as server:
        widgets.define(server)
        for step, gates in enumerate(CHOICES):
            before = everything(server) if step else None
            server.restart(gates)
            check(step == 0 or everything(server) == before, f"{CHOICES[gates]}: objects written before read the same")
            write(server, step)
            found = everything(server)
            check(comparable(found) == expected[step], f"{CHOICES[gates]}: the owners are those of a server that is left alone")
            server.restart()
            check(everything(server) == found, f"{CHOICES[gates]}, then all on: written objects read the same")


def servers_with_different_gates_on_one_etcd(expected):
    etcd = Etcd()
    try:
        for gates in (off(*GATES), alone("FieldsV2AtRest")):
            with Server(HOLDFAST, flags=[f"--etcd-servers={etcd.url}"]) as first, Server(HOLDFAST, gates, [f"--etcd-servers={etcd.url}"]) as second:
                widgets.define(first)
                while second.request("GET", widgets.WIDGETS)[0] != 200:
                    pass
                for step in range(len(CHOICES)):
                    write((first, second)[step % 2], step)
                    found = everything(first)
                    check(everything(second) == found, f"step {step}: both servers show the same, {CHOICES[gates]} in one of them")
                    check(comparable(found) == expected[step], f"step {step}: the owners equal those of the reference server, {CHOICES[gates]} in one of two")
            etcd.delete_all()
    finally:
        etcd.stop()


def main():
    expected = left_alone()
    run_parts(expected, [gates_that_change_between_writes, servers_with_different_gates_on_one_etcd])
    finish()


if __name__ == "__main__":
    main()

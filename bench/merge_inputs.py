#!/usr/bin/env python3
"""merge_inputs.py FOLDER: objects for the benchmark of the merge engines, and their schema in the format of the Go engine.

Writes cases (one name per line), NAME.yaml for each of them, and schema.yaml. Everything is derived from the exemplar pod
in bench/data or generated here, identically on every run.
"""
import json
import pathlib
import sys

DATA = pathlib.Path(__file__).parent / "data"

# Lists merged by key, and lists that are sets; other lists are atomic, and so are these maps.
KEYS = {"containers": ["name"], "env": ["name"], "volumes": ["name"], "volumeMounts": ["mountPath"],
        "ports": ["containerPort", "protocol"], "conditions": ["type"], "ownerReferences": ["uid"],
        "podIPs": ["ip"], "hostIPs": ["ip"], "addresses": ["type"], "components": ["name"], "versions": ["name"]}
SETS = {"finalizers", "taintKeys", "zones"}
ATOMIC_MAPS = {"selector", "fieldRef", "secretKeyRef", "configMapKeyRef"}
MAPS = {"labels", "annotations", "limits", "requests", "allocatedResources", "capacity", "allocatable", "properties",
        "matchLabels", "data", "nodeSelector"}


def pod():
    object = json.loads((DATA / "pod.json").read_text())
    del object["metadata"]["managedFields"]
    return object


def node():
    kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready"]
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "node-17", "labels": {f"topology.example.com/level-{i}": f"part-{i}" for i in range(20)},
                         "annotations": {f"example.com/note-{i}": "x" * 40 for i in range(8)}},
            "spec": {"podCIDR": "10.17.0.0/24", "providerID": "example://zone-b/node-17"},
            "status": {"capacity": {f"example.com/device-{i}": str(i) for i in range(12)},
                       "addresses": [{"type": "InternalIP", "address": "10.0.0.17"}, {"type": "Hostname", "address": "node-17"}],
                       "conditions": [{"type": kind, "status": "False", "reason": "Probe", "message": f"{kind} is as it should be",
                                       "lastHeartbeatTime": "2026-01-14T09:13:02Z"} for kind in kinds],
                       "images": [{"names": [f"registry.example.com/team-{i % 7}/service-{i}@sha256:{i:064x}",
                                             f"registry.example.com/team-{i % 7}/service-{i}:1.{i}"],
                                   "sizeBytes": 10_000_000 + 7919 * i} for i in range(60)]}}


def endpoints():
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "frontend", "labels": {"app": "frontend"}},
            "subsets": [{"addresses": [{"ip": f"10.{20 + i // 250}.{i % 250}.7", "nodeName": f"node-{i % 90}",
                                        "targetRef": {"kind": "Pod", "namespace": "shop", "name": f"frontend-{i}",
                                                      "uid": f"{i:08x}-0000-4000-8000-{i:012x}"}} for i in range(500)],
                         "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}]}


def schema_tree(depth, width):
    """The schema of a custom resource as in its definition: deeply nested maps."""
    if depth == 0:
        return {"type": "string", "description": "A leaf, described in a sentence of the usual length."}
    return {"type": "object", "description": "An inner node.",
            "properties": {f"field{i}": schema_tree(depth - 1, width) for i in range(width)}}


def definition():
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "parts.example.com"},
            "spec": {"group": "example.com", "versions": [{"name": f"v{i}", "served": True, "storage": i == 1,
                                                           "schema": {"openAPIV3Schema": schema_tree(4, 6)}} for i in (1, 2)]}}


def custom():
    return {"apiVersion": "example.com/v1", "kind": "Plant", "metadata": {"name": "north", "finalizers": ["example.com/drain"]},
            "spec": {"zones": [f"zone-{i}" for i in range(40)],
                     "components": [{"name": f"component-{i}", "image": f"registry.example.com/component:{i}", "replicas": i % 5,
                                     "settings": {"data": {f"key-{k}": f"value-{i}-{k}" for k in range(10)}}} for i in range(200)]}}


CASES = {"Pod": pod, "Node": node, "Endpoints": endpoints, "Definition": definition, "Custom": custom}


class Schema:
    """Infers the types of objects and writes them in the format of the Go engine."""

    def __init__(self):
        self.types = []

    def atom(self, name, values):
        """The common type of `values`, which appear under one member name."""
        first = next((v for v in values if v is not None), None)
        if isinstance(first, dict):
            return {"namedType": self.struct(name, [v for v in values if v])}
        if isinstance(first, list):
            items = [item for value in values for item in value]
            element = self.atom(name + "Item", items)
            if name in KEYS and items and all(key in item for key in KEYS[name] for item in items):
                return {"list": {"elementType": element, "elementRelationship": "associative", "keys": KEYS[name]}}
            relation = "associative" if name in SETS else "atomic"
            return {"list": {"elementType": element, "elementRelationship": relation}}
        kind = "boolean" if isinstance(first, bool) else "numeric" if isinstance(first, (int, float)) else "string"
        return {"scalar": kind}

    def struct(self, name, values, named=None):
        if named is None:
            named = f"t{len(self.types)}"
        entry = {"name": named, "map": {}}
        self.types.append(entry)
        if name in MAPS:
            elements = [element for value in values for element in value.values()]
            entry["map"]["elementType"] = self.atom(name + "Value", elements)
        else:
            members = {}
            for value in values:
                for key, member in value.items():
                    members.setdefault(key, []).append(member)
            entry["map"]["fields"] = [{"name": key, "type": self.atom(key, found)} for key, found in members.items()]
        if name in ATOMIC_MAPS:
            entry["map"]["elementRelationship"] = "atomic"
        return named


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    schema = Schema()
    for name, make in CASES.items():
        object = make()
        schema.struct("", [object], name)
        (folder / f"{name}.yaml").write_text(json.dumps(object))  # JSON is YAML.
    (folder / "schema.yaml").write_text(json.dumps({"types": schema.types}))
    (folder / "cases").write_text("".join(f"{name}\n" for name in CASES))


if __name__ == "__main__":
    main()

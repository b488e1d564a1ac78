#!/usr/bin/env python3
"""The columns MERGE and UNSET of `holdfast explain` are what the server does: explain_columns_test.py HOLDFAST

Each object of tests/catalog/objects.yaml is applied (as a dry run): the ownership of each of its fields shows how it merges.
Then it is applied with a marker in place of one field after the other."""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "catalog"), str(HERE.parent / "api")]
import behaviour_test  # noqa: E402
from serve import Server, check, finish  # noqa: E402

# The schema requires these fields; Kubernetes' validation does not.
OPTIONAL_AFTER_ALL = {"core/v1.ScaleIOPersistentVolumeSource.secretRef", "core/v1.ScaleIOVolumeSource.secretRef"}
MARKER = {"k8s_io__value": "unset"}


def columns_of(holdfast, server, kind, api_version):
    """-> {"spec.replicas": (merge, unset)}; items of lists and values of maps have the path of their list or map."""
    done = subprocess.run([holdfast, "--kubeconfig", str(server.kubeconfig), "explain", kind, "--recursive", "--api-version", api_version],
                          capture_output=True, text=True, check=True)
    lines = done.stdout[done.stdout.index("\nFIELDS:"):].split("\n")[2:]
    found, path = {}, []
    for line in lines:
        row = re.fullmatch(r"( +)(\S+) <\S+>(?: -required-)? +(.*?)  +(.*)", line)
        if row:
            path[len(row[1]) // 2 - 1:] = [row[2]]
            found[".".join(path)] = (row[3].strip(), row[4])
    return found


def owned(fields, keys, value):
    """The owned fields below a path: `keys` as in Place."""
    for key in keys:
        if fields is None:
            return None
        if isinstance(value, list):
            item = value[key]
            fields = next((below for name, below in fields.items() if name.startswith("k:") and all(item.get(k, v) == v for k, v in json.loads(name[2:]).items())), None)
        else:
            fields = fields.get("f:" + key)
        value = value[key]
    return fields


def merge_in(fields):
    """How the ownership shows that a field merges."""
    members = [name for name in fields if name != "."]
    if not members:
        return {"atomic", "value", "by key", "by field"}  # The latter if they are empty.
    if members[0].startswith("k:"):
        return {"keyed by " + ", ".join(json.loads(members[0][2:]))}
    return {"set"} if members[0].startswith("v:") else {"by key", "by field"}


class Applied:
    def __init__(self, server, case):
        self.server, self.case = server, case
        self.url = f"{case.path}/{case.body['metadata']['name']}?fieldManager=test&force=true&dryRun=All"

    def send(self, body):
        code, _, data = self.server.request("PATCH", self.url, json.dumps(body), content_type="application/apply-patch+yaml")
        return code, json.loads(data)


def expected(unset, code, got, without):
    """Whether the response to a configuration that unsets a field agrees with the column. `without`: the field in an object that
    was applied without it."""
    if unset in ("refused", "key", "-"):
        return code == 400
    if unset == "required":
        return code in (400, 422)
    if code >= 300:
        return code == 422  # Other rules may require the field, for instance because of another one.
    if unset.startswith("default "):
        return str(got) == unset.removeprefix("default ") or json.dumps(got) == unset.removeprefix("default ")
    if unset == "removed":
        return got is None or got == without
    return got in (None, [], {}) or got == without


def examine(holdfast, server, case, known, seen):
    kind, version = case.body["kind"].lower(), case.body["apiVersion"]
    known.setdefault((kind, version), None)
    if known[kind, version] is None:
        known[kind, version] = columns_of(holdfast, server, kind, version)
    columns, applied = known[kind, version], Applied(server, case)
    code, answer = applied.send(case.body)
    check(code in (200, 201), f"{case.name} is applied: {answer.get('message')}")
    if code not in (200, 201):
        return
    fields = next((entry["fieldsV1"] for entry in answer["metadata"].get("managedFields", ()) if entry["manager"] == "test"), {})
    for place in behaviour_test.places(case.struct, case.body):
        value, path = place.get(case.body), re.sub(r"\[[^\]]*\]", "", place.path)
        if value is None or path not in columns:
            continue
        merge, unset = columns[path]
        below = owned(fields, (*place.keys, place.field.name), case.body)
        if merge == "in atomic":
            check(below is None, f"{case.name}: {place.path} is in an atomic value")
        elif below is not None:
            check(merge in merge_in(below), f"{case.name}: {place.path} merges {merge}, and its owner has {json.dumps(below)[:80]}")
        code, changed = applied.send(place.changed(case.body, MARKER))
        without = applied.send(place.changed(case.body, None))[1]
        got = place.get(changed) if code < 300 and has(changed, place.keys) else None
        fallback = place.get(without) if "message" not in without and has(without, place.keys) else None
        # A container that holds nothing but the marker is not created.
        alone = code < 300 and not has(changed, place.keys)
        good = place.what in OPTIONAL_AFTER_ALL or alone or expected(unset, code, got, fallback)
        check(good, f"{case.name}: {place.path} is unset: {unset}, but {code} {changed.get('message') or repr(got)}" if not good else place.path)
        seen.setdefault(unset.split()[0], 0)
        seen[unset.split()[0]] += 1


def has(value, keys):
    for key in keys:
        if isinstance(value, list) and (not isinstance(key, int) or key >= len(value)) or not isinstance(value, list) and key not in value:
            return False
        value = value[key]
    return isinstance(value, dict)


def main():
    holdfast, known, seen = sys.argv[1], {}, {}
    with Server(holdfast, flags=["--runtime-config=admissionregistration.k8s.io/v1beta1=true"]) as server:
        for case in behaviour_test.cases(server):
            if case.method == "POST" and "Review" not in case.struct.name and case.struct.name != "TokenRequest":
                examine(holdfast, server, case, known, seen)
    print(seen)
    finish()


if __name__ == "__main__":
    main()

"""crds.py --bin HOLDFAST [--peer FOLDER] [--count N] [--peer-count N] [--json]: see crds.sh."""
import argparse, concurrent.futures, json, pathlib, tempfile, time

import servers

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def schema(kind):
    """Of the size typical for operators: about 120 fields, four levels deep, with a keyed list. No two are equal."""
    leaf = {f"of{kind}": {"type": "string"}, **{f"field{i}": {"type": ["string", "integer", "boolean"][i % 3], "description": f"What field {i} is for, in a sentence or two of prose."}
            for i in range(10)}}
    group = {f"group{i}": {"type": "object", "properties": leaf} for i in range(5)}
    item = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, **leaf}}
    return {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {**group, "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item}}},
        "status": {"type": "object", "properties": {**group, "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}


def definition(i):
    group = f"group{i % 50}.example.com"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"kinds{i}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": f"kinds{i}", "kind": f"Kind{i}"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema(i)}}]}}


def create(server, path, objects):
    connection = servers.Connection(server)
    for body in objects:
        connection.send("POST", path, body)


def measure(start, count):
    """Figures of a server with `count` definitions; start() starts it, and restarts it on the same data."""
    server = start()
    try:
        pid = server.process.pid
        time.sleep(1)
        before, cpu = server.memory_mb(), servers.cpu_seconds(pid)
        begin = time.monotonic()
        create(server, DEFINITIONS, map(definition, range(count)))
        took = time.monotonic() - begin
        time.sleep(5)  # Includes work that a creation defers.
        figures = {"count": count, "ms_each": took / count * 1000, "cpu_ms_each": (servers.cpu_seconds(pid) - cpu) / count * 1000,
                   "kb_each": (server.memory_mb() - before) * 1024 / count}
        begin, more = time.monotonic(), max(count // 4, 1)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(create, server, DEFINITIONS, map(definition, range(count + part, count + more, 8))) for part in range(8)]:
                done.result()
        figures["ms_each_by_eight"] = (time.monotonic() - begin) / more * 1000
        number = min(7, count - 1)
        path = f"/apis/group{number % 50}.example.com/v1/namespaces/default/kinds{number}"
        begin = time.monotonic()
        create(server, path, ({"apiVersion": f"group{number % 50}.example.com/v1", "kind": f"Kind{number}", "metadata": {"name": f"o{i}"}, "spec": {"group1": {"field0": "x"}}} for i in range(100)))
        figures["object_ms"] = (time.monotonic() - begin) * 10
    finally:
        server.stop()
    with start() as server:
        figures.update(start_ms=server.ready_ms, memory_mb=server.memory_mb())
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--peer-count", type=int, help="fewer for kube-apiserver, which is slower")
    parser.add_argument("--only")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        results = {"holdfast": measure(lambda: servers.holdfast(options.bin, work / "holdfast"), options.count)}
        if options.peer:
            results["kube-apiserver"] = measure(lambda: servers.kube_apiserver(options.peer, work / "kube"), options.peer_count or options.count)
    if options.json:
        return print(json.dumps(results))
    for name, of in results.items():
        print(f"{name}: {of['count']} CRDs by one client {of['ms_each']:.2f} ms each (CPU {of['cpu_ms_each']:.2f} ms), by eight clients {of['ms_each_by_eight']:.2f} ms; "
              f"memory {of['kb_each']:.1f} KB each; an object {of['object_ms']:.2f} ms; start with all of them {of['start_ms'] / 1000:.2f} s, {of['memory_mb']:.0f} MB")


main()

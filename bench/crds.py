"""crds.py HOLDFAST COUNT: see crds.sh."""
import concurrent.futures, json, os, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "api"))
from serve import Server  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def schema(kind):
    """As large as operators' usually are: about 120 fields, four levels deep, with a keyed list. No two are equal."""
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


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def create(server, numbers):
    connection = server.connect()
    for i in numbers:
        connection.request("POST", DEFINITIONS, body=json.dumps(definition(i)), headers={"Content-Type": "application/json", "Accept": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status == 201, data


def main():
    count = int(sys.argv[2])
    with Server(sys.argv[1]) as server:
        before, cpu = resident_kb(server.process.pid), cpu_seconds(server.process.pid)
        start = time.monotonic()
        create(server, range(count))
        took = time.monotonic() - start
        time.sleep(1)
        after = resident_kb(server.process.pid)
        print(f"{count} CRDs by one client   {took:8.2f} s   {took / count * 1000:8.2f} ms each, of which the server's processors {(cpu_seconds(server.process.pid) - cpu) / count * 1000:.2f}")
        print(f"memory                   {(after - before) / 1024:8.1f} MB  {(after - before) / count:8.1f} KB each")
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(create, server, range(count + part, count + count // 4, 8)) for part in range(8)]:
                done.result()
        more = count // 4
        print(f"{more} more by eight clients {time.monotonic() - start:7.2f} s   {(time.monotonic() - start) / max(more, 1) * 1000:8.2f} ms each")
        path = f"/apis/group7.example.com/v1/namespaces/default/kinds7"
        start = time.monotonic()
        for i in range(100):
            server.json("POST", path, {"apiVersion": "group7.example.com/v1", "kind": "Kind7", "metadata": {"name": f"o{i}"}, "spec": {"group1": {"field0": "x"}}}, want=201)
        print(f"100 objects, a connection each {time.monotonic() - start:5.2f} s")
        server.stop()
        start = time.monotonic()
        server.start()
        print(f"start with all of them   {time.monotonic() - start:8.2f} s   {resident_kb(server.process.pid) / 1024:8.1f} MB in all")


main()

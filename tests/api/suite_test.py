"""suite_test.py HOLDFAST: servers as used by an operator's test suite: one for each of 50 tests, several at once, each with
its own directory and port, and isolated from the others. `./dev bench suite` measures the time."""
import concurrent.futures, os, subprocess, sys

sys.path.insert(0, os.path.dirname(__file__))
from serve import Server, check, finish  # noqa: E402

TESTS, AT_ONCE = 50, 10


def one_test(holdfast, number):
    """Its address, for comparison with the others."""
    with Server(holdfast) as server:
        group = f"test{number}.example.com"
        plural = f"things{number}"
        server.json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": f"Thing{number}"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "properties": {"number": {"type": "integer"}}}}}]}}, want=201)
        made = server.json("POST", f"/apis/{group}/v1/namespaces/default/{plural}", {
            "apiVersion": f"{group}/v1", "kind": f"Thing{number}", "metadata": {"name": "it"}, "number": number}, want=201)
        server.json("POST", "/api/v1/namespaces/default/configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"number": str(number)}}, want=201)
        found = server.json("GET", f"/apis/{group}/v1/namespaces/default/{plural}", want=200)
        check([item["number"] for item in found["items"]] == [number], f"test {number} finds its object")
        maps = server.json("GET", "/api/v1/namespaces/default/configmaps", want=200)
        check([item["data"]["number"] for item in maps["items"] if item["metadata"]["name"] == "mine"] == [str(number)],
              f"test {number} sees only its own ConfigMap")
        crds = server.json("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", want=200)
        check([item["spec"]["group"] for item in crds["items"]] == [group], f"test {number} sees no definition of another test")
        return server.data_dir, server.host, made["metadata"]["uid"]


def main():
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        places = list(pool.map(lambda number: one_test(sys.argv[1], number), range(TESTS)))
    for what, values in zip(("folders", "uids"), ([p[0] for p in places], [p[2] for p in places])):
        check(len(set(values)) == TESTS, f"{TESTS} {what}")
    # Two servers on one directory would overwrite each other: the second fails to start.
    with Server(sys.argv[1]) as first:
        second = subprocess.run([sys.argv[1], "serve", "--data-dir", first.data_dir, "--listen", "127.0.0.1:0"],
                                capture_output=True, timeout=60, text=True)
        check(second.returncode != 0 and "is in use" in second.stderr, "a second server on the same directory is rejected: " + second.stderr)
        first.json("GET", "/api/v1/namespaces/default", want=200)
    finish()


main()

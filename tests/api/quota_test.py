"""quota_test.py HOLDFAST: quota charges of concurrent writes to the same object. No controller recalculates usage, so the
quota shows what the writes were charged."""
import concurrent.futures, json, os, sys

sys.path.insert(0, os.path.dirname(__file__))
from serve import Server, check, finish  # noqa: E402

SPACE = "/api/v1/namespaces/default"


def main():
    with Server(sys.argv[1]) as server:
        hard = {"services.nodeports": "50", "services": "50"}
        quota = server.json("POST", SPACE + "/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}, want=201)
        quota["status"] = {"hard": hard, "used": {"services.nodeports": "0", "services": "0"}}
        server.json("PUT", SPACE + "/resourcequotas/q/status", quota, want=200)
        for number in range(6):
            name = f"s{number}"
            server.json("POST", SPACE + "/services", {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}, want=201)

            def patch(i):
                """Each requests a node port; the second one is over the quota of one."""
                body = {"metadata": {"labels": {f"l{i}": "x"}}, "spec": {"type": "NodePort"}}
                return server.request("PATCH", f"{SPACE}/services/{name}", body, content_type="application/merge-patch+json")[0]

            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                codes = list(pool.map(patch, range(12)))
            check(set(codes) <= {200, 409}, f"answers {codes}")
            labels = server.json("GET", f"{SPACE}/services/{name}", want=200)["metadata"]["labels"]
            check(len(labels) == codes.count(200), "every accepted patch is stored")
        used = server.json("GET", SPACE + "/resourcequotas/q", want=200)["status"]["used"]
        check(used == {"services": "6", "services.nodeports": "6"}, f"each was charged once: {json.dumps(used)}")
    finish()


main()

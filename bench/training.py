"""training.py BINARY: the load for recording the profile of release builds (`./dev profile`).

The most common requests of real clusters: applies that create, repeat and change, reads and lists in every format, watches,
other writes and, from the recordings, a little of everything. Code that runs here is treated as hot when the binary is
optimised.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OBJECTS = 400
PODS_AT_START = 1500  # Several pages of the initial list of a start.
WATCHERS = 100
FORMATS = {
    "json": "application/json",
    "dropped": "application/json;drop=metadata.managedFields",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "dropped protobuf": "application/vnd.kubernetes.protobuf;drop=metadata.managedFields",
    "cbor": "application/cbor",
    "yaml": "application/yaml",
    "table": "application/json;as=Table;g=meta.k8s.io;v=v1",
    "metadata": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
}

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"color": "blue", "size": "1", "shape": "round"}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"labels": {"app": "shop", "tier": "front"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {
            "metadata": {"labels": {"app": "shop", "tier": "front"}, "annotations": {"example.com/team": "checkout"}},
            "spec": {
                "containers": [
                    {
                        "name": "shop",
                        "image": "registry.example/shop:1",
                        "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 9090, "name": "metrics"}],
                        "env": [{"name": "MODE", "value": "fast"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}},
                        "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop"}],
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
                    },
                    {"name": "proxy", "image": "registry.example/proxy:2", "args": ["--quiet"]},
                ],
                "volumes": [{"name": "settings", "configMap": {"name": "shop"}}, {"name": "scratch", "emptyDir": {}}],
            },
        },
    },
}


def send(url, folder, requests, parallel):
    """Sends requests over a few HTTP/2 connections. Each is (method, path, accept, content type, body or None)."""
    who = f"cacert = {folder}/pki/ca.crt\ncert = {folder}/pki/admin.crt\nkey = {folder}/pki/admin.key"
    config = []
    with tempfile.TemporaryDirectory() as bodies:
        for i, (method, path, accept, content_type, body) in enumerate(requests):
            config.append(("next\n" if i else "") + who)
            config.append(f'url = "{url}{path}"\nrequest = {method}\nheader = "Accept: {accept}"\noutput = /dev/null')
            if body is not None:
                file = pathlib.Path(bodies) / str(i)
                file.write_text(json.dumps(body))
                config.append(f'header = "Content-Type: {content_type}"\ndata-binary = "@{file}"')
        command = ["curl", "--silent", "--http2", "--parallel", "--parallel-max", str(parallel), "--config", "-"]
        subprocess.run(command, input="\n".join(config), text=True, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Server:
    """A server on a data directory, which may be left over from an earlier one."""

    def __init__(self, binary, folder, *flags):
        self.folder = folder
        kubeconfig = pathlib.Path(folder) / "kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        command = [binary, "serve", "--data-dir", folder, "--listen", "127.0.0.1:0", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not kubeconfig.exists() or not kubeconfig.stat().st_size:
            if self.process.poll() is not None:
                raise SystemExit("training: the server exited")
            time.sleep(0.01)
        self.url = re.search(r"server: (\S+)", kubeconfig.read_text()).group(1)

    def curl(self, requests, parallel=32):
        send(self.url, self.folder, requests, parallel)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def with_name(object, i):
    return object | {"metadata": object["metadata"] | {"name": f"training-{i}"}}


def applies(collection, object, changed):
    """Creates, repeats and changes OBJECTS objects by apply."""
    for variant in (object, object, changed):
        yield [
            ("PATCH", f"{collection}/training-{i}?fieldManager=trainer&force=true", FORMATS["json"], "application/apply-patch+yaml", with_name(variant, i))
            for i in range(OBJECTS)
        ]


def train(server):
    config_maps, deployments, pods = "/api/v1/namespaces/default/configmaps", "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/pods"
    pod = json.loads((ROOT / "bench/data/pod.json").read_text())
    pod["metadata"] = {"labels": pod["metadata"].get("labels", {}), "annotations": pod["metadata"].get("annotations", {})}
    pod.pop("status", None)
    for collection, object, changed in (
        (config_maps, CONFIG_MAP, CONFIG_MAP | {"data": {"color": "red"}}),
        (deployments, DEPLOYMENT, DEPLOYMENT | {"spec": DEPLOYMENT["spec"] | {"replicas": 3}}),
        (pods, pod, pod | {"metadata": pod["metadata"] | {"annotations": {"example.com/changed": "yes"}}}),
    ):
        for requests in applies(collection, object, changed):
            server.curl(requests)
        unset = {"k8s_io__value": "unset"}
        marked = changed | {"metadata": changed["metadata"] | {"annotations": {"example.com/team": unset, "example.com/changed": unset}}}
        for _ in range(2):
            server.curl([("PATCH", f"{collection}/training-{i}?fieldManager=cleaner&force=true", FORMATS["json"], "application/apply-patch+yaml", with_name(marked, i)) for i in range(OBJECTS)])
        for accept in FORMATS.values():
            server.curl([("GET", f"{collection}/training-{i % OBJECTS}", accept, None, None) for i in range(OBJECTS)])
            list_accept = accept.replace("PartialObjectMetadata", "PartialObjectMetadataList")
            server.curl([("GET", collection + query, list_accept, None, None) for query in ("", "", "?limit=50", "?labelSelector=no%3Dsuch", "?labelSelector=app")], 1)
    # Watchers, and changes for them.
    for accept in (FORMATS["json"], FORMATS["dropped"], FORMATS["protobuf"]):
        watchers = subprocess.Popen([sys.executable, __file__, "--watch", server.url, server.folder, accept])
        time.sleep(2)
        server.curl([("PATCH", f"{config_maps}/training-0", FORMATS["json"], "application/merge-patch+json", {"metadata": {"annotations": {"turn": str(i)}}}) for i in range(OBJECTS)], 1)
        watchers.wait()
    strategic = {"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "registry.example/shop:2"}]}}}}
    server.curl([("PATCH", f"{deployments}/training-{i}", FORMATS["json"], "application/strategic-merge-patch+json", strategic) for i in range(OBJECTS)])
    server.curl([("PUT", f"{config_maps}/training-{i}", FORMATS["json"], "application/json", with_name(CONFIG_MAP, i)) for i in range(OBJECTS)])
    server.curl([("PATCH", f"{deployments}/training-{i}", FORMATS["json"], "application/json-patch+json", [{"op": "replace", "path": "/spec/replicas", "value": 2}]) for i in range(OBJECTS)])
    server.curl([("DELETE", f"{config_maps}/training-{i}", FORMATS["json"], None, None) for i in range(0, OBJECTS, 2)])
    server.curl([("POST", config_maps, FORMATS["json"], "application/json", with_name(CONFIG_MAP, i)) for i in range(0, OBJECTS, 2)])


def fill(server):
    """Pods as on real nodes, each with its own address, to be read by the next start."""
    pods, exemplar = "/api/v1/namespaces/default/pods", json.loads((ROOT / "bench/data/pod.json").read_text())
    metadata = {key: exemplar["metadata"][key] for key in ("labels", "annotations") if key in exemplar["metadata"]}
    numbers = range(OBJECTS, OBJECTS + PODS_AT_START)
    server.curl([("POST", f"{pods}?fieldManager=kube-controller-manager", FORMATS["json"], "application/json", with_name({**exemplar, "metadata": metadata}, i)) for i in numbers])
    addresses = [f"10.{i // 65536}.{i // 256 % 256}.{i % 256}" for i in numbers]
    server.curl([("PATCH", f"{pods}/training-{i}/status?fieldManager=kubelet", FORMATS["json"], "application/merge-patch+json",
                  {"status": exemplar.get("status", {}) | {"podIP": address, "podIPs": [{"ip": address}]}}) for i, address in zip(numbers, addresses)])


def watch(url, folder, accept):
    send(url, folder, [("GET", "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=8", accept, None, None)] * WATCHERS, WATCHERS)


def main():
    if sys.argv[1] == "--watch":
        return watch(*sys.argv[2:])
    binary = sys.argv[1]
    quiet = ["--controllers=none", "--disable-admission-plugins=ServiceAccount,Priority"]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(binary, folder, *quiet)
        train(server)
        fill(server)
        server.stop()
        server = Server(binary, folder)
        server.curl([("GET", "/readyz", FORMATS["json"], None, None), ("GET", "/api/v1/pods?limit=500", FORMATS["json"], None, None)])
        server.stop()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(binary, folder)
        time.sleep(2)
        server.stop()
    topics = ["apply", "patches", "crud", "listwatch", "discovery", "crds", "policies"]
    subprocess.run([ROOT / "tests/golden/replay_test.sh", binary, *topics], check=True, stdout=subprocess.DEVNULL)


main()

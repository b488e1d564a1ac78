"""API servers for benchmarks: Holdfast, and kube-apiserver with its etcd, started the same way for the same clients."""
import http.client
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from urllib.parse import urlsplit

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "clients"))
from server import free_port  # noqa: E402

TOKEN = "bench-token"


def wait_until(what, process, log, check, seconds=600):
    begin = time.monotonic()
    while not check():
        passed = time.monotonic() - begin
        if process.poll() is not None or passed > seconds:
            raise RuntimeError(f"{what} did not start: " + log.read_text(errors="replace")[-2000:])
        time.sleep(max(0.002, passed / 100))  # Each probe costs the server a handshake: probe less often the longer it takes.


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


class Connection:
    """A persistent connection as an administrator."""

    def __init__(self, server):
        self.connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=ssl._create_unverified_context(), timeout=60)

    def send(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json", "Accept": "application/json"}
        self.connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {data.decode(errors='replace')[:500]}")
        return data


class Server:
    """A running API server: its address, process, companions (etcd) and time to ready."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        self.process, self.companions = None, []
        self.tls = ssl._create_unverified_context()

    def spawn(self, what, *command):
        log = self.folder / (what + ".log")
        with log.open("ab") as output:
            return subprocess.Popen([str(part) for part in command], stdout=output, stderr=subprocess.STDOUT), log

    def get(self, path, timeout=60, accept="application/json"):
        request = urllib.request.Request(self.url + path, headers={"Authorization": "Bearer " + TOKEN, "Accept": accept})
        with urllib.request.urlopen(request, context=self.tls, timeout=timeout) as answer:
            return answer.read().decode()

    def ready(self):
        try:
            self.get("/readyz", timeout=5)
            return True
        except OSError:
            return False

    def start(self, *command):
        begin = time.monotonic()
        self.process, log = self.spawn(self.name.replace(" ", "-"), *command)
        try:
            wait_until(self.name, self.process, log, self.ready)
        except BaseException:
            self.stop()
            raise
        self.ready_ms = (time.monotonic() - begin) * 1000
        self.kubeconfig = self.folder / "bench.kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "bench", "user": {"token": TOKEN}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}]}))
        return self

    def memory_mb(self):
        return resident_mb(self.process.pid)

    def pids(self):
        return [process.pid for process in [self.process, *self.companions]]

    def stop(self):
        for process in [self.process, *self.companions]:
            if process is None or process.poll() is not None:
                continue
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def start_etcd(server, binary, data):
    """Starts an etcd as a companion of the server, and returns its URL."""
    client, peer = free_port(), free_port()
    urls = [f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"]
    process, log = server.spawn("etcd", binary, "--data-dir", data, "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
                                "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster",
                                "default=" + urls[1], "--quota-backend-bytes=8589934592")
    server.companions.append(process)

    def healthy():
        try:
            return urllib.request.urlopen(urls[0] + "/health", timeout=5).status == 200
        except OSError:
            return False
    wait_until("etcd", process, log, healthy)
    return urls[0]


def kube_apiserver(binaries, folder, etcd_data=None):
    """kube-apiserver and etcd from a directory of binaries, on an empty store or on the data directory of an etcd."""
    server = Server("kube-apiserver", folder)
    try:
        etcd = start_etcd(server, pathlib.Path(binaries) / "etcd", etcd_data or folder / "etcd")
    except BaseException:
        server.stop()
        raise
    key = folder / "sa.key"
    if not key.exists():
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
    port = free_port()
    server.url = f"https://127.0.0.1:{port}"
    return server.start(pathlib.Path(binaries) / "kube-apiserver", "--etcd-servers", etcd, "--bind-address", "127.0.0.1",
                        "--secure-port", port, "--cert-dir", folder / "certs", "--token-auth-file", folder / "tokens.csv",
                        "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/16", "--service-account-issuer",
                        "https://kubernetes.default.svc", "--service-account-key-file", key, "--service-account-signing-key-file", key,
                        "--disable-admission-plugins", "ServiceAccount,Priority", "--max-requests-inflight", 4000,
                        "--max-mutating-requests-inflight", 2000)


def holdfast(binary, folder, *flags, name="holdfast"):
    server = Server(name, folder)
    port = free_port()
    server.url = f"https://127.0.0.1:{port}"
    return server.start(binary, "serve", "--data-dir", folder, "--listen", f"127.0.0.1:{port}", "--token-auth-file",
                        folder / "tokens.csv", "--controllers=none", "--disable-admission-plugins=ServiceAccount,Priority", *flags)


def holdfast_on_etcd(binary, binaries, folder, etcd_data=None):
    """Holdfast with its own etcd, like kube-apiserver."""
    companion = Server("etcd", folder)
    try:
        etcd = start_etcd(companion, pathlib.Path(binaries) / "etcd", etcd_data or folder / "etcd")
        server = holdfast(binary, folder, "--etcd-servers", etcd, name="holdfast on etcd")
    except BaseException:
        companion.stop()
        raise
    server.companions = companion.companions
    return server

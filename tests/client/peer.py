"""The real kube-apiserver on its own etcd, for one test: `with Peer(FOLDER) as peer:`, peer.kubeconfig is a path."""
import pathlib
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
from server import free_port  # noqa: E402


class Peer:
    def __init__(self, folder, *flags):
        self.binaries, self.flags = pathlib.Path(folder), list(flags)
        self.work = tempfile.TemporaryDirectory(prefix="holdfast-peer-")
        self.processes = []

    def __enter__(self):
        work = pathlib.Path(self.work.name)
        etcd, peers, self.port = free_port(), free_port(), free_port()
        self.etcd = f"http://127.0.0.1:{etcd}"
        self.log = open(work / "log", "wb")
        self.start([self.binaries / "etcd", "--data-dir", work / "etcd", "--listen-client-urls", f"http://127.0.0.1:{etcd}",
                    "--advertise-client-urls", f"http://127.0.0.1:{etcd}", "--listen-peer-urls", f"http://127.0.0.1:{peers}"])
        subprocess.run(["openssl", "genrsa", "-out", work / "sa.key", "2048"], check=True, capture_output=True)
        (work / "tokens.csv").write_text('secret,admin,admin,"system:masters"\n')
        self.start([self.binaries / "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{etcd}", "--secure-port", str(self.port),
                    "--bind-address", "127.0.0.1", "--cert-dir", work / "certs", "--token-auth-file", work / "tokens.csv",
                    "--service-account-issuer", "https://peer", "--service-account-key-file", work / "sa.key",
                    "--service-account-signing-key-file", work / "sa.key", "--authorization-mode", "RBAC",
                    "--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount", *self.flags])
        self.kubeconfig = work / "kubeconfig"
        self.kubeconfig.write_text(f"""apiVersion: v1
kind: Config
current-context: peer
clusters: [{{name: peer, cluster: {{server: "https://127.0.0.1:{self.port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: secret}}}}]
contexts: [{{name: peer, context: {{cluster: peer, user: admin}}}}]
""")
        self.wait()
        return self

    def start(self, command):
        self.processes.append(subprocess.Popen([str(part) for part in command], stdout=self.log, stderr=subprocess.STDOUT))

    def wait(self):
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}/readyz", headers={"Authorization": "Bearer secret"})
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(request, context=trusting, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            if time.monotonic() > deadline or any(p.poll() is not None for p in self.processes):
                raise RuntimeError("the peer did not become ready:\n" + (pathlib.Path(self.work.name) / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.2)

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()
        self.work.cleanup()

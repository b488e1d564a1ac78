"""A Holdfast server for one test: started on an empty store, stopped at the end. Standard library only."""
import http.client, json, os, shutil, signal, ssl, subprocess, sys, tempfile, time
from urllib.parse import urlsplit

failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL", what)


def run_parts(server, parts):
    """Runs each part; a failure in one is reported and the others still run."""
    for part in parts:
        try:
            part(server)
        except (AssertionError, KeyError, IndexError, TypeError, ValueError) as problem:
            check(False, f"{part.__name__}: {problem!r}")


def finish():
    print("failed" if failures else "passed")
    sys.exit(1 if failures else 0)


class Server:
    def __init__(self, holdfast, gates="", flags=()):
        self.holdfast, self.flags = holdfast, list(flags)
        self.dir = tempfile.mkdtemp()
        self.log = open(os.path.join(self.dir, "log"), "w+")
        self.start(gates)

    def start(self, gates=""):
        holdfast, data = self.holdfast, os.path.join(self.dir, "data")
        command = [holdfast, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--controllers=none",
                   "--disable-admission-plugins=ServiceAccount,Priority"]
        if gates:
            command.append("--feature-gates=" + gates)
        command.extend(self.flags)
        kubeconfig = os.path.join(data, "kubeconfig")
        if os.path.exists(kubeconfig):
            os.remove(kubeconfig)  # Written again when the server is ready.
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        deadline = time.time() + 60
        while not (os.path.exists(kubeconfig) and os.path.getsize(kubeconfig)):
            if self.process.poll() is not None or time.time() > deadline:
                self.log.seek(0)
                raise RuntimeError("the server did not start:\n" + self.log.read())
            time.sleep(0.02)
        with open(kubeconfig) as f:
            line = next(l for l in f if l.strip().startswith("server:"))
        self.host = urlsplit(line.split("server:", 1)[1].strip().strip('"')).netloc
        pki = os.path.join(data, "pki")
        self.tls = ssl.create_default_context(cafile=os.path.join(pki, "ca.crt"))
        self.tls.load_cert_chain(os.path.join(pki, "admin.crt"), os.path.join(pki, "admin.key"))
        self.tls.check_hostname = False

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def restart(self, gates=""):
        """The same data, other gates."""
        self.end()
        self.start(gates)

    def stop(self):
        self.end()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def connect(self):
        return http.client.HTTPSConnection(self.host, context=self.tls, timeout=20)

    def request(self, method, path, body=None, accept="application/json", content_type="application/json", headers=None):
        """-> (code, headers, bytes)"""
        connection = self.connect()
        sent = {"Accept": accept, "User-Agent": "test/1"}
        if body is not None:
            sent["Content-Type"] = content_type
            if not isinstance(body, (bytes, str)):
                body = json.dumps(body)
        sent.update(headers or {})
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.headers, data

    def json(self, method, path, body=None, want=None, **more):
        code, _, data = self.request(method, path, body, **more)
        value = json.loads(data)
        assert want is None or code == want, f"{method} {path}: {code} {value.get('message')}"
        return value

    def watch(self, path, events, accept="application/json"):
        """The bytes of a watch until it has `events` newlines (JSON) or ends."""
        connection = self.connect()
        connection.request("GET", path, headers={"Accept": accept, "User-Agent": "test/1"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        lines = [answer.readline() for _ in range(events)] if events else [answer.read()]
        connection.close()
        return lines

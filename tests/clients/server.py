"""Starts a Holdfast server for one test, on its own port and in its own directory."""
import base64
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import needs  # noqa: E402


def free_port():
    """Below the ephemeral port range, because an outgoing connection could take the port while a server restarts."""
    while True:
        with socket.socket() as s:
            port = random.randint(12000, 32000)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def wait_until(what, condition, seconds=60):
    """Waits for the condition to become true; `what` describes it if it does not."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Server:
    """`with Server(BINARY) as server:` gives a ready server; server.kubeconfig is a path.

    HOLDFAST_TEST_FLAGS in the environment: additional flags for every server, such as feature gates for a whole suite."""

    def __init__(self, binary, *flags, data_dir=None, log_path=None, environment=None, listen="127.0.0.1:0"):
        self.binary, self.flags, self.environment, self.listen = binary, list(flags), environment, listen
        self.folder = None if data_dir else tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.data_dir = pathlib.Path(data_dir or self.folder.name)
        self.kubeconfig = self.data_dir / "kubeconfig"
        self.log_path = pathlib.Path(log_path or self.data_dir / "server.log")
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        if self.folder:
            self.folder.cleanup()

    def start(self):
        self.kubeconfig.unlink(missing_ok=True)
        command = [self.binary, "serve", "--data-dir", str(self.data_dir), "--listen", self.listen, *os.environ.get("HOLDFAST_TEST_FLAGS", "").split(), *self.flags]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=self.environment)
        deadline = time.monotonic() + 120
        while not self.kubeconfig.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not become ready:\n{self.text()[-3000:]}")
            time.sleep(0.002)

    def text(self):
        """Everything that the server has logged and printed."""
        return self.log_path.read_text(errors="replace")

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait() if self.process else None

    def url(self):
        for line in self.kubeconfig.read_text().splitlines():
            if line.strip().startswith("server:"):
                return line.split("server:")[1].strip()
        raise RuntimeError("the kubeconfig does not name a server")


class Connection:
    """One connection to a server as its administrator, for sending requests in quick succession."""

    def __init__(self, server):
        text = server.kubeconfig.read_text()
        data = lambda key: base64.b64decode(re.search(key + r":\s*\"?([A-Za-z0-9+/=]+)", text).group(1))
        context = ssl.create_default_context(cadata=data("certificate-authority-data").decode())
        with tempfile.NamedTemporaryFile() as identity:
            identity.write(data("client-certificate-data") + data("client-key-data"))
            identity.flush()
            context.load_cert_chain(identity.name)
        self.connection = http.client.HTTPSConnection(server.url().split("//")[1], context=context, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def text(self, method, path, body=None, kind="application/json"):
        """-> (code, body of the response)"""
        self.connection.request(method, path, None if body is None else json.dumps(body), {"content-type": kind})
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()

    def call(self, method, path, body=None, kind="application/json"):
        """-> (code, response as an object)"""
        code, text = self.text(method, path, body, kind)
        return code, json.loads(text)

    def done(self, method, path, body=None, kind="application/json"):
        """The response as an object; raises unless the request succeeds."""
        code, answer = self.call(method, path, body, kind)
        if code >= 300:
            raise AssertionError(f"{method} {path}: {code} {answer.get('message')}")
        return answer

    def metric(self, name):
        """The value of a metric without labels."""
        found = re.search(rf"^{name} (\S+)$", self.text("GET", "/metrics")[1], re.M)
        return float(found.group(1))


class CommandLine:
    """A command line client of one server."""

    def __init__(self, binary, kubeconfig, cache):
        self.binary = str(binary)
        self.environment = dict(os.environ, KUBECONFIG=str(kubeconfig), KUBECACHEDIR=str(cache))

    def run(self, *arguments, stdin=None, fails=False):
        """Standard output and error together; raises unless it ends as expected (fails=None accepts any exit status)."""
        done = subprocess.run([self.binary, *arguments], input=stdin, text=True, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        if fails is not None and (done.returncode != 0) != fails:
            raise AssertionError(f"{self.binary} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "-o", "json"))


class Holdfast(CommandLine):
    """The commands of `holdfast`, and requests for what they lack."""

    def __init__(self, server, cache):
        super().__init__(server.binary, server.kubeconfig, cache)
        self.server = server

    def create(self, *objects, namespace="default", **more):
        return self.run("-n", namespace, "create", "-f", "-", stdin="---\n".join(json.dumps(o) + "\n" for o in objects), **more)

    def create_namespace(self, name):
        return self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def create_config_map(self, name, **data):
        return self.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})

    def patch(self, path, change, kind="merge", fails=False):
        """The object as returned; with `fails`, the message of the error."""
        with Connection(self.server) as connection:
            code, answer = connection.call("PATCH", path, change, f"application/{kind}-patch+json")
        if (code >= 300) != fails:
            raise AssertionError(f"PATCH {path}: {code} {answer.get('message')}")
        return answer["message"] if fails else answer


class Kubectl(CommandLine):
    """For tests of kubectl itself: needs.kubectl() finds one that is new enough."""

    def __init__(self, kubeconfig, cache, binary=None):
        super().__init__(binary or needs.kubectl(), kubeconfig, cache)

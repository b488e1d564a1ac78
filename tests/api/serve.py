"""A Holdfast server for one API test: started on an empty store, stopped at the end. Standard library only."""
import http.client, json, os, ssl, sys
from urllib.parse import urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))
import server  # noqa: E402
from server import wait_until  # noqa: E402, F401 (for the tests)
from check import check, finish, run_parts  # noqa: E402, F401 (for the tests)


class Server(server.Server):
    """A server without controllers and the plugins that need them, started immediately; sends requests as its administrator."""

    def __init__(self, holdfast, gates="", flags=()):
        super().__init__(holdfast, "--controllers=none", "--disable-admission-plugins=ServiceAccount,Priority", *flags)
        self.given = self.flags
        self.start(gates)

    def start(self, gates=""):
        self.flags = self.given + (["--feature-gates=" + gates] if gates else [])
        super().start()
        self.host = urlsplit(self.url()).netloc
        pki = self.data_dir / "pki"
        self.tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self.tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self.tls.check_hostname = False

    def restart(self, gates=""):
        """Restarts on the same data with other gates."""
        self.stop()
        self.start(gates)

    def __enter__(self):
        return self

    def connect(self):
        return http.client.HTTPSConnection(self.host, context=self.tls, timeout=60)

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

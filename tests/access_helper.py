"""Requests as different users, for the access control tests. Standard library and openssl only."""
import base64
import contextlib
import http.client
import json
import pathlib
import ssl
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "clients"))
from server import Server, wait_until  # noqa: E402

ADMIN = "admin-token"
TOKENS = f'{ADMIN},admin,admin-uid,"system:masters"\ntenant-token,tenant,tenant-uid,"tenants"\nplain-token,plain,plain-uid\n'


class Answer:
    def __init__(self, response):
        self.code, self.headers, self.text = response.status, response.headers, response.read().decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def message(self):
        return self.json.get("message", "") if self.text.startswith("{") else self.text


class Users:
    """A server and requests to it: with a token, a certificate, or anonymous."""

    def __init__(self, server):
        self.server = server
        url = urllib.parse.urlsplit(server.url())
        self.host, self.port = url.hostname, url.port
        self.pki = server.data_dir / "pki"

    def connect(self, certificate=None):
        context = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        if certificate:
            context.load_cert_chain(*map(str, certificate))
        return http.client.HTTPSConnection(self.host, self.port, context=context, timeout=30)

    def call(self, method, path, body=None, token=None, headers=None, certificate=None):
        connection = self.connect(certificate)
        sent = {"Authorization": "Bearer " + token} if token else {}
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        sent.update(headers or {})
        try:
            connection.connect()
            # A server that rejects a long body responds and closes before it has read it all.
            with contextlib.suppress(OSError):
                connection.request(method, path, body, sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def admin(self, method, path, body=None, **more):
        return self.call(method, path, body, token=ADMIN, **more)

    def made(self, path, body):
        answer = self.admin("POST", path, body)
        assert answer.code == 201, answer.text
        return answer.json

    def when(self, condition, seconds=10):
        """Waits until the condition holds: roles take effect shortly after they are written."""
        wait_until("what this test waits for", condition, seconds)


def start(binary, *flags):
    """A server whose users have tokens."""
    server = Server(binary, *flags)
    (server.data_dir / "tokens.csv").write_text(TOKENS)
    server.flags += ["--token-auth-file", str(server.data_dir / "tokens.csv")]
    server.start()
    return server


RBAC = "/apis/rbac.authorization.k8s.io/v1"


def role_ref(kind, name):
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def grant(users, name, rules, user, namespace=None):
    """Grants the rules to the user: in the namespace, or everywhere."""
    root = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    kind = "Role" if namespace else "ClusterRole"
    users.made(f"{root}/{kind.lower()}s", {"metadata": {"name": name}, "rules": rules})
    users.made(f"{root}/{kind.lower()}bindings", {"metadata": {"name": name}, "roleRef": role_ref(kind, name),
                                                 "subjects": [{"kind": "User", "name": user}]})


def rule(verbs, groups, resources, names=None):
    made = {"verbs": verbs.split(), "apiGroups": groups, "resources": resources.split()}
    return {**made, "resourceNames": names} if names else made


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign_es256(text, key_path):
    """A JOSE signature, whose format differs from OpenSSL's."""
    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(key_path)], input=text.encode(), check=True,
                         stdout=subprocess.PIPE).stdout
    numbers, at = [], 2
    for _ in range(2):
        length = der[at + 1]
        numbers.append(der[at + 2:at + 2 + length].lstrip(b"\0").rjust(32, b"\0"))
        at += 2 + length
    return base64url(b"".join(numbers))


def make_token(claims, key_path, header):
    text = base64url(json.dumps(header).encode()) + "." + base64url(json.dumps(claims).encode())
    return text + "." + sign_es256(text, key_path)


def claims_of(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def header_of(token):
    header = token.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))


def make_certificate(folder, subject, ca, begin, end):
    """A client's certificate and key, signed by `ca` (certificate, key), valid between two UTC times."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    run = lambda *arguments: subprocess.run(["openssl", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)
    (folder / "ca.cnf").write_text(
        "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\nserial=serial\ndefault_md=sha256\npolicy=p\n"
        "x509_extensions=e\n[p]\nO=optional\nCN=optional\n[e]\nextendedKeyUsage=clientAuth\n")
    (folder / "index.txt").write_text("")
    (folder / "serial").write_text("01\n")
    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "client.key")
    run("req", "-new", "-key", "client.key", "-subj", subject, "-out", "client.csr")
    run("ca", "-batch", "-config", "ca.cnf", "-in", "client.csr", "-cert", str(ca[0]), "-keyfile", str(ca[1]), "-startdate",
        begin, "-enddate", end, "-out", "client.crt")
    return folder / "client.crt", folder / "client.key"

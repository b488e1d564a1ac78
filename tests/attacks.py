"""Requests designed to be as expensive as possible, for the tests that check their rejection and the benchmark that measures
their cost."""
import base64
import contextlib
import http.client
import json
import socket
import ssl
import struct

http.client._MAXHEADERS = 10_000  # Responses may contain a warning per field.

GROUP = "attacks.example.com"
THINGS = f"/apis/{GROUP}/v1/namespaces/mine/things"


@contextlib.contextmanager
def idle_connections(users, count):
    """Opens that many connections from their own address, which send nothing after the handshake; fewer if the server
    rejects them. Returns the open ones."""
    context = ssl.create_default_context(cafile=str(users.pki / "ca.crt"))
    with contextlib.ExitStack() as held:
        opened, refused = [], 0
        while len(opened) + refused < count:
            try:
                plain = held.enter_context(socket.create_connection((users.host, users.port), timeout=10, source_address=("127.0.0.2", 0)))
                opened.append(held.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1")))
            except TimeoutError:
                break  # The server is out of descriptors.
            except OSError:
                refused += 1
        yield opened


class Http2:
    """Frames written by hand: what no client would send. `read` is everything that the server has sent."""
    RST_STREAM, SETTINGS, INITIAL_WINDOW_SIZE, REFUSED_STREAM = 3, 4, 4, 7

    def __init__(self, users, stack, window=None):
        context = ssl.create_default_context(cafile=str(users.pki / "ca.crt"))
        context.set_alpn_protocols(["h2"])
        plain = stack.enter_context(socket.create_connection((users.host, users.port), timeout=20))
        self.socket, self.stream, self.read = stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1")), -1, b""
        settings = b"" if window is None else struct.pack(">HI", self.INITIAL_WINDOW_SIZE, window)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(self.SETTINGS, 0, 0, settings))

    @staticmethod
    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    @staticmethod
    def header(name, value, indexed=False):
        """HPACK: a literal, which gets the index 62 if it is `indexed`."""
        def text(part):
            out, rest = b"", len(part)
            if rest < 127:
                return bytes([rest]) + part.encode()
            out, rest = b"\x7f", rest - 127
            while rest > 127:
                out, rest = out + bytes([rest & 127 | 128]), rest >> 7
            return out + bytes([rest]) + part.encode()
        return (b"\x40" if indexed else b"\0") + text(name) + text(value)

    def get(self, path, headers=b""):
        """A GET with these headers, without waiting for the response."""
        self.stream += 2
        block = b"\x82\x87" + self.header(":path", path) + self.header(":authority", "x") + headers
        self.socket.sendall(self.frame(1, 5, self.stream, block))

    def frames(self, seconds=1):
        """(kind, payload) of what the server sends until it is silent for that long."""
        self.socket.settimeout(seconds)
        with contextlib.suppress(OSError, ssl.SSLError):
            while piece := self.socket.recv(65536):
                self.read += piece
        at = 0
        while at + 9 <= len(self.read):
            length = int.from_bytes(self.read[at:at + 3], "big")
            yield self.read[at + 3], self.read[at + 9:at + 9 + length]
            at += 9 + length


def definition(preserve=True):
    """A kind whose spec accepts anything (or, without `preserve`, only spec.known)."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True} if preserve else \
        {"type": "object", "properties": {"known": {"type": "string"}}}
    plural = "things" if preserve else "stricts"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "singular": plural[:-1], "kind": plural.title()[:-1]},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}}


def thing(name, spec="{}", metadata=""):
    """As JSON text, because most of these cannot be built from Python objects."""
    return f'{{"apiVersion":"{GROUP}/v1","kind":"Thing","metadata":{{"name":"{name}"{metadata}}},"spec":{spec}}}'


def nested(levels):
    return '{"a":' * levels + "{}" + "}" * levels


def repeated_members(count):
    """One member repeated many times, each time a map with a different member."""
    return '{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",' + \
        ",".join('"spec":{"resourceAttributes":{"extra%d":{}}}' % i for i in range(count)) + "}"


def unseeded_xxh3(key):
    """XXH3 of 8 bytes, with the default secret and seed."""
    mask, factor = (1 << 64) - 1, 0x9FB21C651E98DF25
    hashed = (int.from_bytes(key[4:], "little") | int.from_bytes(key[:4], "little") << 32) ^ 0x1CAD21F72C81017C ^ 0xDB979083E96DD4DE
    hashed ^= (hashed << 49 | hashed >> 15) & mask ^ (hashed << 24 | hashed >> 40) & mask
    hashed = hashed * factor & mask
    hashed ^= (hashed >> 35) + 8
    hashed = hashed * factor & mask
    return hashed ^ hashed >> 28


def colliding_keys(count):
    """Keys of 8 letters that crowd a linearly probed hash table with a known hash into an eighth of its slots."""
    slots = 1 << (2 * count - 1).bit_length()
    found, number = [], 0
    while len(found) < count:
        number += 1
        key = b"%08x" % number
        if unseeded_xxh3(key) % slots < slots // 8:
            found.append(key.decode())
    return found


def colliding_token(count):
    """An unsigned token with that many claims."""
    part = lambda text: base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    claims = "{" + ",".join(f'"{key}":1' for key in colliding_keys(count)) + "}"
    return f'{part(json.dumps({"alg": "ES256"}))}.{part(claims)}.{part("x" * 64)}'


def doubling_patch(times):
    """Copies an object into its own innermost map, which doubles its depth each time."""
    operations, path, levels = [], "/spec/a", 1
    for _ in range(times):
        operations.append({"op": "copy", "from": "/spec/a", "path": path + "/a"})
        path += "/a" * levels
        levels *= 2
    return json.dumps(operations)


def owner_references(count):
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{i}", "uid": f"{i:08x}-0000-4000-8000-000000000000"} for i in range(count)]
    return thing("owned", metadata=',"ownerReferences":' + json.dumps(references))


def value_keys(count):
    """managedFields that own a set item that is a map with many members."""
    value = "v:" + json.dumps({f"k{i}": i for i in range(count)})
    entry = {"manager": "m", "operation": "Update", "apiVersion": f"{GROUP}/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:set": {value: {}}}}}
    return thing("valued", metadata=',"managedFields":' + json.dumps([entry]))


def unknown_fields(count):
    return f'{{"apiVersion":"{GROUP}/v1","kind":"Strict","metadata":{{"name":"unknown"}},"spec":{{' + \
        ",".join(f'"u{i}":1' for i in range(count)) + "}}"


def protobuf(*fields):
    """A message of (number, bytes, str or message) fields."""
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    out = bytearray()
    for number, value in fields:
        value = value.encode() if isinstance(value, str) else value
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


def forged_managers(name, managers):
    """A ConfigMap as Protobuf with an entry of managedFields for each of these managers."""
    fields = protobuf((1, '{"f:a":{}}'))
    entries = [(17, protobuf((1, manager), (2, "Apply"), (3, "v1"), (6, "FieldsV1"), (7, fields))) for manager in managers]
    return b"k8s\0" + protobuf((1, protobuf((1, "v1"), (2, "ConfigMap"))), (2, protobuf((1, protobuf((1, name), *entries)))))


def large_role(side):
    rule = {"verbs": [f"v{i}" for i in range(side)], "apiGroups": [f"g{i}" for i in range(side)], "resources": [f"r{i}" for i in range(side)]}
    return {"metadata": {"name": "large"}, "rules": [rule]}


def service_ports(count):
    """A strategic merge patch of a list merged by key."""
    return {"spec": {"ports": [{"name": f"p{i}", "port": 1 + i % 65535, "protocol": "TCP"} for i in range(count)]}}

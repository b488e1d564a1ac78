"""Requests that are made to cost as much as they can, for the tests that refuse them and the benchmark that weighs them."""
import base64
import contextlib
import http.client
import json
import socket
import ssl

http.client._MAXHEADERS = 10_000  # Answers may carry a warning for each field.

GROUP = "attacks.example.com"
THINGS = f"/apis/{GROUP}/v1/namespaces/mine/things"


@contextlib.contextmanager
def idle_connections(users, count):
    """Opens that many connections from an address of their own, which say nothing after the handshake; fewer if the server does
    not take them. Gives those that are open."""
    context = ssl.create_default_context(cafile=str(users.pki / "ca.crt"))
    with contextlib.ExitStack() as held:
        opened, refused = [], 0
        while len(opened) + refused < count:
            try:
                plain = held.enter_context(socket.create_connection((users.host, users.port), timeout=10, source_address=("127.0.0.2", 0)))
                opened.append(held.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1")))
            except TimeoutError:
                break  # It waits for a descriptor.
            except OSError:
                refused += 1
        yield opened


def definition(preserve=True):
    """A kind whose spec takes anything (or, without `preserve`, only spec.known)."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True} if preserve else \
        {"type": "object", "properties": {"known": {"type": "string"}}}
    plural = "things" if preserve else "stricts"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "singular": plural[:-1], "kind": plural.title()[:-1]},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}}


def thing(name, spec="{}", metadata=""):
    """JSON text, since most of these are not to be made by way of Python's own objects."""
    return f'{{"apiVersion":"{GROUP}/v1","kind":"Thing","metadata":{{"name":"{name}"{metadata}}},"spec":{spec}}}'


def nested(levels):
    return '{"a":' * levels + "{}" + "}" * levels


def repeated_members(count):
    """One member given again and again, each time a map with another member."""
    return '{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",' + \
        ",".join('"spec":{"resourceAttributes":{"extra%d":{}}}' % i for i in range(count)) + "}"


def unseeded_xxh3(key):
    """XXH3 of 8 bytes, with the secret and the seed that everybody knows."""
    mask, factor = (1 << 64) - 1, 0x9FB21C651E98DF25
    hashed = (int.from_bytes(key[4:], "little") | int.from_bytes(key[:4], "little") << 32) ^ 0x1CAD21F72C81017C ^ 0xDB979083E96DD4DE
    hashed ^= (hashed << 49 | hashed >> 15) & mask ^ (hashed << 24 | hashed >> 40) & mask
    hashed = hashed * factor & mask
    hashed ^= (hashed >> 35) + 8
    hashed = hashed * factor & mask
    return hashed ^ hashed >> 28


def colliding_keys(count):
    """Keys of 8 letters which a table that probes linearly, and whose hash is not secret, crowds into an eighth of itself."""
    slots = 1 << (2 * count - 1).bit_length()
    found, number = [], 0
    while len(found) < count:
        number += 1
        key = b"%08x" % number
        if unseeded_xxh3(key) % slots < slots // 8:
            found.append(key.decode())
    return found


def colliding_token(count):
    """A token that nobody signed, with that many claims."""
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
    """managedFields that own an item of a set, which is a map with many members."""
    value = "v:" + json.dumps({f"k{i}": i for i in range(count)})
    entry = {"manager": "m", "operation": "Update", "apiVersion": f"{GROUP}/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:set": {value: {}}}}}
    return thing("valued", metadata=',"managedFields":' + json.dumps([entry]))


def unknown_fields(count):
    return f'{{"apiVersion":"{GROUP}/v1","kind":"Strict","metadata":{{"name":"unknown"}},"spec":{{' + \
        ",".join(f'"u{i}":1' for i in range(count)) + "}}"


def large_role(side):
    rule = {"verbs": [f"v{i}" for i in range(side)], "apiGroups": [f"g{i}" for i in range(side)], "resources": [f"r{i}" for i in range(side)]}
    return {"metadata": {"name": "large"}, "rules": [rule]}


def service_ports(count):
    """A strategic patch of a list that merges by key."""
    return {"spec": {"ports": [{"name": f"p{i}", "port": 1 + i % 65535, "protocol": "TCP"} for i in range(count)]}}

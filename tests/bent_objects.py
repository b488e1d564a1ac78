"""Objects of every kind with all fields from the server's OpenAPI documents, each malformed in one place."""
import copy
import pathlib
import re

CATALOG = pathlib.Path(__file__).resolve().parent.parent / "catalog"
# Replacements of the wrong type. Null comes first, because decoders that check types accept it.
BENDS = (None, [None], {"a": None}, "", "\x00", "x", [], {}, [[]], 0, -1, 1 << 62, 1.5, True, "1Zi", "2026-13-45T99:99:99Z", "255.255.255.256/99", "*", ["x", "x"])


GROUP = "bent.example.com"


def definition():
    """A custom resource with every feature that inspects its objects: rules, columns, selectors, scale, keyed lists, defaults."""
    text, number = {"type": "string"}, {"type": "integer"}
    spec = {"type": "object", "default": {}, "x-kubernetes-validations": [
        {"rule": "!has(self.name) || self.name != 'never'"}, {"rule": "!has(self.replicas) || !has(oldSelf.replicas) || self.replicas >= 0"},
        {"rule": "!has(self.byKey) || self.byKey.all(one, one.key.size() < 100)", "message": "too long"}],
        "properties": {
            "name": {**text, "default": "n", "maxLength": 20, "pattern": "^[a-z]*$"}, "replicas": {**number, "format": "int32", "minimum": 0},
            "share": {"type": "number", "multipleOf": 0.5}, "when": {**text, "format": "date-time"}, "address": {**text, "format": "ipv4"},
            "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set", "maxItems": 10},
            "byKey": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key", "at"], "maxItems": 10, "items": {
                "type": "object", "required": ["key", "at"], "properties": {"key": {**text, "maxLength": 50}, "at": number, "value": {**text, "nullable": True}}}},
            "map": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "object", "properties": {"a": {**number, "default": 1}}}},
            "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text}},
            "template": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            "anything": {"x-kubernetes-preserve-unknown-fields": True}}}
    status = {"type": "object", "properties": {"replicas": number, "selector": text, "conditions": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "properties": {"type": text, "status": text}}}}}
    column = lambda name, kind, path: {"name": name, "type": kind, "jsonPath": path}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"bents.{GROUP}"}, "spec": {
        "group": GROUP, "scope": "Namespaced", "names": {"plural": "bents", "singular": "bent", "kind": "Bent"}, "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
             "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                                                      "labelSelectorPath": ".status.selector"}},
             "selectableFields": [{"jsonPath": ".spec.name"}, {"jsonPath": ".spec.replicas"}],
             "additionalPrinterColumns": [column("Name", "string", ".spec.name"), column("When", "date", ".spec.when"), column("Share", "number", ".spec.share"),
                                          column("Replicas", "integer", ".spec.replicas"), column("Keys", "string", ".spec.byKey[*].key"),
                                          column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status")]}]}}


def stored_at():
    """{(group, plural): prefix below /registry/} of the built-in kinds."""
    found = {}
    for path in CATALOG.glob("*.types"):
        group = ""
        plural = None
        for line in path.read_text().splitlines():
            if line.startswith("serves "):
                group = line.split()[1].rpartition("/")[0]
            elif line.startswith("resource "):
                plural = line.split()[1]
            elif plural and (match := re.match(r"\s+stored\s+(\S+)", line)):
                found[group, plural] = match.group(1)
    return found


class Kind:
    def __init__(self, group_version, plural, name, namespaced, schema):
        self.group_version, self.plural, self.name, self.namespaced, self.schema = group_version, plural, name, namespaced, schema

    @property
    def group(self):
        return self.group_version.rpartition("/")[0]

    def path(self, name=None):
        root = f"/apis/{self.group_version}" if self.group else f"/api/{self.group_version}"
        return root + ("/namespaces/mine/" if self.namespaced else "/") + self.plural + (f"/{name}" if name else "")


class Objects:
    def __init__(self, get):
        """`get(path)`: a JSON document of the server."""
        self.schemas, self.kinds = {}, []
        for path in get("/openapi/v3")["paths"]:
            if re.fullmatch(r"api/v1|apis/[^/]+/[^/]+", path):
                document = get("/openapi/v3/" + path)
                self.schemas.update(document.get("components", {}).get("schemas", {}))
                group_version = path.split("/", 1)[1]
                by_kind = {}
                for name, schema in document.get("components", {}).get("schemas", {}).items():
                    for each in schema.get("x-kubernetes-group-version-kind", []):
                        if (f"{each['group']}/" if each["group"] else "") + each["version"] == group_version:
                            by_kind[each["kind"]] = name
                for resource in get("/" + path).get("resources", []):
                    if "/" not in resource["name"] and resource["kind"] in by_kind and "create" in resource["verbs"]:
                        self.kinds.append(Kind(group_version, resource["name"], resource["kind"], resource["namespaced"], by_kind[resource["kind"]]))
        self.kinds.sort(key=lambda kind: (kind.group_version, kind.plural))

    def full(self, kind, name):
        """An object of the kind with every field set. Most are invalid, which does not matter."""
        made = self._value(self.schemas[kind.schema], ())
        made.update(apiVersion=kind.group_version, kind=kind.name)
        for member in ("namespace", "uid", "resourceVersion", "managedFields", "deletionTimestamp", "selfLink", "creationTimestamp"):
            made["metadata"].pop(member, None)
        made["metadata"]["name"] = name
        return made

    def _value(self, schema, above):
        while "$ref" in schema or "allOf" in schema:
            if "allOf" in schema:
                schema = schema["allOf"][0]
                continue
            name = schema["$ref"].rpartition("/")[2]
            if above.count(name) > 1:
                return {}
            if name.endswith(".Quantity"):
                return "1"
            above += (name,)
            schema = self.schemas[name]
        kind, form = schema.get("type"), schema.get("format", "")
        if "properties" in schema:
            return {key: self._value(inner, above) for key, inner in schema["properties"].items()}
        if kind == "array":
            return [self._value(schema["items"], above)]
        if kind == "object":
            inner = schema.get("additionalProperties")
            return {"a": self._value(inner, above)} if isinstance(inner, dict) else {}
        if kind == "string":
            return {"date-time": "2026-01-01T00:00:00Z", "byte": "eA=="}.get(form, schema["enum"][0] if "enum" in schema else "x")
        if kind in ("integer", "number"):
            return 1
        return kind == "boolean" or "x"


def places(value, above=()):
    """The path of every value in it, except for identifying fields."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        path = above + (key,)
        if path not in (("apiVersion",), ("kind",), ("metadata",), ("metadata", "name")):
            yield path
        yield from places(each, path)


def bent(value, path, bend):
    """A copy with another value at the path."""
    result = copy.copy(value)
    if len(path) == 1:
        result[path[0]] = copy.deepcopy(bend)
    else:
        result[path[0]] = bent(value[path[0]], path[1:], bend)
    return result


def without(value, path):
    """A copy without the value at the path."""
    result = copy.copy(value)
    if len(path) == 1:
        del result[path[0]]
    else:
        result[path[0]] = without(value[path[0]], path[1:])
    return result

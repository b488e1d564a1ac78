"""Random structural schemas with CEL rules for their types, and objects that mostly match them."""
from cel_expressions import Maker

NAMES = ["a", "b", "name", "spec", "items", "value", "in", "a-b", "x.y", "p/q", "a__b", "true", "Self", "n1", "_u", "namespace", "type", "é"]
RESERVED = {"in", "true", "false", "null", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}


def escaped(name):
    """How an expression refers to a property; None if it cannot."""
    if name in RESERVED:
        return f"__{name}__"
    if not all(c.isascii() and (c.isalnum() or c in "_-./") for c in name):
        return None
    return name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")


class SchemaMaker:
    def __init__(self, rng):
        self.rng = rng

    def chance(self, part):
        return self.rng.random() < part

    def node(self, depth):
        kind = self.rng.choice(["string", "integer", "number", "boolean", "intorstring", "preserve"] + (["object", "object", "array", "array", "map"] if depth > 0 else []))
        schema = getattr(self, "make_" + kind)(depth)
        if self.chance(0.08) and "type" in schema:
            schema["nullable"] = True
        return schema

    def make_string(self, depth):
        schema = {"type": "string"}
        if self.chance(0.3):
            schema["format"] = self.rng.choice(["byte", "date", "date-time", "duration", "uri", "unknown"])
        elif self.chance(0.2):
            schema["enum"] = self.rng.choice([["a", "bb"], ["x"]])
        if self.chance(0.4):
            schema["maxLength"] = self.rng.choice([0, 5, 64, 1000])
        return schema

    def make_integer(self, depth):
        return {"type": "integer", **({"format": self.rng.choice(["int32", "int64"])} if self.chance(0.3) else {})}

    def make_number(self, depth):
        return {"type": "number"}

    def make_boolean(self, depth):
        return {"type": "boolean"}

    def make_intorstring(self, depth):
        return {"x-kubernetes-int-or-string": True}

    def make_preserve(self, depth):
        return self.rng.choice([{"x-kubernetes-preserve-unknown-fields": True}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}])

    def make_object(self, depth):
        names = self.rng.sample(NAMES, self.rng.randrange(1, 4))
        schema = {"type": "object", "properties": {name: self.node(depth - 1) for name in names}}
        required = [name for name in names if self.chance(0.3)]
        if required:
            schema["required"] = required
        if self.chance(0.1):
            schema["x-kubernetes-map-type"] = "atomic"
        if self.chance(0.05):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        return schema

    def make_array(self, depth):
        schema = {"type": "array"}
        if self.chance(0.25):
            schema["items"] = self.rng.choice([{"type": "string"}, {"type": "integer"}])
            schema["x-kubernetes-list-type"] = "set"
        elif self.chance(0.4):
            schema["items"] = {"type": "object", "required": ["k"], "properties": {"k": self.rng.choice([{"type": "string"}, {"type": "integer"}]), "v": self.node(depth - 1)}}
            schema["x-kubernetes-list-type"] = "map"
            schema["x-kubernetes-list-map-keys"] = ["k"]
        else:
            schema["items"] = self.node(depth - 1)
            if self.chance(0.3):
                schema["x-kubernetes-list-type"] = "atomic"
        if self.chance(0.5):
            schema["maxItems"] = self.rng.choice([1, 3, 100])
        return schema

    def make_map(self, depth):
        schema = {"type": "object", "additionalProperties": self.node(depth - 1)}
        if self.chance(0.5):
            schema["maxProperties"] = self.rng.choice([1, 3, 100])
        return schema

    # --- Rules ---

    def leaves(self, schema, text, into, depth=3):
        """Expressions for the values below, by kind."""
        kind = {"string": {"byte": "bytes", "date": "time", "date-time": "time", "duration": "span"}.get(schema.get("format"), "string"), "integer": "int", "number": "double", "boolean": "bool",
                "array": "list", "object": "map"}.get(schema.get("type"), "dyn")
        into.setdefault(kind, []).append(text)
        if depth == 0:
            return
        for name, below in schema.get("properties", {}).items():
            spelled = escaped(name)
            if spelled is not None:
                self.leaves(below, f"{text}.{spelled}", into, depth - 1)
                into.setdefault("optional", []).append(f"{text}.?{spelled}")
        if "items" in schema:
            self.leaves(schema["items"], f"{text}[0]", into, depth - 1)
        if "additionalProperties" in schema:
            self.leaves(schema["additionalProperties"], f"{text}['a']", into, depth - 1)

    def rule(self, schema):
        leaves = {}
        self.leaves(schema, "self", leaves)
        uses_old = self.chance(0.25)
        rule = {}
        if uses_old:
            if self.chance(0.3):
                rule["optionalOldSelf"] = True
                leaves.setdefault("optional", []).append("oldSelf")
            else:
                self.leaves(schema, "oldSelf", leaves)
        maker = Maker(self.rng, leaves=leaves, plain=True)
        kind = "any" if self.chance(0.03) else "bool"
        text = maker.make(kind, self.rng.randrange(1, 4))
        kinds = {"array": ["self.all(x, {bool/x})", "self.exists(x, {bool/x})", "self.map(x, {any/x}).size() >= 0", "self.size() < {int}"],
                 "object": ["self.all(k, {bool/k})", "has({select})"] if "additionalProperties" in schema else ["has({select})", "has({select}) && {bool}"]}
        if self.chance(0.4) and schema.get("type") in kinds:
            text = maker.fill(self.rng.choice(kinds[schema["type"]]), 2)
        if self.chance(0.02):
            text = maker.damaged(text)
        rule["rule"] = text
        if self.chance(0.2):
            rule["message"] = self.rng.choice(["must hold", "two\nlines", " "])
        if self.chance(0.25):
            rule["messageExpression"] = maker.make("string", self.rng.randrange(1, 3))
        if self.chance(0.2):
            rule["reason"] = self.rng.choice(["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"])
        if self.chance(0.15) and schema.get("properties"):
            name = self.rng.choice(list(schema["properties"]))
            rule["fieldPath"] = self.rng.choice([f".{name}", f"['{name}']"])
        return rule

    def add_rules(self, schema, chance):
        if self.chance(chance):
            schema["x-kubernetes-validations"] = [self.rule(schema) for _ in range(self.rng.choice([1, 1, 2]))]
        for below in list(schema.get("properties", {}).values()) + [schema[key] for key in ("items", "additionalProperties") if key in schema]:
            self.add_rules(below, 0.4)

    def schema(self):
        root = {"type": "object", "properties": {name: self.node(3) for name in self.rng.sample(["spec", "status", "data", "a-b"], self.rng.randrange(1, 3))}}
        self.add_rules(root, 0.5)
        return root

    # --- Objects ---

    def value(self, schema):
        if schema.get("nullable") and self.chance(0.3):
            return None
        if schema.get("x-kubernetes-int-or-string"):
            return self.rng.choice([1, "a", 42, "10%"])
        kind = schema.get("type")
        if kind is None:
            return self.rng.choice([1, "a", {"x": [1]}, None, [True]])
        if self.chance(0.01):
            return self.rng.choice([1, "x", {}, [], None, 1.5])
        return getattr(self, "value_" + kind)(schema)

    def value_string(self, schema):
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        return self.rng.choice({"byte": ["aGVsbG8=", "", "eHg="], "date": ["2023-03-12", "1970-01-01"], "date-time": ["2023-03-12T09:08:07Z", "2000-01-01T00:00:00.5+02:00"],
                                "duration": ["1h30m", "5s", "0s"]}.get(schema.get("format"), ["", "a", "hello", "äöü", "k", "10.0.0.1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]))

    def value_integer(self, schema):
        return self.rng.choice([0, 1, -7, 42, 3])

    def value_number(self, schema):
        return self.rng.choice([0.5, 1, -2.25, 1e10])

    def value_boolean(self, schema):
        return self.chance(0.5)

    def value_object(self, schema):
        if "additionalProperties" in schema:
            return {key: self.value(schema["additionalProperties"]) for key in self.rng.sample(["a", "b", "c-d", "é"], self.rng.randrange(0, 3))}
        value = {name: self.value(below) for name, below in schema.get("properties", {}).items() if name in schema.get("required", []) or self.chance(0.75)}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            value["unknown"] = {"deep": 1}
        return value

    def value_array(self, schema):
        items = [self.value(schema["items"]) for _ in range(self.rng.randrange(0, 4))]
        if schema.get("x-kubernetes-list-type") == "set":
            return [item for i, item in enumerate(items) if item not in items[:i]]
        if schema.get("x-kubernetes-list-type") == "map":
            seen = []
            for item in items:
                if isinstance(item, dict) and item.get("k") not in [other.get("k") for other in seen]:
                    seen.append(item)
            return seen
        return items

    def changed(self, schema, value):
        """A variation of this object."""
        if self.chance(0.2):
            return self.value(schema)
        if isinstance(value, dict):
            below = schema.get("properties", {})
            return {key: self.changed(below.get(key, schema.get("additionalProperties", {})), item) for key, item in value.items() if not self.chance(0.1)}
        if isinstance(value, list) and "items" in schema:
            items = [self.changed(schema["items"], item) for item in value]
            if schema.get("x-kubernetes-list-type") == "map":
                items = [{**item, "k": before["k"]} if isinstance(item, dict) and isinstance(before, dict) and "k" in before else before for item, before in zip(items, value)]
            if schema.get("x-kubernetes-list-type") == "set":
                return value
            return items
        return value

    def query(self):
        schema = self.schema()
        root = {"apiVersion": "e.com/v1", "kind": "T", "metadata": {"name": "n"}}
        value = {**root, **self.value_object(schema)}
        query = {"schema": schema, "self": value}
        if self.chance(0.6):
            old = self.changed(schema, {key: item for key, item in value.items() if key not in root})
            query["old"] = {**root, **(old if isinstance(old, dict) else {})}
        return query

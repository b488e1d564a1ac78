#!/usr/bin/env python3
"""Compiles the catalog (groups, *.types) into constant C++ tables behind types/types.h.

    compile.py OUT_DIR        writes OUT_DIR/catalog_{core,groups,machinery,index}.cc, catalog.inc and descriptions.txt

The format is described in README.md next to this file. Nothing is parsed when the program starts: every table is constant
data whose only cost is the relocation of its pointers by the loader. The descriptions of types and fields become one text,
a line for each type followed by its fields, which is packed into the binary (src/core/types/descriptions.h).
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = {  # Name in the catalog: (Shape, Go's name in errors)
    "any": ("Any", "interface {}"),
    "bool": ("Bool", "bool"),
    "int32": ("Int32", "int32"),
    "int64": ("Int64", "int64"),
    "double": ("Double", "float64"),
    "string": ("String", "string"),
    "bytes": ("Bytes", "[]uint8"),
}
SHAPES = {
    "quantity": "Quantity", "time": "Time", "microtime": "MicroTime", "duration": "Duration", "fieldsv1": "FieldsV1",
    "raw": "Raw", "intorstring": "IntOrString", "schema-or-bool": "SchemaOrBool", "schema-or-array": "SchemaOrArray",
    "schema-or-strings": "SchemaOrStringArray",
}
LONGEST_DESCRIPTION = 400
PATCH = {"merge": "kPatchMerge", "retainKeys": "kPatchRetainKeys", "replace": "kPatchReplace"}


class CatalogError(Exception):
    pass


class Named:
    """One `string`, `int64`, `list`, `map` or `struct` of the catalog."""

    def __init__(self, keyword, package, name, where):
        self.keyword, self.package, self.name, self.where = keyword, package, name, where
        self.shape = None
        self.element = None
        self.wrapped = False
        self.map_kind = None
        self.unions = []
        self.fields = []
        self.description = ""

    @property
    def full(self):
        return f"{self.package.name}.{self.name}"

    @property
    def id(self):
        return re.sub(r"[^A-Za-z0-9]", "_", self.full)

    @property
    def go_name(self):
        return f"{self.package.name.rsplit('/', 1)[-1]}.{self.name}"


class Field:
    def __init__(self, where):
        self.where = where
        self.name, self.number, self.type, self.pointer, self.inlined = "", 0, "", False, False
        self.omit_empty = self.omit_zero = self.empty_differs = self.required = self.root_only = False
        self.list_kind, self.list_keys, self.map_kind = None, [], None
        self.patch, self.merge_key = [], ""
        self.default, self.enum, self.gate, self.items = None, None, None, None
        self.description = ""


class Column:
    def __init__(self, name, type_, format_, priority, where):
        self.name, self.type, self.format, self.priority, self.where = name, type_, format_, priority, where
        self.description = ""


class Package:
    def __init__(self, name, openapi):
        self.name, self.openapi = name, openapi
        self.types, self.resources = [], []
        self.unserved = False


class Resource:
    def __init__(self):
        self.verbs, self.subresources, self.columns = [], [], []
        self.short, self.categories = [], []
        self.stored = None


def split_gv(text):
    group, _, version = text.rpartition("/")
    return group, version


def parse_type_line(words, package, where):
    keyword, name = words[0], words[1]
    named = Named(keyword, package, name, where)
    rest = words[2:]
    if keyword in ("string", "int64"):
        named.shape = "String" if keyword == "string" else "Int64"
    elif keyword in ("list", "map"):
        if len(rest) < 2 or rest[0] != "of":
            raise CatalogError(f"{where}: expected `{keyword} Name of Type`")
        named.shape, named.element = keyword.capitalize(), rest[1]
        named.wrapped = "wrapped" in rest[2:]
    else:
        named.shape = "Struct"
        for flag in rest:
            key, _, value = flag.partition("=")
            if key == "shape":
                named.shape = SHAPES[value]
            elif key == "map":
                named.map_kind = value.capitalize()
            elif key == "union":
                match = re.fullmatch(r"(\w*)\((.*)\)", value)
                pairs = [pair.split(":") for pair in match[2].split(",")]
                named.unions.append((match[1], pairs))
            else:
                raise CatalogError(f"{where}: unknown word {flag!r}")
    return named


def parse_field(line, where):
    words = line.split()
    if len(words) < 3:
        raise CatalogError(f"{where}: expected `name number type flags...`")
    field = Field(where)
    field.inlined = words[0] == "<inline>"
    field.name = "" if field.inlined else words[0]
    field.number = 0 if words[1] == "-" else int(words[1])
    field.pointer = words[2].startswith("*")
    field.type = words[2].lstrip("*")
    for flag in words[3:]:
        key, _, value = flag.partition("=")
        if flag == "omitempty":
            field.omit_empty = True
        elif flag == "omitzero":
            field.omit_zero = True
        elif flag == "emptydiffers":
            field.empty_differs = True
        elif flag == "required":
            field.required = True
        elif flag == "root":
            field.root_only = True
        elif key == "list":
            match = re.fullmatch(r"(atomic|set|map)(?:\(([^)]*)\))?", value)
            if not match:
                raise CatalogError(f"{where}: bad {flag!r}")
            field.list_kind = {"atomic": "Atomic", "set": "Set", "map": "Keyed"}[match[1]]
            field.list_keys = match[2].split(",") if match[2] else []
        elif key == "map":
            field.map_kind = value.capitalize()
        elif key == "patch":
            match = re.fullmatch(r"([\w+]+)(?:\((\w+)\))?", value)
            field.patch = [PATCH[part] for part in match[1].split("+")]
            field.merge_key = match[2] or ""
        elif key == "default":
            field.default = json.loads(value)
        elif key == "enum":
            field.enum = value.replace("_", " ").split("|")
        elif key == "gate":
            field.gate = value
        elif key == "items":
            field.items = value.rpartition("/")[::2]
        else:
            raise CatalogError(f"{where}: unknown word {flag!r}")
    return field


def parse_resource_head(words, where):
    resource = Resource()
    resource.plural, resource.kind, scope = words[1:4]
    resource.namespaced = {"namespaced": True, "cluster": False}[scope]
    for flag in words[4:]:
        key, _, value = flag.partition("=")
        if key == "singular":
            resource.singular = value
        elif key in ("short", "categories"):
            setattr(resource, key, value.split(","))
        else:
            raise CatalogError(f"{where}: unknown word {flag!r}")
    return resource


def parse_resource_line(resource, line, where):
    keyword, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if keyword == "stored":
        words = rest.split()
        resource.stored = (words[0], *split_gv(words[2]), "json" in words[3:])
    elif keyword == "verbs":
        resource.verbs = rest.split()
    elif keyword == "subresource":
        left, _, verbs = rest.partition(" : ")
        name, kind = left.split()
        gv, _, kind = kind.rpartition("/")
        resource.subresources.append((name, *split_gv(gv), kind, verbs.split()))
    elif keyword == "column":
        name, _, right = rest.partition(" : ")
        words = right.split()
        options = dict(word.split("=") for word in words[1:])
        resource.columns.append(Column(name, words[0], options.get("format", ""), int(options.get("priority", 0)),
                                       where))
        return resource.columns[-1]
    else:
        raise CatalogError(f"{where}: unknown word {keyword!r}")
    return None


def add_description(described, line, where):
    text = line.strip()[1:].strip()
    if described is None:
        raise CatalogError(f"{where}: a description must be right below a type, a field (not <inline>) or a column")
    if not text:
        raise CatalogError(f"{where}: empty description")
    described.description += (" " if described.description else "") + " ".join(text.split())


def parse_file(path, packages):
    package = open_type = open_resource = described = None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            where = f"{os.path.basename(path)}:{number}"
            line = line.rstrip("\n")
            if line.lstrip().startswith(">"):
                add_description(described, line, where)
                continue
            described = None
            if not line.strip() or line.startswith("#"):
                continue
            words = line.split()
            if line.startswith("  "):
                if open_type is not None:
                    field = parse_field(line, where)
                    open_type.fields.append(field)
                    described = None if field.inlined else field
                elif open_resource is not None:
                    described = parse_resource_line(open_resource, line, where)
                else:
                    raise CatalogError(f"{where}: an indented line outside a struct or resource")
                continue
            open_type = open_resource = None
            if words[0] == "package":
                package = Package(words[1], words[2] if len(words) > 2 else "")
                packages[package.name] = package
            elif words[0] == "unserved":
                package.unserved = True
            elif words[0] == "serves":
                package.group, package.version = split_gv(words[1])
            elif words[0] == "resource":
                open_resource = parse_resource_head(words, where)
                package.resources.append(open_resource)
            elif words[0] in ("string", "int64", "list", "map", "struct"):
                named = parse_type_line(words, package, where)
                package.types.append(named)
                described = named
                open_type = named if words[0] == "struct" else None
            else:
                raise CatalogError(f"{where}: unknown word {words[0]!r}")


def described_things(packages):
    """Everything that has a description: (what it is, a Named, Field or Column)."""
    for package in packages.values():
        if package.unserved:
            continue  # Shown to nobody.
        for resource in package.resources:
            for column in resource.columns:
                yield f"column {column.name} of {resource.plural}", column
        for named in package.types:
            yield named.full, named
            for field in named.fields:
                if not field.inlined:
                    yield f"{named.full}.{field.name}", field


def check_descriptions(packages):
    problems = []
    for what, thing in described_things(packages):
        if not thing.description:
            problems.append(f"{thing.where}: {what} has no description")
        elif len(thing.description) > LONGEST_DESCRIPTION:
            problems.append(f"{thing.where}: the description of {what} has {len(thing.description)} characters; "
                            f"{LONGEST_DESCRIPTION} are allowed")
    if problems:
        raise CatalogError("\n".join(problems))


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Unit:
    """One generated .cc file. Lists, maps, defaults and name arrays are shared within it."""

    def __init__(self, types):
        self.types = types  # Full name -> Named.
        self.shared = {}
        self.lines = []

    def share(self, prefix, declaration, body):
        key = (prefix, declaration, body)
        if key not in self.shared:
            name = f"{prefix}{len(self.shared)}"
            self.shared[key] = name
            self.lines.append(f"constexpr {declaration.format(name)}{body};")
        return self.shared[key]

    def strings(self, texts):
        if not texts:
            return "{}"
        return self.share("kNames", "std::string_view {}[]", "{" + ", ".join(map(quote, texts)) + "}")

    def value(self, json_value):
        if json_value == {}:
            text = "Value::empty_map()"
        elif isinstance(json_value, bool):
            text = f"Value::boolean({str(json_value).lower()})"
        elif isinstance(json_value, int):
            text = f"Value::integer({json_value})"
        elif isinstance(json_value, str):
            text = f"Value::string({quote(json_value)})"
        else:
            raise CatalogError(f"no constant form for the default {json_value!r}")
        return "&" + self.share("kDefault", "Value {}", f" = {text}")

    def resolve(self, text, package, where):
        """Resolves the catalog's spelling of a named or base type -> (C++ expression, Go's name, Named or None)."""
        if text in BASE:
            return f"&base_{text}", BASE[text][1], None
        full = text if "." in text else f"{package.name}.{text}"
        if full not in self.types:
            raise CatalogError(f"{where}: no type {full}")
        named = self.types[full]
        return f"&type_{named.id}", named.go_name, named

    def type_expression(self, text, package, where, field=None):
        if text.startswith("[]"):
            element, go_name, _ = self.type_expression(text[2:], package, where)
            kind = field.list_kind if field and field.list_kind else "Atomic"
            parts = [f".shape = Shape::List, .element = {element}, .list_kind = ListKind::{kind}"]
            if field and field.list_keys:
                parts.append(f".list_keys = {self.strings(field.list_keys)}")
            parts.append(f'.go_name = {quote("[]" + go_name)}')
            return "&" + self.share("kType", "Type {}", "{" + ", ".join(parts) + "}"), "[]" + go_name, None
        match = re.match(r"map\[([^\]]+)\](.*)", text)
        if match:
            _, key_name, _ = self.resolve(match[1], package, where)
            element, value_name, _ = self.type_expression(match[2], package, where)
            go_name = f"map[{key_name}]{value_name}"
            kind = field.map_kind if field and field.map_kind else "Granular"
            body = (f"{{.shape = Shape::Map, .element = {element}, .map_kind = MapKind::{kind}, "
                    f".go_name = {quote(go_name)}}}")
            return "&" + self.share("kType", "Type {}", body), go_name, None
        expression, go_name, named = self.resolve(text, package, where)
        if field and field.list_kind and named is not None and named.keyword == "list":
            # A named list whose merge behaviour is declared by the field: the same list with those keys.
            element, _, _ = self.type_expression(named.element, named.package, where)
            parts = [f".shape = Shape::List, .name = {quote(named.full)}, .element = {element}, "
                     f".list_kind = ListKind::{field.list_kind}"]
            if field.list_keys:
                parts.append(f".list_keys = {self.strings(field.list_keys)}")
            parts.append(f".go_name = {quote(go_name)}")
            return "&" + self.share("kType", "Type {}", "{" + ", ".join(parts) + "}"), go_name, named
        return expression, go_name, named

    def field(self, field, named):
        expression, _, _ = self.type_expression(field.type, named.package, named.where, field)
        parts = []
        if field.name:
            parts.append(f".name = {quote(field.name)}")
        parts.append(f".type = {expression}")
        if field.number:
            parts.append(f".number = {field.number}")
        for flag, name in ((field.omit_empty, "omit_empty"), (field.omit_zero, "omit_zero"), (field.empty_differs, "empty_differs"),
                           (field.pointer, "pointer"), (field.required, "required"), (field.inlined, "inlined")):
            if flag:
                parts.append(f".{name} = true")
        if field.map_kind and (field.map_kind == "Granular" or not field.type.startswith("map[")):
            parts.append(f".overrides_map_kind = true, .map_kind = MapKind::{field.map_kind}")
        if field.patch:
            parts.append(f".patch_strategy = {' | '.join(field.patch)}")
        if field.merge_key:
            parts.append(f".patch_merge_key = {quote(field.merge_key)}")
        if field.default is not None:
            parts.append(f".default_value = {self.value(field.default)}")
        if field.enum is not None:
            parts.append(f".enum_values = {self.strings(field.enum)}")
        if field.gate:
            parts.append(f".gate = Gate::{field.gate}")
        if field.root_only:
            parts.append(".root_only = true")
        if field.items:
            parts.append(f".item_api_version = {quote(field.items[0])}, .item_kind = {quote(field.items[1])}")
        return "{" + ", ".join(parts) + "}"

    def plan(self, field, named):
        """How the Protobuf codec reads the field, and when JSON omits it: see FieldPlan in types.h."""
        text, repeated, wrapped = field.type, False, False
        named_type = None
        if text.startswith("[]") or text.startswith("map["):
            repeated = True
            element = text[2:] if text.startswith("[]") else "bytes"
        else:
            _, _, named_type = self.resolve(text, named.package, named.where)
            if named_type is not None and named_type.keyword in ("list", "map") and not named_type.wrapped:
                repeated = True
                element = named_type.element if named_type.keyword == "list" else "bytes"
            wrapped = named_type is not None and named_type.wrapped
        shape = BASE[text][0] if text in BASE else named_type.shape if named_type is not None else None
        if not field.number:
            how = "kNone"
        elif repeated:
            how = {"int32": "kRepeatedVarint", "int64": "kRepeatedVarint", "bool": "kRepeatedVarint",
                   "double": "kRepeatedFixed64"}.get(element, "kRepeated")
        else:
            how = {"Bool": "kVarint", "Int32": "kVarint32", "Int64": "kVarint", "Double": "kFixed64",
                   "String": "kText", "Bytes": "kText"}.get(shape, "kMessage")
        if field.inlined:
            omit = "kShown"
        elif field.omit_zero and not field.pointer:
            omit = "kWhenEmpty"
        elif not field.omit_empty:
            omit = "kShown"
        elif field.pointer or repeated or wrapped:
            omit = "kWhenAbsent"
        elif shape in ("Bool", "Int32", "Int64", "Double", "String", "Bytes"):
            omit = "kWhenEmpty"
        elif shape == "Any":
            omit = "kWhenAbsent"
        else:
            omit = "kShown"  # omitempty has no effect on a struct.
        return how, omit

    def define(self, named):
        openapi = f"{named.package.openapi}.{named.name}" if named.package.openapi and named.keyword == "struct" else ""
        parts = [f".shape = Shape::{named.shape}, .name = {quote(named.full)}"]
        if openapi:
            parts.append(f".openapi_name = {quote(openapi)}")
        if named.fields:
            rows = [self.field(field, named) for field in named.fields]
            members = flatten(named, self.types)
            order = sorted(range(len(members)), key=lambda i: members[i][2].encode())
            numbered = [i for i, field in enumerate(named.fields) if field.number]
            by_number = sorted(numbered, key=lambda i: named.fields[i].number)
            at_number = [0] * (max((named.fields[i].number for i in numbered), default=-1) + 1)
            for i in numbered:
                at_number[named.fields[i].number] = i + 1
            self.lines.append(f"constinit const Field fields_{named.id}[{len(rows)}] = {{")
            self.lines += [f"    {row}," for row in rows]
            self.lines.append("};")
            pointers = ", ".join(f"&fields_{owner}[{i}]" for owner, i, _ in members)
            self.lines.append(f"constexpr const Field* members_{named.id}[] = {{{pointers}}};")
            self.lines.append(f"constexpr uint16_t names_{named.id}[] = {{{', '.join(map(str, order))}}};")
            parts.append(f".fields = fields_{named.id}, .members = members_{named.id}, "
                         f".members_by_name = names_{named.id}")
            plans = [self.plan(field, named) for field in named.fields]
            shown = sum(1 << i for i, (_, omit) in enumerate(plans) if omit == "kShown")
            gated = sum(1 << i for i, field in enumerate(named.fields) if field.gate)
            starts, start = [], 0
            for field in named.fields:
                starts.append(start)
                start += len(flatten(self.resolve(field.type, named.package, named.where)[2], self.types)) \
                    if field.inlined else 1
            body = ", ".join(f"{{FieldPlan::{how}, FieldPlan::{omit}}}" for how, omit in plans)
            self.lines.append(f"constexpr FieldPlan plan_{named.id}[] = {{{body}}};")
            self.lines.append(f"constexpr uint8_t starts_{named.id}[] = {{{', '.join(map(str, starts))}}};")
            if numbered:
                self.lines.append(f"constexpr uint8_t order_{named.id}[] = {{{', '.join(map(str, by_number))}}};")
                self.lines.append(f"constexpr uint8_t numbers_{named.id}[] = {{{', '.join(map(str, at_number))}}};")
                parts.append(f".fields_by_number = order_{named.id}, .field_at_number = numbers_{named.id}")
            parts.append(f".plan = plan_{named.id}, .member_starts = starts_{named.id}, .shown_fields = {shown}u")
            if gated:
                parts.append(f".gated_fields = {gated}u")
        if named.element:
            element, _, _ = self.type_expression(named.element, named.package, named.where)
            parts.append(f".element = {element}")
        if named.map_kind:
            parts.append(f".map_kind = MapKind::{named.map_kind}")
        if named.wrapped:
            parts.append(".wrapped = true")
        parts.append(f".go_name = {quote(named.go_name)}")
        if named.unions:
            rows = []
            for discriminator, pairs in named.unions:
                body = "{" + ", ".join(f"{{{quote(a)}, {quote(b)}}}" for a, b in pairs) + "}"
                rows.append(f"{{{quote(discriminator)}, {self.share('kUnionFields', 'Union::Field {}[]', body)}}}")
            parts.append(f".unions = {self.share('kUnions', 'Union {}[]', '{' + ', '.join(rows) + '}')}")
        self.lines.append(f"constinit const Type type_{named.id}{{{', '.join(parts)}}};")


def flatten(named, types):
    """Members as in JSON: (id of the owning struct, position in its fields, name)."""
    members = []
    for i, field in enumerate(named.fields):
        if field.inlined:
            inner = types[field.type if "." in field.type else f"{named.package.name}.{field.type}"]
            members += flatten(inner, types)
        else:
            members.append((named.id, i, field.name))
    names = [name for _, _, name in members]
    if len(set(names)) != len(names):
        raise CatalogError(f"{named.where}: {named.full} has two members of one name")
    return members


HEAD = """// Generated by catalog/compile.py from catalog/. Do not edit.
#include "catalog.inc"

namespace holdfast::types::catalog {
"""
TAIL = "}  // namespace holdfast::types::catalog\n"


def write(path, text):
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                os.utime(path)
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def resources_unit(unit, order, packages):
    rows = []
    for _, _, package in order:
        for r in package.resources:
            parts = [f".group = {quote(package.group)}, .version = {quote(package.version)}, "
                     f".plural = {quote(r.plural)}, .singular = {quote(r.singular)}, .kind = {quote(r.kind)}, "
                     f".namespaced = {str(r.namespaced).lower()}, .short_names = {unit.strings(r.short)}, "
                     f".categories = {unit.strings(r.categories)}, .verbs = {unit.strings(r.verbs)}"]
            if r.subresources:
                body = ", ".join(f"{{{quote(n)}, {quote(g)}, {quote(v)}, {quote(k)}, {unit.strings(verbs)}}}"
                                 for n, g, v, k, verbs in r.subresources)
                parts.append(f".subresources = {unit.share('kSubresources', 'Subresource {}[]', '{' + body + '}')}")
            if r.columns:
                body = ", ".join(f"{{.name = {quote(c.name)}, .type = {quote(c.type)}, .format = {quote(c.format)}, "
                                 f".description = {quote(c.description)}, .priority = {c.priority}}}" for c in r.columns)
                parts.append(f".columns = {unit.share('kColumns', 'Column {}[]', '{' + body + '}')}")
            full = f"{package.name}.{r.kind}"
            parts.append(f".type = &type_{unit.types[full].id}")
            if full + "List" in unit.types:
                parts.append(f".list_type = &type_{unit.types[full + 'List'].id}")
            if r.stored:
                prefix, group, version, as_json = r.stored
                parts.append(f".storage_group = {quote(group)}, .storage_version = {quote(version)}, "
                             f".storage_prefix = {quote(prefix)}, .stored_as_json = {str(as_json).lower()}")
            rows.append(("{" + ", ".join(parts) + "}", (package.group, package.version, r.plural, r.kind)))
    unit.lines.append(f"constinit const Resource resources[{len(rows)}] = {{")
    unit.lines += [f"    {row}," for row, _ in rows]
    unit.lines.append("};")
    by_plural = sorted(range(len(rows)), key=lambda i: (rows[i][1][2], rows[i][1][0], rows[i][1][1]))
    by_kind = sorted(range(len(rows)), key=lambda i: (rows[i][1][3], rows[i][1][0], rows[i][1][1]))
    unit.lines.append(f"const uint8_t resources_by_plural[{len(rows)}] = {{{', '.join(map(str, by_plural))}}};")
    unit.lines.append(f"const uint8_t resources_by_kind[{len(rows)}] = {{{', '.join(map(str, by_kind))}}};")
    return len(rows)


def load():
    """The catalog -> (packages by name, types by full name, served packages in order as (group, version, package))."""
    packages = {}
    for name in sorted(os.listdir(HERE)):
        if name.endswith(".types"):
            parse_file(os.path.join(HERE, name), packages)
    types = {}
    for package in packages.values():
        for named in package.types:
            if named.full in types:
                raise CatalogError(f"{named.where}: {named.full} is already defined at {types[named.full].where}")
            types[named.full] = named
    order = []
    with open(os.path.join(HERE, "groups"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                gv, package = line.split()
                order.append((*split_gv(gv), packages[package]))
    return packages, types, order


def main():
    out = sys.argv[1]
    packages, types, order = load()
    check_descriptions(packages)

    units = {name: Unit(types) for name in ("core", "groups", "machinery", "index")}
    for package in packages.values():
        unit = "core" if package.name == "core/v1" else "groups" if package.resources else "machinery"
        for named in package.types:
            units[unit].define(named)

    index = units["index"]
    for name, (shape, go_name) in BASE.items():
        index.lines.append(f"constinit const Type base_{name}{{.shape = Shape::{shape}, .go_name = {quote(go_name)}}};")
    ordered = sorted(types.values(), key=lambda named: named.full.encode())
    index.lines.append(f"const Type* const types[{len(ordered)}] = {{")
    index.lines += [f"    &type_{named.id}," for named in ordered]
    index.lines.append("};")
    openapi = [i for i, named in enumerate(ordered) if named.package.openapi and named.keyword == "struct"]
    openapi.sort(key=lambda i: f"{ordered[i].package.openapi}.{ordered[i].name}".encode())
    index.lines.append(f"const uint16_t types_by_openapi_name[{len(openapi)}] = {{{', '.join(map(str, openapi))}}};")
    resource_count = resources_unit(index, order, packages)

    header = ["// Generated by catalog/compile.py from catalog/. Do not edit.", "#pragma once",
              '#include "types/types.h"', "", "namespace holdfast::types::catalog {"]
    header += [f"extern const Type base_{name};" for name in BASE]
    for named in ordered:
        header.append(f"extern const Type type_{named.id};")
        if named.fields:
            header.append(f"extern const Field fields_{named.id}[{len(named.fields)}];")
    header += [f"extern const Type* const types[{len(ordered)}];",
               f"extern const uint16_t types_by_openapi_name[{len(openapi)}];",
               f"extern const Resource resources[{resource_count}];",
               f"extern const uint8_t resources_by_plural[{resource_count}];",
               f"extern const uint8_t resources_by_kind[{resource_count}];", TAIL]
    write(os.path.join(out, "catalog.inc"), "\n".join(header))
    for name, unit in units.items():
        write(os.path.join(out, f"catalog_{name}.cc"), HEAD + "\n".join(unit.lines) + "\n" + TAIL)
    write(os.path.join(out, "descriptions.txt"), "".join(
        line + "\n" for named in ordered for line in (named.description, *(field.description for field in named.fields))))


if __name__ == "__main__":
    try:
        main()
    except CatalogError as error:
        sys.exit(f"catalog: {error}")

"""Random CEL expressions, generated from a grammar of templates that covers every function and macro of Kubernetes' CEL.

A template has slots: {int} is replaced by an expression of that kind, {bool/x,y} by one that may use the local variables x
and y. Most expressions are well typed; occasionally a slot gets an expression of another kind, and some texts are damaged.
"""
import random
import re

TIMES = ["timestamp('2023-03-12T09:08:07.654Z')", "timestamp('1970-01-01T00:00:00+01:00')", "timestamp(1700000000)", "timestamp('0001-01-01T00:00:00Z')",
         "timestamp('9999-12-31T23:59:59.999999999Z')", "timestamp('2024-02-29T23:59:60Z')"]
ZONES = ["", "", "'UTC'", "'Asia/Tokyo'", "'America/New_York'", "'-03:30'", "'+14:00'", "'Nowhere/City'", "'5:30'", "s"]
REGEXES = ["'[a-z]+'", "'l+'", "'^h'", "'[0-9]+'", "'(a|b)*c'", "'('", "'\\\\d{2,}'", "'.'", "s", "r'\\w+'", "''"]
FORMATS = ["dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix",
           "labelValue", "uri", "uuid", "byte", "date", "datetime"]

# Expressions of each kind for when they must not become longer.
LEAVES = {
    "int": ["0", "1", "-7", "42", "i", "9223372036854775807", "-9223372036854775808", "0x1F", "2"],
    "uint": ["0u", "7u", "18446744073709551615u", "0xFu", "1u"],
    "double": ["0.0", "1.5", "-2.25", "1e300", "d", ".5", "1e-7", "3.0", "-0.0"],
    "string": ["''", "'a'", "'hello world'", "'äöü'", "s", "'1.2.3'", "'a,b,c'", "'12'", "o.s", "\"q'q\"", "r'\\n'", "'''t\nt'''", "'\\u00e9\\n\\x41\\101'", "'2023-03-12T09:08:07Z'",
               "'1h30m'", "'10.0.0.1'", "'::1'", "'true'", "'1.5'", "'.'", "' pad '", "'1e3'", "'-1'", "'Inf'", "'k'", "'日本語テキスト'", "'🎉'"],
    "bytes": ["b'abc'", "b'\\xff'", "b''", "b'\\u00e9'", "b'äöü'", "b\"x\""],
    "bool": ["true", "false", "b", "o.t"],
    "null": ["null", "z", "o.n"],
    "list": ["[]", "[1, 2, 3]", "l", "o.a.c", "['a', 'b']", "o.l", "[3, 1, 2, 1]", "[1.5, 0.5]", "[true, false]", "[[1], [2, 3]]", "['b', 'a', 'c']", "[1u, 2u]", "[null]"],
    "map": ["{}", "{'a': 1}", "m", "o.a", "{1: 'x'}", "{true: 1}", "{1u: 2}", "{'a': 1, 'b': 2}", "{'x': [1]}"],
    "time": TIMES,
    "span": ["duration('1h30m')", "duration('1.5s')", "duration('-3ms')", "duration('0s')", "duration('100h')", "duration('1ns')"],
    "optional": ["o.?a", "o.?x", "o.?a.?b", "optional.none()", "optional.of(1)", "m[?'k']", "l[?9]", "o.?a.b", "l[?0]", "o[?'s']"],
    "type": ["int", "uint", "double", "string", "bytes", "bool", "list", "map", "null_type", "type", "google.protobuf.Timestamp", "google.protobuf.Duration"],
    "dyn": ["o", "o.a", "o.a.b", "o.a.c", "o.s", "o.n", "o.t", "o.f", "o.l", "o.x", "o['a']", "o.l[0]", "o.l[0].k", "i", "s", "d", "b", "l", "m", "z", "o.e", "o.l[5]", "l['a']", "m[0]"],
    "quantity": ["quantity('1Gi')", "quantity('1500m')", "quantity('0')", "quantity('-2')", "quantity('1e3')", "quantity('0.5')"],
    "ip": ["ip('10.0.0.1')", "ip('::1')", "ip('224.0.0.1')", "ip('fe80::1')", "ip('127.0.0.1')", "ip('0.0.0.0')", "ip('2001:db8::abcd')", "ip('ff02::1')"],
    "cidr": ["cidr('10.0.0.0/8')", "cidr('::1/128')", "cidr('10.1.2.3/16')", "cidr('2001:db8::/32')", "cidr('0.0.0.0/0')"],
    "url": ["url('https://a.b/c?d=e')", "url('https://user:pw@[::1]:80/x%20y?a=1&a=2&b#f')", "url('/path')", "url('http://h:8080')"],
    "semver": ["semver('1.2.3-rc.1')", "semver('0.0.1')", "semver('1.2.3+build.5')", "semver('v1.2', true)", "semver('01.02.3', true)", "semver('10.20.30')"],
    "format": ["format." + name + "()" for name in FORMATS],
}

# How expressions are composed.
TEMPLATES = {
    "int": ["({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "-{int}", "-({int})", "({bool} ? {int} : {int})",
            "size({string})", "size({list})", "size({map})", "size({bytes})", "{string}.size()", "{list}.size()", "{map}.size()", "{bytes}.size()",
            "int({string})", "int({double})", "int({uint})", "int({time})", "int({int})", "int({span})",
            "{string}.indexOf({string})", "{string}.indexOf({string}, {int})", "{string}.lastIndexOf({string})", "{string}.lastIndexOf({string}, {int})",
            "{list}.sum()", "{list}.max()", "{list}.min()", "{list}.indexOf({any})", "{list}.lastIndexOf({any})", "{list}[{int}]", "{map}[{string}]",
            "{optional}.orValue({int})", "{optional}.value()",
            "{time}.getFullYear({zone})", "{time}.getMonth({zone})", "{time}.getDate({zone})", "{time}.getDayOfMonth({zone})", "{time}.getDayOfWeek({zone})",
            "{time}.getDayOfYear({zone})", "{time}.getHours({zone})", "{time}.getMinutes({zone})", "{time}.getSeconds({zone})", "{time}.getMilliseconds({zone})",
            "{span}.getHours()", "{span}.getMinutes()", "{span}.getSeconds()", "{span}.getMilliseconds()",
            "{quantity}.asInteger()", "{quantity}.compareTo({quantity})", "sign({quantity})", "{quantity}.sign()", "{semver}.major()", "{semver}.minor()", "{semver}.patch()",
            "{semver}.compareTo({semver})", "{ip}.family()", "{cidr}.prefixLength()"],
    "uint": ["({uint} + {uint})", "({uint} - {uint})", "({uint} * {uint})", "({uint} / {uint})", "({uint} % {uint})", "uint({int})", "uint({double})", "uint({string})", "uint({uint})"],
    "double": ["({double} + {double})", "({double} - {double})", "({double} * {double})", "({double} / {double})", "-({double})", "double({int})", "double({uint})", "double({string})",
               "double({double})", "[1.5, {double}].sum()", "{quantity}.asApproximateFloat()", "({bool} ? {double} : {double})"],
    "string": ["({string} + {string})", "string({int})", "string({uint})", "string({double})", "string({bool})", "string({bytes})", "string({time})", "string({span})", "string({string})",
               "string({ip})", "string({cidr})", "string({dyn})", "{string}.upperAscii()", "{string}.lowerAscii()", "{string}.trim()", "{string}.replace({string}, {string})",
               "{string}.replace({string}, {string}, {int})", "{string}.substring({int})", "{string}.substring({int}, {int})", "{string}.charAt({int})", "{list}.join()", "{list}.join({string})",
               "{string}.split({string}).join({string})", "'%s-%s'.format([{int}, {any}])", "'%d|%f|%.3f|%e|%x|%X|%o|%b|%%'.format([{int}, {double}, {double}, {double}, {int}, {string}, {int}, {bool}])",
               "'%s'.format([{any}])", "'%d %s'.format([{any}])", "'%x'.format([{any}])", "strings.quote({string})", "{string}.find({regex})", "({bool} ? {string} : {string})", "[{string}, {string}].join('/')",
               "{url}.getScheme()", "{url}.getHost()", "{url}.getHostname()", "{url}.getPort()", "{url}.getEscapedPath()", "{optional}.orValue({string})", "{map}[{int}]"],
    "bytes": ["bytes({string})", "({bytes} + {bytes})", "bytes({bytes})"],
    "bool": ["({int} {compare} {int})", "({string} {compare} {string})", "({double} {compare} {int})", "({uint} {compare} {int})", "({time} {compare} {time})", "({span} {compare} {span})",
             "({bool} {compare} {bool})", "({bytes} {compare} {bytes})", "({any} == {any})", "({any} != {any})", "({dyn} {compare} {dyn})", "({list} == {list})", "({map} == {map})", "({optional} == {optional})",
             "({type} == {type})", "(type({any}) == {type})", "({quantity} == {quantity})", "({semver} == {semver})", "({ip} == {ip})", "({url} == {url})", "({null} == {any})",
             "({bool} && {bool})", "({bool} || {bool})", "!{bool}", "!({bool})", "({bool} ? {bool} : {bool})", "bool({string})", "bool({bool})",
             "{string}.contains({string})", "{string}.startsWith({string})", "{string}.endsWith({string})", "{string}.matches({regex})", "matches({string}, {regex})",
             "({any} in {list})", "({string} in {map})", "({int} in {map})", "({int} in [1, 2, 3])", "has({select})",
             "{list}.all(x, {bool/x})", "{list}.exists(x, {bool/x})", "{list}.exists_one(x, {bool/x})", "{map}.all(x, {bool/x})", "{map}.exists(x, {bool/x})", "{map}.exists_one(x, {bool/x})",
             "{list}.all(k, x, {bool/k,x})", "{list}.exists(k, x, {bool/k,x})", "{list}.existsOne(k, x, {bool/k,x})", "{list}.exists_one(k, x, {bool/k,x})", "{map}.all(k, x, {bool/k,x})",
             "{map}.exists(k, x, {bool/k,x})", "{list}.isSorted()", "sets.contains({list}, {list})", "sets.equivalent({list}, {list})", "sets.intersects({list}, {list})",
             "{optional}.hasValue()", "isQuantity({string})", "{quantity}.isInteger()", "{quantity}.isGreaterThan({quantity})", "{quantity}.isLessThan({quantity})", "isIP({string})", "ip.isCanonical({string})",
             "{ip}.isUnspecified()", "{ip}.isLoopback()", "{ip}.isLinkLocalMulticast()", "{ip}.isLinkLocalUnicast()", "{ip}.isGlobalUnicast()", "isCIDR({string})", "{cidr}.containsIP({string})",
             "{cidr}.containsIP({ip})", "{cidr}.containsCIDR({string})", "{cidr}.containsCIDR({cidr})", "isURL({string})", "isSemver({string})", "isSemver({string}, {bool})", "{semver}.isGreaterThan({semver})",
             "{semver}.isLessThan({semver})", "{format}.validate({string}).hasValue()", "format.named({string}).hasValue()"],
    "list": ["[{int}, {int}]", "[{any}]", "[{string}, {string}]", "[{any}, {any}]", "({list} + {list})", "{list}.map(x, {any/x})", "{list}.map(x, {int/x})", "{list}.map(x, {bool/x}, {any/x})", "{map}.map(x, {any/x})",
             "{list}.filter(x, {bool/x})", "{list}.transformList(k, x, {any/k,x})", "{list}.transformList(k, x, {bool/k,x}, {any/k,x})", "{list}.sort()", "{list}.reverse()", "{list}.distinct()", "{list}.slice({int}, {int})",
             "{list}.slice(0, {int})", "[{list}, {list}].flatten()", "{list}.flatten()", "{list}.flatten({int})", "lists.range({small})", "{string}.split({string})", "{string}.split({string}, {int})",
             "{string}.findAll({regex})", "{string}.findAll({regex}, {int})", "{list}.sortBy(x, {int/x})", "{list}.sortBy(x, {string/x})", "{list}.sortBy(x, x)", "[?{sure}]", "[{int}, ?{sure}]",
             "({bool} ? {list} : {list})", "{optional}.orValue({list})", "{format}.validate({string}).orValue([])", "optional.unwrap([{optional}])", "[{optional}, {optional}].unwrapOpt()"],
    "map": ["{'k': {any}}", "{{string}: {int}}", "{{int}: {any}}", "{'a': {any}, 'b': {any}}", "{list}.transformMap(k, x, {any/k,x})", "{list}.transformMap(k, x, {bool/k,x}, {any/k,x})",
            "{map}.transformMap(k, x, {any/k,x})", "{list}.transformMapEntry(k, x, {k: {any/k,x}})", "{list}.transformMapEntry(k, x, {bool/k,x}, {{string/k,x}: {any/k,x}})", "{?'q': {sure}}", "{'p': {int}, ?'q': {sure}}",
            "{url}.getQuery()", "{optional}.orValue({map})", "({bool} ? {map} : {map})"],
    "time": ["({time} + {span})", "({time} - {span})", "({span} + {time})", "timestamp({string})", "timestamp({int})", "timestamp({time})"],
    "span": ["({span} + {span})", "({span} - {span})", "({time} - {time})", "duration({string})", "duration({span})", "-({span})"],
    "optional": ["optional.of({any})", "optional.ofNonZeroValue({any})", "{optional}.or({optional})", "{optional}.optMap(x, {any/x})", "{optional}.optFlatMap(x, {optional/x})", "{list}.first()", "{list}.last()",
                 "{map}[?{string}]", "{list}[?{int}]", "{dyn}.?a", "({bool} ? {optional} : {optional})", "format.named({string})"],
    "type": ["type({any})"],
    "null": ["dyn(null)"],
    "dyn": ["dyn({any})", "{dyn}.a", "{dyn}[{any}]", "({bool} ? {dyn} : {dyn})", "{list}[{int}].k"],
    "quantity": ["quantity({string})", "{quantity}.add({quantity})", "{quantity}.add({int})", "{quantity}.sub({quantity})", "{quantity}.sub({int})"],
    "ip": ["ip({string})", "{cidr}.ip()"],
    "cidr": ["cidr({string})", "{cidr}.masked()"],
    "url": ["url({string})"],
    "semver": ["semver({string})", "semver({string}, {bool})"],
    "format": ["format.named({string}).value()"],
}

# Additional expressions for mutating policies.
MUTATION_LEAVES = {
    "object": ["Object{}", "Object{spec: Object.spec{}}", "Object.spec{a: 1}", "Object{a: null}"],
    "patch": ["JSONPatch{}", "JSONPatch{op: 'add', path: '/a', value: 1}", "JSONPatch{op: 'remove', path: '/a/b'}", "JSONPatch{op: 'move', from: '/a', path: '/b'}"],
}
MUTATION_TEMPLATES = {
    "object": ["Object{spec: Object.spec{replicas: {any}}}", "Object{a: {any}, b: {any}}", "Object{spec: {object}}", "Object{items: [Object.items{name: {string}}, Object.items{name: {string}, v: {any}}]}",
               "Object{?a: {sure}}", "({bool} ? {object} : {object})", "Object{l: {list}, m: {map}}", "Object{spec: Object.wrong{a: {int}}}", "Object{metadata: Object.metadata{labels: {map}}}"],
    "patch": ["JSONPatch{op: {string}, path: {string}, value: {any}}", "JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey({string}), value: {object}}", "JSONPatch{op: 'copy', from: {string}, path: {string}}",
              "JSONPatch{?value: {sure}}"],
    "string": ["jsonpatch.escapeKey({string})", "{patch}.op", "{patch}.path", "{patch}.from"],
    "bool": ["has({object}.a)", "has({patch}.value)", "({object} == {object})", "({patch} == {patch})"],
    "dyn": ["{object}.spec", "{object}.a", "JSONPatch{value: {any}}.value"],
    "list": ["[{patch}, {patch}]", "[{object}]"],
}

SELECTS = ["o.a", "o.x", "o.a.b", "o.a.z", "o.n", "m.k", "o.s.q", "o.?a.b", "o.l[0].k", "{'a': 1}.a", "{'a': 1}.b"]
SLOT = re.compile(r"\{([a-z]+)(?:/([a-z,]+))?\}")


class Maker:
    """Generates expressions. `leaves` adds expressions for existing variables; `plain` excludes the usual variables."""

    def __init__(self, rng, mutation=False, leaves=None, plain=False):
        self.rng = rng
        self.locals = []
        self.selects = SELECTS if not plain else ["{'a': 1}.a"]
        self.leaves = {kind: list(texts) for kind, texts in LEAVES.items()}
        self.templates = {kind: list(texts) for kind, texts in TEMPLATES.items()}
        if plain:
            for kind, texts in self.leaves.items():
                self.leaves[kind] = [text for text in texts if not re.match(r"[oisdblmz](?![\w'\"])", text)]
            self.leaves["dyn"] = ["dyn(1)", "dyn('a')", "dyn([1])"]
            self.leaves["optional"] = ["optional.none()", "optional.of(1)"]
        if mutation:
            self.leaves.update(MUTATION_LEAVES)
            for kind, texts in MUTATION_TEMPLATES.items():
                self.templates[kind] = self.templates.get(kind, []) + texts * (4 if kind in LEAVES else 1)
        for kind, texts in (leaves or {}).items():
            self.leaves[kind] = self.leaves.get(kind, []) + texts * (1 + 2 * len(LEAVES.get(kind, [])) // len(texts))
        if plain and leaves:
            self.selects = [text for texts in leaves.values() for text in texts if "." in text and text[-1] not in ")]"] or self.selects
        self.plain = plain

    def kinds(self):
        return list(self.templates)

    def make(self, kind, depth):
        """An expression of this kind; a greater depth makes it longer."""
        if kind == "any":
            kind = self.rng.choice(self.kinds())
        elif kind == "zone":
            zone = self.rng.choice(ZONES)
            return "'UTC'" if zone == "s" and self.plain else zone
        elif kind == "regex":
            regex = self.rng.choice(REGEXES)
            return "'a+'" if regex == "s" and self.plain else regex
        elif kind == "compare":
            return self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        elif kind == "sure":
            # Always of an optional type: the upstream checker panics on optional elements of other types.
            return self.rng.choice(self.leaves["optional"] + [self.fill("optional.of({any})", depth - 1)])
        elif kind == "small":
            return str(self.rng.randrange(6))
        elif kind == "select":
            return self.rng.choice(self.selects)
        elif self.rng.random() < 0.05:
            kind = self.rng.choice(self.kinds())
        if depth <= 0 or self.rng.random() < 0.1:
            leaves = self.leaves[kind]
            if self.locals and self.rng.random() < 0.5:
                leaves = self.locals
            return self.rng.choice(leaves)
        return self.fill(self.rng.choice(self.templates[kind]), depth - 1)

    def fill(self, template, depth):
        def slot(match):
            names = match.group(2).split(",") if match.group(2) else []
            self.locals += names
            text = self.make(match.group(1), depth)
            if names:
                del self.locals[-len(names):]
            return text
        return SLOT.sub(slot, template)

    def damaged(self, text):
        """With a token removed, duplicated, swapped or changed."""
        tokens = re.findall(r"\w+|'[^']*'|\s+|[^\w\s]", text)
        at = self.rng.randrange(len(tokens))
        how = self.rng.randrange(5)
        if how == 0:
            del tokens[at]
        elif how == 1:
            tokens.insert(at, tokens[at])
        elif how == 2:
            other = self.rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif how == 3:
            tokens[at] = self.rng.choice(["in", "null", "(", ")", "]", "}", "?", ":", ",", ".", "'", "1", "x", "+", "&&", "@", "$", "=", "has", "as", "1.", "0x", "b", "\"", "//", "`a`"])
        else:
            tokens.insert(at, self.rng.choice(["(", ")", "[", ".", ",", "?", "!", "-", "1", "x", "'a", "{"]))
        return "".join(tokens)


def every_template(mutation=False):
    """One expression per template, so that each function and macro is covered even if few are requested."""
    rng = random.Random(0)
    maker = Maker(rng, mutation)
    return [maker.fill(template, 0) for kind in maker.kinds() for template in maker.templates[kind]]


VARIABLES = [
    {"o": {"a": {"b": 1, "c": [1, 2, 3]}, "s": "text", "n": None, "t": True, "f": 1.5, "l": [{"k": "x", "v": 1}, {"k": "y", "v": 2}], "e": {}},
     "i": 3, "s": "hello", "d": 2.5, "b": False, "l": [3, 1, 2], "m": {"k": "v"}, "z": None},
    {"o": {"a": {"b": "x", "c": []}, "s": "", "n": None, "t": False, "f": -0.0, "l": [], "e": None, "x": {"y": [[]]}},
     "i": -9223372036854775808, "s": "ünïcödé", "d": 1e300, "b": True, "l": ["b", "a"], "m": {}, "z": None},
    {"o": {"a": [1], "s": 5, "n": 0, "t": "true", "f": 3, "l": {"k": 1}, "e": {"a": {"a": {"a": 1}}}},
     "i": 0, "s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "d": 0.1, "b": True, "l": [1, "a", None, 2.5, True, {"k": 1}], "m": {"a": {"k": 2}, "k": [1]}, "z": None},
]

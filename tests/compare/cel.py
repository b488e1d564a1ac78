#!/usr/bin/env python3
"""cel.py HOLDFAST ORACLE [--count N] [--seed N]: random CEL expressions, evaluated by `holdfast cel --json-lines` and by an
oracle that answers the same lines with Kubernetes' own CEL. Prints where value, type, error, cost or estimate differ.

Map order is random in Go, so expressions whose answer depends on it are not made. Skips when the oracle is not there.
"""
import argparse
import json
import os
import random
import subprocess
import sys

VARIABLES = {
    "o": {"a": {"b": 1, "c": [1, 2, 3]}, "s": "text", "n": None, "t": True, "f": 1.5, "l": [{"k": "x", "v": 1}, {"k": "y", "v": 2}], "e": {}},
    "i": 3, "s": "hello", "d": 2.5, "b": False, "l": [3, 1, 2], "m": {"k": "v"}, "z": None,
}


class Maker:
    """Makes expressions that are mostly well typed, and sometimes not."""

    def __init__(self, rng):
        self.rng = rng
        self.locals = []

    def pick(self, *options):
        return self.rng.choice(options)

    def any(self, depth):
        return getattr(self, self.pick("int_", "string_", "bool_", "list_", "map_", "double_", "dyn_", "uint_", "bytes_", "time_", "span_", "opaque_", "optional_"))(depth)

    def wanted(self, kind, depth):
        # One time in fifteen something else.
        return self.any(depth) if self.rng.random() < 0.07 else getattr(self, kind + "_")(depth)

    def dyn_(self, depth):
        choices = ["o", "o.a", "o.a.b", "o.a.c", "o.s", "o.n", "o.t", "o.f", "o.l", "o.x", "o['a']", "o.l[0]", "o.l[0].k", "i", "s", "d", "b", "l", "m", "z", "o.e"]
        if self.locals:
            choices += self.locals * 4
        return self.pick(*choices)

    def int_(self, depth):
        if depth <= 0:
            return self.pick("0", "1", "-7", "42", "i", "9223372036854775807")
        w = lambda k: self.wanted(k, depth - 1)
        return self.pick(
            lambda: f"({w('int')} {self.pick('+', '-', '*', '/', '%')} {w('int')})", lambda: f"size({w('string')})", lambda: f"{w('list')}.size()",
            lambda: f"int({w(self.pick('string', 'double', 'uint', 'time', 'span'))})", lambda: f"-{w('int')}", lambda: f"({w('bool')} ? {w('int')} : {w('int')})",
            lambda: f"{w('string')}.indexOf({w('string')})", lambda: f"{w('string')}.lastIndexOf({w('string')})", lambda: f"{w('list')}.sum()", lambda: f"{w('list')}.max()",
            lambda: f"{w('list')}.min()", lambda: f"{w('time')}.{self.pick('getFullYear', 'getMonth', 'getDayOfWeek', 'getHours', 'getMinutes', 'getDate', 'getDayOfYear')}({self.pick('', '', chr(39) + 'Asia/Tokyo' + chr(39), chr(39) + '-03:30' + chr(39))})",
            lambda: f"{w('span')}.{self.pick('getHours', 'getSeconds', 'getMilliseconds')}()", lambda: f"{w('list')}[{w('int')}]", lambda: f"{w('optional')}.orValue({w('int')})",
            lambda: f"{w('list')}.indexOf({w('int')})", lambda: f"semver('1.{self.rng.randrange(9)}.3').minor()", lambda: f"quantity('{self.pick('1', '2Ki', '1500m')}').{self.pick('asInteger()', 'compareTo(quantity(' + chr(39) + '1' + chr(39) + '))')}",
        )()

    def uint_(self, depth):
        return self.pick("0u", "7u", "18446744073709551615u", f"uint({self.int_(depth - 1)})" if depth > 0 else "1u", f"({self.uint_(depth - 1)} {self.pick('+', '-', '*', '/')} 3u)" if depth > 0 else "2u")

    def double_(self, depth):
        if depth <= 0:
            return self.pick("0.0", "1.5", "-2.25", "1e300", "d")
        return self.pick(lambda: f"({self.wanted('double', depth - 1)} {self.pick('+', '-', '*', '/')} {self.wanted('double', depth - 1)})", lambda: f"double({self.wanted(self.pick('int', 'string', 'uint'), depth - 1)})", lambda: f"[1.5, {self.double_(depth - 1)}].sum()")()

    def string_(self, depth):
        if depth <= 0:
            return self.pick("''", "'a'", "'hello world'", "'äöü'", "s", "'1.2.3'", "'a,b,c'", "'12'", "o.s")
        w = lambda k: self.wanted(k, depth - 1)
        return self.pick(
            lambda: f"({w('string')} + {w('string')})", lambda: f"string({w(self.pick('int', 'double', 'bool', 'uint', 'time', 'span', 'bytes'))})", lambda: f"{w('string')}.{self.pick('upperAscii', 'lowerAscii', 'trim')}()",
            lambda: f"{w('string')}.replace({w('string')}, {w('string')})", lambda: f"{w('string')}.substring({w('int')})", lambda: f"{w('string')}.charAt({w('int')})",
            lambda: f"{w('string')}.split({w('string')}).join({w('string')})", lambda: f"'%s-%s'.format([{w('int')}, {w('any_kind')}])", lambda: f"strings.quote({w('string')})",
            lambda: f"{w('string')}.find({self.pick(chr(39) + '[a-z]+' + chr(39), chr(39) + 'l+' + chr(39), 's')})", lambda: f"({w('bool')} ? {w('string')} : {w('string')})", lambda: f"[{w('string')}, {w('string')}].join('/')",
        )()

    def any_kind_(self, depth):
        return self.any(depth)

    def bytes_(self, depth):
        return self.pick("b'abc'", "b'\\xff'", f"bytes({self.string_(depth - 1)})" if depth > 0 else "b''")

    def bool_(self, depth):
        if depth <= 0:
            return self.pick("true", "false", "b", "o.t")
        w = lambda k: self.wanted(k, depth - 1)
        compare = lambda: self.pick("==", "!=", "<", "<=", ">", ">=")
        return self.pick(
            lambda: f"({w('int')} {compare()} {w('int')})", lambda: f"({w('string')} {compare()} {w('string')})", lambda: f"({w('bool')} && {w('bool')})", lambda: f"({w('bool')} || {w('bool')})", lambda: f"!{w('bool')}",
            lambda: f"({w('double')} {compare()} {w('int')})", lambda: f"{w('string')}.{self.pick('contains', 'startsWith', 'endsWith')}({w('string')})", lambda: f"{w('string')}.matches({self.pick(chr(39) + '^h' + chr(39), chr(39) + '[0-9]+' + chr(39), 's')})",
            lambda: self.quantifier(depth), lambda: f"({w('int')} in {w('list')})", lambda: f"({w('string')} in {w('map')})", lambda: f"has({self.pick('o.a', 'o.x', 'o.a.b', 'o.a.z', 'o.n', 'm.k', 'o.s.q')})",
            lambda: f"({w('list')} == {w('list')})", lambda: f"({w('map')} == {w('map')})", lambda: f"{w('list')}.isSorted()", lambda: f"sets.{self.pick('contains', 'equivalent', 'intersects')}({w('list')}, {w('list')})",
            lambda: f"{w('optional')}.hasValue()", lambda: f"(type({self.any(depth - 1)}) == {self.pick('int', 'string', 'list', 'map')})", lambda: f"isQuantity({w('string')})", lambda: f"isIP({w('string')})", lambda: f"isURL({w('string')})",
            lambda: f"isSemver({w('string')})", lambda: f"cidr('10.0.0.0/8').containsIP('{self.pick('10.1.1.1', '11.1.1.1')}')", lambda: f"({self.dyn_(0)} {compare()} {self.dyn_(0)})", lambda: f"({w('time')} < {w('time')})", lambda: f"({w('span')} {compare()} {w('span')})",
            lambda: f"format.{self.pick('dns1123Label', 'labelValue', 'uuid', 'date', 'qualifiedName')}().validate({w('string')}).hasValue()",
        )()

    def scoped(self, names, make):
        self.locals += names
        text = make()
        del self.locals[-len(names):]
        return text

    def quantifier(self, depth):
        name, second = self.pick("x", "y"), self.pick("v", "w")
        if self.rng.random() < 0.3:
            return f"{self.wanted('list', depth - 1)}.{self.pick('all', 'exists', 'existsOne', 'exists_one')}({name}, {second}, {self.scoped([name, second], lambda: self.wanted('bool', depth - 1))})"
        return f"{self.wanted(self.pick('list', 'list', 'map'), depth - 1)}.{self.pick('all', 'exists', 'exists_one')}({name}, {self.scoped([name], lambda: self.wanted('bool', depth - 1))})"

    def list_(self, depth):
        if depth <= 0:
            return self.pick("[]", "[1, 2, 3]", "l", "o.a.c", "['a', 'b']", "o.l")
        w = lambda k: self.wanted(k, depth - 1)
        name = self.pick("x", "y")
        return self.pick(
            lambda: f"[{w('int')}, {w('int')}]", lambda: f"({w('list')} + {w('list')})", lambda: f"{w('list')}.map({name}, {self.scoped([name], lambda: w('int'))})", lambda: f"{w('list')}.filter({name}, {self.scoped([name], lambda: w('bool'))})",
            lambda: f"{w('list')}.map({name}, {self.scoped([name], lambda: w('bool'))}, {self.scoped([name], lambda: self.any(depth - 1))})", lambda: f"{w('list')}.transformList(k, {name}, {self.scoped(['k', name], lambda: self.any(depth - 1))})",
            lambda: f"{w('list')}.{self.pick('sort', 'reverse', 'distinct')}()", lambda: f"{w('list')}.slice({w('int')}, {w('int')})", lambda: f"[{w('list')}, {w('list')}].flatten()", lambda: f"lists.range({self.rng.randrange(6)})",
            lambda: f"{w('string')}.split({w('string')})", lambda: f"{w('string')}.findAll('[a-z]')", lambda: f"{w('list')}.sortBy({name}, {self.scoped([name], lambda: w('int'))})", lambda: f"[?{w('optional')}]", lambda: f"({w('bool')} ? {w('list')} : {w('list')})",
        )()

    def map_(self, depth):
        if depth <= 0:
            return self.pick("{}", "{'a': 1}", "m", "o.a", "{1: 'x'}")
        w = lambda k: self.wanted(k, depth - 1)
        return self.pick(lambda: f"{{'k': {self.any(depth - 1)}}}", lambda: f"{{{w('string')}: {w('int')}}}", lambda: f"{w('list')}.transformMap(i, x, {self.scoped(['i', 'x'], lambda: self.any(depth - 1))})", lambda: f"{{?'q': {w('optional')}}}")()

    def time_(self, depth):
        base = self.pick("timestamp('2023-03-12T09:08:07.654Z')", "timestamp('1970-01-01T00:00:00+01:00')", "timestamp(1700000000)")
        return base if depth <= 0 else f"({base} {self.pick('+', '-')} {self.wanted('span', depth - 1)})"

    def span_(self, depth):
        base = self.pick("duration('1h30m')", "duration('1.5s')", "duration('-3ms')")
        return base if depth <= 0 else self.pick(base, f"({base} + {self.span_(depth - 1)})", f"({self.time_(depth - 1)} - {self.time_(0)})")

    def opaque_(self, depth):
        return self.pick("quantity('1Gi')", "ip('10.0.0.1')", "cidr('10.0.0.0/8')", "url('https://a.b/c?d=e')", "semver('1.2.3-rc.1')", "format.uri()", f"quantity({self.string_(0)})", f"ip({self.string_(0)})", f"semver({self.string_(0)}, true)")

    def optional_(self, depth):
        if depth <= 0:
            return self.pick("o.?a", "o.?x", "o.?a.?b", "optional.none()", "optional.of(1)", "m[?'k']", "l[?9]", "o.?a.b")
        w = lambda k: self.wanted(k, depth - 1)
        return self.pick(lambda: f"optional.of({self.any(depth - 1)})", lambda: f"optional.ofNonZeroValue({self.any(depth - 1)})", lambda: f"{w('optional')}.or({w('optional')})", lambda: f"{w('optional')}.optMap(x, {self.scoped(['x'], lambda: self.any(depth - 1))})",
                         lambda: f"{w('optional')}.optFlatMap(x, {self.scoped(['x'], lambda: w('optional'))})", lambda: f"{w('list')}.{self.pick('first', 'last')}()")()


def answers(command, lines):
    """The answer to each line; a program that ends on a line is started again behind it."""
    out, at = [], 0
    while at < len(lines):
        done = subprocess.run(command, input="\n".join(lines[at:]) + "\n", capture_output=True, text=True)
        got = [line for line in done.stdout.split("\n") if line]
        out += got
        at += len(got)
        if at < len(lines):
            out.append(json.dumps({"ended": done.returncode}))
            at += 1
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("oracle", help="program that answers lines on its standard input")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    if not os.access(options.oracle, os.X_OK):
        print("cel.py: skipped: there is no oracle", options.oracle)
        return 0
    rng = random.Random(options.seed)
    lines, variables = [], json.dumps(VARIABLES)
    for _ in range(options.count):
        maker = Maker(rng)
        expression = maker.any(rng.randrange(1, 4))
        lines.append('{"expr": %s, "vars": %s}' % (json.dumps(expression), variables))
    differing = 0
    for start in range(0, len(lines), 5000):
        part = lines[start:start + 5000]
        ours = answers([options.holdfast, "cel", "--json-lines"], part)
        theirs = answers([options.oracle], part)
        for line, a, b in zip(part, ours, theirs):
            if "ended" in b or json.loads(a) == json.loads(b):
                continue
            differing += 1
            if differing <= options.show:
                print(json.loads(line)["expr"], "\n  holdfast", a[:500], "\n  oracle  ", b[:500])
    print(f"cel.py: {len(lines)} expressions, seed {options.seed}: {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

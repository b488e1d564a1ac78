#!/usr/bin/env python3
"""cel_conformance.py HOLDFAST ORACLE [--suite FOLDER]: the public conformance tests of CEL (cel-spec, tests/simple),
evaluated by `holdfast cel --json-lines` and by an oracle that runs Kubernetes' own CEL on the same lines. Prints differences
in value, type, error, compile error, cost or estimate, and expected values that the oracle has and Holdfast does not.

What Kubernetes' CEL lacks (the suite's own messages, math, cel.bind) must be rejected with the same message. The suite is
taken from its Go module. Excluded are tests with variables that cannot be
represented in JSON, and those with Protobuf's well-known messages (docs/differences.md).
"""
import argparse
import base64
import json
import math
import os
import pathlib
import re
import subprocess
import sys

from cel import answers, normal, verdicts

MODULE = "cel.dev/expr@v0.25.1"
TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<word>[-+\w./]+)|(?P<sign>[{}\[\]<>:,;])""", re.S)


class Text:
    """A message in Protobuf's text format, as {field: [values]}."""

    def __init__(self, text):
        self.tokens = [(match.lastgroup, match.group()) for match in TOKEN.finditer(text) if match.lastgroup]
        self.at = 0

    def peek(self):
        return self.tokens[self.at][1] if self.at < len(self.tokens) else None

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def message(self, end=None):
        fields = {}
        while self.peek() != end:
            kind, name = self.take()
            if name == "[":  # The name of an extension or of an Any's type.
                name = self.take()[1]
                self.take()
            if self.peek() == ":":
                self.take()
            fields.setdefault(name, []).extend(self.values())
            if self.peek() in (",", ";"):
                self.take()
        if end:
            self.take()
        return fields

    def values(self):
        if self.peek() != "[":
            return [self.value()]
        self.take()
        found = []
        while self.peek() != "]":
            if self.peek() == ",":
                self.take()
            else:
                found.append(self.value())
        self.take()
        return found

    def value(self):
        kind, text = self.take()
        if text == "{":
            return self.message("}")
        if kind != "string":
            return text
        data = unescaped(text)
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "string":
            data += unescaped(self.take()[1])
        return data


def unescaped(literal):
    """The bytes of a string literal."""
    simple = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}

    def one(match):
        text = match.group(1).decode()
        if text[0] in "xX":
            return bytes([int(text[1:], 16)])
        if text[0] in "uU":
            return chr(int(text[1:], 16)).encode()
        if text[0] in "01234567":
            return bytes([int(text, 8) & 255])
        return simple.get(text, text.encode())
    return re.sub(rb"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", one, literal[1:-1].encode(), flags=re.S)


def number(text):
    return float(text)  # Including inf and nan.


class NotHere(Exception):
    """A value of a type that Kubernetes' CEL lacks, or that JSON cannot represent."""


def as_json(value):
    (kind, (inner, *_)), = value.items()
    if kind == "int64_value":
        return int(inner)
    if kind == "double_value":
        return number(inner)
    if kind == "string_value":
        return inner.decode()
    if kind == "bool_value":
        return inner == "true"
    if kind == "null_value":
        return None
    if kind == "list_value":
        return [as_json(item) for item in inner.get("values", [])]
    if kind == "map_value":
        return {as_json(entry["key"][0]): as_json(entry["value"][0]) for entry in inner.get("entries", [])}
    raise NotHere


def as_shown(value):
    """In the form used by the answers."""
    (kind, (inner, *_)), = value.items()
    if kind in ("int64_value", "uint64_value"):
        return {"int" if kind == "int64_value" else "uint": int(inner)}
    if kind == "double_value":
        held = number(inner)
        return {"double": held if math.isfinite(held) else "NaN" if math.isnan(held) else "+Inf" if held > 0 else "-Inf"}
    if kind == "string_value":
        return {"string": inner.decode()}
    if kind == "bytes_value":
        return {"bytes": base64.b64encode(inner).decode()}
    if kind == "bool_value":
        return {"bool": inner == "true"}
    if kind == "null_value":
        return {"null": None}
    if kind == "type_value":
        return {"type": inner.decode()}
    if kind == "list_value":
        return {"list": [as_shown(item) for item in inner.get("values", [])]}
    if kind == "map_value":
        pairs = [[as_shown(entry["key"][0]), as_shown(entry["value"][0])] for entry in inner.get("entries", [])]
        return {"map": sorted(pairs, key=json.dumps)}
    raise NotHere


def same_value(shown, wanted):
    if isinstance(shown, dict) and shown.keys() == {"map"} and "map" in wanted:
        return sorted(shown["map"], key=json.dumps) == wanted["map"]
    return shown == wanted


def tests_of(folder):
    """(name, query line, expected value or None)"""
    for path in sorted(folder.glob("*.textproto")):
        for section in Text(path.read_text()).message().get("section", []):
            for test in section.get("test", []):
                name = "/".join([path.stem, section["name"][0].decode(), test["name"][0].decode()])
                try:
                    variables = {}
                    for binding in test.get("bindings", []):
                        variables[binding["key"][0].decode()] = as_json(binding["value"][0]["value"][0])
                except NotHere:
                    continue
                if b"google.protobuf." in test["expr"][0]:
                    continue
                try:
                    wanted = as_shown(test["value"][0]) if "value" in test else None
                except NotHere:
                    wanted = None
                yield name, json.dumps({"expr": test["expr"][0].decode(), "vars": variables}), wanted


def suite():
    """The directory of the tests, or None if go is missing or cannot fetch them."""
    try:
        found = subprocess.run(["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, check=True, cwd="/")
    except (OSError, subprocess.CalledProcessError):
        return None
    return pathlib.Path(json.loads(found.stdout)["Dir"]) / "tests/simple/testdata"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("oracle", help="program that answers lines on its standard input")
    parser.add_argument("--suite", type=pathlib.Path, help="folder of *.textproto (default: from " + MODULE + ")")
    options = parser.parse_args()
    folder = options.suite or suite()
    if folder is None or not os.access(options.oracle, os.X_OK):
        sys.exit("cel_conformance.py: there is no " + ("suite (is Go installed?)" if folder is None else f"program {options.oracle} to compare with"))
    tests = list(tests_of(folder))
    lines = [line for _, line, _ in tests]
    ours, theirs = answers([options.holdfast, "cel", "--json-lines"], lines), answers([options.oracle], lines)
    differing = met = missed = 0
    suspects = [i for i in range(len(tests)) if normal(ours[i]) != normal(theirs[i])]
    asked = verdicts([options.oracle], *([all_of[i] for i in suspects] for all_of in (lines, ours, theirs)))
    real = {i for i, verdict in zip(suspects, asked) if verdict == "differs"}
    for i, ((name, line, wanted), our, their) in enumerate(zip(tests, ours, theirs)):
        if i in real:
            differing += 1
            print(name, json.loads(line)["expr"], "\n  holdfast", our, "\n  oracle  ", their)
        if wanted is not None and same_value(json.loads(their).get("value"), wanted):
            met += 1
            if not same_value(json.loads(our).get("value"), wanted):
                missed += 1
                print(name, "wants", wanted, "\n  holdfast", our)
    print(f"cel_conformance.py: {len(tests)} tests: {differing} differ from the oracle; of {met} expected values that the oracle has, {missed} differ here")
    return 1 if differing or missed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that every place that ends the process, and every fixed capacity, is listed in fatal.txt with the reason why no
data from outside reaches it.

A failed assertion ends the server and, if stored data caused it, ends it again at every start. So whoever adds one says why
it cannot fail whatever a client sends, the store contains, or another server answers; what can fail is a Result.

Listed are assertions, calls that end the process, arrays whose length is a named constant, and numbers of 16 bits.
fatal_test.py --list prints what is not listed yet, in the form of the file.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "fatal.txt"
ENDINGS = re.compile(r"(?<![\w.>:])(?:std::|::)?(assert|abort|terminate|quick_exit|_exit|exit|__builtin_trap|__builtin_unreachable|unreachable)\(")
CAPACITIES = (
    re.compile(r"\b\w+(?:<[^;=()]*>)?[*&]? +(\w+)\[[\w:]*\bk[A-Z]\w*[^\]]*\](?=;| =|\{)"),
    re.compile(r"\bstd::array<[^;(]*\bk[A-Z]\w*[^;(]*>+ (\w+)(?=;|\{|,| =)"),
    re.compile(r"\bstatic_cast<uint16_t>\("),
)
CONSTANT = re.compile(r"\bconstexpr\b|\bstatic const\b|\breturn\b")


def is_test_code(file):
    return re.search(r"_(test|fuzz|bench)\.cc$", file.name) or re.search(r"testing|^test_|crash_child|fault_fs", file.stem)


def up_to_end(text, begin):
    """From `begin` to the parenthesis that closes the first one, in one line."""
    depth = 0
    for at in range(text.index("(", begin), len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return " ".join(text[begin:at + 1].split())
    raise AssertionError("unbalanced parentheses")


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found.group(0)), text, flags=re.S)


def found_in(file):
    text = without_comments(file.read_text())
    for match in ENDINGS.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if match.group(1) == "assert" or not re.search(r"^\s*(\[\[\w+\]\] )?(static |inline )*[\w:]+ $", line) or "return" in line:
            yield up_to_end(text, match.start())
    for pattern in CAPACITIES[:2]:
        for match in pattern.finditer(text):
            begin, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            if not CONSTANT.search(text[begin:end]):
                yield " ".join(match.group(0).split())
    for match in CAPACITIES[2].finditer(text):
        yield up_to_end(text, match.start())


def listed():
    """{file: {entry: reason}}"""
    out, here = {}, None
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            here = out.setdefault(line.strip(), {})
            continue
        entry, separator, reason = line.strip().partition("  -- ")
        assert separator and reason.strip() and here is not None, f"{LIST.name}:{number}: no reason"
        here[entry] = reason
    return out


def main():
    known, problems, missing = listed(), [], {}
    for file in sorted((ROOT / "src").rglob("*")):
        if file.suffix not in (".h", ".cc") or is_test_code(file):
            continue
        name = str(file.relative_to(ROOT))
        entries = known.pop(name, {})
        found = set(found_in(file))
        if found - set(entries):
            missing[name] = sorted(found - set(entries))
        problems += [f"{name}: `{entry}` is listed, but no longer there" for entry in sorted(set(entries) - found)]
    problems += [f"{name} is listed, but has nothing to list" for name in known]
    if sys.argv[1:] == ["--list"]:
        for name, entries in missing.items():
            print(name)
            for entry in entries:
                print(f"  {entry}  -- ")
        return 0
    problems += [f"{name}: `{entry}` needs an entry in {LIST.name} that says why no data reaches it"
                 for name, entries in missing.items() for entry in entries]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

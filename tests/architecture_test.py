#!/usr/bin/env python3
"""Checks that the modules conform to their CMake files.

A module may include its own headers and the public headers of the modules in its USES; it must include every module in its
USES somewhere; modules use only modules listed before them in the top-level CMakeLists.txt.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# These wait for their own tasks: a connection for its handlers, a client for its connections, a cache for its feed.
OWNERS_OF_TASKS = {"src/net/stream.cc", "src/net/client.cc", "src/cache/cache.cc"}
# Hash tables whose string keys come from the server itself, or from an administrator with one object per key: collisions
# need not be unpredictable.
OWN_KEYS = {"src/api/api.cc", "src/cel/checker.cc", "src/cel/environment.h", "src/cel/estimate.cc", "src/cel/functions.h", "src/cel/library.cc",
            "src/cel/program.cc", "src/policy/index.h", "src/resource/registry.h"}
KEYWORDS = {"SOURCES", "USES", "LINKS", "TESTS", "TEST_LINKS", "FUZZ", "BENCH", "BENCH_LINKS"}


def declared_modules():
    modules = {}
    for file in sorted((ROOT / "src").glob("*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", file.read_text())
        for call in re.findall(r"\bmodule\(([^)]*)\)", text):
            words = call.split()
            uses, keyword = [], None
            for word in words[1:]:
                if word in KEYWORDS:
                    keyword = word
                elif keyword == "USES":
                    uses.append(word)
            modules[words[0]] = uses
    return modules


def module_order():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"foreach\(module ([^)]*)\)", text).group(1).split()


def is_public(module, header):
    """The header named after the module, the headers that it includes, and every header of base."""
    if module == "base" or header == f"{module}/{module}.h":
        return True
    public = (ROOT / "src" / module / f"{module}.h").read_text()
    return f'#include "{header}"' in public


def missing_names():
    """Names in ARCHITECTURE.md that the sources do not contain: paths, functions `name()`, types and constants."""
    sources = "\n".join(file.read_text() for file in sorted((ROOT / "src").rglob("*")) if file.suffix in (".h", ".cc"))
    builds = "\n".join(file.read_text() for file in sorted(ROOT.glob("src/*/CMakeLists.txt")) + sorted(ROOT.glob("cmake/*.cmake")))
    words = set(re.findall(r"\w+", sources + builds))
    defined = set(re.findall(r"\b(\w+)\(", sources))
    for name in re.findall(r"`([^`\n]+)`", (ROOT / "ARCHITECTURE.md").read_text()):
        if "/" in name:
            if not (ROOT / name).exists() and not (ROOT / "src" / name).exists():
                yield name
        elif name.endswith("()"):
            parts = name[:-2].split("::")
            qualified = len(parts) == 1 or re.search(rf"\b{parts[-2]}::{parts[-1]}\(", sources) or (
                re.search(rf"\bnamespace holdfast::{parts[-2]}\b", sources) or re.search(rf"\b(class|struct) {parts[-2]}\b", sources))
            if parts[-1] not in defined or not qualified:
                yield name
        elif re.fullmatch(r"[A-Z]\w*", name) or "_" in name:
            if name not in words and not (ROOT / "src" / name).is_dir():
                yield name


def main():
    modules, order, problems = declared_modules(), module_order(), []
    for module, uses in modules.items():
        if module not in order:
            problems.append(f"{module}: not in the list of modules in CMakeLists.txt")
            continue
        for used in uses:
            if used not in order or order.index(used) >= order.index(module):
                problems.append(f"{module} USES {used}, which is not listed before it")
        included = set()
        for file in sorted((ROOT / "src" / module).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            test_code = re.search(r"_(test|fuzz|bench)\.cc$", file.name) or re.search(r"testing|^test_", file.stem)
            # Every task is awaited by its owner: see base/task_group.h. (Tasks of the client library share ownership of what
            # they use.)
            if not test_code and module not in ("base", "client") and re.search(r"(?<![\w.>])spawn\(", file.read_text()):
                if str(file.relative_to(ROOT)) not in OWNERS_OF_TASKS:
                    problems.append(f"{file.relative_to(ROOT)} starts a task without a TaskGroup")
            # Keys from outside: collisions must be unpredictable (base/hash.h). The client and the command line trust their
            # server.
            if not test_code and module not in ("client", "cli", "applygen") and str(file.relative_to(ROOT)) not in OWN_KEYS:
                for table in re.findall(r"unordered_(?:map|set)<std::string[^;\n]*", file.read_text()):
                    if "KeyHash" not in table:
                        problems.append(f"{file.relative_to(ROOT)} has a hash table with string keys without KeyHash: {table}")
            for header in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
                owner = header.split("/")[0]
                if owner == module or owner not in modules:
                    continue
                if not test_code:
                    included.add(owner)
                    if owner not in uses:
                        problems.append(f"{file.relative_to(ROOT)} includes {header}, but {module} does not USE {owner}")
                    elif not is_public(owner, header):
                        problems.append(f"{file.relative_to(ROOT)} includes {header}, which is private to {owner}")
        for used in uses:
            if used not in included:
                problems.append(f"{module} USES {used} without including it")
    problems += [f"ARCHITECTURE.md names {name}, which does not exist" for name in missing_names()]
    for problem in problems:
        print(problem)
    print(f"{len(modules)} modules, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

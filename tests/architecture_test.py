#!/usr/bin/env python3
"""Checks that the modules conform to their CMake files.

A module may include its own headers and the public headers of the modules in its USES; it must include every module in its
USES somewhere; modules use only modules listed before them by their group or by groups listed before it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# These wait for their own tasks: a connection for its handlers, a client for its connections, a cache for its feed.
OWNERS_OF_TASKS = {"src/network/net/stream.cc", "src/network/net/client.cc", "src/storage/cache/cache.cc"}
# Hash tables whose string keys come from the server itself, or from an administrator with one object per key: collisions
# need not be unpredictable.
OWN_KEYS = {"src/serving/api/api.cc", "src/kube/cel/checker.cc", "src/kube/cel/environment.h", "src/kube/cel/estimate.cc", "src/kube/cel/functions.h", "src/kube/cel/library.cc",
            "src/kube/cel/program.cc", "src/kube/policy/index.h", "src/serving/resource/registry.h"}
KEYWORDS = {"PUBLIC", "SOURCES", "USES", "LINKS", "TESTS", "TEST_LINKS", "FUZZ", "BENCH", "BENCH_LINKS"}


class Module:
    """One call of module() in src/GROUP/NAME/CMakeLists.txt."""

    def __init__(self, folder, words):
        self.folder, self.name = folder, words[0]
        self.lists, keyword = {}, None
        for word in words[1:]:
            if word in KEYWORDS:
                keyword = self.lists.setdefault(word, [])
            else:
                keyword.append(word)

    @property
    def uses(self):
        return self.lists.get("USES", [])

    def is_public(self, header):
        return self.name == "base" or header in self.lists.get("PUBLIC", [])


def module_folders():
    """The folders of the modules, in dependency order: groups from the top-level CMakeLists.txt, modules from each group's."""
    groups = re.search(r"foreach\(group ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text()).group(1).split()
    for group in groups:
        for name in re.findall(r"^add_subdirectory\((\w+)\)", (ROOT / "src" / group / "CMakeLists.txt").read_text(), re.M):
            yield ROOT / "src" / group / name


def declared_modules():
    modules = {}
    for folder in module_folders():
        text = re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text())
        for call in re.findall(r"\bmodule\(([^)]*)\)", text):
            module = Module(folder, call.split())
            modules[module.name] = module
    return modules


def missing_names():
    """Names in ARCHITECTURE.md that the sources do not contain: paths, functions `name()`, types and constants."""
    sources = "\n".join(file.read_text() for file in sorted((ROOT / "src").rglob("*")) if file.suffix in (".h", ".cc"))
    builds = "\n".join(file.read_text() for file in sorted(ROOT.glob("src/*/*/CMakeLists.txt")) + sorted(ROOT.glob("cmake/*.cmake")))
    words = set(re.findall(r"\w+", sources + builds))
    defined = set(re.findall(r"\b(\w+)\(", sources))
    for name in re.findall(r"`([^`\n]+)`", (ROOT / "ARCHITECTURE.md").read_text()):
        if "/" in name:
            if not (ROOT / name).exists() and not any((ROOT / "src").glob("*/" + name)):
                yield name
        elif name.endswith("()"):
            parts = name[:-2].split("::")
            qualified = len(parts) == 1 or re.search(rf"\b{parts[-2]}::{parts[-1]}\(", sources) or (
                re.search(rf"\bnamespace holdfast::{parts[-2]}\b", sources) or re.search(rf"\b(class|struct) {parts[-2]}\b", sources))
            if parts[-1] not in defined or not qualified:
                yield name
        elif re.fullmatch(r"[A-Z]\w*", name) or "_" in name:
            if name not in words and not any((ROOT / "src").glob("*/" + name)):
                yield name


def main():
    modules, problems = declared_modules(), []
    order = list(modules)
    for file in (ROOT / "src").glob("*/*/CMakeLists.txt"):
        if file.parent.name not in modules:
            problems.append(f"{file.parent.relative_to(ROOT)}: not listed by its group's CMakeLists.txt")
    for module, declared in modules.items():
        uses = declared.uses
        for header in declared.lists.get("PUBLIC", []):
            if not (declared.folder / header).exists():
                problems.append(f"{module}: PUBLIC names {header}, which does not exist")
        for used in uses:
            if used not in order or order.index(used) >= order.index(module):
                problems.append(f"{module} USES {used}, which is not listed before it")
        included = set()
        for file in sorted(declared.folder.rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            test_code = re.search(r"_(test|fuzz|bench)\.cc$", file.name) or re.search(r"testing|^test_", file.stem)
            # Every task is awaited by its owner: see base/task_group.h. (Tasks of the client library share ownership of what
            # they use.)
            if not test_code and module not in ("base", "client") and re.search(r"(?<![\w.>])spawn\(", file.read_text()):
                if str(file.relative_to(ROOT)) not in OWNERS_OF_TASKS:
                    problems.append(f"{file.relative_to(ROOT)} starts a task without a TaskGroup")
            # Text of others is never raw on a terminal (cli/terminal.h). Exempt: programs that talk to no server.
            if not test_code and module == "cli" and file.name not in ("terminal.cc", "store.cc", "with.cc", "assets.cc", "documentation.cc", "etcd_stand_in.cc", "kube_apiserver.cc"):
                for call in re.findall(r"(?<![\w.>])(?:f?printf|f?puts|f?putc|fwrite)\(", file.read_text()):
                    problems.append(f"{file.relative_to(ROOT)} calls {call[:-1]} instead of the functions of cli/terminal.h")
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
                    elif not modules[owner].is_public(header.removeprefix(owner + "/")):
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

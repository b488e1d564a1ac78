#!/usr/bin/env python3
"""Holds the rooms to what their CMake files declare.

A room may include its own headers and the public headers of the rooms in its USES; everything it USES it must
include somewhere; rooms use only rooms that stand before them in the list of the top CMakeLists.txt.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYWORDS = {"SOURCES", "USES", "LINKS", "TESTS", "TEST_LINKS", "FUZZ", "BENCH", "BENCH_LINKS"}


def declared_rooms():
    rooms = {}
    for file in sorted((ROOT / "src").glob("*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", file.read_text())
        for call in re.findall(r"\broom\(([^)]*)\)", text):
            words = call.split()
            uses, keyword = [], None
            for word in words[1:]:
                if word in KEYWORDS:
                    keyword = word
                elif keyword == "USES":
                    uses.append(word)
            rooms[words[0]] = uses
    return rooms


def room_order():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"foreach\(room ([^)]*)\)", text).group(1).split()


def is_public(room, header):
    """The header named after the room, the headers that one includes, and every header of base."""
    if room == "base" or header == f"{room}/{room}.h":
        return True
    public = (ROOT / "src" / room / f"{room}.h").read_text()
    return f'#include "{header}"' in public


def main():
    rooms, order, problems = declared_rooms(), room_order(), []
    for room, uses in rooms.items():
        if room not in order:
            problems.append(f"{room}: not in the list of rooms in CMakeLists.txt")
            continue
        for used in uses:
            if used not in order or order.index(used) >= order.index(room):
                problems.append(f"{room} USES {used}, which does not stand before it")
        included = set()
        for file in sorted((ROOT / "src" / room).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            test_code = re.search(r"_(test|fuzz|bench)\.cc$", file.name) or re.search(r"testing|^test_", file.stem)
            for header in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
                owner = header.split("/")[0]
                if owner == room or owner not in rooms:
                    continue
                if not test_code:
                    included.add(owner)
                    if owner not in uses:
                        problems.append(f"{file.relative_to(ROOT)} includes {header}, but {room} does not USE {owner}")
                    elif not is_public(owner, header):
                        problems.append(f"{file.relative_to(ROOT)} includes {header}, which is private to {owner}")
        for used in uses:
            if used not in included:
                problems.append(f"{room} USES {used} without including it")
    for problem in problems:
        print(problem)
    print(f"{len(rooms)} rooms, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

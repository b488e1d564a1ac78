#!/usr/bin/env python3
"""docs/proposals.md names, for each statement of the proposals, where it holds and a test that shows it: both must exist, and the
test must be one that runs."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/proposals.md"


def texts(pattern, *folders):
    return {path: path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob(pattern))}


def split_row(line):
    """The cells of a table row; \\| is part of a cell."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


class Tests:
    def __init__(self):
        self.googletest, self.go = set(), set()
        for text in texts("*_test.cc", "src", "tests").values():
            self.googletest |= {f"{suite}.{case}" for suite, case in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", text, re.M)}
        for text in texts("*_test.go", "clients/go").values():
            self.go |= set(re.findall(r"^func (Test\w+)\(", text, re.M))
        self.python = texts("*_test.py", "tests")
        self.scenarios = texts("*.yaml", "tests/scenario")
        self.registered = (ROOT / "tests/CMakeLists.txt").read_text()

    def problem(self, name):
        """What is wrong with the name of a test; None if it exists and runs."""
        if match := re.fullmatch(r"([\w/]+\.py): (\w+)", name):
            found = [(path, text) for path, text in self.python.items() if path.name == match[1]]
            if len(found) != 1:
                return f"{len(found)} files are named {match[1]}"
            path, text = found[0]
            # Defined, and named once more: called, or in the list of parts. unittest finds its cases by their names.
            if not re.search(rf"^ *def {match[2]}\(", text, re.M):
                return f"{match[1]} has no function {match[2]}"
            if not match[2].startswith("test_") and len(re.findall(rf"\b{match[2]}\b", text)) < 2:
                return f"{match[1]} does not call {match[2]}"
            names = (path.name, path.stem.removesuffix("_test"))
            return None if any(re.search(rf"\b{re.escape(n)}\b", self.registered) for n in names) else f"{match[1]} is not registered"
        if match := re.fullmatch(r"([\w/]+\.yaml): (.+)", name):
            found = [text for path, text in self.scenarios.items() if f"/{path.relative_to(ROOT)}".endswith(f"/{match[1]}")]
            if not any(re.search(rf"^story: {re.escape(match[2])}$", text, re.M) for text in found):
                return "there is no such story"
            return None
        if re.fullmatch(r"Test\w+", name):
            return None if name in self.go else "clients/go has no such test"
        return None if name in self.googletest else "there is no such test"


def check(page, tests):
    problems, statements = [], 0
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("| ") or line.startswith(("| ---", "| statement ")):
            continue
        cells = split_row(line)
        if len(cells) != 4:
            problems.append(f"{PAGE}:{number}: {len(cells)} cells instead of 4")
            continue
        statements += 1
        _, where, shown, _ = cells
        named = re.findall(r"`([^`]+)`", shown)
        if not named and "](" not in shown:
            problems.append(f"{PAGE}:{number}: no test")
        problems += [f"{PAGE}:{number}: {name}: {problem}" for name in named if (problem := tests.problem(name))]
        files = re.findall(r"`([^`]+)`", where)
        problems += [f"{PAGE}:{number}: {file} does not exist" for file in files if not (ROOT / file).is_file()]
        if not files:
            problems.append(f"{PAGE}:{number}: no file")
    if statements == 0:
        problems.append(f"{PAGE} has no statements")
    return problems, statements


def check_itself(tests):
    """Mistakes are found."""
    row = "| A statement | {} | {} | |\n"
    good = row.format("`dev`", "`AuditTest.TheFirstMatchingRuleDecides`")
    assert check(good, tests) == ([], 1), check(good, tests)
    for where, shown in (("`dev`", "`AuditTest.NoSuchCase`"), ("`dev`", "`unset_test.py: no_such_part`"), ("`dev`", "`no_such_test.py: sharing`"), ("`dev`", "TestNothing"),
                         ("`dev`", "`TestNoSuchGoTest`"), ("`dev`", "`unset.yaml: no such story`"), ("`src/nothing.cc`", "`AuditTest.TheFirstMatchingRuleDecides`"), ("", "`TestIn`")):
        assert len(check(row.format(where, shown), tests)[0]) == 1, (where, shown)


if __name__ == "__main__":
    known = Tests()
    check_itself(known)
    found, count = check((ROOT / PAGE).read_text(), known)
    print("\n".join(found) or f"{count} statements name tests and files that exist")
    sys.exit(bool(found))

#!/usr/bin/env python3
"""cel.py HOLDFAST ORACLE [--count N] [--schemas N] [--seed N]: random CEL expressions and schemas with rules, evaluated by
`holdfast cel --json-lines` and by an oracle that runs Kubernetes' own CEL on the same lines. Prints differences in value,
type, error, compile error, cost or estimate.

Map order is random in Go: if answers vary between runs of the oracle, any of them is accepted, and if Holdfast has yet
another one the line counts as not compared.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys

from cel_expressions import VARIABLES, Maker, every_template
from cel_schemas import SchemaMaker


def answers(command, lines):
    """The answer to each line; a program that exits on a line is restarted with the next one."""
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


def expression_lines(rng, count):
    """A quarter of them in the environment of mutating policies."""
    lines = [{"expr": text} for text in every_template()] + [{"expr": text, "mutation": True} for text in every_template(mutation=True)]
    while len(lines) < count:
        mutation = rng.random() < 0.25
        maker = Maker(rng, mutation)
        text = maker.make("any", rng.randrange(1, 5))
        if rng.random() < 0.02:
            text = maker.damaged(text)
        lines.append({"expr": text, **({"mutation": True} if mutation else {})})
    return [json.dumps({**line, "vars": rng.choice(VARIABLES)}) for line in lines]


def normal(answer):
    """Removes irrelevant differences: addresses, names of types (which contain a random number in Kubernetes), and the order
    of errors that depends on map order."""
    answer = json.loads(re.sub(r"selfType\d+", "selfType", re.sub(r"0x[0-9a-f]{8,}", "0x0", answer)))
    return {**answer, "errors": sorted(answer["errors"])} if "errors" in answer else answer


def verdicts(oracle, lines, ours, first):
    """Classifies answers that differ from the oracle's first ones: `same` if the oracle also gives them when asked again
    (results that depend on map order change), `unstable` if it gives several others, or `differs`."""
    again = [first] + ([answers(oracle, lines) for _ in range(6)] if lines else [])
    for i, our in enumerate(ours):
        known = [normal(run[i]) for run in again]
        if normal(our) in known:
            yield "same"
        else:
            yield "unstable" if "ended" in known[0] or any(one != known[0] for one in known) else "differs"


def compare(options, lines, name):
    differing, unstable = 0, 0
    for start in range(0, len(lines), 5000):
        part = lines[start:start + 5000]
        ours = answers([options.holdfast, "cel", "--json-lines"], part)
        theirs = answers([options.oracle], part)
        suspects = [i for i in range(len(part)) if normal(ours[i]) != normal(theirs[i])]
        asked = verdicts([options.oracle], *([all_of[i] for i in suspects] for all_of in (part, ours, theirs)))
        for i, verdict in zip(suspects, asked):
            unstable += verdict == "unstable"
            if verdict != "differs":
                continue
            differing += 1
            if differing <= options.show:
                query = json.loads(part[i])
                print(query.get("expr") or json.dumps(query), "\n  holdfast", ours[i][:1500], "\n  oracle  ", theirs[i][:1500])
    print(f"cel.py: {len(lines)} {name}, seed {options.seed}: {differing} differ, {unstable} not compared")
    return differing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("oracle", help="program that answers lines on its standard input")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--schemas", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    if not os.access(options.oracle, os.X_OK):
        sys.exit(f"cel.py: there is no program {options.oracle} to compare with")
    rng = random.Random(options.seed)
    differing = compare(options, expression_lines(rng, options.count), "expressions") if options.count else 0
    if options.schemas:
        differing += compare(options, [json.dumps(SchemaMaker(rng).query()) for _ in range(options.schemas)], "schemas")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Prints descriptions of the catalog chosen at random, to be read against the code: sample.py SEED [COUNT]

The same seed chooses the same places as long as the catalog has the same types, fields and columns."""
import random
import sys

from catalog import load


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 150
    described = load()[3]
    chosen = sorted(random.Random(seed).sample(range(len(described)), min(count, len(described))))
    for number, index in enumerate(chosen, 1):
        what, thing = described[index]
        kind = f" : {thing.type}" if hasattr(thing, "type") else ""
        print(f"{number}. {thing.where}: {what}{kind}\n   {thing.description}")


if __name__ == "__main__":
    main()

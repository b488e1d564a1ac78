#!/usr/bin/env python3
"""Checks the spelling of the catalog's descriptions with hunspell. Part of ./dev lint. Exits with 77 if there is no hunspell.

Names of kinds and what stands in backquotes is not checked; words.txt has the other words that hunspell does not know."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from catalog import FOLDER, load

sys.path.insert(0, str(FOLDER.parent / "tests"))
import needs  # noqa: E402

WORDS = pathlib.Path(__file__).resolve().parent / "words.txt"


def plain(text):
    """Without what is in backquotes, and without addresses, paths and numbers with units."""
    return re.sub(r"`[^`]*`|\$\S+|\S*[./_@=]\w\S*|\S*\d\S*|\S*[a-z]=\S*", " ", text)


def main():
    if shutil.which("hunspell") is None:
        needs.skip("hunspell is not installed", "./dev setup && ./dev lint")
    packages, types, _, described = load()
    kinds = {resource.kind for package in packages.values() for resource in package.resources} | {named.name for named in types.values()}
    known = set(WORDS.read_text().split())
    where = {}
    for what, thing in described:
        for word in re.findall(r"[A-Za-z]+(?:'[a-z]+)?", plain(thing.description)):
            where.setdefault(word, f"{thing.where}: {what}")
    asked = [word for word in where if (base := re.sub(r"'s$", "", word)) not in kinds and base.removesuffix("s") not in kinds and base not in known]
    checked = subprocess.run(["hunspell", "-d", "en_US", "-i", "utf-8", "-l"], input="\n".join(asked), text=True, capture_output=True,
                             env={**os.environ, "LC_ALL": "C.UTF-8"})
    if checked.returncode != 0 or "Can't open" in checked.stderr:
        needs.skip("hunspell has no American dictionary", "./dev setup && ./dev lint")
    wrong = [word for word in checked.stdout.split() if word in where]
    for word in wrong:
        print(f"{where[word]}: {word!r}: misspelt, or missing in {WORDS.name}")
    unused = known - {re.sub(r"'s$", "", word) for word in where} - set(where)
    for word in sorted(unused):
        print(f"{WORDS.name}: no description has {word!r}")
    print(f"{len(where)} words, {len(wrong)} unknown")
    return 1 if wrong or unused else 0


if __name__ == "__main__":
    sys.exit(main())

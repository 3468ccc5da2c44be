#!/usr/bin/env python3
"""Checks that sources and docs use no phrase of tools/phrases.txt, whether or not it is broken over lines."""
import bisect
import itertools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = "tools/phrases.txt"
PLACES = "qkv python web/src web/tests docs bench examples tests cmake tools run test README.md CONTRIBUTING.md CHANGELOG.md"
COMMENT = re.compile(r"^\s*(///?|#|\*|--)?\s*")  # what a continued comment begins with


def phrases():
    """Pairs of a regular expression and what to write instead, separated by ' => '."""
    for line in (ROOT / LIST).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, better = line.split(" => ")
            yield re.compile(pattern), better


def problems():
    known = list(phrases())
    names = subprocess.run(["git", "ls-files", *PLACES.split()], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in names.stdout.splitlines():
        if name == LIST or "/fixtures/" in name or name.endswith(".svg"):
            continue
        try:
            lines = [COMMENT.sub("", line) for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
        text = " ".join(lines)
        for pattern, better in known:
            for found in pattern.finditer(text):
                number = bisect.bisect_right(starts, found.start())
                yield f"{name}:{number}: '{found.group(0)}': {better}"


def main():
    found = list(problems())
    for line in found:
        print(line, file=sys.stderr)
    print(f"phrases: {len(found)} problems")
    return 1 if found else 0


sys.exit(main())

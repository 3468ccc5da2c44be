#!/usr/bin/env python3
"""Checks that every C++ block of docs/CPP.md is part of a file in examples/, which is built and run by ./test."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "CPP.md"


def lines_of(text):
    """Lines without indentation and without trailing comments, so that a quote may be cut out of a function."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def holds(lines, quote):
    return any(lines[i : i + len(quote)] == quote for i in range(len(lines) - len(quote) + 1))


def main():
    sources = [lines_of(p.read_text(encoding="utf-8")) for p in (ROOT / "examples").rglob("*.[ch]*") if p.is_file()]
    blocks = re.findall(r"^```cpp\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.S | re.M)
    missing = [block for block in blocks if not any(holds(lines, lines_of(block)) for lines in sources)]
    for block in missing:
        print(f"{GUIDE.relative_to(ROOT)}: no example holds this block:\n{block}", file=sys.stderr)
    print(f"guide: {len(blocks)} blocks, {len(missing)} not in examples/")
    return 1 if missing or not blocks else 0


sys.exit(main())

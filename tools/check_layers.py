#!/usr/bin/env python3
"""Checks that each layer includes only the layers before it, and that only kernels/ names Highway and only io/json.cc parses JSON."""
import pathlib
import re
import sys

LAYERS = "base kernels core ops nn optim models io figures data tasks train study view report lab routes serve app".split()
ROOT = pathlib.Path(__file__).resolve().parent.parent
JSON_PARSE = re.compile(r"\bjson::(parse|accept|from_\w+)\(", re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def problems():
    for path in sorted((ROOT / "qkv").rglob("*.*")):
        if path.suffix not in (".h", ".cc") or path.parent == ROOT / "qkv":
            continue
        layer = path.relative_to(ROOT / "qkv").parts[0]
        name = path.relative_to(ROOT)
        if layer not in LAYERS:
            yield f"{name}: unknown layer '{layer}'"
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or not lines[0].startswith("//"):
            yield f"{name}:1: a file opens with one sentence about it"
        for number, line in enumerate(lines, 1):
            if JSON_PARSE.search(line) and name != pathlib.Path("qkv/io/json.cc"):
                yield f"{name}:{number}: JSON is parsed by qkv/io/json.h alone"
            found = INCLUDE.match(line)
            if not found:
                continue
            target = found.group(1)
            if target.startswith("hwy/") and layer != "kernels":
                yield f"{name}:{number}: only kernels/ may include Highway"
            if target.startswith("qkv/") and target.count("/") > 1:
                other = target.split("/")[1]
                if other not in LAYERS or LAYERS.index(other) > LAYERS.index(layer):
                    yield f"{name}:{number}: {layer}/ may not include {other}/"


def main():
    found = list(problems())
    for line in found:
        print(line, file=sys.stderr)
    print(f"layers: {len(found)} problems")
    return 1 if found else 0


sys.exit(main())

#!/usr/bin/env python3
"""Checks what docs/ARCHITECTURE.md says of the folders of qkv/: each includes only those before it, and none includes
what it does not know. Only one place names each outside library, and only io/json.cc parses JSON."""
import pathlib
import re
import sys

LAYERS = """base kernels core ops nn optim models io dist figures data tasks train study runs view report lab routes serve
app""".split()
# Earlier folders that a folder does not know, the last column of the table there. "tasks/" means the folders and
# files of single tasks.
UNKNOWN = {
    "optim": "nn",
    "io": "nn optim models",
    "dist": "kernels ops nn optim models io",
    "figures": "kernels core ops nn optim models io dist",
    "data": "kernels core ops nn optim models dist figures",
    "tasks": "optim",
    "train": "models data tasks/",
    "view": "kernels core ops nn optim models dist data tasks train study runs",
    "lab": "optim models dist data tasks train study runs",
    "routes": "kernels ops optim models dist data study view",
    "serve": "kernels core ops nn optim models dist data study view report",
}
TASK_FACE = {"tasks/task.h", "tasks/metrics.h", "tasks/prediction.h", "tasks/recordings.h", "tasks/rollout.h"}
# Single files that need a little of what their folder does not know.
EXCEPTIONS = {
    ("tasks/training_settings.cc", "optim"): "the names of optimizers and schedules are choices of options",
}
# Outside libraries by how their headers begin, and who may include them.
OUTSIDE = {
    "hwy/": ["kernels/"],
    "nlohmann/": ["io/json.h", "io/json_fwd.h", "app/bench"],
    "cairo": ["view/pictures.cc"],
    "pango/": ["view/pictures.cc"],
    "glib": [],
    "zlib.h": ["data/inflate.cc"],
    "sentencepiece": ["data/sentencepiece_tokenizer.cc"],
    "microhttpd.h": ["serve/"],
    "sys/socket.h": ["serve/"],
    "CLI/": ["app/cli.cc"],
    "mpi": [],
}
ROOT = pathlib.Path(__file__).resolve().parent.parent
BARE_AXIS = re.compile(r"\.[xy] = \{\.")
JSON_PARSE = re.compile(r"\bjson::(parse|accept|from_\w+)\(", re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def fault(file, layer, target):
    """Why qkv/`file` may not include `target`; None when it may."""
    for library, users in OUTSIDE.items():
        if target.startswith(library) and not any(file.startswith(user) for user in users):
            return f"only {', '.join(users) or 'nobody'} may include {library}"
    if not target.startswith("qkv/") or target.count("/") < 2:
        return None
    header = target.removeprefix("qkv/")
    other = header.split("/")[0]
    if other not in LAYERS or LAYERS.index(other) > LAYERS.index(layer):
        return f"{layer}/ may not include {other}/, which comes after it"
    unknown = UNKNOWN.get(layer, "").split()
    if (file, other) not in EXCEPTIONS and other in unknown:
        return f"{layer}/ does not know {other}/"
    if other + "/" in unknown and header not in TASK_FACE:
        return f"{layer}/ does not know single tasks: {header}"
    return None


def problems():
    for path in sorted((ROOT / "qkv").rglob("*.*")):
        if path.suffix not in (".h", ".cc") or path.parent == ROOT / "qkv":
            continue
        name = path.relative_to(ROOT)
        file = path.relative_to(ROOT / "qkv").as_posix()
        layer = file.split("/")[0]
        if layer not in LAYERS:
            yield f"{name}: unknown layer '{layer}'"
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or not lines[0].startswith("//"):
            yield f"{name}:1: a file opens with one sentence about it"
        for number, line in enumerate(lines, 1):
            if JSON_PARSE.search(line) and file != "io/json.cc":
                yield f"{name}:{number}: JSON is parsed by qkv/io/json.h alone"
            if BARE_AXIS.search(line):
                yield f"{name}:{number}: name the type, Axis{{...}}: else g++ 12 frees it twice when a later member throws"
            found = INCLUDE.match(line)
            reason = found and fault(file, layer, found.group(1))
            if reason:
                yield f"{name}:{number}: {reason}"


def main():
    found = list(problems())
    for line in found:
        print(line, file=sys.stderr)
    print(f"layers: {len(found)} problems")
    return 1 if found else 0


sys.exit(main())

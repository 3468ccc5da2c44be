#!/usr/bin/env python3
"""Checks with Doxygen that every public class and function is documented; --html FOLDER also writes the pages there.

What the comment of a class or enumeration covers needs none of its own: fields, values, constructors, destructors,
operators, overrides, getters without arguments, the visit() and forward() of a module. A function right below a
documented one of the same name shares its comment.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARNING = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): (?:warning: )?(?P<text>.*)$")
MEMBER = re.compile(r"Member (?P<name>\S+?)(?P<arguments>\(.*\).*)? \((?P<kind>[\w ]+)\) of")


def public_headers():
    text = (ROOT / "qkv" / "qkv.h").read_text(encoding="utf-8")
    return ["qkv/qkv.h", "qkv/runs.h", "qkv/tasks/prediction.h"] + re.findall(r'^#include "(qkv/.*)"$', text, re.M)


def called(line):
    """The name of the function a line declares."""
    found = re.search(r"([A-Za-z_]\w*)\(", line)
    return found.group(1) if found else None


def needs_no_comment(path, number, text):
    member = MEMBER.match(text)
    if not member:
        return False
    kind, name, arguments = member["kind"], member["name"], member["arguments"] or ""
    if kind in ("variable", "enumvalue", "friend", "macro definition"):
        return True
    if name.startswith(("operator", "~")) or "=delete" in arguments or "=default" in arguments or "override" in arguments:
        return True
    if name in ("visit", "forward") or name == re.search(r"(\w+) is not documented", text)[1]:
        return True
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    declaration = lines[number - 1]
    if "= default" in declaration or "= delete" in declaration:
        return True
    if re.match(r"\(\) const|\(\)$", arguments) and ("const" in arguments or "{ return " in declaration):
        return True
    above = number - 2
    while above >= 0 and lines[above].startswith("   "):  # the rest of a declaration of several lines
        above -= 1
    return called(lines[above]) == name.split("::")[-1]


def run_doxygen(output, html):
    settings = (ROOT / "docs" / "Doxyfile").read_text(encoding="utf-8")
    settings += f"\nINPUT = {' '.join(public_headers())}\nOUTPUT_DIRECTORY = {output}\nHTML_OUTPUT = .\n"
    settings += f"GENERATE_HTML = {'YES' if html else 'NO'}\nGENERATE_XML = {'NO' if html else 'YES'}\n"
    pathlib.Path(output).mkdir(parents=True, exist_ok=True)
    return subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, capture_output=True, check=True).stderr


def main():
    html = sys.argv[2] if sys.argv[1:2] == ["--html"] else None
    with tempfile.TemporaryDirectory() as scratch:
        log = run_doxygen(html or scratch, html is not None)
    problems = []
    for line in log.splitlines():
        found = WARNING.match(line)
        path = pathlib.Path(found["file"]).resolve() if found else None
        if not found or not path.is_relative_to(ROOT):
            problems.append(line)
            continue
        name, number = path.relative_to(ROOT), int(found["line"]) - 1  # the filter of docs/Doxyfile adds a line
        if not needs_no_comment(name, number, found["text"]):
            problems.append(f"{name}:{number}: {found['text']}")
    problems = sorted(set(problems))
    for line in problems:
        print(line, file=sys.stderr)
    print(f"reference: {len(public_headers())} headers, {len(problems)} problems")
    return 1 if problems else 0


sys.exit(main())

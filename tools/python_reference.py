#!/usr/bin/env python3
"""Writes docs/PYTHON_REFERENCE.md from the signatures and docstrings in python/qkv; --check only compares."""
import ast
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "PYTHON_REFERENCE.md"
SECTIONS = [("Attention", "qkv", ["attention", "attention_grad", "attention_weights", "attention_stats", "masked_softmax",
                                  "AttentionGradients", "AttentionStatistics"]),
            ("Positions", "qkv", ["sinusoidal_positions", "rotary", "alibi_slopes", "alibi_bias"]),
            ("Worked examples", "qkv", ["explain", "Explanation"]),
            ("PyTorch", "qkv.torch", ["attention", "scaled_dot_product_attention", "sdpa"]),
            ("Runs", "qkv", ["open", "train", "compare", "tasks", "Run", "Prediction", "Trace", "Comparison"]),
            ("The lab", "qkv", ["lab", "experiments", "LabResult"]),
            ("Attention in a notebook", "qkv", ["show", "AttentionView", "Attention"]),
            ("Threads and memory", "qkv", ["num_threads", "set_num_threads", "release_memory"])]


def definitions(module):
    """Public functions and classes of a module by name, with the lines of its source."""
    source = (ROOT / "python" / "qkv" / module).read_text(encoding="utf-8")
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: (node, source.splitlines()) for node in ast.parse(source).body if isinstance(node, kinds)}


def package():
    found = {}
    for module in ("_attention.py", "_explain.py", "_runs.py", "_show.py"):
        found.update(definitions(module))
    found["open"] = found["open_run"]
    return found


def signature(node, lines, prefix):
    """As it is written, without self, in lines of at most 110 characters."""
    text = " ".join(line.strip() for line in lines[node.lineno - 1:node.body[0].lineno - 1])
    text = prefix + re.fullmatch(r"def \w+(\(.*):", text)[1]
    text = re.sub(r"\(self(, )?", "(", text).removesuffix(" -> None").replace(" -> ", " → ")
    parts = re.split(r"(?<=,) (?![^\[]*\])", text)
    done = [parts[0]]
    for part in parts[1:]:
        if len(done[-1]) + len(part) < 110:
            done[-1] += " " + part
        else:
            done.append("    " + part)
    return "\n".join(done)


def errors():
    """The exceptions, which are made in C++."""
    source = (ROOT / "python" / "src" / "errors.cc").read_text(encoding="utf-8")
    found = re.findall(r'add_class\(m, "(\w+)", "([^"]+)",\s+(?:both\(PyExc_(\w+)\))?', source)
    return "\n".join(f"- `qkv.{name}`{f', a `{python}`' if python else ''}: {text}" for name, text, python in found)


def documented(node):
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def paragraphs(text):
    """Docstrings as Markdown: a line that begins `name:` is an item, with the lines that belong to it."""
    blocks = []
    for block in text.split("\n\n"):
        lines = block.split("\n")
        item = re.compile(r"^([a-z_]+(?:, [a-z_]+)*): ")
        if not item.match(lines[0]):
            blocks.append(block)
            continue
        items = []
        for line in lines:
            if item.match(line):
                items.append(item.sub(lambda m: "- " + re.sub(r"(\w+)", r"`\1`", m[1]) + ": ", line))
            else:
                items.append("  " + line)
        blocks.append("\n".join(items))
    return "\n\n".join(blocks).replace("*", "\\*")


def decorated(node, name):
    return any(isinstance(d, ast.Name) and d.id == name for d in node.decorator_list)


def fields(node, lines):
    """The fields of a class with annotations, as `name: type  # comment`; also those that __init__ sets."""
    found = []
    for n in ast.walk(node):
        if isinstance(n, ast.AnnAssign) and not ast.unparse(n.target).startswith("self._"):
            target = ast.unparse(n.target).removeprefix("self.")
            _, mark, comment = lines[n.lineno - 1].partition("  # ")
            found.append((n.lineno, f"{target}: {ast.unparse(n.annotation)}{mark}{comment}"))
    return [text for _, text in sorted(found)]


def class_entry(name, node, lines):
    parts = [f"### {name}", paragraphs(documented(node))]
    members = fields(node, lines)
    if members:
        parts.append("```\n" + "\n".join(members) + "\n```")
    for function in node.body:
        if not isinstance(function, ast.FunctionDef) or function.name.startswith("_") or decorated(function, "overload"):
            continue
        called = f".{function.name}"
        head = signature(function, lines, called)
        if decorated(function, "property"):
            head = head.replace("()", "", 1)
        parts.append(f"```\n{head}\n```\n{paragraphs(documented(function))}")
    return "\n\n".join(parts)


def entry(module, name, node, lines):
    if isinstance(node, ast.ClassDef):
        return class_entry(name, node, lines)
    return f"### {module}.{name}\n\n```\n{signature(node, lines, f'{module}.{name}')}\n```\n\n{paragraphs(documented(node))}"


def page():
    found = {"qkv": package(), "qkv.torch": definitions("torch.py")}
    parts = ["# Reference of the Python package",
             "<!-- Written by tools/python_reference.py from the docstrings. -->",
             "Every public name with its arguments, and the shapes it takes and gives. [PYTHON.md](PYTHON.md) is the guide;\n"
             "`help(qkv.attention)` prints the same. An `Array` is a NumPy array, or anything with DLPack or the buffer\n"
             "protocol; `Numbers` are whole numbers, a sequence or an array; a `Window` is n, (left, right) or None."]
    for title, module, names in SECTIONS:
        parts.append(f"## {title}")
        parts += [entry(module, name, *found[module][name]) for name in names]
    parts += ["## Errors", errors()]
    return "\n\n".join(parts) + "\n"


def main():
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/PYTHON_REFERENCE.md is old; run tools/python_reference.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

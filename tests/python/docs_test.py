"""Every block of Python in docs/PYTHON.md and the README runs, and every notebook that needs no torch."""
import contextlib
import io
import os
import pathlib
import re
import runpy
import tempfile
import unittest

import qkv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def blocks(page, torch=False):
    """The blocks of Python that need no torch, or those that do."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"(<!-- torch -->\n)?```python\n(.*?)```", text, re.S)
    return [code for marked, code in found if bool(marked) == torch]


@contextlib.contextmanager
def in_new_folder():
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


class Docs(unittest.TestCase):
    def run_blocks(self, page):
        found = blocks(page)
        self.assertTrue(found)
        names = {}
        with in_new_folder(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for code in found:
                exec(compile(code, page, "exec"), names)  # noqa: S102

    def test_the_guide(self):
        self.run_blocks("docs/PYTHON.md")

    def test_the_readme(self):
        self.run_blocks("README.md")

    def test_the_reference_is_complete_and_of_today(self):
        tool = runpy.run_path(str(ROOT / "tools/python_reference.py"))
        page = (ROOT / "docs/PYTHON_REFERENCE.md").read_text(encoding="utf-8")
        self.assertEqual(page, tool["page"](), "run tools/python_reference.py")
        for name in set(qkv.__all__) - {"__version__"}:
            self.assertRegex(page, rf"(?m)^### (qkv\.)?{name}$|^- `qkv\.{name}`")

    def test_the_notebooks(self):
        notebooks = sorted(ROOT.glob("examples/notebooks/*.py"))
        listed = set(re.findall(r"^\| `(\w+\.py)`", (ROOT / "docs/PYTHON.md").read_text(encoding="utf-8"), re.M))
        self.assertEqual({n.name for n in notebooks}, listed)
        for notebook in notebooks:
            if notebook.name == "torch_model.py":
                continue
            with self.subTest(notebook.name), in_new_folder(), contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                runpy.run_path(str(notebook))


if __name__ == "__main__":
    unittest.main()

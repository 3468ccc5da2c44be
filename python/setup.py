"""pip install ./python: CMake builds the extension module and the program, and installs both into the package.

QKV_PAGE=0 leaves out what npm bundles (the page of `qkv serve`, maps to point at in notebooks), for machines without a
network. CMAKE_ARGS are handed to CMake.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version():
    numbers = re.findall(r"^#define QKV_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", (ROOT / "qkv/version.h").read_text(), re.M)
    return ".".join(numbers)


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        folder = ROOT / "build" / "pip"  # as deep as the other builds: ccache then knows what they compiled
        target = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve().parent.parent
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DQKV_PYTHON=ON", "-DQKV_EXAMPLES=OFF", "-DQKV_PYTHON_DIR=.",
                   f"-DPython3_EXECUTABLE={sys.executable}"]
        if os.environ.get("QKV_PAGE") == "0":
            options.append("-DQKV_NPM=OFF")
        if shutil.which("ninja"):
            options += ["-G", "Ninja"]
        if shutil.which("ccache"):
            options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        environment = dict(os.environ, CCACHE_BASEDIR=str(ROOT))

        def run(*command):
            subprocess.run(command, check=True, env=environment)

        run("cmake", "-S", str(ROOT), "-B", str(folder), *options, *shlex.split(os.environ.get("CMAKE_ARGS", "")))
        run("cmake", "--build", str(folder), "--target", "qkv_python", "-j", str(os.cpu_count() or 1))
        run("cmake", "--install", str(folder), "--component", "python", "--prefix", str(target))


setup(version=version(), packages=["qkv"], package_data={"qkv": ["py.typed", "*.pyi"]},
      ext_modules=[Extension("qkv._qkv", [])], cmdclass={"build_ext": CMakeBuild})

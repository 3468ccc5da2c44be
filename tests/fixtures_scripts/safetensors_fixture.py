#!/usr/bin/env python3
"""Writes tests/fixtures/safetensors with the safetensors library, and checks files that qkv wrote.

  safetensors_fixture.py FOLDER          writes FOLDER/python.safetensors
  safetensors_fixture.py --check FILE    loads FILE and prints names, shapes and sums
"""
import pathlib
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

if sys.argv[1] == "--check":
    with safe_open(sys.argv[2], framework="np") as file:
        print(file.metadata())
    for name, array in load_file(sys.argv[2]).items():
        print(name, array.dtype, array.shape, array.sum())
else:
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    save_file({
        "encoder.weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
        "moment": np.array([1.5, -2.5, 3.25]),
        "scalar": np.float32(7.0).reshape(()),
        "empty": np.zeros((0, 4), np.float32),
        "ids": np.array([1, 2, 3], np.int64),
        "größe": np.array([0.5], np.float32),
    }, out / "python.safetensors", metadata={"format": "np", "note": "a \"quoted\" word"})

#!/usr/bin/env python3
"""Writes tests/fixtures/npy with NumPy: every dtype, order and header version the reader must understand."""
import io
import pathlib
import sys

import numpy as np
from numpy.lib import format as npy

out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/fixtures/npy")
out.mkdir(parents=True, exist_ok=True)

# Value of element (i, j, k) is 100 i + 10 j + k - 5, so any axis swap shows.
i, j, k = np.meshgrid(np.arange(2), np.arange(3), np.arange(4), indexing="ij")
base = 100 * i + 10 * j + k - 5


def save(name, array, version=None):
    with open(out / (name + ".npy"), "wb") as file:
        npy.write_array(file, array, version=version, allow_pickle=True)


for dtype in ["f2", "f4", "f8", "i2", "i4", "i8"]:
    save("c_" + dtype, base.astype("<" + dtype))
    save("big_" + dtype, base.astype(">" + dtype))
for dtype in ["u1", "u2", "u4", "u8"]:
    save("c_" + dtype, (base + 5).astype("<" + dtype))
save("c_i1", base.astype("i1"))
save("bool", base % 3 == 0)
save("fortran_f4", np.asfortranarray(base.astype("<f4")))
save("fortran_big_f8", np.asfortranarray(base.astype(">f8")))
save("fortran_bool", np.asfortranarray(base % 3 == 0))
save("version2", base.astype("<f4"), version=(2, 0))
save("version3", base.astype("<f4"), version=(3, 0))
save("scalar", np.float32(2.5))
save("empty", np.zeros((0, 3), np.float32))
save("one_d", np.arange(5, dtype=np.float64))
save("half_edges", np.array([0.0, -0.0, 1.0, -2.0, 65504.0, 6.103515625e-05, 5.960464477539063e-08,
                             np.inf, -np.inf, np.nan, 0.333251953125], np.float16))
save("u8_big", np.array([2**63], np.uint64))
save("object", np.array([{"a": 1}, None], object))
save("record", np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")]))
save("complex", np.array([1 + 2j], np.complex64))
save("text", np.array(["ab"]))
save("dates", np.array(["2020-01-01"], "datetime64[D]"))
save("nine_d", np.zeros((1,) * 9, np.float32))
buffer = io.BytesIO()
np.savez(buffer, a=np.zeros(2))
(out / "archive.npz").write_bytes(buffer.getvalue())

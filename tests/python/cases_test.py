"""Every case of the attention table through Python: the kernels' bits, and NumPy's numbers in double precision."""
import json
import os
import struct
import unittest

import numpy as np

import qkv
import reference

FOLDER = os.environ["QKV_CASES"]


def load(path):
    """The arrays of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f4")
            for name, entry in header.items() if name != "__metadata__"}


class Case:
    """One case as arguments of qkv.attention."""

    def __init__(self, number, case):
        self.case = case
        self.flat = load(f"{FOLDER}/{number}.safetensors")
        B, H, Hkv, Lq, Lk, D, Dv = case["dims"]
        self.packed = bool(case["q_offsets"])
        rows_q = case["q_offsets"][-1] if self.packed else Lq
        rows_k = case["k_offsets"][-1] if self.packed else Lk
        self.shapes = dict(q=(H, rows_q, D), k=(Hkv, rows_k, D), v=(Hkv, rows_k, Dv), out=(H, rows_q, Dv),
                           d_out=(H, rows_q, Dv), d_q=(H, rows_q, D), d_k=(Hkv, rows_k, D), d_v=(Hkv, rows_k, Dv))

    def array(self, name):
        """With the strides of the case: heads before or after the rows."""
        heads, rows, width = self.shapes[name]
        x = self.flat[name]
        if self.packed:
            return (x.reshape(rows, heads, width) if self.case["heads_last"]
                    else x.reshape(heads, rows, width).transpose(1, 0, 2))
        B = self.case["dims"][0]
        return (x.reshape(B, rows, heads, width).transpose(0, 2, 1, 3) if self.case["heads_last"]
                else x.reshape(B, heads, rows, width))

    def score_array(self, name):
        B, H, _, Lq, Lk, _, _ = self.case["dims"]
        kind = self.case[name.removeprefix("d_")]
        if kind == "none":
            return None
        return self.flat[name].reshape(dict(full=(B, H, Lq, Lk), heads=(1, H, Lq, Lk), keys=(B, 1, 1, Lk),
                                            rows=(B, H, Lq, 1), short_rows=(B, H, Lq, Lk * 2 // 3),
                                            flat=(1, 1, Lq, Lk))[kind])

    def lens(self):
        B, Lq = self.case["dims"][0], self.case["dims"][3]
        if not self.case["key_lens"]:
            return None
        lens = np.array(self.case["key_lens"])
        return lens if len(lens) == B else lens.reshape(B, Lq)

    def rule(self):
        c = self.case
        mask = self.score_array("mask")
        window = tuple(None if n < 0 else n for n in c["window"])
        return dict(causal=c["causal"], scale=c["scale"], mask=None if mask is None else mask == 1,
                    valid_lens=self.lens(), window=window, bias=self.score_array("bias"), softcap=c["softcap"],
                    dropout=c["dropout"], seed=c["seed"], normaliser=c["normaliser"],
                    additive=self.flat["additive"] if c["additive"] else None,
                    offset=c["batch_offsets"] or c["offset"], q_offsets=c["q_offsets"] or None,
                    k_offsets=c["k_offsets"] or None)


def same_bits(a, b):
    return np.array_equal(np.ascontiguousarray(a).view(np.uint32), np.ascontiguousarray(b).view(np.uint32))


class CaseTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(f"{FOLDER}/cases.json", encoding="utf-8") as file:
            cls.cases = [Case(n, case) for n, case in enumerate(json.load(file))]

    def test_equal_bits_to_the_kernels(self):
        self.assertGreater(len(self.cases), 80)
        for case in self.cases:
            with self.subTest(case.case["name"]):
                q, k, v = (case.array(name) for name in "qkv")
                out = qkv.attention(q, k, v, **case.rule())
                self.assertTrue(same_bits(out, case.array("out")))
                grads = qkv.attention_grad(case.array("d_out"), q, k, v, **case.rule())
                for name in "qkv":
                    self.assertTrue(same_bits(getattr(grads, name), case.array("d_" + name)), "d_" + name)
                if case.case["bias"] != "none":
                    self.assertTrue(same_bits(grads.bias, case.score_array("d_bias")), "d_bias")
                if case.case["additive"]:
                    self.assertTrue(same_bits(grads.additive, case.flat["d_additive"]), "d_additive")

    def test_against_numpy(self):
        compared = 0
        for case in self.cases:
            c = case.case
            if c["dropout"] > 0 or c["poison"] == "seen" or case.packed:
                continue
            with self.subTest(c["name"]), np.errstate(all="ignore"):
                compared += 1
                q, k, v = (case.array(name).astype("f8") for name in "qkv")
                wide = {name: None if case.score_array(name) is None else case.score_array(name).astype("f8")
                        for name in ("mask", "bias")}
                rule = dict(c, key_lens=case.lens(), w=case.flat["additive"].astype("f8") if c["additive"] else None,
                            **wide)
                expected = reference.attention(rule, q, k, v)
                said = case.rule()
                for name in ("bias", "additive"):
                    said[name] = None if said[name] is None else said[name].astype("f8")
                np.testing.assert_allclose(qkv.attention(q, k, v, **said), expected, rtol=1e-9, atol=1e-11)
                single = qkv.attention(*(case.array(name) for name in "qkv"), **case.rule())
                np.testing.assert_allclose(single, expected, rtol=2e-4, atol=2e-5)
        self.assertGreater(compared, 55)

    def test_any_number_of_threads(self):
        before = qkv.num_threads()
        try:
            for threads in (1, 3):
                qkv.set_num_threads(threads)
                for case in self.cases[::7]:
                    out = qkv.attention(*(case.array(name) for name in "qkv"), **case.rule())
                    self.assertTrue(same_bits(out, case.array("out")), case.case["name"])
        finally:
            qkv.set_num_threads(before)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Writes tests/fixtures/attend: arrays, and cases.json with the options and expected results of each case.

Needs NumPy and, for the gradients, PyTorch. The expected outputs are computed here in float64 by spelling out, for
every query and key, whether the key is visible; gradients come from PyTorch's scaled_dot_product_attention.
"""
import json
import math
import pathlib
import shutil

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "attend"
CASES = []
SAVED = {}


def put(name, array):
    """Saves an array once; equal arrays share a file."""
    array = np.asarray(array)
    key = (array.dtype.str, array.shape, array.flags.f_contiguous and not array.flags.c_contiguous, array.tobytes())
    if key not in SAVED:
        assert name not in SAVED.values(), name
        np.save(FOLDER / name, array)
        SAVED[key] = name
    return SAVED[key]


def rand(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def split(x, heads):
    B, L, W = x.shape
    return x.reshape(B, L, heads, W // heads).transpose(0, 2, 1, 3)


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def sparsemax(z):
    s = np.sort(z)[::-1]
    c = np.cumsum(s) - 1
    n = np.nonzero(s - c / np.arange(1, len(s) + 1) > 0)[0][-1] + 1
    return np.maximum(z - c[n - 1] / n, 0)


def entmax15(z):
    low, high = z.max() / 2 - 1, z.max() / 2
    for _ in range(200):
        middle = (low + high) / 2
        if (np.maximum(z / 2 - middle, 0) ** 2).sum() > 1:
            low = middle
        else:
            high = middle
    p = np.maximum(z / 2 - low, 0) ** 2
    return p / p.sum()


def hard(z):
    best = z == z.max()
    return best / best.sum()


NORMALISERS = {"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15, "hard": hard}


def attend(q, k, v, heads=1, kv_heads=None, scale=None, score="scaled-dot", softcap=0.0, causal=False, window_left=-1,
           window_right=-1, mask=None, past_k=None, past_v=None, kv_lens=None, valid_lens=None, normaliser="softmax"):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    flat = q.ndim == 3
    if flat:
        q, k, v = split(q, heads), split(k, kv_heads or heads), split(v, kv_heads or heads)
    past = 0
    if past_k is not None:
        past = past_k.shape[2]
        k = np.concatenate([past_k.astype(np.float64), k], axis=2)
        v = np.concatenate([past_v.astype(np.float64), v], axis=2)
    (B, H, Lq, D), (Hkv, Lk) = q.shape, k.shape[1:3]
    if scale is None:
        scale = 1.0 if score == "dot" else 1 / math.sqrt(D)
    visible = np.ones((B, H, Lq, Lk), bool)
    bias = np.zeros((B, H, Lq, Lk))
    if mask is not None:
        cols = mask.shape[-1]
        target = (B, H, Lq, min(cols, Lk))
        if mask.dtype == bool:
            visible[..., :cols] &= np.broadcast_to(mask, target)
        else:
            bias[..., :cols] = np.broadcast_to(mask, target)
            visible &= bias > -np.inf
        visible[..., cols:] = False
    for b in range(B):
        offset = past if kv_lens is None else int(kv_lens[b]) - Lq
        for i in range(Lq):
            for j in range(Lk):
                p = i + offset
                seen = not causal or j <= p
                seen &= window_left < 0 or j >= p - window_left
                seen &= window_right < 0 or j <= p + window_right
                seen &= kv_lens is None or j < kv_lens[b]
                if valid_lens is not None:
                    seen &= j < (valid_lens[b] if valid_lens.ndim == 1 else valid_lens[b, i])
                visible[b, :, i, j] &= seen
    group = H // Hkv
    raw = np.stack([q[:, h] @ k[:, h // group].transpose(0, 2, 1) for h in range(H)], axis=1) * scale
    capped = softcap * np.tanh(raw / softcap) if softcap > 0 else raw
    with np.errstate(invalid="ignore"):
        biased = np.where(visible, capped + bias, -np.inf)
    weights = np.zeros_like(raw)
    out = np.zeros((B, H, Lq, v.shape[3]))
    for b, h, i in np.ndindex(B, H, Lq):
        keys = np.nonzero(visible[b, h, i])[0]
        if len(keys):
            weights[b, h, i, keys] = NORMALISERS[normaliser](biased[b, h, i, keys])
            out[b, h, i] = weights[b, h, i, keys] @ v[b, h // group, keys]
    if flat:
        out = out.transpose(0, 2, 1, 3).reshape(B, Lq, -1)
    return {"out": out, "present-k": k, "present-v": v, "raw": raw, "capped": capped, "biased": biased,
            "weights": weights}


def case(name, arrays, save=("out",), **options):
    """One run of the command: arrays and options in, the named results expected."""
    args = []
    for option, array in arrays.items():
        args += ["--" + option.replace("_", "-"), put(f"{name}.{option}.npy", array)]
    for option, value in options.items():
        args += ["--" + option.replace("_", "-")] + ([] if value is True else [str(value)])
    result = attend(**arrays, **options)
    expect = {}
    for what in save:
        stage = what in ("raw", "capped", "biased", "weights")
        option = "--scores" if stage else "--" + what
        if stage:
            args += ["--scores-stage", what]
        expect[option] = put(f"{name}.expect.{what}.npy", result[what].astype(np.float32))
    CASES.append({"name": name, "args": args, "expect": expect})


def qkv(q=(2, 3, 4, 8), k=(2, 3, 6, 8), v=None, dtype=np.float32, past=None):
    arrays = {"q": rand(1, *q, dtype=dtype), "k": rand(2, *k, dtype=dtype), "v": rand(3, *(v or k), dtype=dtype)}
    if past:
        heads, width, v_width = past
        arrays["past_k"] = rand(4, 2, heads, 5, width)
        arrays["past_v"] = rand(5, 2, heads, 5, v_width)
    return arrays


def with_mask(arrays, mask):
    return {**arrays, "mask": mask}


def bools(seed, *shape):
    return np.random.default_rng(seed).random(shape) < 0.6


def four_axes():
    gqa, wide = qkv(q=(2, 9, 4, 8), k=(2, 3, 6, 8)), qkv(v=(2, 3, 6, 10))
    case("plain", qkv())
    case("gqa", gqa)
    case("mqa", qkv(q=(2, 4, 3, 8), k=(2, 1, 5, 8)))
    case("wide_values", wide)
    for kind, arrays in (("plain", qkv()), ("gqa", gqa), ("wide_values", wide)):
        case(f"{kind}_scaled", arrays, scale=0.01)
        case(f"{kind}_causal", arrays, causal=True)
        case(f"{kind}_softcap", arrays, softcap=2.0)
        case(f"{kind}_float_mask", with_mask(arrays, rand(6, 4, 6)))
    case("dot", qkv(), score="dot")
    case("float_mask_heads", with_mask(qkv(), rand(7, 3, 4, 6)))
    case("float_mask_batch", with_mask(qkv(), rand(7, 2, 1, 4, 6)))
    case("float_mask_batch_causal", with_mask(qkv(), rand(7, 2, 1, 4, 6)), causal=True)
    case("float_mask_full_causal", with_mask(qkv(), rand(7, 2, 3, 4, 6)), causal=True)
    case("bool_mask", with_mask(qkv(), bools(8, 4, 6)))
    case("bool_mask_full", with_mask(qkv(), bools(8, 2, 3, 4, 6)))
    case("bool_mask_one_row", with_mask(qkv(), np.array([True, False, True, True, False, True])))
    case("short_bool_mask", with_mask(qkv(), bools(9, 4, 4)))
    case("sparsemax", qkv(), save=("out", "weights"), normaliser="sparsemax", scale=1.0)
    case("entmax15", qkv(), save=("out", "weights"), normaliser="entmax15", scale=1.0)
    case("hard", qkv(), save=("out", "weights"), normaliser="hard")


def scores():
    masked = with_mask(qkv(), rand(6, 4, 6))
    case("scores_raw", qkv(), save=("out", "raw"))
    case("scores_capped", masked, save=("out", "capped"), softcap=2.0)
    case("scores_biased", masked, save=("out", "biased"))
    case("scores_weights", masked, save=("out", "weights"))
    case("scores_biased_bool", with_mask(qkv(), bools(8, 4, 6)), save=("biased",), causal=True)


def cache():
    both = ("out", "present-k", "present-v")
    plain, gqa = qkv(past=(3, 8, 8)), qkv(q=(2, 9, 4, 8), k=(2, 3, 6, 8), past=(3, 8, 8))
    wide = qkv(v=(2, 3, 6, 10), past=(3, 8, 10))
    mask = rand(10, 4, 11)
    case("past", with_mask(plain, mask), save=both)
    case("past_gqa", with_mask(gqa, mask), save=both)
    case("past_wide_values", with_mask(wide, mask), save=both)
    case("past_causal", plain, save=both, causal=True)
    for stage in ("raw", "capped", "biased", "weights"):
        case(f"past_{stage}", with_mask(plain, mask), save=(*both, stage), softcap=2.0)
    case("past_biased_causal", with_mask(plain, rand(11, 2, 3, 4, 11)), save=(*both, "biased"), causal=True)
    case("past_empty", {**qkv(), "past_k": np.zeros((2, 3, 0, 8), np.float32),
                        "past_v": np.zeros((2, 3, 0, 8), np.float32)}, save=both, causal=True)
    case("present_without_past", qkv(), save=both)
    step = qkv(q=(2, 4, 1, 8), k=(2, 2, 8, 8))
    case("external_step", {**step, "kv_lens": np.array([8, 5])}, causal=True)
    case("external_step_half", {**qkv((2, 4, 1, 8), (2, 2, 8, 8), dtype=np.float16), "kv_lens": np.array([8, 5])},
         causal=True)
    case("external_prefill", {**qkv((1, 2, 2, 8), (1, 2, 4, 8)), "kv_lens": np.array([4], np.int32)}, causal=True)
    case("external_prefills", {**qkv((3, 2, 2, 8), (3, 2, 6, 8)), "kv_lens": np.array([4, 5, 6])}, causal=True)
    case("external_empty_rows", {**qkv((1, 2, 4, 8), (1, 2, 4, 8)), "kv_lens": np.array([2])},
         save=("out", "weights"), causal=True)
    case("external_short_mask", {**with_mask(qkv(v=(2, 3, 6, 10)), rand(12, 2, 3, 4, 4)), "kv_lens": np.array([3, 4])})
    case("external_mask_causal", {**with_mask(qkv((2, 2, 3, 8), (2, 2, 6, 8)), bools(13, 2, 1, 3, 6)),
                                  "kv_lens": np.array([4, 5])}, causal=True)


def three_axes():
    plain, gqa = qkv((2, 4, 24), (2, 6, 24)), qkv((2, 4, 72), (2, 6, 24))
    wide = qkv((2, 4, 24), (2, 6, 24), (2, 6, 30))
    case("flat_one_head", plain)
    for kind, arrays, heads in (("flat", plain, 3), ("flat_gqa", gqa, 9), ("flat_wide_values", wide, 3)):
        n = {"heads": heads, "kv_heads": 3}
        case(kind, arrays, **n)
        case(f"{kind}_scaled", arrays, **n, scale=0.01)
        case(f"{kind}_causal", arrays, **n, causal=True)
        case(f"{kind}_softcap", arrays, **n, softcap=3.0)
        case(f"{kind}_float_mask", with_mask(arrays, rand(6, 4, 6)), **n)
        past = {"past_k": rand(4, 2, 3, 5, 8), "past_v": rand(5, 2, 3, 5, arrays["v"].shape[2] // 3)}
        save = ("out", "present-k", "present-v")
        case(f"{kind}_past", {**with_mask(arrays, rand(10, 4, 11)), **past}, save=save, **n)
        if kind == "flat":
            for stage in ("raw", "capped", "biased", "weights"):
                case(f"flat_past_{stage}", {**with_mask(arrays, rand(10, 4, 11)), **past}, save=(*save, stage), **n,
                     softcap=2.0)
    pattern = np.repeat(np.array([1, 2, 3], np.float32), 4)
    tenth = np.full((1, 2, 12), 0.1, np.float32)
    case("flat_layout", {"q": np.stack([pattern, pattern])[None], "k": tenth, "v": tenth}, heads=3, kv_heads=3)


def windows():
    case("window", qkv(), window_left=2, window_right=0)
    case("window_causal", qkv(), window_left=2, causal=True)
    case("window_right", qkv(), window_right=1)
    case("window_off", qkv(), window_left=-1)
    case("window_past", qkv((2, 3, 4, 8), (2, 3, 2, 8), past=(3, 8, 8)), save=("out", "present-k"), window_left=2,
         causal=True)
    case("window_external", {**with_mask(qkv((2, 3, 4, 8), (2, 3, 8, 8)), rand(14, 2, 1, 4, 8)),
                             "kv_lens": np.array([6, 7])}, window_left=2, window_right=0)
    case("window_flat", qkv((2, 4, 24), (2, 6, 24)), heads=3, kv_heads=3, window_left=2, causal=True)


def edges():
    hole = np.zeros((4, 6), np.float32)
    hole[:, 4:] = -np.inf
    poison = qkv((1, 1, 4, 8), (1, 1, 6, 8))
    case("inf_mask_softcap", with_mask(poison, hole), softcap=0.5)
    poison["v"] = poison["v"].copy()
    poison["v"][:, :, 4:] = 1000
    case("inf_mask_large_values", with_mask(poison, hole), softcap=0.5)
    poison["v"][:, :, 4] = np.nan
    poison["k"] = poison["k"].copy()
    poison["k"][:, :, 5] = np.inf
    case("inf_mask_nan_values", with_mask(poison, hole))
    small = qkv((1, 2, 2, 8), (1, 2, 2, 8))
    case("empty_row", with_mask(small, np.array([[False, False], [True, True]])), save=("out", "weights"))
    case("empty_row_causal", with_mask(small, np.array([[True, False], [False, False]])), causal=True)
    half = qkv((1, 2, 2, 8), (1, 2, 2, 8), dtype=np.float16)
    case("empty_row_half", with_mask(half, np.array([[False, False], [True, True]])), save=("out", "weights"))
    case("half", qkv(dtype=np.float16))
    case("double", qkv(dtype=np.float64))
    case("valid_lens", {**qkv(), "valid_lens": np.array([2, 6])})
    case("valid_lens_rows", {**qkv(), "valid_lens": np.array([[1, 3, 0, 6], [2, 4, 5, 6]], np.int32)},
         save=("out", "weights"))
    case("valid_lens_d2l", {"q": rand(15, 2, 1, 2), "k": np.ones((2, 10, 2), np.float32),
                            "v": np.tile(np.arange(40, dtype=np.float32).reshape(1, 10, 4), (2, 1, 1)),
                            "valid_lens": np.array([2, 6])})
    arrays = qkv()
    case("fortran_order", {n: np.asfortranarray(a) for n, a in arrays.items()})
    case("big_endian", {n: a.astype(">f4") for n, a in arrays.items()})


def gradient(name, arrays, options=(), heads=None, kv_heads=None, mask=None, causal=False):
    """Expected gradients of the command by PyTorch's own attention in float64."""
    leaves = [torch.tensor(arrays[n], dtype=torch.float64, requires_grad=True) for n in "qkv"]
    parts = leaves
    if heads:
        parts = [t.reshape(*t.shape[:2], n, -1).transpose(1, 2) for t, n in zip(leaves, (heads, kv_heads, kv_heads))]
    torch_mask = None
    if mask is not None:
        torch_mask = torch.tensor(mask if mask.dtype == bool else mask.astype(np.float64))
    out = torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=torch_mask, is_causal=causal,
                                                           enable_gqa=parts[0].shape[1] != parts[1].shape[1])
    if heads:
        out = out.transpose(1, 2).reshape(*out.shape[:1], out.shape[2], -1)
    d_out = rand(20, *out.shape)
    out.backward(torch.tensor(d_out, dtype=torch.float64))
    args, expect = [], {}
    named = {**arrays, "grad-out": d_out, **({} if mask is None else {"mask": mask})}
    for option, array in named.items():
        args += ["--" + option, put(f"grad_{name}.{option}.npy", array)]
    expect["--out"] = put(f"grad_{name}.expect.out.npy", out.detach().numpy().astype(np.float32))
    for n, leaf in zip("qkv", leaves):
        expect[f"--grad-{n}"] = put(f"grad_{name}.expect.{n}.npy", leaf.grad.numpy().astype(np.float32))
    CASES.append({"name": f"grad_{name}", "args": args + list(options), "expect": expect})


def gradients():
    seen = bools(21, 4, 6)
    seen[:, 0] = True  # PyTorch gives NaN for a row without keys
    gradient("plain", qkv())
    gradient("causal", qkv(), ["--causal"], causal=True)
    gradient("gqa_mask", qkv((2, 9, 4, 8), (2, 3, 6, 8)), mask=seen)
    gradient("float_mask", qkv(v=(2, 3, 6, 10)), mask=rand(22, 2, 1, 4, 6))
    gradient("flat_gqa", qkv((2, 4, 48), (2, 6, 24)), ["--heads", "6", "--kv-heads", "3", "--causal"], heads=6,
             kv_heads=3, causal=True)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for group in (four_axes, scores, cache, three_axes, windows, edges, gradients):
        group()
    lines = ",\n".join(json.dumps(c) for c in CASES)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()

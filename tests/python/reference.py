"""Attention in plain NumPy, row by row in double precision: what the package is compared with."""
import numpy as np


def visible(rule, b, h, i, Lk):
    """Which keys query i sees."""
    j = np.arange(Lk)
    p = i + (rule["batch_offsets"][b] if rule["batch_offsets"] else rule["offset"])
    seen = np.ones(Lk, bool)
    if rule["key_lens"] is not None:
        lens = rule["key_lens"]
        seen &= j < (lens[b] if lens.ndim == 1 else lens[b, i])
    if rule["causal"]:
        seen &= j <= p
    left, right = rule["window"]
    if left >= 0:
        seen &= j >= p - left
    if right >= 0:
        seen &= j <= p + right
    for name in ("mask", "bias"):
        array = rule[name]
        if array is not None:
            row = array[b % array.shape[0], h % array.shape[1], i % array.shape[2]]
            row = np.broadcast_to(row, Lk) if len(row) == 1 else np.append(row, np.full(Lk - len(row), -np.inf))
            seen &= (row == 1) if name == "mask" else (row > -np.inf)
    return seen


def scores(rule, q, k, b, h, i):
    """Scores of one query with the keys it sees, and which those are."""
    seen = np.flatnonzero(visible(rule, b, h, i, len(k)))
    if rule["w"] is not None:
        z = rule["scale"] * (np.tanh(q[i] + k[seen]) @ rule["w"])
    else:
        z = rule["scale"] * (k[seen] @ q[i])
    if rule["softcap"] > 0:
        z = rule["softcap"] * np.tanh(z / rule["softcap"])
    bias = rule["bias"]
    if bias is not None:
        row = bias[b % bias.shape[0], h % bias.shape[1], i % bias.shape[2]]
        z = z + (row if len(row) == 1 else row[seen])
    return z, seen


def normalised(z, kind):
    """A row of scores as weights."""
    if kind == "softmax":
        e = np.exp(z - z.max())
        return e / e.sum()
    if kind == "hard":
        return (z == z.max()) / np.sum(z == z.max())
    ordered = np.sort(z)[::-1]
    if kind == "sparsemax":
        sums = np.cumsum(ordered)
        n = np.arange(1, len(z) + 1)
        count = np.max(n[1 + n * ordered > sums])
        return np.maximum(z - (sums[count - 1] - 1) / count, 0)
    low, high = z.max() / 2 - 1, z.max() / 2  # entmax15: Σ (z/2 - τ)₊² = 1, by bisection
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(np.maximum(z / 2 - middle, 0) ** 2) > 1 else (low, middle)
    return np.maximum(z / 2 - low, 0) ** 2


def attention(rule, q, k, v):
    """q [B, H, Lq, D], k [B, Hkv, Lk, D], v [B, Hkv, Lk, Dv] in f64 → [B, H, Lq, Dv]."""
    B, H, Lq, _ = q.shape
    out = np.zeros((B, H, Lq, v.shape[-1]))
    group = H // k.shape[1]
    for b in range(B):
        for h in range(H):
            keys, values = k[b, h // group], v[b, h // group]
            for i in range(Lq):
                z, seen = scores(rule, q[b, h], keys, b, h, i)
                if len(z):
                    out[b, h, i] = normalised(z, rule["normaliser"]) @ values[seen]
    return out

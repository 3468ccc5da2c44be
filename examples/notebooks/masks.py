# %% [markdown]
# # Which keys a query sees
# Causality, windows, lengths, masks and biases are words of one call; none of them stores the matrix of scores.

# %%
import numpy as np

import qkv

rng = np.random.default_rng(1)
n, d = 12, 16
q, k, v = rng.standard_normal((3, 1, 1, n, d), dtype="f4")  # [B, H, L, D] each
tokens = "the cat that the dog saw sat on a very old mat".split()

# %%
causal = qkv.attention_weights(q, k, causal=True)
assert np.all(np.triu(causal[0, 0], 1) == 0)
qkv.show(causal[0], tokens, title="causal: nobody looks ahead")

# %%
local = qkv.attention_weights(q, k, window=2)
qkv.show(local[0], tokens, title="a window of two tokens on each side")

# %%
padded = qkv.attention_weights(q, k, valid_lens=[7])
assert np.all(padded[..., 7:] == 0)
qkv.show(padded[0], tokens, title="seven keys, then padding")

# %% [markdown]
# A query that sees no key gets zeros, not NaN, and what is hidden reaches nothing: not even NaN.

# %%
poisoned = k.copy()
poisoned[..., 7:, :] = np.nan
assert np.array_equal(qkv.attention(q, poisoned, v, valid_lens=[7]), qkv.attention(q, k, v, valid_lens=[7]))
assert np.all(qkv.attention(q, k, v, valid_lens=[0]) == 0)

# %% [markdown]
# A bias is added to the scores: here ALiBi's, which falls off with the distance. Sparsemax gives weights that are exactly
# zero without any mask.

# %%
heads = np.repeat(q, 4, axis=1), np.repeat(k, 4, axis=1)
alibi = qkv.attention_weights(*heads, bias=qkv.alibi_bias(4, n, n))
sparse = qkv.attention_weights(q, k, normaliser="sparsemax", scale=1.0)
print("mean distance by head:", qkv.attention_stats(*heads, bias=qkv.alibi_bias(4, n, n)).mean_distance[0].mean(-1))
print("weights that are exactly zero under sparsemax:", f"{(sparse == 0).mean():.0%}")
qkv.show(alibi[0], tokens, title="ALiBi, four slopes")

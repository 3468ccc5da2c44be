# %% [markdown]
# # What two heads do about noise
# One head that looks for two keys at once swings between them when their lengths are noisy; two heads, each looking for
# one, do not. The lab predicts it by a formula and measures it with the library.

# %%
import numpy as np

import qkv

result = qkv.lab("two-heads", t=5)
assert result.agrees
print(result.claim)
result

# %% [markdown]
# Predicted and measured are arrays, one number per row:

# %%
for at, what, predicted, measured in zip(result.at, result.quantity, result.predicted, result.measured):
    if what.startswith("variance of one head"):
        print(f"{at}: {what}: {predicted:.2f} predicted, {measured:.2f} measured")
assert np.all(result.row_agrees)

# %% [markdown]
# The same by hand: keys a and b lie on axes of their own, and a's length is drawn again and again.

# %%
rng = np.random.default_rng(0)
m, draws, t = 6, 2000, 5.0
lengths = 1 + 0.7 * rng.standard_normal(draws)
keys = np.tile(np.eye(m, dtype="f4"), (draws, 1, 1))
keys[:, 0] *= lengths[:, None]
values = np.tile(np.eye(m, dtype="f4"), (draws, 1, 1))


def attended(query):
    queries = np.tile(np.asarray(query, "f4")[None, None], (draws, 1, 1))
    return qkv.attention(queries, keys, values, scale=1.0)[:, 0]


a, b = np.eye(m)[:2]
one = attended(t * (a + b))
two = (attended(t * a) + attended(t * b)) / 2
print("variance of one head:", one.var(0).sum(), " of two:", two.var(0).sum())
assert two.var(0).sum() < one.var(0).sum()

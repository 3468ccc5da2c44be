# %% [markdown]
# # Attention by hand
# One query looks at four keys. Scores are products, weights are their softmax, the output is the weighted mean of the
# values. Run it as a script, or open it as a notebook (VS Code, Jupytext).

# %%
import numpy as np

import qkv

q = np.array([[-2, 1, -1]], "f8")  # [Lq, D]
k = np.array([[-2, 1, 0.5], [1, 1.5, -0.5], [-1.5, 1, -0.5], [-2, -2.5, 1.5]], "f8")  # [Lk, D]
v = k  # the keys are also the values

scores = q @ k.T / np.sqrt(3)
weights = np.exp(scores) / np.exp(scores).sum()
by_hand = weights @ v
by_hand

# %% [markdown]
# The same in one call. Double precision takes the plain reference, so the numbers agree to rounding.

# %%
out = qkv.attention(q, k, v)
assert np.allclose(out, by_hand, atol=1e-14)
assert np.allclose(qkv.attention_weights(q, k), weights, atol=1e-14)
out

# %% [markdown]
# Every step, with its formula, forward and backward:

# %%
explanation = qkv.explain(q=q, k=k, v=v)
print(explanation)

# %% [markdown]
# The gradient by hand: move one number a little, and see how much the sum of the output moves.

# %%
grads = qkv.attention_grad(np.ones_like(out), q, k, v)
step = 1e-6
moved = q.copy()
moved[0, 0] += step
slope = (qkv.attention(moved, k, v).sum() - out.sum()) / step
assert np.isclose(grads.q[0, 0], slope, atol=1e-4)
print("gradient", grads.q[0, 0], "difference quotient", slope)

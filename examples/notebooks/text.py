# %% [markdown]
# # A GPT on a text
# A language model of letters, trained on a text of your own: any UTF-8 file does.

# %%
import pathlib

import numpy as np

import qkv

verses = ["the rain falls on the sea", "the sea sends up the cloud", "the cloud sends down the rain"]
rng = np.random.default_rng(0)
pathlib.Path("verses.txt").write_text("\n".join(verses[i] for i in rng.integers(0, 3, 1200)), encoding="utf-8")

# %%
run = qkv.train("text", data="verses.txt", layers=2, heads=4, width=64, block=64, epochs=3, lr=0.005,
                out="runs/verses")
print("bits and figures:", {name: round(values[-1], 3) for name, values in run.metrics.items() if name != "step"})

# %% [markdown]
# It continues what one begins; a seed decides what is drawn.

# %%
for seed in (1, 2):
    print(run.predict("the sea", sample=True, temperature=0.7, seed=seed, max_length=60).text)

# %%
trace = run.trace("the rain falls on the")
assert np.allclose(trace.weights().sum(-1), 1, atol=1e-4)
trace

# %% [markdown]
# # Writing strings backwards, with and without attention
# A recurrent encoder-decoder without attention has to squeeze the whole string into one vector. This is a short training,
# so that the notebook runs in seconds; leave out the sizes for the real one.

# %%
import qkv

comparison = qkv.compare("reverse", attention=["none", "dot"], epochs=5, train_size=3000, validation_size=100,
                         out="runs/reversal")
comparison

# %%
table = comparison.table
for attention, loss, accuracy in zip(table["attention"], table["loss"], table["character_accuracy"]):
    print(f"{attention:5} loss {loss:.3f}  characters right {accuracy:.1%}")
losses = dict(zip(table["attention"], table["loss"]))
assert losses["dot"] < losses["none"]

# %% [markdown]
# Where the model with attention looks while it writes:

# %%
run = comparison.runs["dot"]
trace = run.trace(run.examples(1)[0])
trace

# %% [markdown]
# The course of the training, as columns:

# %%
print(run.metrics["epoch"], run.metrics["loss"].round(3))

# %% [markdown]
# # A small translation and its diagrams
# German to English on a corpus that the task makes itself. Eight epochs on a few thousand pairs are far from a good
# translator, but the diagrams show already which word it looked at.

# %%
import qkv

run = qkv.train("translate", attention="scaled-dot", epochs=8, generated_size=2500, embedding=64, hidden=96, dropout=0.1,
                lr=0.005, warmup=20, sampling=0, average=0, out="runs/translation")
print(run.result["bleu"] if "bleu" in run.result else run.result["loss"])

# %%
for sentence in run.examples(2):
    best = run.predict(sentence, beam=5, length_penalty=1.0, align=True)
    print(f"{sentence}\n  {best.text}\n  {best.alignment}")

# %%
trace = run.trace(run.examples(1)[0])
trace

# %% [markdown]
# The weights of one head are an array:

# %%
layer = trace.layer()
print(layer)
for word, row in zip(layer.queries, layer.weights[0]):
    print(f"{word:12} looks at {layer.keys[row.argmax()]}")

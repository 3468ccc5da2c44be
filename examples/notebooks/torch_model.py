# %% [markdown]
# # A torch model with qkv's attention
# The model is torch's; its attention, with a learnt bias for every distance, is qkv's, forward and backward.

# %%
import torch

import qkv.torch

torch.manual_seed(0)
length, width, heads, vocabulary = 24, 64, 4, 16


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                         torch.nn.Linear(4 * width, width))
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.distance = torch.nn.Parameter(torch.zeros(heads, 2 * length - 1))

    def bias(self):
        i = torch.arange(length)
        return self.distance[:, i[:, None] - i[None, :] + length - 1]  # [H, L, L]

    def forward(self, x):
        B = x.shape[0]
        q, k, v = self.project(self.norms[0](x)).view(B, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        attended = qkv.torch.attention(q, k, v, causal=True, bias=self.bias())
        x = x + self.out(attended.transpose(1, 2).reshape(B, length, width))
        return x + self.inner(self.norms[1](x))


model = torch.nn.Sequential(torch.nn.Embedding(vocabulary, width), Block(), Block(),
                            torch.nn.Linear(width, vocabulary))

# %% [markdown]
# The task: say which token stood three places before.

# %%
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
losses = []
for step in range(150):
    x = torch.randint(0, vocabulary, (16, length))
    loss = torch.nn.functional.cross_entropy(model(x)[:, 3:].flatten(0, 1), x[:, :-3].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], "→", losses[-1])
assert losses[-1] < 0.5 * losses[0]

# %% [markdown]
# Which distance the first layer's heads came to prefer, and the weights of its attention, computed again:

# %%
block = model[1]
print("favourite distance of each head:", (block.distance.argmax(1) - length + 1).tolist())
with torch.no_grad():
    q, k, _ = block.project(block.norms[0](model[0](x[:1]))).view(1, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    weights = qkv.attention_weights(q.numpy(), k.numpy(), causal=True, bias=block.bias().numpy())
qkv.show(weights, [str(int(token)) for token in x[0]], title="layer 0")

"""PyTorch's side of 'qkv bench': builds one case, then runs it whenever it is asked to.

Its argument says whether training steps go through torch.compile: eager or compile.
Reads lines from standard input and answers each with one JSON line:
  case {...}   builds what the sizes say; answers {"parameters": N}
  run N        runs it N times; answers {"seconds": of one run}
  memory       answers {"bytes": most memory the case took}
"""
import json
import math
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
torch.set_num_threads(THREADS)
torch.manual_seed(1)


def status(field):
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def tokens(vocabulary, *shape):
    return torch.randint(vocabulary, shape)


class PreNormLayer(nn.Module):
    """x + drop(attention(norm x)), then x + drop(mlp(norm x)); one product for q, k and v."""

    def __init__(self, width, heads, drop, causal):
        super().__init__()
        self.heads, self.drop, self.causal = heads, drop, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past=None, at=0):
        B, L, C = x.shape
        drop = self.drop if self.training else 0.0
        parts = self.joint(self.norm1(x)).view(B, L, 3, self.heads, C // self.heads)
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        causal = self.causal
        if past is not None:
            past[0][:, :, at:at + L], past[1][:, :, at:at + L] = k, v
            k, v, causal = past[0][:, :, :at + L], past[1][:, :, :at + L], L > 1
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=causal)
        x = x + F.dropout(self.output(y.transpose(1, 2).reshape(B, L, C)), drop)
        return x + F.dropout(self.outer(F.gelu(self.inner(self.norm2(x)))), drop)


class Gpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.drop = c["dropout"]
        self.table = nn.Embedding(c["vocabulary"], c["width"])
        self.positions = nn.Parameter(torch.zeros(c["block"], c["width"]))
        self.layers = nn.ModuleList(
            PreNormLayer(c["width"], c["heads"], self.drop, True) for _ in range(c["layers"]))
        self.norm, self.head = nn.LayerNorm(c["width"]), nn.Linear(c["width"], c["vocabulary"], bias=False)

    def forward(self, ids, past=None, at=0):
        x = self.table(ids) + self.positions[at:at + ids.shape[1]]
        x = F.dropout(x, self.drop, self.training)
        for i, layer in enumerate(self.layers):
            x = layer(x, past[i] if past else None, at)
        return self.head(self.norm(x))


class Lstm(nn.Module):
    """LSTM encoder and decoder; dot-product attention with the decoder's states."""

    def __init__(self, c):
        super().__init__()
        E, H = c["embedding"], c["hidden"]
        self.source, self.target = nn.Embedding(c["vocabulary"], E), nn.Embedding(c["vocabulary"], E)
        self.encoder, self.decoder = nn.LSTM(E, H, batch_first=True), nn.LSTM(E, H, batch_first=True)
        self.combine, self.output = nn.Linear(2 * H, H), nn.Linear(H, c["vocabulary"])

    def forward(self, source, target):
        memory, state = self.encoder(self.source(source))
        s, _ = self.decoder(self.target(target), state)
        context = torch.softmax(s @ memory.transpose(1, 2), -1) @ memory
        return self.output(torch.tanh(self.combine(torch.cat((context, s), -1))))


class Gru(nn.Module):
    """Two-way GRU encoder; the decoder attends with the state before each step."""

    def __init__(self, c):
        super().__init__()
        E, H = c["embedding"], c["hidden"]
        self.source, self.target = nn.Embedding(c["source"], E), nn.Embedding(c["target"], E)
        self.encoder = nn.GRU(E, H, batch_first=True, bidirectional=True)
        self.bridge, self.key = nn.Linear(2 * H, H), nn.Linear(2 * H, H)
        self.cell = nn.GRUCell(E + 2 * H, H)
        self.output = nn.Linear(E + 3 * H, c["target"])
        self.scale = 1 / math.sqrt(H)

    def forward(self, source, target):
        memory, last = self.encoder(self.source(source))
        s = torch.tanh(self.bridge(torch.cat((last[0], last[1]), -1)))
        keys, x, read = self.key(memory), self.target(target), []
        for t in range(target.shape[1]):
            scores = torch.bmm(keys, s.unsqueeze(2)).squeeze(2) * self.scale
            context = torch.bmm(torch.softmax(scores, -1).unsqueeze(1), memory).squeeze(1)
            s = self.cell(torch.cat((x[:, t], context), -1), s)
            read.append(torch.cat((s, context, x[:, t]), -1))
        return self.output(torch.stack(read, 1))


class Transformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        C = c["width"]
        self.width, self.heads = C, c["heads"]
        self.source, self.target = nn.Embedding(c["vocabulary"], C), nn.Embedding(c["vocabulary"], C)
        self.source_positions = nn.Parameter(torch.zeros(c["block"], C))
        self.target_positions = nn.Parameter(torch.zeros(c["block"], C))
        self.both = nn.Transformer(C, c["heads"], c["layers"], c["layers"], c["inner"], c["dropout"], batch_first=True)
        self.output = nn.Linear(C, c["vocabulary"])

    def encode(self, source, padding=None):
        x = self.source(source) + self.source_positions[:source.shape[1]]
        return self.both.encoder(x, src_key_padding_mask=padding)

    def forward(self, source, target, padding=None):
        L = target.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(L)
        x = self.target(target) + self.target_positions[:L]
        memory = self.encode(source, padding)
        return self.output(self.both.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True,
                                             memory_key_padding_mask=padding))


class Vit(nn.Module):
    def __init__(self, c):
        super().__init__()
        C, side = c["width"], 28 // c["patch"]
        self.patch, self.side = c["patch"], side
        self.project, self.first = nn.Linear(c["patch"] ** 2, C), nn.Parameter(torch.zeros(1, 1, C))
        self.positions = nn.Parameter(torch.zeros(1 + side * side, C))
        self.layers = nn.ModuleList(PreNormLayer(C, c["heads"], 0.0, False) for _ in range(c["layers"]))
        self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, c["classes"])

    def forward(self, images):
        B, p, n = images.shape[0], self.patch, self.side
        cut = images.view(B, n, p, n, p).transpose(2, 3).reshape(B, n * n, p * p)
        x = torch.cat((self.first.expand(B, -1, -1), self.project(cut)), 1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


def train_case(c):
    B, L, kind = c["batch"], c.get("length", 1), c["model"]
    if kind == "gpt":
        model, inputs, truth = Gpt(c), (tokens(c["vocabulary"], B, L),), tokens(c["vocabulary"], B, L)
    elif kind in ("lstm", "transformer"):
        V = c["vocabulary"]
        model = Lstm(c) if kind == "lstm" else Transformer(c)
        inputs, truth = (tokens(V, B, L), tokens(V, B, L)), tokens(V, B, L)
    elif kind == "gru":
        model, truth = Gru(c), tokens(c["target"], B, L)
        inputs = (tokens(c["source"], B, L), tokens(c["target"], B, L))
    else:
        model, inputs, truth = Vit(c), (torch.randn(B, 28, 28),), tokens(c["classes"], B)
    model.train()
    if sys.argv[1] == "compile":
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        out = model(*inputs)
        F.cross_entropy(out.flatten(0, -2), truth.flatten()).backward()
        optimizer.step()

    return step, sum(p.numel() for p in model.parameters())


NO_TARGET = -1


def padded(sequences, fill, length=0):
    length = length or max(len(s) for s in sequences)
    return torch.tensor([s + [fill] * (length - len(s)) for s in sequences])


def padded_batch(c, batch):
    """Documents are padded to the block, as is usual; sentences of similar length to the longest of their batch."""
    if c["model"] == "gpt":
        return (padded([a for a, _ in batch], 0, c["block"]),), padded([b for _, b in batch], NO_TARGET, c["block"])
    source, target = padded([a for a, _ in batch], 0), padded([b[:-1] for _, b in batch], 0)
    lengths = torch.tensor([len(a) for a, _ in batch]).unsqueeze(1)
    padding = torch.zeros(source.shape).masked_fill(torch.arange(source.shape[1]) >= lengths, -math.inf)
    return (source, target, padding), padded([b[1:] for _, b in batch], NO_TARGET)


def epoch_case(c):
    model = (Gpt(c) if c["model"] == "gpt" else Transformer(c)).train()
    batches = [padded_batch(c, b) for b in c["batches"]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def epoch():
        for inputs, truth in batches:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(*inputs).flatten(0, -2), truth.flatten(), ignore_index=NO_TARGET).backward()
            optimizer.step()

    return epoch, sum(p.numel() for p in model.parameters())


@torch.inference_mode()
def write_gpt(model, prompt, steps):
    C = model.positions.shape[1]
    room = (1, model.layers[0].heads, model.positions.shape[0], C // model.layers[0].heads)
    past = [(torch.empty(room), torch.empty(room)) for _ in model.layers]
    fresh, at, written = prompt, 0, []
    for _ in range(steps):
        scores = model(fresh, past, at)
        at += fresh.shape[1]
        fresh = scores[:, -1].argmax(-1, keepdim=True)
        written.append(fresh)
    return torch.cat(written, 1)


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


@torch.inference_mode()
def write_transformer(model, source, steps):
    C, H = model.width, model.heads
    memory, layers = model.encode(source), model.both.decoder.layers
    cross, past = [], []
    for layer in layers:
        w, b = layer.multihead_attn.in_proj_weight[C:], layer.multihead_attn.in_proj_bias[C:]
        cross.append([heads_of(part, H) for part in F.linear(memory, w, b).chunk(2, -1)])
        past.append([torch.empty(1, H, steps, C // H) for _ in range(2)])
    token, written = torch.zeros(1, 1, dtype=torch.long), []
    for t in range(steps):
        x = model.target(token) + model.target_positions[t:t + 1]
        for layer, (ck, cv), (pk, pv) in zip(layers, cross, past):
            own = layer.self_attn
            q, k, v = F.linear(x, own.in_proj_weight, own.in_proj_bias).chunk(3, -1)
            pk[:, :, t:t + 1], pv[:, :, t:t + 1] = heads_of(k, H), heads_of(v, H)
            a = F.scaled_dot_product_attention(heads_of(q, H), pk[:, :, :t + 1], pv[:, :, :t + 1])
            x = layer.norm1(x + own.out_proj(a.transpose(1, 2).reshape(1, 1, C)))
            other = layer.multihead_attn
            q = F.linear(x, other.in_proj_weight[:C], other.in_proj_bias[:C])
            a = F.scaled_dot_product_attention(heads_of(q, H), ck, cv)
            x = layer.norm2(x + other.out_proj(a.transpose(1, 2).reshape(1, 1, C)))
            x = layer.norm3(x + layer.linear2(F.relu(layer.linear1(x))))
        token = model.output(model.both.decoder.norm(x))[:, -1].argmax(-1, keepdim=True)
        written.append(token)
    return torch.cat(written, 1)


def decode_case(c):
    model = (Gpt(c) if c["model"] == "gpt" else Transformer(c)).eval()
    start = tokens(c["vocabulary"], 1, c["length"])
    write = write_gpt if c["model"] == "gpt" else write_transformer
    return lambda: write(model, start, c["steps"]), sum(p.numel() for p in model.parameters())


def attention_case(c):
    shape_q = (c["batch"], c["heads"], c["queries"], c["width"])
    shape_k = (c["batch"], c["heads"], c["keys"], c["width"])
    both = c["backward"]
    q, k, v = (torch.randn(s, requires_grad=both) for s in (shape_q, shape_k, shape_k))
    d_out = torch.randn(shape_q)

    def run():
        with torch.set_grad_enabled(both):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=c["causal"])
        if both:
            q.grad = k.grad = v.grad = None
            out.backward(d_out)

    return run, 0


def gemm_case(c):
    a = torch.randn((c["K"], c["M"]) if c["layout"][0] == "T" else (c["M"], c["K"]))
    b = torch.randn((c["N"], c["K"]) if c["layout"][1] == "T" else (c["K"], c["N"]))
    a, b = a.T if c["layout"][0] == "T" else a, b.T if c["layout"][1] == "T" else b
    out = torch.empty(c["M"], c["N"])
    return lambda: torch.matmul(a, b, out=out), 0


BUILDERS = {"train": train_case, "epoch": epoch_case, "decode": decode_case, "attention": attention_case, "gemm": gemm_case}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    before, run = status("VmRSS"), None
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "case":
            c = json.loads(rest)
            run, parameters = BUILDERS[c["kind"]](c)
            answer = {"parameters": parameters}
        elif verb == "run":
            start = time.perf_counter()
            for _ in range(int(rest)):
                run()
            answer = {"seconds": (time.perf_counter() - start) / int(rest)}
        else:
            answer = {"bytes": status("VmHWM") - before}
        print(json.dumps(answer), file=answers, flush=True)


main()

"""Writes tests/fixtures/nn/*.txt: small layers and models of PyTorch with their outputs and gradients.

usage: python3 make_nn_fixtures.py OUTPUT_FOLDER        (needs PyTorch; run by hand, the results are committed)
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

OUT = sys.argv[1]


def write(name, tensors):
    with open(f"{OUT}/{name}.txt", "w") as f:
        for key, value in tensors.items():
            value = torch.as_tensor(value)
            f.write(" ".join([key] + [str(n) for n in value.shape]) + "\n")
            f.write(" ".join(f"{v:.8g}" for v in value.detach().reshape(-1).tolist()) + "\n")


def params(module, rename=lambda n: n):
    return {"param." + rename(n): p for n, p in module.named_parameters()}


def grads(module, rename=lambda n: n):
    return {"grad." + rename(n): p.grad for n, p in module.named_parameters()}


def packed(x, lengths):
    """[B, L, C] without the rows past each length, sequence after sequence."""
    return torch.cat([x[b, :n] for b, n in enumerate(lengths)])


def recurrent(name, kind, bidirectional):
    torch.manual_seed(1)
    lengths, inputs, hidden, layers = [3, 5, 1, 4], 3, 4, 2
    rnn = kind(inputs, hidden, layers, batch_first=True, bidirectional=bidirectional)
    x = torch.randn(4, 5, inputs, requires_grad=True)
    out, last = rnn(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    last = last if isinstance(last, tuple) else (last,)
    probe = torch.randn_like(out)
    probes = [torch.randn_like(s) for s in last]
    loss = (packed(out, lengths) * packed(probe, lengths)).sum() + sum((s * p).sum() for s, p in zip(last, probes))
    loss.backward()
    data = {"lengths": torch.tensor(lengths), "x": packed(x, lengths), "out": packed(out, lengths),
            "probe": packed(probe, lengths), "grad_x": packed(x.grad, lengths)}
    for which, s, p in zip("hc", last, probes):
        data["last_" + which], data["probe_" + which] = s, p
    write(name, {**data, **params(rnn), **grads(rnn)})


def layer_norm():
    torch.manual_seed(2)
    ln = nn.LayerNorm(7)
    nn.init.normal_(ln.weight), nn.init.normal_(ln.bias)
    x = torch.randn(5, 7, requires_grad=True)
    probe = torch.randn(5, 7)
    out = ln(x)
    (out * probe).sum().backward()
    write("layer_norm", {"x": x, "probe": probe, "out": out, "grad_x": x.grad, **params(ln), **grads(ln)})


def cross_entropy():
    torch.manual_seed(3)
    x = (3 * torch.randn(6, 9)).requires_grad_()
    targets = torch.tensor([1, 8, -1, 0, 4, -1])
    loss = F.cross_entropy(x, targets, ignore_index=-1, label_smoothing=0.1)
    loss.backward()
    write("cross_entropy", {"x": x, "targets": targets, "loss": loss, "grad_x": x.grad})


def multi_head(name, self_attention):
    torch.manual_seed(4)
    width, heads, memory_width = 6, 3, 6 if self_attention else 5
    mha = nn.MultiheadAttention(width, heads, batch_first=True, kdim=memory_width, vdim=memory_width)
    for p in mha.parameters():
        nn.init.normal_(p, 0, 0.5)
    q_lengths = [4, 2, 3]
    k_lengths = q_lengths if self_attention else [1, 5, 3]
    q = torch.randn(3, 4, width, requires_grad=True)
    m = q if self_attention else torch.randn(3, 5, memory_width, requires_grad=True)
    hidden = torch.tensor([[j >= n for j in range(m.shape[1])] for n in k_lengths])
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1) if self_attention else None
    out, weights = mha(q, m, m, key_padding_mask=hidden, attn_mask=causal, average_attn_weights=False)
    probe = torch.randn_like(out)
    (packed(out, q_lengths) * packed(probe, q_lengths)).sum().backward()
    joint = {"in_proj_weight": None, "q": mha.q_proj_weight, "k": mha.k_proj_weight, "v": mha.v_proj_weight}
    data = {"lengths": torch.tensor(q_lengths), "memory_lengths": torch.tensor(k_lengths), "q": packed(q, q_lengths),
            "probe": packed(probe, q_lengths), "out": packed(out, q_lengths), "grad_q": packed(q.grad, q_lengths),
            "weights_1_2": weights[1, 2, :q_lengths[1], :k_lengths[1]]}

    def both(kind, get):
        data[kind + "output.weight"], data[kind + "output.bias"] = get(mha.out_proj.weight), get(mha.out_proj.bias)
        if self_attention:
            data[kind + "qkv.weight"], data[kind + "qkv.bias"] = get(mha.in_proj_weight), get(mha.in_proj_bias)
        else:
            bias = get(mha.in_proj_bias)
            data[kind + "query.weight"], data[kind + "query.bias"] = get(joint["q"]), bias[:width]
            data[kind + "key_value.weight"] = torch.cat([get(joint["k"]), get(joint["v"])])
            data[kind + "key_value.bias"] = bias[width:]

    both("param.", lambda p: p)
    both("grad.", lambda p: p.grad)
    if not self_attention:
        data["memory"], data["grad_memory"] = packed(m, k_lengths), packed(m.grad, k_lengths)
    write(name, data)


def pack(x, lengths):
    return nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)


def unpack(x):
    return nn.utils.rnn.pad_packed_sequence(x, batch_first=True)[0]


class Reverse(nn.Module):
    """LSTM encoder-decoder, dot-product attention after the decoder."""

    def __init__(self, vocab=6, emb=3, hid=4):
        super().__init__()
        self.source_embedding, self.target_embedding = nn.Embedding(vocab, emb), nn.Embedding(vocab, emb)
        self.encoder, self.decoder = nn.LSTM(emb, hid, batch_first=True), nn.LSTM(emb, hid, batch_first=True)
        self.combine, self.output = nn.Linear(2 * hid, hid), nn.Linear(hid, vocab)

    def forward(self, src, src_lengths, tgt, tgt_lengths):
        e, state = self.encoder(pack(self.source_embedding(src), src_lengths))
        e = unpack(e)
        s = unpack(self.decoder(pack(self.target_embedding(tgt), tgt_lengths), state)[0])
        z = s @ e.transpose(1, 2)
        hidden = torch.tensor([[j >= n for j in range(e.shape[1])] for n in src_lengths])
        c = torch.softmax(z.masked_fill(hidden[:, None], float("-inf")), -1) @ e
        return self.output(torch.tanh(self.combine(torch.cat([c, s], -1))))


class GruTranslator(nn.Module):
    """Bidirectional GRU encoder, GRU decoder that attends with its state before every step."""

    def __init__(self, vocab=6, emb=3, hid=4):
        super().__init__()
        self.source_embedding, self.target_embedding = nn.Embedding(vocab, emb), nn.Embedding(vocab, emb)
        self.encoder = nn.GRU(emb, hid, bidirectional=True, batch_first=True)
        self.bridge, self.key = nn.Linear(2 * hid, hid), nn.Linear(2 * hid, hid)
        self.cell = nn.GRUCell(emb + 2 * hid, hid)
        self.output = nn.Linear(hid + 2 * hid + emb, vocab)
        self.scale = hid ** -0.5

    def forward(self, src, src_lengths, tgt, tgt_lengths):
        e, last = self.encoder(pack(self.source_embedding(src), src_lengths))
        e = unpack(e)
        h = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        k, x, outs = self.key(e), self.target_embedding(tgt), []
        hidden = torch.tensor([[j >= n for j in range(e.shape[1])] for n in src_lengths])
        for t in range(tgt.shape[1]):
            z = torch.bmm(k, h.unsqueeze(2)).squeeze(2) * self.scale
            a = torch.softmax(z.masked_fill(hidden, float("-inf")), -1)
            c = torch.bmm(a.unsqueeze(1), e).squeeze(1)
            h = self.cell(torch.cat([x[:, t], c], -1), h)
            outs.append(torch.cat([h, c, x[:, t]], -1))
        return self.output(torch.stack(outs, 1))


def seq2seq(name, model, rename):
    torch.manual_seed(5)
    model = model()
    src_lengths, tgt_lengths = [3, 5, 1], [4, 2, 3]
    src, tgt = torch.randint(0, 6, (3, 5)), torch.randint(0, 6, (3, 4))
    targets = torch.randint(0, 6, (3, 4))
    logits = packed(model(src, src_lengths, tgt, tgt_lengths), tgt_lengths)
    loss = F.cross_entropy(logits, packed(targets, tgt_lengths), label_smoothing=0.1)
    loss.backward()
    write(name, {"source_lengths": torch.tensor(src_lengths), "target_lengths": torch.tensor(tgt_lengths),
                 "source": packed(src, src_lengths), "inputs": packed(tgt, tgt_lengths),
                 "targets": packed(targets, tgt_lengths), "logits": logits, "loss": loss,
                 **params(model, rename), **grads(model, rename)})


def gru_names(n):
    for ours, theirs in {"bridge.": "bridge_h.0.", "key.": "attention.key."}.items():
        if n.startswith(ours):
            return theirs + n[len(ours):]
    return "decoder." + n[5:] + "_l0" if n.startswith("cell.") else n


def replaced(name, pairs):
    for theirs, ours in pairs:
        name = name.replace(theirs, ours)
    return name


STACK_NAMES = [("self_attn.in_proj_", "self.qkv."), ("self_attn.out_proj", "self.output"), ("linear1", "feed_forward.inner"),
               ("linear2", "feed_forward.outer"), ("multihead_attn.out_proj", "cross.output"), ("tr.", ""),
               ("se.", "source.tokens."), ("te.", "target.tokens."), ("sp.", "source.positions."),
               ("tp.", "target.positions.")]


def transformer_names(n):
    n = replaced(n, STACK_NAMES)
    if ".layers." in n:
        last = "feed_norm"
        if n.startswith("decoder"):
            n = n.replace("norm3", last)
            last = "cross_norm"
        n = n.replace("norm1", "self_norm").replace("norm2", last)
    return n


def transformer(name, norm_first):
    torch.manual_seed(6)
    width, vocab = 6, 7
    m = nn.Module()
    m.se, m.te, m.sp, m.tp = (nn.Embedding(n, width) for n in (vocab, vocab, 8, 8))
    m.tr = nn.Transformer(width, 2, 2, 1, 8, 0.0, batch_first=True, norm_first=norm_first)
    m.output = nn.Linear(width, vocab)
    for p in m.parameters():
        nn.init.normal_(p, 0, 0.5)
    src_lengths, tgt_lengths = [3, 5, 1], [4, 2, 3]
    src, tgt, targets = (torch.randint(0, vocab, (3, n)) for n in (5, 4, 4))
    hidden = torch.tensor([[j >= n for j in range(5)] for n in src_lengths])
    memory = m.tr.encoder(m.se(src) + m.sp.weight[:5], src_key_padding_mask=hidden)
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    out = m.tr.decoder(m.te(tgt) + m.tp.weight[:4], memory, tgt_mask=causal, memory_key_padding_mask=hidden)
    logits = packed(m.output(out), tgt_lengths)
    loss = F.cross_entropy(logits, packed(targets, tgt_lengths))
    loss.backward()
    data = {"source_lengths": torch.tensor(src_lengths), "target_lengths": torch.tensor(tgt_lengths),
            "source": packed(src, src_lengths), "inputs": packed(tgt, tgt_lengths),
            "targets": packed(targets, tgt_lengths), "logits": logits, "loss": loss}
    for n, p in m.named_parameters():
        ours = transformer_names(n)
        if "multihead_attn.in_proj" in ours:
            head, kind = ours.split("multihead_attn.in_proj_")
            for get, to in ((p, "param."), (p.grad, "grad.")):
                data[to + head + "cross.query." + kind] = get[:width]
                data[to + head + "cross.key_value." + kind] = get[width:]
        else:
            data["param." + ours], data["grad." + ours] = p, p.grad
    write(name, data)


class Block(nn.Module):
    def __init__(self, dim, heads, inner, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, inner), nn.Linear(inner, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, c))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


BLOCK_NAMES = [("blocks.", "stack.layers."), ("ln1", "self_norm"), ("ln2", "feed_norm"), ("qkv", "self.qkv"),
               ("proj", "self.output"), ("fc1", "feed_forward.inner"), ("fc2", "feed_forward.outer"),
               ("ln.", "stack.norm."), ("tok.", "embed.tokens."), ("pos.", "embed.positions.")]


def gpt():
    torch.manual_seed(7)
    width, vocab = 6, 9
    m = nn.Module()
    m.tok, m.pos = nn.Embedding(vocab, width), nn.Embedding(8, width)
    m.blocks = nn.ModuleList(Block(width, 2, 8, True) for _ in range(2))
    m.ln, m.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
    lengths = [3, 6, 1]
    x, targets = torch.randint(0, vocab, (3, 6)), torch.randint(0, vocab, (3, 6))
    h = m.tok(x) + m.pos.weight[:6]
    for block in m.blocks:
        h = block(h)
    logits = packed(m.head(m.ln(h)), lengths)
    loss = F.cross_entropy(logits, packed(targets, lengths))
    loss.backward()
    rename = lambda n: replaced(n, BLOCK_NAMES)
    write("gpt", {"lengths": torch.tensor(lengths), "tokens": packed(x, lengths), "targets": packed(targets, lengths),
                  "logits": logits, "loss": loss, **params(m, rename), **grads(m, rename)})


def vit():
    torch.manual_seed(8)
    width = 6
    m = nn.Module()
    m.patch, m.class_token = nn.Linear(8, width), nn.Parameter(torch.randn(1, width))
    m.positions = nn.Parameter(torch.randn(7, width))
    m.blocks = nn.ModuleList(Block(width, 2, 8, False) for _ in range(2))
    m.ln, m.head = nn.LayerNorm(width), nn.Linear(width, 3)
    images = torch.randn(3, 2, 4, 6)  # two channels, patches of 2 by 2
    patches = F.unfold(images, 2, stride=2).transpose(1, 2)
    h = torch.cat([m.class_token.expand(3, 1, width), m.patch(patches)], 1) + m.positions
    for block in m.blocks:
        h = block(h)
    logits = m.head(m.ln(h)[:, 0])
    targets = torch.tensor([2, 0, 1])
    loss = F.cross_entropy(logits, targets)
    loss.backward()
    rename = lambda n: replaced(n, BLOCK_NAMES)
    write("vit", {"images": images, "targets": targets, "logits": logits, "loss": loss, **params(m, rename),
                  **grads(m, rename)})


recurrent("lstm", nn.LSTM, True)
recurrent("lstm_one_way", nn.LSTM, False)
recurrent("gru", nn.GRU, True)
layer_norm()
cross_entropy()
multi_head("multi_head_self", True)
multi_head("multi_head_cross", False)
seq2seq("seq2seq_lstm", Reverse, lambda n: n)
seq2seq("seq2seq_gru", GruTranslator, gru_names)
transformer("transformer_post_norm", False)
transformer("transformer_pre_norm", True)
gpt()
vit()

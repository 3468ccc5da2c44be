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


recurrent("lstm", nn.LSTM, True)
recurrent("lstm_one_way", nn.LSTM, False)
recurrent("gru", nn.GRU, True)
layer_norm()
cross_entropy()
multi_head("multi_head_self", True)
multi_head("multi_head_cross", False)
seq2seq("seq2seq_lstm", Reverse, lambda n: n)
seq2seq("seq2seq_gru", GruTranslator, gru_names)

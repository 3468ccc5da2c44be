"""Writes tests/fixtures/nn_*.txt: small layers and models of PyTorch with their outputs and gradients.

usage: python3 make_nn_fixtures.py OUTPUT_FOLDER        (needs PyTorch; run by hand, the results are committed)
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

OUT = sys.argv[1]


def write(name, tensors):
    with open(f"{OUT}/nn_{name}.txt", "w") as f:
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


recurrent("lstm", nn.LSTM, True)
recurrent("lstm_one_way", nn.LSTM, False)
recurrent("gru", nn.GRU, True)
layer_norm()
cross_entropy()

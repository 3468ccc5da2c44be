"""qkv.torch: torch's semantics, gradients checked by torch itself, a Transformer trained with either attention."""
import sys
import unittest

import numpy as np
import torch
import torch.utils.checkpoint

import qkv
import qkv.torch
from docs_test import blocks
from memory import resident
from torch_sdpa_test import plain


class Semantics(unittest.TestCase):
    def test_replacing_torchs(self):
        functional = torch.nn.functional
        before = getattr(functional, "scaled_dot_product_attention", None)
        x = torch.randn(1, 2, 3, 4)
        with qkv.torch.sdpa():
            self.assertIs(functional.scaled_dot_product_attention, qkv.torch.scaled_dot_product_attention)
            functional.scaled_dot_product_attention(x, x, x, dropout_p=0.0, is_causal=True)
        self.assertIs(getattr(functional, "scaled_dot_product_attention", None), before)

    def test_dropout_follows_torchs_seed(self):
        x = torch.randn(1, 2, 30, 4)
        runs = []
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            runs.append(qkv.torch.scaled_dot_product_attention(x, x, x, dropout_p=0.5))
        self.assertTrue(torch.equal(runs[0], runs[1]))
        self.assertFalse(torch.equal(runs[0], runs[2]))

    def test_bad_tensors(self):
        x = torch.randn(1, 2, 3, 4)
        for kind, text, call in [
                (TypeError, "dtype torch.int64", lambda: qkv.torch.attention(x.long(), x, x)),
                (TypeError, "q has dtype torch.complex64", lambda: qkv.torch.attention(x.cfloat(), x, x)),
                (TypeError, "v is a list", lambda: qkv.torch.attention(x, x, x.tolist())),
                (TypeError, "q requires a gradient", lambda: qkv.attention(x.clone().requires_grad_(), x, x)),
                (TypeError, "on meta", lambda: qkv.torch.attention(torch.empty(1, 2, 3, 4, device="meta"), x, x)),
                (ValueError, "cannot be combined",
                 lambda: qkv.torch.scaled_dot_product_attention(x, x, x, torch.ones(3, 3).bool(), is_causal=True)),
                (ValueError, "head sizes differ", lambda: qkv.torch.attention(x, x[..., :2], x)),
                (TypeError, "torch.sparse_coo", lambda: qkv.torch.attention(x.to_sparse(), x, x)),
        ]:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                call()


class Memory(unittest.TestCase):
    def test_tensors_are_shared_not_copied(self):
        x = torch.randn(2, 3, 8, 4)
        out = qkv.torch.attention(x, x, x)
        array = out.numpy()
        self.assertEqual(array.ctypes.data, out.data_ptr())
        strided = torch.randn(2, 8, 3, 4).transpose(1, 2)
        torch.testing.assert_close(qkv.torch.attention(strided, x, x),
                                   qkv.torch.attention(strided.contiguous(), x, x), rtol=0, atol=0)

    def test_numpys_functions_take_tensors(self):
        x = torch.randn(2, 3, 8, 4)
        np.testing.assert_array_equal(qkv.attention(x, x, x), qkv.torch.attention(x, x, x).numpy())
        back = torch.from_dlpack(qkv.attention(x, x, x))
        self.assertEqual(back.shape, x.shape)

    def test_many_calls_leak_nothing(self):
        x = torch.randn(1, 2, 16, 8, requires_grad=True)
        bias = torch.zeros(2, 16, 16, requires_grad=True)
        mask = torch.ones(1, 1, 1, 16, dtype=torch.bool)

        def calls(n):
            for _ in range(n):
                torch.autograd.grad(qkv.torch.attention(x, x, x, bias=bias).sum(), (x, bias))
                with torch.no_grad():
                    qkv.torch.scaled_dot_product_attention(x, x, x, mask)
                try:
                    qkv.torch.attention(x, x, x, bias=bias[:, :3])
                except ValueError:
                    pass

        calls(1000)
        before = resident()
        calls(5000)
        self.assertLess(resident() - before, 1 << 20)

    def test_a_change_in_place_is_noticed(self):
        x = torch.randn(1, 2, 3, 4, requires_grad=True)
        y = x * 1
        out = qkv.torch.attention(y, y, y)
        y.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            out.sum().backward()

    def test_what_is_saved_is_torchs_to_keep(self):
        attend = lambda x: qkv.torch.attention(x, x, x, causal=True)
        x = torch.randn(1, 2, 16, 8, requires_grad=True)
        expected, = torch.autograd.grad(attend(x).square().sum(), x)
        again = torch.utils.checkpoint.checkpoint(attend, x, use_reentrant=False)
        self.assertTrue(torch.equal(torch.autograd.grad(again.square().sum(), x)[0], expected))
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
            out = attend(x)
        self.assertTrue(torch.equal(torch.autograd.grad(out.square().sum(), x)[0], expected))
        out = attend(x)
        x.data = torch.randn(1, 2, 16, 8)  # the memory that forward read is gone: wrong numbers, but no crash
        out.sum().backward()

    def test_second_derivatives_are_refused(self):
        x = torch.randn(1, 2, 3, 4, requires_grad=True)
        first, = torch.autograd.grad(qkv.torch.attention(x, x, x).square().sum(), x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "differentiate twice"):
            first.sum().backward()

    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = torch.nn.Linear(8, 8)(torch.randn(1, 2, 3, 8))
            self.assertEqual(qkv.torch.attention(x, x, x).dtype, torch.bfloat16)

    def test_a_graph_that_is_kept(self):
        x = torch.randn(1, 2, 3, 4, requires_grad=True)
        out = qkv.torch.attention(x, x, x).square().sum()
        first, = torch.autograd.grad(out, x, retain_graph=True)
        second, = torch.autograd.grad(out, x)
        self.assertTrue(torch.equal(first, second))


class Gradients(unittest.TestCase):
    def test_gradcheck_with_every_rule(self):
        torch.manual_seed(0)
        leaf = lambda *shape: torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        q, k, v, w = leaf(2, 4, 5, 3), leaf(2, 2, 6, 3), leaf(2, 2, 6, 2), leaf(3)
        mask = torch.rand(5, 6) < 0.7
        for rule in [dict(), dict(causal=True), dict(causal=True, offset=1), dict(offset=[0, 2], causal=True),
                     dict(scale=0.7), dict(softcap=2.0), dict(window=2), dict(window=(1, None)), dict(mask=mask),
                     dict(valid_lens=[4, 0]), dict(normaliser="entmax15"), dict(normaliser="sparsemax"), dict(normaliser="hard"),
                     dict(dropout=0.3, seed=5), dict(score="dot"), dict(causal=True, softcap=3.0, mask=mask)]:
            for bias_shape in [None, (5, 6), (2, 4, 5, 6), (4, 1, 6)]:
                bias = None if bias_shape is None else leaf(*bias_shape)
                with self.subTest(rule=str(rule), bias=bias_shape):
                    run = lambda q, k, v, b: qkv.torch.attention(q, k, v, bias=b, **rule)  # noqa: B023
                    self.assertTrue(torch.autograd.gradcheck(run, (q, k, v, bias)))
        run = lambda q, k, v, w: qkv.torch.attention(q, k, v, score="additive", additive=w, valid_lens=[4, 6])
        self.assertTrue(torch.autograd.gradcheck(run, (q, k, v, w)))
        packed = [leaf(7, 2, 3), leaf(9, 1, 3), leaf(9, 1, 2)]
        run = lambda q, k, v: qkv.torch.attention(q, k, v, q_offsets=[0, 3, 7], k_offsets=[0, 4, 9])
        self.assertTrue(torch.autograd.gradcheck(run, packed))

    def test_only_what_needs_a_gradient(self):
        q, k, v = torch.randn(3, 1, 2, 4, 5)
        v.requires_grad_()
        qkv.torch.attention(q, k, v).sum().backward()
        self.assertIsNone(q.grad)
        self.assertEqual(v.grad.shape, v.shape)


class Block(torch.nn.Module):
    """A Transformer block whose attention is handed in."""

    def __init__(self, width, heads, attend):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, 2 * width), torch.nn.GELU(),
                                         torch.nn.Linear(2 * width, width))
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])

    def forward(self, x):
        B, L, C = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(B, L, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(B, L, C))
        return x + self.inner(self.norms[1](x))


def losses(attend, steps=40):
    torch.manual_seed(0)
    width, vocabulary, length = 32, 12, 16
    model = torch.nn.Sequential(torch.nn.Embedding(vocabulary, width), Block(width, 4, attend), Block(width, 4, attend),
                                torch.nn.Linear(width, vocabulary))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    data = torch.Generator().manual_seed(1)
    all_losses = []
    for _ in range(steps):
        x = torch.randint(0, vocabulary, (8, length), generator=data)
        y = x.roll(3, 1)
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        all_losses.append(loss.item())
    return all_losses


class Guide(unittest.TestCase):
    def test_the_blocks_that_need_torch(self):
        found = blocks("docs/PYTHON.md", torch=True)
        self.assertTrue(found)
        for code in found:
            exec(compile(code, "docs/PYTHON.md", "exec"), {})  # noqa: S102


class Training(unittest.TestCase):
    def test_a_transformer_comes_to_the_same_losses(self):
        mine = losses(lambda q, k, v: qkv.torch.attention(q, k, v, causal=True))
        theirs = losses(lambda q, k, v: plain(q, k, v, is_causal=True))
        self.assertLess(mine[-1], mine[0])
        np.testing.assert_allclose(mine, theirs, atol=1e-4)

    def test_in_workers_of_a_data_loader(self):
        class Set(torch.utils.data.Dataset):
            def __len__(self):
                return 8

            def __getitem__(self, i):
                x = torch.full((1, 2, 65, 16), float(i))
                return qkv.torch.attention(x, x, x)

        x = torch.randn(4, 2, 65, 16)
        qkv.torch.attention(x, x, x)  # the pool is running when the workers are made
        loader = torch.utils.data.DataLoader(Set(), batch_size=1, num_workers=2, multiprocessing_context="fork")
        for i, batch in enumerate(loader):
            torch.testing.assert_close(batch, torch.full_like(batch, float(i)))


if __name__ == "__main__":
    print("torch", torch.__version__, file=sys.stderr)
    unittest.main()

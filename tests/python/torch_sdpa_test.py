"""scaled_dot_product_attention by qkv against torch's own, or where torch has none a plain one: values and gradients."""
import random
import sys
import unittest

import torch

import qkv.torch

OWN = getattr(torch.nn.functional, "scaled_dot_product_attention", None)


def plain(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """scaled_dot_product_attention from torch's own ops; a query that sees no key gets zeros."""
    if enable_gqa:
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    z = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(z.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        z = z.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else z + attn_mask
    seen = (z > -torch.inf).any(-1, keepdim=True)
    return torch.where(seen, torch.softmax(z.masked_fill(~seen, 0), -1), torch.zeros(())) @ v


class Draw:
    """One random call: tensors, keyword arguments and a name."""

    def __init__(self, dice):
        self.dice = dice
        axes = dice.choice([0, 1, 1, 2, 2, 2, 3])  # before L and E
        sizes = [0, 1, 2, 3] if dice.random() < 0.1 else [1, 2, 3]
        leading = [dice.choice(sizes) for _ in range(axes)]
        L, S = (dice.choice([1, 2, 5, 8, 17, 33]) for _ in range(2))
        E, Ev = (dice.choice([1, 3, 8, 16]) for _ in range(2))
        gqa = axes >= 1 and leading[-1] > 0 and dice.random() < 0.25
        before_q = [*leading[:-1], leading[-1] * dice.choice([2, 3])] if gqa else leading
        before_k = [1 if dice.random() < 0.15 else n for n in leading] if not gqa else leading
        before_v = [*leading[:-1], 1] if gqa and dice.random() < 0.2 else before_k
        self.inputs = [self.tensor(*before_q, L, E), self.tensor(*before_k, S, E), self.tensor(*before_v, S, Ev)]
        self.kind = dice.choice(["none", "causal", "bool", "bool", "float", "float", "blind", "minus infinity"])
        self.rule = dict(is_causal=self.kind == "causal", scale=dice.choice([None, None, 0.3]))
        if gqa:
            self.rule["enable_gqa"] = True
        shape = (*(1 if dice.random() < 0.3 else n for n in [*before_q, L]), S)
        self.mask = self.score_array(shape[dice.randint(0, len(shape) - 2):])
        self.name = f"{[tuple(t.shape) for t in self.inputs]} {self.kind} {self.rule}"

    def tensor(self, *shape):
        """Contiguous, or with its last or its row axis elsewhere in memory, or every other row of a larger one."""
        way = self.dice.choice(["plain", "plain", "rows", "columns", "every other"])
        if way == "columns":
            return torch.randn(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2).requires_grad_()
        if way == "rows" and len(shape) > 2:
            return torch.randn(*shape[:-3], shape[-2], shape[-3], shape[-1]).transpose(-2, -3).requires_grad_()
        if way == "every other":
            return torch.randn(*shape[:-2], 2 * shape[-2], shape[-1])[..., ::2, :].requires_grad_()
        return torch.randn(*shape, requires_grad=True)

    def score_array(self, shape):
        if self.kind in ("none", "causal"):
            return None
        if self.kind == "float":
            return torch.randn(*shape, requires_grad=True)
        seen = torch.rand(*shape) < (0.3 if self.kind == "blind" else 0.7)
        if self.kind == "blind":
            seen[..., 0, :] = False  # a query that sees nothing
        return seen if self.kind != "minus infinity" else torch.zeros(shape).masked_fill(~seen, -torch.inf)

    def run(self, function):
        """The result, and the gradients of everything that has one."""
        out = function(*self.inputs, self.mask, **self.rule)
        leaves = [*self.inputs, *([self.mask] if self.kind == "float" else [])]
        weights = torch.arange(out.numel(), dtype=out.dtype).reshape(out.shape).sin()
        grads = torch.autograd.grad((out * weights).sum(), leaves, allow_unused=out.numel() == 0)
        return [out, *(torch.zeros_like(t) if g is None else g for t, g in zip(leaves, grads))]


class AgainstTorch(unittest.TestCase):
    def test_random_calls(self):
        dice = random.Random(7)
        torch.manual_seed(7)
        for n in range(400):
            call = Draw(dice)
            with self.subTest(n=n, call=call.name):
                theirs = call.run(lambda q, k, v, mask, **rule: (OWN or plain)(q, k, v, attn_mask=mask, **rule))
                mine = call.run(qkv.torch.scaled_dot_product_attention)
                for name, a, b in zip(("out", "q", "k", "v", "mask"), mine, theirs):
                    torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-5, msg=lambda m: f"{name}: {m}")  # noqa: B023

    def test_other_dtypes(self):
        torch.manual_seed(1)
        for dtype, near in [(torch.float64, 1e-10), (torch.float16, 5e-3), (torch.bfloat16, 3e-2)]:
            with self.subTest(dtype):
                wide = [torch.randn(2, 3, 5, 4, requires_grad=True, dtype=torch.float64) for _ in range(3)]
                narrow = [t.detach().to(dtype).requires_grad_() for t in wide]
                mine = qkv.torch.scaled_dot_product_attention(*narrow, is_causal=True)
                self.assertEqual(mine.dtype, dtype)
                expected = plain(*wide, is_causal=True)
                torch.testing.assert_close(mine.double(), expected, rtol=near, atol=near)
                mine.sum().backward()
                expected.sum().backward()
                for a, b in zip(narrow, wide):
                    torch.testing.assert_close(a.grad.double(), b.grad, rtol=near, atol=near)

    def test_masks_that_repeat_along_an_axis(self):
        torch.manual_seed(2)
        q, k, v = torch.randn(3, 2, 4, 5, 3)
        seen = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]]).bool()[:, None, None, :]
        sdpa = qkv.torch.scaled_dot_product_attention
        for mask in (seen, torch.zeros(2, 1, 1, 5).masked_fill(~seen, -torch.inf), torch.randn(1, 4, 5, 1)):
            wide = mask.expand(2, 4, 5, 5)
            self.assertTrue(torch.equal(sdpa(q, k, v, wide), sdpa(q, k, v, wide.contiguous())))
            with self.assertRaises(RuntimeError):
                sdpa(q, k, v, mask.expand(2, 4, 5, 5)[:1].expand(3, 4, 5, 5))
        leaf = torch.randn(2, 1, 1, 5, requires_grad=True)
        narrow, = torch.autograd.grad(sdpa(q, k, v, leaf).square().sum(), leaf)
        wide, = torch.autograd.grad(sdpa(q, k, v, leaf.expand(2, 4, 5, 5)).square().sum(), leaf)
        torch.testing.assert_close(wide, narrow)

    def test_what_is_refused(self):
        x, sdpa = torch.randn(2, 4, 5, 3), qkv.torch.scaled_dot_product_attention
        mask = torch.ones(5, 5, dtype=torch.bool)
        for text, call in [
                ("cannot be combined", lambda f: f(x, x, x, mask, is_causal=True)),
                ("", lambda f: f(x, x[:, :2], x[:, :2])),  # fewer key heads without enable_gqa
                ("", lambda f: f(x, x, x, mask[:3])),
                ("", lambda f: f(x, x, x, mask[:, :3])),
                ("", lambda f: f(x, x[..., :2], x)),
                ("", lambda f: f(x, x[:, :3], x[:, :3], enable_gqa=True)),
                ("expected", lambda f: f(x[0, 0, 0], x, x)),
                ("causal must be True or False", lambda f: f(x, x, x, is_causal="no")),
        ]:
            with self.subTest(text):
                with self.assertRaisesRegex((ValueError, RuntimeError, TypeError), text) as raised:
                    call(sdpa)
                self.assertNotIn("\n", str(raised.exception))
                if OWN is not None:
                    self.assertRaises((ValueError, RuntimeError, TypeError), call, OWN)
        for bad in ((x.tolist(), x, x), (x, None, x), (x, x, "v")):
            with self.assertRaisesRegex(TypeError, "query, key and value must be tensors"):
                sdpa(*bad)
        with self.assertRaisesRegex(ValueError, "keys and values differ"):
            sdpa(x, x, x[:, :, :2])  # torch reads beyond the values


if __name__ == "__main__":
    print("torch", torch.__version__, "with its own function" if OWN else "without one", file=sys.stderr)
    unittest.main()

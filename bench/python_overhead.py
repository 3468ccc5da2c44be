"""What a call through Python costs beyond its work: attention of 8 queries and 8 keys of 8 numbers.

usage: ./run python bench/python_overhead.py [--json]

Microseconds of one call, the least of 500 samples of 20 calls, so that a busy machine hardly matters. With torch also
qkv.torch's, next to an autograd function that saves its inputs and allocates its results but computes nothing.
"""
import json
import sys
import timeit

import numpy as np

import qkv

SHAPE = (1, 1, 8, 8)


def microseconds(call, calls=20, samples=500):
    call()
    return min(timeit.repeat(call, number=calls, repeat=samples)) / calls * 1e6


def numpy_rows():
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype="f4")
    return {"qkv.attention": {"forward": microseconds(lambda: qkv.attention(x, x, x))},
            "qkv.attention_grad": {"both": microseconds(lambda: qkv.attention_grad(x, x, x, x))}}


def torch_rows():
    import torch

    import qkv.torch

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            ctx.save_for_backward(q, k, v)
            return torch.empty_like(q)

        @staticmethod
        def backward(ctx, d_out):
            return tuple(torch.empty_like(t) for t in ctx.saved_tensors)

    torch.set_num_threads(1)
    inputs = [torch.randn(SHAPE, requires_grad=True) for _ in range(3)]
    d_out = torch.randn(SHAPE)

    def row(function):
        with torch.no_grad():
            plain = microseconds(lambda: function(*inputs))
        return {"no_grad": plain, "forward": microseconds(lambda: function(*inputs)),
                "both": microseconds(lambda: torch.autograd.grad(function(*inputs), inputs, d_out))}

    functions = {"a function that computes nothing": Nothing.apply, "qkv.torch.attention": qkv.torch.attention,
                 "qkv.torch.scaled_dot_product_attention": qkv.torch.scaled_dot_product_attention}
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        functions["torch's scaled_dot_product_attention"] = torch.nn.functional.scaled_dot_product_attention
    return {name: row(function) for name, function in functions.items()}


def main():
    rows = numpy_rows()
    try:
        rows.update(torch_rows())
    except ImportError:
        pass  # no torch here
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows))
        return
    print(f"{'µs':42}{'no_grad':>9}{'forward':>9}{'both':>9}")
    for name, row in rows.items():
        print(f"{name:42}" + "".join(f"{row[c]:9.1f}" if c in row else f"{'':9}" for c in ("no_grad", "forward", "both")))


if __name__ == "__main__":
    main()

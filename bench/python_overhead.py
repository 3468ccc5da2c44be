"""What a call through Python costs beyond its work: attention of 8 queries and 8 keys of 8 numbers.

usage: ./run python bench/python_overhead.py [--json]

Microseconds of one call, the least of 500 samples of 20 calls, so that a busy machine hardly matters. With torch also
qkv.torch's, next to an autograd function that saves its inputs and allocates its results but computes nothing.

The last row is what a pass both ways costs beside the kernels when these work on 8 MB (64x4x32x32), so that little of
Python and torch is left in the caches: for qkv.torch, and for the function that computes nothing around as much work.
"""
import json
import sys
import time
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


def beside_the_work(call, work, samples=3000):
    """Microseconds of call() outside the functions that `work` names, as (owner, name); the least of each stretch."""
    marks, least = [], None
    before = [(owner, name, getattr(owner, name)) for owner, name in work]

    def marked(function):
        def run(*arguments):
            marks.append(time.perf_counter())
            result = function(*arguments)
            marks.append(time.perf_counter())
            return result
        return run

    for owner, name, function in before:
        setattr(owner, name, marked(function))
    for _ in range(samples):
        marks[:] = [time.perf_counter()]
        call()
        marks.append(time.perf_counter())
        stretches = [b - a for a, b in zip(marks[::2], marks[1::2])]
        least = stretches if least is None else [min(pair) for pair in zip(least, stretches)]
    for owner, name, function in before:
        setattr(owner, name, function)
    return sum(least) * 1e6


def rows_after_large_work(torch, sdpa):
    class Work:
        arrays = [np.ones((64, 4, 32, 32), "f4") for _ in range(8)]

        @classmethod
        def run(cls):
            for a, b in zip(cls.arrays, cls.arrays[1:]):
                np.multiply(a, a, out=b)

    class Around(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            Work.run()
            out = torch.empty_like(q)
            ctx.save_for_backward(q, k, v, out)
            return out

        @staticmethod
        def backward(ctx, d_out):
            saved = ctx.saved_tensors
            Work.run()
            return tuple(torch.empty_like(t) for t in saved[:3])

    inputs = [torch.randn(64, 4, 32, 32, requires_grad=True) for _ in range(3)]
    d_out = torch.randn(64, 4, 32, 32)

    def both(function):
        def call():
            for t in inputs:
                t.grad = None
            function(*inputs).backward(d_out)
        return call

    qkv.set_num_threads(1)
    return {"beside 8 MB of work, nothing": {"both": beside_the_work(both(Around.apply), [(Work, "run")])},
            "beside 8 MB of work, qkv.torch": {"both": beside_the_work(both(sdpa), [(qkv._qkv, "forward"),
                                                                                   (qkv._qkv, "backward")])}}


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
    return {**{name: row(function) for name, function in functions.items()},
            **rows_after_large_work(torch, qkv.torch.scaled_dot_product_attention)}


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

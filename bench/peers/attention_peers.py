"""Attention in PyTorch, ONNX Runtime or qkv.torch, timed on demand: bench_attention starts it and asks over a pipe.

usage: OMP_NUM_THREADS=N python3 attention_peers.py torch|ort|qkv.torch

Requests, one per line, answered with one JSON line each:
  case {"pass": "forward" | "both", "B":, "H":, "Lq":, "Lk":, "D":, "causal":, "lens": [..], "sets":}
      prepares it; answers the names of the ways to compute it
  run NAME TIMES
      runs it so often; answers the mean seconds of one call
"""
import json
import math
import os
import sys
import time

KIND, THREADS = sys.argv[1], os.environ["OMP_NUM_THREADS"]

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever a library prints must not mix with the answers


def torch_case(c):
    import torch
    if KIND == "torch":
        from torch.nn.functional import scaled_dot_product_attention as sdpa
    else:
        import qkv
        from qkv.torch import scaled_dot_product_attention as sdpa
        qkv.set_num_threads(int(THREADS))
    torch.set_num_threads(int(THREADS))
    shape_q, shape_k = (c["B"], c["H"], c["Lq"], c["D"]), (c["B"], c["H"], c["Lk"], c["D"])
    both = c["pass"] == "both"
    q = torch.randn(shape_q, requires_grad=both)
    sets = [(torch.randn(shape_k, requires_grad=both), torch.randn(shape_k, requires_grad=both))
            for _ in range(c["sets"])]
    mask = None
    if c["lens"]:
        mask = (torch.arange(c["Lk"])[None, :] < torch.tensor(c["lens"])[:, None])[:, None, None, :]
    d_out = torch.randn(shape_q)
    turn = [0]

    def fused():
        turn[0] = (turn[0] + 1) % len(sets)
        k, v = sets[turn[0]]
        if not both:
            with torch.no_grad():
                return sdpa(q, k, v, attn_mask=mask, is_causal=c["causal"])
        q.grad = k.grad = v.grad = None
        sdpa(q, k, v, attn_mask=mask, is_causal=c["causal"]).backward(d_out)

    return {KIND: fused}


def ort_session(nodes, inputs, output, constants=()):
    import onnxruntime as ort
    from onnx import TensorProto, helper
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info(n, TensorProto.FLOAT, s) for n, s in inputs],
                              [info("o", TensorProto.FLOAT, output)], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = int(THREADS), 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def ort_runner(session, sets, output):
    """Inputs and output are bound once, so that no copy is timed."""
    import numpy as np
    import onnxruntime as ort
    room = np.zeros(output, np.float32)
    out = ort.OrtValue.ortvalue_from_numpy(room)
    bindings = []
    for feeds in sets:
        io = session.io_binding()
        for name, value in feeds.items():
            io.bind_ortvalue_input(name, value)
        io.bind_ortvalue_output("o", out)
        bindings.append(io)
    turn = [0]

    def run(_keep=room):
        turn[0] = (turn[0] + 1) % len(bindings)
        session.run_with_iobinding(bindings[turn[0]])

    return run


def ort_case(c):
    import numpy as np
    import onnxruntime as ort
    from onnx import helper, numpy_helper
    if c["pass"] != "forward" or c["lens"]:
        return {}
    rng = np.random.default_rng(0)
    B, H, D = c["B"], c["H"], c["D"]

    arrays = []  # an OrtValue only points into its array

    def value(*shape):
        arrays.append(rng.standard_normal(shape, dtype=np.float32))
        return ort.OrtValue.ortvalue_from_numpy(arrays[-1])

    ways = {}
    kept.append(arrays)
    flat_q, flat_k = (B, c["Lq"], H * D), (B, c["Lk"], H * D)
    q = value(*flat_q)
    fused = ort_session([helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft",
                                          num_heads=H, unidirectional=int(c["causal"]))],
                        [("q", flat_q), ("k", flat_k), ("v", flat_k)], flat_q)
    sets = [{"q": q, "k": value(*flat_k), "v": value(*flat_k)} for _ in range(c["sets"])]
    ways["ort"] = ort_runner(fused, sets, flat_q)
    if not c["causal"]:
        shape_q, shape_k = (B, H, c["Lq"], D), (B, H, c["Lk"], D)
        graph = ort_session([helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
                             helper.make_node("MatMul", ["q", "kt"], ["s0"]),
                             helper.make_node("Mul", ["s0", "c"], ["s"]),
                             helper.make_node("Softmax", ["s"], ["p"], axis=-1),
                             helper.make_node("MatMul", ["p", "v"], ["o"])],
                            [("q", shape_q), ("k", shape_k), ("v", shape_k)], shape_q,
                            [numpy_helper.from_array(np.float32(1 / math.sqrt(D)), "c")])
        q = value(*shape_q)
        sets = [{"q": q, "k": value(*shape_k), "v": value(*shape_k)} for _ in range(c["sets"])]
        ways["ort graph"] = ort_runner(graph, sets, shape_q)
    return ways


def mean_seconds(fn, times):
    start = time.perf_counter()
    for _ in range(times):
        fn()
    return (time.perf_counter() - start) / times


ways, kept = {}, []
for line in sys.stdin:
    verb, _, rest = line.strip().partition(" ")
    if verb == "case":
        ways = {}  # frees the last case before the next is made
        kept.clear()
        ways = (ort_case if KIND == "ort" else torch_case)(json.loads(rest))
        answer = list(ways)
    else:
        name, _, times = rest.rpartition(" ")
        answer = mean_seconds(ways[name], int(times))
    print(json.dumps(answer), file=answers, flush=True)

"""What a user writes who checks types: `mypy --strict` must find nothing. It is not run."""
import numpy as np
import numpy.typing as npt

import qkv


def weights_of(q: npt.NDArray[np.float32], k: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    weights: npt.NDArray[np.float32] = qkv.attention_weights(q, k, causal=True, window=(3, None))
    return weights


def operation(x: npt.NDArray[np.float32]) -> float:
    out = qkv.attention(x, x, x, valid_lens=[2], mask=np.ones((3, 3), bool), bias=qkv.alibi_bias(2, 3, 3))
    grads = qkv.attention_grad(out, x, x, x)
    steps = qkv.explain(q=[[1.0]], k=[[1.0]], v=[[2.0]]).steps
    try:
        qkv.attention(x, x, x[..., :2, :])
    except (qkv.ShapeError, qkv.DTypeError) as error:
        print(error, grads.bias is None, steps["q"])
    return float(qkv.attention_stats(x, x).entropy.mean() + weights_of(x, x).sum())


def runs(folder: str) -> None:
    run: qkv.Run = qkv.train("reverse", epochs=1, out=folder, progress=lambda event: print(event["kind"]))
    one = run.predict("abcd")
    print(one.text.upper(), one.score + 1.0, [p for p in run.predict(["a", "b"], beam=3)])
    trace = qkv.open(folder, weights="last").trace("ab")
    qkv.show(trace.weights("cross", layer=0, head=1), trace.target, trace.source, title="x").save("x.html")
    comparison = qkv.compare("reverse", attention=["dot"], epochs=1)
    print(comparison.table["loss"], comparison.runs["dot"].metrics["loss"].min())
    result = qkv.lab("two-heads", t=5)
    print(np.abs(result.predicted - result.measured), result.agrees, qkv.tasks(), qkv.__version__)

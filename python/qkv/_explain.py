"""Every intermediate value of a small attention example."""
from __future__ import annotations

from typing import Any, Dict, Optional, Union

from numpy.typing import NDArray

from qkv import _qkv
from qkv._attention import Array, Numbers, Window


class Explanation:
    """The steps of attention by name, forward and backward, in double precision."""

    def __init__(self, explanation: Any):
        self._explanation = explanation
        self.title: str = explanation.title
        self.steps: Dict[str, NDArray[Any]] = explanation.values()  # name → matrix, in the order of the computation
        self.formulas: Dict[str, str] = explanation.formulas()  # name → formula; "" of what was given

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.steps[name]

    def text(self, digits: int = 6) -> str:
        """As `qkv explain` prints it."""
        return self._explanation.text(digits)

    def latex(self, digits: int = 6) -> str:
        """A fragment that needs the package amsmath."""
        return self._explanation.latex(digits)

    def __repr__(self) -> str:
        return self.text()


def explain(x: Optional[Array] = None, *, q: Optional[Array] = None, k: Optional[Array] = None,
            v: Optional[Array] = None, w_q: Optional[Array] = None, w_k: Optional[Array] = None,
            w_v: Optional[Array] = None, w_o: Optional[Array] = None, heads: int = 1, example: str = "query",
            d_out: Optional[Array] = None, backward: bool = True, causal: bool = False,
            scale: Optional[float] = None, mask: Optional[Array] = None, valid_lens: Optional[Numbers] = None,
            window: Window = None, bias: Optional[Array] = None, softcap: Optional[float] = None,
            normaliser: str = "softmax", score: str = "scaled-dot",
            offset: Union[int, Numbers] = 0) -> Explanation:
    """Attention on small matrices with every step: explain(q=[[1, 0]], k=[[1, 0], [0, 1]], v=[[10], [20]]).

    Without matrices the built-in example: "query", "self" or "heads". Other arguments as for attention().

    x: tokens [L, C]; they are queries, keys and values unless q, k, v are given.
    q, k, v: [Lq, C], [Lk, C], [Lk, Cv].
    w_q, w_k, w_v, w_o: projections [C, H·D], [C, H·D], [Cv, H·Dv], [H·Dv, C].
    heads: H.
    example: which built-in one.
    d_out: gradient of the output [Lq, H·Dv]; ones when None.
    backward: with the gradients.
    """
    given = dict(x=x, q=q, k=k, v=v, w_q=w_q, w_k=w_k, w_v=w_v, w_o=w_o, heads=heads, example=example, d_out=d_out,
                 backward=backward)
    return Explanation(_qkv.explain(given, (causal, scale, mask, valid_lens, window, bias, softcap, 0.0, 0, normaliser,
                                            score, None, offset, None, None)))

"""Attention on arrays. What is computed, and the check of every argument, is in the extension module."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Tuple, Union

from numpy.typing import NDArray

from qkv import _qkv

Array = Any  # a NumPy array, or an object with the buffer protocol, DLPack or __array__
Numbers = Union[Sequence[int], Array]
Window = Union[int, Tuple[Optional[int], Optional[int]], None]


class AttentionGradients(NamedTuple):
    """Gradients of the inputs of attention(), each of its input's shape; None for what was not given."""

    q: NDArray[Any]
    k: NDArray[Any]
    v: NDArray[Any]
    bias: Optional[NDArray[Any]]
    additive: Optional[NDArray[Any]]


class AttentionStatistics(NamedTuple):
    """Statistics of each row of weights, arrays [B, H, Lq] (packed: [Tq, H])."""

    lse: NDArray[Any]  # log Σ exp z; of other normalisers than softmax, their threshold
    entropy: NDArray[Any]  # nats
    max_weight: NDArray[Any]
    argmax: NDArray[Any]  # the key of the largest weight, -1 where a query sees none
    mean_distance: NDArray[Any]  # Σ weight·|i + offset - j|


def attention(q: Array, k: Array, v: Array, *, causal: bool = False, scale: Optional[float] = None,
              mask: Optional[Array] = None, valid_lens: Optional[Numbers] = None, window: Window = None,
              bias: Optional[Array] = None, softcap: Optional[float] = None, dropout: float = 0.0, seed: int = 0,
              normaliser: str = "softmax", score: str = "scaled-dot", additive: Optional[Array] = None,
              offset: Union[int, Numbers] = 0, q_offsets: Optional[Numbers] = None,
              k_offsets: Optional[Numbers] = None) -> NDArray[Any]:
    """normaliser(q kᵀ·scale) v, in memory linear in the length.

    q [B, H, Lq, D], k [B, Hkv, Lk, D], v [B, Hkv, Lk, Dv] → [B, H, Lq, Dv], where H is a multiple of Hkv;
    or without heads: q [B, Lq, D], k [B, Lk, D], v [B, Lk, Dv]; or one matrix each: [Lq, D], [Lk, D], [Lk, Dv];
    or packed (q_offsets and k_offsets given): q [Tq, H, D], k [Tk, Hkv, D], v [Tk, Hkv, Dv] → [Tq, H, Dv].

    Arrays are NumPy's, or anything with the buffer protocol or DLPack. float32 is neither copied in nor out; float64
    runs the plain reference; float16 is converted. Any number of threads gives the same bits.

    causal: query i sees the keys j ≤ i + offset.
    scale: factor of q·k; 1/√D when None.
    mask: booleans that broadcast to [B, H, Lq, Lk]; True where the key takes part.
    valid_lens: how many keys there are, [B] or [B, Lq], each from 0 to Lk.
    window: n or (left, right), None for no limit: keys from i + offset - left to i + offset + right.
    bias: numbers added to the scores, broadcast like the mask.
    softcap: c, a score z becomes c·tanh(z/c).
    dropout: of the weights; seed says which are dropped.
    normaliser: "softmax", "sparsemax", "entmax15" or "hard".
    score: "scaled-dot", "dot", or "additive" with additive=w [D], wᵀ tanh(q + k).
    offset: position of query 0 among the keys, a number or [B].
    q_offsets, k_offsets: [B+1], where each packed sequence begins and the last one ends.

    A query that sees no key gets zeros. Raises ShapeError, ConfigError, DTypeError.
    """
    return _qkv.attention(q, k, v, (causal, scale, mask, valid_lens, window, bias, softcap, dropout, seed, normaliser,
                                    score, additive, offset, q_offsets, k_offsets))


def attention_grad(d_out: Array, q: Array, k: Array, v: Array, *, causal: bool = False,
                   scale: Optional[float] = None, mask: Optional[Array] = None, valid_lens: Optional[Numbers] = None,
                   window: Window = None, bias: Optional[Array] = None, softcap: Optional[float] = None,
                   dropout: float = 0.0, seed: int = 0, normaliser: str = "softmax", score: str = "scaled-dot",
                   additive: Optional[Array] = None, offset: Union[int, Numbers] = 0,
                   q_offsets: Optional[Numbers] = None, k_offsets: Optional[Numbers] = None) -> AttentionGradients:
    """Gradients of attention(q, k, v, …), given the gradient d_out of its result (of the result's shape)."""
    return AttentionGradients(*_qkv.attention_grad(
        d_out, q, k, v, (causal, scale, mask, valid_lens, window, bias, softcap, dropout, seed, normaliser, score,
                         additive, offset, q_offsets, k_offsets)))


def attention_weights(q: Array, k: Array, *, causal: bool = False, scale: Optional[float] = None,
                      mask: Optional[Array] = None, valid_lens: Optional[Numbers] = None, window: Window = None,
                      bias: Optional[Array] = None, softcap: Optional[float] = None, normaliser: str = "softmax",
                      score: str = "scaled-dot", additive: Optional[Array] = None, offset: Union[int, Numbers] = 0,
                      stage: str = "weights") -> NDArray[Any]:
    """The weights [B, H, Lq, Lk] of attention(q, k, …), computed again; without heads [B, Lq, Lk].

    stage: "weights", or what comes before: "raw" (scale·q·k), "capped" (after the softcap), "biased" (after bias and
    masks; hidden keys are -inf). Other arguments as for attention().
    """
    return _qkv.attention_weights(q, k, (causal, scale, mask, valid_lens, window, bias, softcap, 0.0, 0, normaliser,
                                         score, additive, offset, None, None), stage)


def attention_stats(q: Array, k: Array, *, causal: bool = False, scale: Optional[float] = None,
                    mask: Optional[Array] = None, valid_lens: Optional[Numbers] = None, window: Window = None,
                    bias: Optional[Array] = None, softcap: Optional[float] = None, normaliser: str = "softmax",
                    score: str = "scaled-dot", additive: Optional[Array] = None, offset: Union[int, Numbers] = 0,
                    q_offsets: Optional[Numbers] = None,
                    k_offsets: Optional[Numbers] = None) -> AttentionStatistics:
    """Statistics of each row of weights of attention(q, k, …), in memory linear in the length."""
    return AttentionStatistics(*_qkv.attention_stats(
        q, k, (causal, scale, mask, valid_lens, window, bias, softcap, 0.0, 0, normaliser, score, additive, offset,
               q_offsets, k_offsets)))


def masked_softmax(x: Array, valid_lens: Optional[Numbers] = None) -> NDArray[Any]:
    """softmax over the last axis of x [B, Lq, Lk]; weights at positions ≥ the valid length ([B] or [B, Lq]) are 0.

    A length of 0 gives a row of zeros.
    """
    return _qkv.masked_softmax(x, valid_lens)


def sinusoidal_positions(n: int, d: int) -> NDArray[Any]:
    """P [n, d]: P[i, 2j] = sin(i / 10000^(2j/d)), P[i, 2j+1] = cos of the same."""
    return _qkv.sinusoidal_positions(n, d)


def rotary(x: Array, positions: Numbers, base: float = 10000.0) -> NDArray[Any]:
    """x [T, H, D] with the pair (x_j, x_{j+D/2}) of row t turned by the angle positions[t]·base^(-2j/D)."""
    return _qkv.rotary(x, positions, base)


def alibi_slopes(heads: int) -> list[float]:
    """The slopes 2^(-8h/H) of H heads, h = 1 … H."""
    return _qkv.alibi_slopes(heads)


def alibi_bias(heads: int, Lq: int, Lk: int, offset: int = 0) -> NDArray[Any]:
    """Biases -slope·|i + offset - j| [heads, Lq, Lk], for attention(…, bias=…)."""
    return _qkv.alibi_bias(heads, Lq, Lk, offset)


def num_threads() -> int:
    """How many threads compute."""
    return _qkv.num_threads()


def set_num_threads(n: int) -> None:
    """Sets how many threads compute; no result depends on it."""
    _qkv.set_num_threads(n)


def release_memory() -> None:
    """Gives memory that was kept for the next call back to the system."""
    _qkv.release_memory()

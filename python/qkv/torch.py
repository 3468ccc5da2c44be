"""Attention for PyTorch on the CPU: any mask, bias gradients, other normalisers; deterministic, without a copy.

import qkv.torch needs torch; import qkv does not.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional, Tuple

import torch
from torch import Tensor

from qkv import _qkv

__all__ = ["attention", "scaled_dot_product_attention", "sdpa"]

_INPUTS = 5  # q, k, v, bias, additive: what has gradients


def _array(t: Tensor) -> Any:
    """The tensor's memory as an array."""
    if t.device.type != "cpu":
        raise _qkv.DTypeError(f"a tensor is on {t.device}; move it to the CPU first")
    if t.dtype not in (torch.float32, torch.float64, torch.float16):
        raise _qkv.DTypeError(f"a tensor has dtype {t.dtype}; expected float32, float64 or float16")
    return t.detach().numpy()


def _rule_with(rule: Tuple, bias: Optional[Tensor], additive: Optional[Tensor]) -> Tuple:
    places = dict(zip(_qkv.rule_names, rule))
    places["bias"] = None if bias is None else _array(bias)
    places["additive"] = None if additive is None else _array(additive)
    return tuple(places.values())


class _Attention(torch.autograd.Function):
    """The forward pass keeps the result and one number per row; the backward pass rebuilds the weights from them."""

    @staticmethod
    def forward(ctx, q, k, v, bias, additive, rule):
        rule = _rule_with(rule, bias, additive)
        if not any(ctx.needs_input_grad[:_INPUTS]):
            return torch.from_numpy(_qkv.attention(_array(q), _array(k), _array(v), rule))
        wanted = tuple(ctx.needs_input_grad[:_INPUTS])
        ctx.recorded = _qkv.Recorded(_array(q), _array(k), _array(v), rule, wanted)
        out = torch.from_numpy(ctx.recorded.out())
        ctx.rule, ctx.wanted = rule, wanted
        ctx.save_for_backward(q, k, v, bias, additive, out)  # torch then notices when one is changed in place
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_out):
        q, k, v = ctx.saved_tensors[:3]
        recorded, ctx.recorded = ctx.recorded, None
        if recorded is None:  # retain_graph: the recording was used up by the backward pass before
            recorded = _qkv.Recorded(_array(q), _array(k), _array(v), ctx.rule, ctx.wanted)
        grads = recorded.backward(_array(d_out))
        return (*(None if g is None else torch.from_numpy(g) for g in grads), None)


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, scale: Optional[float] = None,
              mask: Optional[Tensor] = None, valid_lens: Any = None, window: Any = None, bias: Optional[Tensor] = None,
              softcap: Optional[float] = None, dropout: float = 0.0, seed: int = 0, normaliser: str = "softmax",
              score: str = "scaled-dot", additive: Optional[Tensor] = None, offset: Any = 0, q_offsets: Any = None,
              k_offsets: Any = None) -> Tensor:
    """qkv.attention on tensors, with gradients for q, k, v, bias and additive.

    q [B, H, Lq, D], k [B, Hkv, Lk, D], v [B, Hkv, Lk, Dv] → [B, H, Lq, Dv]; shapes and arguments as for qkv.attention.
    """
    as_array = lambda x: x.detach().numpy() if isinstance(x, Tensor) else x  # noqa: E731
    rule = (causal, scale, as_array(mask), as_array(valid_lens), window, None, softcap, dropout, seed, normaliser,
            score, None, as_array(offset), as_array(q_offsets), as_array(k_offsets))
    return _Attention.apply(q, k, v, bias, additive, rule)


def _four_axes(t: Tensor) -> Tensor:
    """[…, L, D] as [B, H, L, D]: missing axes are 1, more than two before L and D become one batch."""
    if t.dim() > 4:
        return t.flatten(0, t.dim() - 4)
    return t.reshape((1,) * (4 - t.dim()) + tuple(t.shape))


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention, computed by qkv.

    query [N, …, H, L, E], key [N, …, Hkv, S, E], value [N, …, Hkv, S, Ev] → [N, …, H, L, Ev]. attn_mask broadcasts to
    [N, …, H, L, S]: booleans, True where the key takes part, or numbers that are added to the scores and have a
    gradient. A query that sees no key yields zeros, where older versions of torch yield NaN.
    """
    if is_causal and attn_mask is not None:
        raise _qkv.ConfigError("scaled_dot_product_attention: attn_mask and is_causal cannot be combined")
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise _qkv.ShapeError("scaled_dot_product_attention: expected […, L, E], […, S, E], […, S, Ev]")
    if query.dim() != key.dim() or key.dim() != value.dim() or query.shape[:-3] != key.shape[:-3]:
        leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        query, key, value = (t.expand(*leading, *t.shape[-2:]) for t in (query, key, value))
    if query.dim() > 2 and query.shape[-3] != key.shape[-3] and not enable_gqa:
        leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])  # torch's own error
        query, key, value = (t.expand(*leading, *t.shape[-2:]) for t in (query, key, value))
    if attn_mask is not None and query.dim() > 4:
        whole = (*query.shape[:-1], key.shape[-2])
        attn_mask = attn_mask.expand(whole).flatten(0, query.dim() - 4)
    if attn_mask is not None and attn_mask.shape[-1] != key.shape[-2]:
        # qkv would hide the keys beyond a shorter mask; torch has no such rule.
        attn_mask = attn_mask.expand(*attn_mask.shape[:-1], key.shape[-2])
    hides = attn_mask is not None and attn_mask.dtype == torch.bool
    added = None if hides or attn_mask is None else attn_mask.to(query.dtype)
    out = attention(_four_axes(query), _four_axes(key), _four_axes(value), causal=is_causal,
                    scale=scale, mask=attn_mask if hides else None, bias=added, dropout=dropout_p,
                    seed=_seed() if dropout_p > 0 else 0)
    return out.reshape(*query.shape[:-1], value.shape[-1])


def _seed() -> int:
    """A seed of torch's generator, so that torch.manual_seed decides which weights are dropped."""
    return int(torch.randint(0, 2**62, (1,)).item())


@contextlib.contextmanager
def sdpa() -> Iterator[None]:
    """Inside, torch.nn.functional.scaled_dot_product_attention is qkv's.

    Calls by that name are caught, from any module that looks it up when it calls (F.scaled_dot_product_attention(…),
    torch.nn.functional.…), which Hugging Face's and most models do. Not caught: a name imported before
    (from torch.nn.functional import scaled_dot_product_attention), code compiled by torch.jit or torch.compile, and
    C++ that calls the operator itself, such as nn.TransformerEncoderLayer's and nn.MultiheadAttention's fast path in
    eval mode. torch before 2.0 has no such function: there the name exists inside only. Threads share the replacement.
    """
    functional = torch.nn.functional
    name = "scaled_dot_product_attention"
    before = getattr(functional, name, None)
    setattr(functional, name, scaled_dot_product_attention)
    try:
        yield
    finally:
        if before is None:
            delattr(functional, name)
        else:
            setattr(functional, name, before)

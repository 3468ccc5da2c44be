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

# The function in C behind torch.utils.dlpack.from_dlpack, which asks more of what it gets.
_qkv.know_torch(torch, getattr(torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack))
_CONVERTED = (torch.float16, torch.bfloat16)  # to float32 at the border, and back


# Rules of the two calls that most models make, read once.
_PLAIN = {causal: _qkv.Rule((causal, None, None, None, None, None, None, 0.0, 0, "softmax", "scaled-dot", None, 0, None,
                             None)) for causal in (False, True)}


class _Attention(torch.autograd.Function):
    """The forward pass keeps the result and one number per row; the backward pass rebuilds the weights from them."""

    @staticmethod
    def forward(ctx, q, k, v, bias, additive, rule):
        out, ctx.rows = _qkv.forward((q, k, v, bias, additive), rule, True)
        ctx.rule = rule
        ctx.save_for_backward(q, k, v, bias, additive, out)  # torch then notices when one is changed in place
        return out

    @staticmethod
    def backward(ctx, d_out):
        return (_backward_once if torch.is_grad_enabled() else _backward)(ctx, d_out)


def _backward(ctx: Any, d_out: Tensor) -> Tuple[Optional[Tensor], ...]:
    return _qkv.backward(d_out, ctx.saved_tensors, ctx.rows, ctx.rule, ctx.needs_input_grad)


_backward_once = torch.autograd.function.once_differentiable(_backward)  # with create_graph=True


def _attend(inputs: Tuple[Any, ...], rule: _qkv.Rule) -> Tensor:
    """Attention of q, k, v, bias, additive, in float32 where they are narrower."""
    dtype = getattr(inputs[0], "dtype", None)
    if dtype in _CONVERTED:
        return _attend(tuple(None if t is None else t.float() for t in inputs), rule).to(dtype)
    if torch.is_grad_enabled():
        for t in inputs:
            if getattr(t, "requires_grad", False):
                return _Attention.apply(*inputs, rule)
    return _qkv.forward(inputs, rule, False)


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, scale: Optional[float] = None,
              mask: Optional[Tensor] = None, valid_lens: Any = None, window: Any = None, bias: Optional[Tensor] = None,
              softcap: Optional[float] = None, dropout: float = 0.0, seed: int = 0, normaliser: str = "softmax",
              score: str = "scaled-dot", additive: Optional[Tensor] = None, offset: Any = 0, q_offsets: Any = None,
              k_offsets: Any = None) -> Tensor:
    """qkv.attention on tensors, with gradients for q, k, v, bias and additive.

    q [B, H, Lq, D], k [B, Hkv, Lk, D], v [B, Hkv, Lk, Dv] → [B, H, Lq, Dv]; shapes and arguments as for qkv.attention.
    """
    rule = _qkv.Rule((causal, scale, mask, valid_lens, window, None, softcap, dropout, seed, normaliser, score,
                      None if additive is None else additive.detach(), offset, q_offsets, k_offsets))
    return _attend((q, k, v, bias, additive), rule)


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
    try:
        shape = query.shape
        plain = len(shape) == 4 and shape[:2] == key.shape[:2] == value.shape[:2] and 0 not in shape
    except AttributeError:
        raise _qkv.DTypeError("query, key and value must be tensors of torch") from None
    if not plain:
        return _sdpa_of_any_axes(query, key, value, enable_gqa, attn_mask, dropout_p, is_causal, scale)
    if attn_mask is None and scale is None and dropout_p == 0 and is_causal in _PLAIN:
        return _attend((query, key, value, None, None), _PLAIN[is_causal])
    return _sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _sdpa(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
          scale: Optional[float]) -> Tensor:
    """query [B, H, L, E], key [B, Hkv, S, E], value [B, Hkv, S, Ev] → [B, H, L, Ev]."""
    mask = bias = None
    if attn_mask is not None:
        attn_mask = _narrowed(attn_mask, (*query.shape[:-1], key.shape[-2]))
        if attn_mask.dtype == torch.bool:
            mask = attn_mask
        else:
            bias = attn_mask.to(query.dtype)
    seed = _seed() if dropout_p > 0 else 0
    rule = _qkv.Rule((is_causal, scale, mask, None, None, None, None, dropout_p, seed, "softmax", "scaled-dot", None, 0,
                      None, None))
    return _attend((query, key, value, bias, None), rule)


def _narrowed(mask: Tensor, shape: Tuple[int, ...]) -> Tensor:
    """A mask that broadcasts to [B, H, L, S] as qkv takes it: one number for an axis on which all are the same."""
    # qkv would hide the keys beyond a shorter mask; torch has no such rule.
    if mask.dim() == 0 or mask.shape[-1] != shape[-1]:
        mask = mask.expand(shape)
    if mask.requires_grad or 0 not in mask.stride():
        return mask
    mask.expand(shape)  # torch's own error where it does not fit
    return mask[tuple(slice(0, 1) if step == 0 else slice(None) for step in mask.stride())]


def _sdpa_of_any_axes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, attn_mask: Optional[Tensor],
                      *rest: Any) -> Tensor:
    """Shapes that broadcast, fewer or more axes, grouped heads, nothing at all."""
    axes, own = query.dim(), 3 if enable_gqa else 2  # own: axes that do not broadcast
    if min(axes, key.dim(), value.dim()) < own:
        heads = ("H, ", "Hkv, ", "Hkv, ") if enable_gqa else ("",) * 3
        raise _qkv.ShapeError("scaled_dot_product_attention: expected […, {}L, E], […, {}S, E], […, {}S, Ev]"
                              .format(*heads))
    if not query.shape[:-own] == key.shape[:-own] == value.shape[:-own]:
        leading = torch.broadcast_shapes(*(t.shape[:-own] for t in (query, key, value)))  # torch's own error
        query, key, value = (t.expand(*leading, *t.shape[-own:]) for t in (query, key, value))
        axes = query.dim()
    if 0 in query.shape[:-2]:
        return query.sum(-1, keepdim=True).expand(*query.shape[:-1], value.shape[-1])  # empty; qkv has no zero heads
    if enable_gqa and key.shape[-3] != value.shape[-3]:  # torch repeats each by itself
        heads = query.shape[-3]
        key, value = (t.repeat_interleave(heads // max(1, t.shape[-3]), -3) for t in (key, value))
    if attn_mask is not None and axes > 4:
        attn_mask = _four_axes(attn_mask.expand(*query.shape[:-1], key.shape[-2]))
    out = _sdpa(_four_axes(query), _four_axes(key), _four_axes(value), attn_mask, *rest)
    return out if axes == 4 else out.reshape(*query.shape[:-1], value.shape[-1])


def _four_axes(t: Tensor) -> Tensor:
    """[…, L, D] as [B, H, L, D]: missing axes are 1, more than two before L and D become one batch."""
    axes = t.dim()
    if axes == 4:
        return t
    return t.flatten(0, axes - 4) if axes > 4 else t.reshape((1,) * (4 - axes) + tuple(t.shape))


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

"""Attention in a notebook: the page's own map, lines and heads, as one self-contained HTML."""
from __future__ import annotations

import base64
import html
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from qkv import _qkv


@dataclass(repr=False)
class Attention:
    """The attention of one layer: weights [heads, queries, keys] and the tokens of rows and columns."""

    site: str  # "self"; "encoder", "decoder", "cross"; "alignment", the heads together
    layer: int
    causal: bool
    queries: List[str]
    keys: List[str]
    weights: NDArray[Any]

    def __repr__(self) -> str:
        heads, rows, columns = self.weights.shape
        return f"<Attention {self.site}, layer {self.layer}: {heads} heads, {rows} queries, {columns} keys>"

    def _repr_html_(self) -> str:
        return view_of(f"{self.site}, layer {self.layer}", [self])._repr_html_()


class AttentionView:
    """Attention of a model, shown in a notebook; html() is the same as a page of its own."""

    def __init__(self, title: str, sites: List[Dict[str, Any]]):
        self._title, self._sites = title, sites

    def __repr__(self) -> str:
        shapes = ", ".join(f"{s['id']} {list(s['weights'].shape)}" for s in self._sites)
        return f"<AttentionView {self._title!r}: {shapes}>"

    def html(self) -> str:
        """A page with everything in it: it can be opened without this program and without a network."""
        script, style = _asset("notebook.js"), _asset("notebook.css")
        if script is None:
            return self._picture()
        sites = [dict(s, shape=list(s["weights"].shape), weights=base64.b64encode(
            np.ascontiguousarray(s["weights"], "<f4").tobytes()).decode()) for s in self._sites]
        data = json.dumps({"title": self._title, "sites": sites}).replace("<", "\\u003c")
        return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(self._title)}</title>'
                f"<style>{style}</style><body><div id=\"view\"></div>"
                f'<script type="application/json" id="data">{data}</script>'
                f"<script>{_STORAGE}</script><script>{script}</script></body></html>")

    def save(self, path: str) -> None:
        """Writes html() to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())

    def _picture(self) -> str:
        """Without the page's script (a build without npm): every head of the first layer as a picture."""
        s = self._sites[0]
        return _qkv.maps_html(self._title, np.ascontiguousarray(s["weights"][0], "f4"), s["rows"], s["columns"])

    def _repr_html_(self) -> str:
        rows = max(max(s["weights"].shape[2:]) for s in self._sites)
        return framed(self.html(), 240 + min(480, 24 * rows))


# A frame without an origin of its own may not look at the storage; the page then follows the system's colours.
_STORAGE = ("try{localStorage}catch(e){Object.defineProperty(window,'localStorage',"
            "{value:{getItem:()=>null,setItem(){},removeItem(){}}})}")


def _asset(name: str) -> Optional[str]:
    """A file of the page that belongs to the package; None where the build had no npm."""
    try:
        with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
            return file.read().replace("</script", "<\\/script")
    except FileNotFoundError:
        return None


def framed(page: str, height: int) -> str:
    """A page in a frame of its own, so that neither its style nor the notebook's reaches the other."""
    return (f'<iframe srcdoc="{html.escape(page)}" width="100%" height="{height}" '
            'style="border:1px solid #8884;border-radius:8px;resize:vertical"></iframe>')


def view_of(title: str, layers: Sequence[Attention]) -> AttentionView:
    """The layers of each site together; they have the same tokens."""
    if not layers:
        raise _qkv.ConfigError("this model has no attention to show")
    sites = []
    for site in dict.fromkeys(a.site for a in layers):
        there = [a for a in layers if a.site == site]
        sites.append(dict(id=site, causal=there[0].causal, rows=there[0].queries, columns=there[0].keys,
                          weights=np.stack([a.weights for a in there])))
    return AttentionView(title, sites)


def _labels(tokens: Optional[Sequence[str]], count: int, what: str) -> List[str]:
    if tokens is None:
        return [str(i) for i in range(count)]
    try:
        labels = [str(token) for token in tokens]
    except TypeError:
        raise _qkv.DTypeError(f"tokens must be a list of texts, not {type(tokens).__name__}") from None
    if len(labels) != count:
        raise _qkv.ShapeError(f"[show] {len(labels)} tokens for {count} {what}")
    return labels


def _layers(layers: List[NDArray[Any]]) -> NDArray[Any]:
    """Layers as one array: each is [heads, queries, keys], or a batch of one of them."""
    shapes = {array.shape for array in layers}
    if len(shapes) != 1:
        raise _qkv.ShapeError(f"[show] layers of different shapes: {', '.join(str(list(s)) for s in sorted(shapes))}"
                              if shapes else "[show] no layer given")
    batch = layers[0].shape[0]
    if batch != 1:
        raise _qkv.ShapeError(f"[show] each layer holds {batch} sentences; pick one: [layer[0] for layer in weights]")
    return np.concatenate(layers)


def _array(weights: Any) -> NDArray[Any]:
    """[layers, heads, queries, keys] of an array, a torch tensor, or a list of them, one per layer."""
    if isinstance(weights, (list, tuple)):
        return _layers([_array(w) for w in weights])
    detach = getattr(weights, "detach", None)
    array = np.asarray(detach().cpu().float() if detach else weights)
    if array.dtype.kind != "f":
        raise _qkv.DTypeError(f"weights have dtype {array.dtype}; expected an array of floats")
    if not 2 <= array.ndim <= 4 or 0 in array.shape:
        raise _qkv.ShapeError(f"[show] weights {list(array.shape)}; expected [layers, heads, queries, keys], "
                              "[heads, queries, keys] or [queries, keys]")
    return array.reshape((1,) * (4 - array.ndim) + array.shape).astype("f4", copy=False)


def show(weights: Any, tokens: Optional[Sequence[str]] = None, keys: Optional[Sequence[str]] = None, *,
         title: str = "attention") -> AttentionView:
    """The attention of any model: weights [layers, heads, queries, keys], from Hugging Face or anywhere.

    weights: an array, a tensor, or a list of them with one for each layer, such as output.attentions of a batch of one;
    [heads, queries, keys] is one layer, [queries, keys] one head. NaN is a masked cell.
    tokens: of the queries, and of the keys unless those are given; numbers when None.
    keys: the tokens of the keys.
    title: above the map.
    """
    array = _array(weights)
    rows, columns = array.shape[2:]
    names = tokens if keys is None and rows == columns else keys
    site = dict(id="self", causal=False, rows=_labels(tokens, rows, "queries"), columns=_labels(names, columns, "keys"),
                weights=array)
    return AttentionView(title, [site])

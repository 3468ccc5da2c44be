"""Trained runs, trainings, comparisons and the lab: the program's own, as Python objects."""
from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union, overload

import numpy as np
from numpy.typing import NDArray

from qkv import _qkv
from qkv._progress import watcher_of
from qkv._show import Attention, AttentionView, framed, view_of


def _text(value: Any) -> str:
    """A setting as the program's options write it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return ",".join(_text(v) for v in value)
    return str(value)


def _pairs(settings: Dict[str, Any]) -> List[Tuple[str, str]]:
    """train_size=256 is the option --train-size 256; what is None keeps its default."""
    return [(name.replace("_", "-"), _text(value)) for name, value in settings.items() if value is not None]


class Prediction(NamedTuple):
    """One answer of a run."""

    text: str
    score: float  # log probability
    alignment: str  # "0-0 1-2 …": source word - target word, where asked for
    probability: Optional[float]  # of an answer that is one of a few


class Trace:
    """One input run through a model: tokens read and written, and where each layer looked."""

    def __init__(self, input: str, source: List[str], target: List[str], output: str, attention: List[Attention]):
        self.input: str = input
        self.source: List[str] = source  # tokens read
        self.target: List[str] = target  # tokens written
        self.output: str = output
        self.attention: List[Attention] = attention  # every site and layer

    @property
    def sites(self) -> List[str]:
        """The places with attention: "self"; "encoder", "decoder", "cross"; "alignment"."""
        return list(dict.fromkeys(a.site for a in self.attention))

    def weights(self, site: Optional[str] = None, layer: int = 0, head: Optional[int] = None) -> NDArray[Any]:
        """[heads, queries, keys] of one layer, or [queries, keys] of one of its heads; the first site by default."""
        found = self.layer(site, layer).weights
        return found if head is None else found[head]

    def layer(self, site: Optional[str] = None, layer: int = 0) -> Attention:
        """One layer's attention with the tokens of its rows and columns."""
        if not self.attention:
            raise _qkv.ConfigError("this model has no attention")
        wanted = self.sites[0] if site is None else site
        for a in self.attention:
            if a.site == wanted and a.layer == layer:
                return a
        there = ", ".join(f"{a.site} {a.layer}" for a in self.attention)
        raise _qkv.ConfigError(f"no attention at '{wanted}', layer {layer}; there is: {there}")

    def __repr__(self) -> str:
        return f"<Trace {self.input!r} → {self.output!r}, attention at {', '.join(self.sites) or 'no site'}>"

    def view(self) -> AttentionView:
        """All of its attention, to be shown or saved as HTML."""
        return view_of(f"{self.input} → {self.output}", self.attention)

    def _repr_html_(self) -> str:
        return self.view()._repr_html_()


class Run:
    """A trained run. Use one object from one thread at a time."""

    def __init__(self, path: str, weights: str = ""):
        self.path: str = os.fspath(path)
        self._run = _qkv.open_run(self.path, weights)

    @property
    def task(self) -> str:
        """"reverse", "translate", "images", "knowledge" or "text"."""
        return self._run.task

    @property
    def settings(self) -> Dict[str, str]:
        """Every setting of the run, as text."""
        return dict(self._run.settings())

    @property
    def metrics(self) -> Dict[str, NDArray[Any]]:
        """The evaluations as columns: step, epoch, train_loss, lr, seconds, and every figure of the validation.

        pandas.DataFrame(run.metrics) takes it as it is.
        """
        return _qkv.metrics(self.path)

    @property
    def result(self) -> Optional[Dict[str, Any]]:
        """The result of the run (result.json); None while its training is not finished."""
        try:
            with open(os.path.join(self.path, "result.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def weights(self) -> Dict[str, NDArray[Any]]:
        """The model's parameters by name, copied."""
        return self._run.parameters()

    @overload
    def predict(self, inputs: str, **options: Any) -> Prediction: ...  # type: ignore[misc]  # a str is a sequence, too
    @overload
    def predict(self, inputs: Sequence[str], **options: Any) -> List[Any]: ...

    def predict(self, inputs: Any, *, beam: int = 1, n_best: int = 1, length_penalty: float = 0.0,
                max_length: int = 0, align: bool = False, sample: bool = False, temperature: float = 1.0,
                top_k: int = 0, top_p: float = 1.0, seed: int = 1) -> Any:
        """The best answer to one input, or to each of several, which are computed together.

        beam: hypotheses kept; 1 is greedy.
        n_best: answers for each input, as a list, best first.
        length_penalty: α, hypotheses are ranked by log probability / ((5 + length) / 6)^α.
        max_length: tokens of an answer; 0 is the task's own limit.
        align: also which source word each target word looked at.
        sample: draw tokens, as temperature, top_k, top_p and seed say; for tasks that continue a text.
        temperature: the scores are divided by it.
        top_k: only the k likeliest tokens are drawn; 0 is all.
        top_p: of those, the fewest that together have this probability.
        seed: decides what is drawn.
        """
        one = isinstance(inputs, (str, os.PathLike))
        try:
            texts = [os.fspath(text) for text in ([inputs] if one else inputs)]
        except TypeError:
            raise _qkv.DTypeError("inputs must be a text, or several of them") from None
        options = dict(beam=beam, n_best=n_best, length_penalty=length_penalty, max_length=max_length, align=align,
                       sample=sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        answers = [[Prediction(*p) for p in best] for best in self._run.predict(texts, options)]
        picked = answers if n_best > 1 else [best[0] for best in answers]
        return picked[0] if one else picked

    def trace(self, input: str) -> Trace:
        """Where the model looks while it works on one input."""
        t = self._run.trace(input)
        return Trace(input, t["source"], t["target"], t["output"], [Attention(**a) for a in t["attention"]])

    def examples(self, n: int = 5) -> List[str]:
        """Inputs worth looking at, from the validation data."""
        return self._run.examples(n)

    def __repr__(self) -> str:
        return f"<Run {self.path}: {self.task}>"

    def _repr_html_(self) -> Optional[str]:
        return _report(self.path)


def _report(folder: str) -> Optional[str]:
    """The report in a folder, framed; None where there is none."""
    try:
        with open(os.path.join(folder, "report.html"), encoding="utf-8") as file:
            return framed(file.read(), 640)
    except FileNotFoundError:
        return None


def open_run(path: str, weights: str = "") -> Run:
    """Opens a folder that train() or the program made.

    weights: "best", "last", "average" or the step of a checkpoint; "" is the average where it was better than the best,
    else the best. Raises IoError naming what cannot be read.
    """
    return Run(path, weights)


Progress = Union[bool, Callable[[Dict[str, Any]], None]]


def train(task: str = "", *, out: str = "", resume: str = "", progress: Progress = True, **settings: Any) -> Run:
    """Trains a task's model as `qkv train` does, to the same bytes, and opens the run.

    task: see tasks().
    settings: the options of `qkv train TASK --help`, with _ for -: train("reverse", attention="dot", epochs=10).
    out: the run's folder, runs/TASK-ATTENTION by default.
    resume: continue this run; only epochs and steps can change.
    progress: a bar (True), nothing (False), or a function that gets a dict now and then.

    Ctrl-C finishes the update, saves, and raises KeyboardInterrupt with the call that continues.
    """
    with watcher_of(progress) as watcher:
        folder, _ = _qkv.train(task, _pairs(settings), os.fspath(out), os.fspath(resume), watcher)
    return Run(folder)


class Comparison:
    """Several mechanisms trained under the same seeds."""

    def __init__(self, folder: str, result: Dict[str, Any]):
        self.path: str = folder
        self.result: Dict[str, Any] = result  # compare.json

    @property
    def runs(self) -> Dict[str, Run]:
        """The runs by the names of their folders."""
        return {os.path.basename(r["run"]): Run(r["run"]) for r in self.result["runs"]}

    @property
    def table(self) -> Dict[str, List[Any]]:
        """One row per run, as columns; pandas.DataFrame(comparison.table) takes it as it is."""
        runs = self.result["runs"]
        names = [name for name, value in runs[0].items() if not isinstance(value, (dict, list))] if runs else []
        return {name: [run.get(name) for run in runs] for name in names}

    def __repr__(self) -> str:
        return f"<Comparison {self.path}: {', '.join(os.path.basename(r['run']) for r in self.result['runs'])}>"

    def _repr_html_(self) -> Optional[str]:
        return _report(self.path)


def compare(task: str, *, attention: Union[str, Sequence[str]] = ("none", "dot"), seeds: int = 1, out: str = "",
            progress: Progress = True, **settings: Any) -> Comparison:
    """Trains one model for each attention mechanism, under one seed or several, as `qkv compare` does.

    attention: names of mechanisms.
    seeds: how many, one run each.
    out: the folder, runs/compare-TASK by default; where it holds a comparison already, what it lacks is trained.
    progress: as for train().
    settings: as for train().
    """
    mechanisms = list(attention) if isinstance(attention, (list, tuple)) else [attention]
    with watcher_of(progress) as watcher:
        folder, result = _qkv.compare(task, mechanisms, seeds, _pairs(settings), os.fspath(out), watcher)
    return Comparison(folder, json.loads(result))


def tasks() -> Dict[str, str]:
    """What can be trained, and what each task is."""
    return dict(_qkv.tasks())


class LabResult:
    """What an experiment predicted and what was measured, as arrays with one number per row."""

    def __init__(self, run: Any):
        self._run = run
        self.name: str = run.name
        self.claim: str = run.claim
        self.formula: str = run.formula
        self.notes: List[str] = run.notes
        self.at: List[str] = run.at  # where: the setting of a row
        self.quantity: List[str] = run.quantity  # what a row is about
        self.predicted: NDArray[Any] = run.predicted
        self.measured: NDArray[Any] = run.measured
        self.tolerance: NDArray[Any] = run.tolerance
        self.row_agrees: NDArray[Any] = run.row_agrees  # |predicted - measured| within the tolerance
        self.agrees: bool = run.agrees
        self.verdict: str = run.verdict

    def __repr__(self) -> str:
        return self._run.text()

    def _repr_html_(self) -> str:
        return framed(self._run.html(), 640)


def lab(name: str, **settings: Any) -> LabResult:
    """Runs an experiment of the lab: lab("two-heads", t=5). experiments() lists them."""
    return LabResult(_qkv.lab(name, _pairs(settings)))


def experiments() -> Dict[str, str]:
    """The experiments of the lab, and what each is about."""
    return dict(_qkv.experiments())

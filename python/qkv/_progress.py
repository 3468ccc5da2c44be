"""A progress bar for trainings: one line in a terminal, one element in a notebook."""
from __future__ import annotations

import contextlib
import html
import sys
from typing import Any, Callable, Dict, Iterator, Optional, Union

from qkv import _qkv


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class _Watcher:
    """Takes what the extension module says of a training, and hands it on as dicts."""

    def __init__(self, tell: Callable[[Dict[str, Any]], None]):
        self._tell = tell

    def step(self, label: str, step: int, steps: int, epoch: int, epochs: int, loss: float, tokens: float,
             seconds_left: float) -> None:
        self._tell(dict(kind="step", label=label, step=step, steps=steps, epoch=epoch, epochs=epochs, loss=loss,
                        tokens_per_second=tokens, seconds_left=seconds_left))

    def evaluation(self, label: str, epoch: int, epochs: int, train_loss: float, validation: Dict[str, float]) -> None:
        self._tell(dict(kind="evaluation", label=label, epoch=epoch, epochs=epochs, train_loss=train_loss,
                        validation=validation))


def _line(event: Dict[str, Any]) -> str:
    if event["kind"] == "step":
        left = int(event["seconds_left"])
        return (f"{event['label']}  step {event['step']}/{event['steps']}  epoch {event['epoch']}/{event['epochs']}  "
                f"loss {event['loss']:.4g}  {event['tokens_per_second']:.3g} tokens/s  {left // 60}:{left % 60:02d} left")
    figures = "  ".join(f"{name} {value:.4g}" for name, value in event["validation"].items())
    return (f"{event['label']}  epoch {event['epoch']}/{event['epochs']}  training loss {event['train_loss']:.4g}  "
            f"validation {figures}")


class _Terminal:
    """One line that is rewritten; evaluations stay. Elsewhere than in a terminal, evaluations only."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._width = 0

    def __call__(self, event: Dict[str, Any]) -> None:
        text = _line(event)
        if event["kind"] == "evaluation":
            self.clear()
            print(text, file=sys.stderr, flush=True)
        elif self._live:
            print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = len(text)

    def clear(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
            self._width = 0


class _Notebook:
    """A bar that is updated in place, the evaluations below it."""

    def __init__(self) -> None:
        from IPython.display import display
        self._handle = display({"text/html": ""}, raw=True, display_id=True)
        self._lines: list[str] = []
        self._now = ""

    def __call__(self, event: Dict[str, Any]) -> None:
        if event["kind"] == "evaluation":
            self._lines.append(html.escape(_line(event)))
        else:
            share = f'<progress max="{event["steps"]}" value="{event["step"]}"></progress> '
            self._now = share + html.escape(_line(event))
        self._show()

    def clear(self) -> None:
        self._now = ""
        self._show()

    def _show(self) -> None:
        parts = ([self._now] if self._now else []) + self._lines[-20:]
        self._handle.update({"text/html": "<pre>" + "\n".join(parts) + "</pre>"}, raw=True)


@contextlib.contextmanager
def watcher_of(progress: Union[bool, Callable[[Dict[str, Any]], None]]) -> Iterator[Optional[_Watcher]]:
    """What the extension module talks to while it trains: None for progress=False."""
    if progress is False or progress is None:
        yield None
    elif callable(progress):
        yield _Watcher(progress)
    elif progress is not True:
        raise _qkv.DTypeError("progress must be True, False or a function, not " + type(progress).__name__)
    else:
        bar: Union[_Notebook, _Terminal] = _Notebook() if _in_notebook() else _Terminal()
        try:
            yield _Watcher(bar)
        finally:
            bar.clear()

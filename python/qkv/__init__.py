"""Attention, computed, trained and shown: qkv's library and program for Python.

attention, attention_grad, attention_weights, attention_stats, masked_softmax, explain: the operation on arrays.
open, train, compare, lab: what the program trains and measures. show: the attention of any model.
qkv.torch: the operation for PyTorch.
"""
from qkv._attention import (
    AttentionGradients,
    AttentionStatistics,
    alibi_bias,
    alibi_slopes,
    attention,
    attention_grad,
    attention_stats,
    attention_weights,
    masked_softmax,
    num_threads,
    release_memory,
    rotary,
    set_num_threads,
    sinusoidal_positions,
)
from qkv._explain import Explanation, explain
from qkv._qkv import ConfigError, DTypeError, Error, IoError, ShapeError, __version__
from qkv._runs import (
    Comparison,
    LabResult,
    Prediction,
    Run,
    Trace,
    compare,
    experiments,
    lab,
    tasks,
    train,
)
from qkv._runs import open_run as open  # noqa: A004
from qkv._show import Attention, AttentionView, show

__all__ = [
    "__version__", "alibi_bias", "alibi_slopes", "Attention", "attention", "attention_grad", "attention_stats",
    "attention_weights", "AttentionGradients", "AttentionStatistics", "AttentionView", "compare", "Comparison",
    "ConfigError", "DTypeError", "Error", "experiments", "explain", "Explanation", "IoError", "lab", "LabResult",
    "masked_softmax", "num_threads", "open", "Prediction", "release_memory", "rotary", "Run", "set_num_threads",
    "ShapeError", "show", "sinusoidal_positions", "tasks", "Trace", "train",
]

#!/usr/bin/env python3
"""Writes FOLDER/optim/steps.safetensors: parameters and gradients, and what PyTorch's optimizers make of them.

  optimizer_fixtures.py FOLDER
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file

STEPS = 6
CASES = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.05),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=0.05, betas=(0.8, 0.95), eps=1e-6),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "clipped": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.05),
}

torch.manual_seed(11)
shapes = {"matrix": (5, 7), "vector": (3,)}
start = {name: torch.randn(shape) for name, shape in shapes.items()}
grads = [{name: torch.randn(shape) for name, shape in shapes.items()} for _ in range(STEPS)]
out = {f"start.{name}": value for name, value in start.items()}
out |= {f"grad.{t}.{name}": value for t, g in enumerate(grads) for name, value in g.items()}
for case, make in CASES.items():
    params = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimizer = make(params.values())
    for t in range(STEPS):
        for name, p in params.items():
            p.grad = grads[t][name].clone()
        if t == 2:
            params["vector"].grad = None  # one parameter takes no part in one step
        if case == "clipped":
            norm = torch.nn.utils.clip_grad_norm_(params.values(), 1.5)
            out[f"clipped.norm.{t}"] = norm.reshape(1)
        optimizer.step()
        out |= {f"{case}.{t}.{name}": p.detach().clone() for name, p in params.items()}
folder = pathlib.Path(sys.argv[1]) / "optim"
folder.mkdir(parents=True, exist_ok=True)
save_file(out, folder / "steps.safetensors")

"""torch, eager, with a training loop written by hand."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from benchmarks.cases import Case, Weights, initial_weights
from benchmarks.contenders.base import Contender

__all__ = ["HalfSquaredError", "Torch", "as_tensors", "loss_of", "make_module", "weights_of"]


class HalfSquaredError(nn.Module):
    """Mean of half the squared difference."""

    def forward(self, predicted, expected):
        """Return the loss."""
        return nn.functional.mse_loss(predicted, expected) / 2


def loss_of(case: Case) -> nn.Module:
    """Return the loss of a case, on raw scores."""
    if case.task == "regression":
        return HalfSquaredError()
    return nn.BCEWithLogitsLoss() if case.layers[-1] == 1 else nn.CrossEntropyLoss()


def make_module(case: Case) -> nn.Sequential:
    """Return the network of a case with its initial weights."""
    parts: list[nn.Module] = []
    for coefs, intercept in initial_weights(case):
        parts += [nn.ReLU()] if parts else []
        layer = nn.Linear(*coefs.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(coefs.T))
            layer.bias.copy_(torch.from_numpy(intercept))
        parts.append(layer)
    return nn.Sequential(*parts)


def weights_of(module: nn.Module) -> Weights:
    """Return factors and intercepts as numpy arrays."""
    layers = [part for part in module.modules() if isinstance(part, nn.Linear)]
    return [(layer.weight.detach().numpy().T, layer.bias.detach().numpy()) for layer in layers]


def as_tensors(case: Case, X: np.ndarray, y: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Return data as torch's losses want them, without a copy of X."""
    labels = torch.from_numpy(y)
    if case.layers[-1] == 1:
        labels = labels.float().reshape(-1, 1)
    return torch.from_numpy(X), labels


class Torch(Contender):
    """An eager network: samples are picked by index_select, the optimizer is the fused one."""

    def setup(self) -> None:
        """Set the number of threads."""
        torch.set_num_threads(self.threads)

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train."""
        case, module, criterion = self.case, make_module(self.case), loss_of(self.case)
        optimizer = torch.optim.SGD(module.parameters(), lr=case.rate, momentum=case.momentum, fused=True)
        X, y = as_tensors(case, self.X, self.y)
        rng = np.random.RandomState(0)
        for _ in range(epochs):
            order = torch.from_numpy(rng.permutation(len(X)) if shuffle else np.arange(len(X)))
            for numbers in order.split(case.batch_size):
                optimizer.zero_grad(set_to_none=True)
                criterion(module(X.index_select(0, numbers)), y.index_select(0, numbers)).backward()
                optimizer.step()
        return weights_of(module)

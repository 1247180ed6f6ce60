"""skorch: torch behind scikit-learn's interface."""

from __future__ import annotations

import torch
from skorch import NeuralNet

from benchmarks.cases import Weights
from benchmarks.contenders.base import Contender
from benchmarks.contenders.of_torch import as_tensors, loss_of, make_module, weights_of

__all__ = ["Skorch"]


class Skorch(Contender):
    """NeuralNet as it comes: its own data loader, without validation and printing."""

    def setup(self) -> None:
        """Set the number of threads."""
        torch.set_num_threads(self.threads)

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train."""
        case = self.case
        torch.manual_seed(0)
        net = NeuralNet(
            make_module(case),
            criterion=loss_of(case),
            optimizer=torch.optim.SGD,
            optimizer__momentum=case.momentum,
            lr=case.rate,
            max_epochs=epochs,
            batch_size=case.batch_size,
            iterator_train__shuffle=shuffle,
            train_split=None,
            verbose=0,
        )
        X, y = as_tensors(case, self.X, self.y)
        net.fit(X, y)
        return weights_of(net.module_)

"""Label propagation: class probabilities of training samples, averaged by a kernel or neighbours."""

from typing import Any

import numpy as np

from .base import ModelDefinition
from .constraints.sets import Shares
from .distances import pairwise_distances
from .forms import dense_form
from .neighbors import VOTES, nearest
from .registry import all_covered
from .scores import Scores, classes_of_probabilities
from .writer import ModelWriter


class LabelPropagationDefinition(ModelDefinition):
    """LabelPropagation and LabelSpreading: the mean of ``label_distributions_``, weighted by a kernel."""

    # Zhu, X. and Ghahramani, Z., "Learning from labeled and unlabeled data with label propagation",
    # CMU-CALD-02-107, 2002; weights are relative to the largest, so that remote samples have a prediction
    unlabelled = -1

    def covers(self, model: Any) -> bool:
        if model.kernel != "knn":
            return model.kernel == "rbf"
        return all_covered(model.nn_fit)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if model.kernel == "rbf":
            rows = op.parameter(model, "X_", form=dense_form(model.X_), role="intercept")
            squares = pairwise_distances(op, x, rows, "sqeuclidean")
            weights = op.Softmax(op.Mul(squares, -float(model.gamma)), axis=1)
            sums = op.MatMul(weights, self._shares(op, model))
        else:
            with op.inside("nn_fit"):
                numbers = nearest(op, model.nn_fit, x, model.n_neighbors, VOTES)[1]
            near = op.Gather(self._shares(op, model), numbers, axis=0)
            sums = op.ReduceSum(near, [1], keepdims=0)
        # training samples that no label has reached have zeros
        probabilities = op.Div(sums, op.ReduceSum(sums, [1], keepdims=1))
        return classes_of_probabilities(op, probabilities, model.classes_)

    def _shares(self, op: ModelWriter, model: Any) -> str:
        constraint = Shares((len(model.classes_),))
        return op.parameter(model, "label_distributions_", role="table", constraint=constraint)

    def finish(self, model: Any) -> None:
        model.transduction_ = model.classes_[np.argmax(model.label_distributions_, axis=1)]

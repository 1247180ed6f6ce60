"""Linear scores and the classes of scores as the fused operators LinearRegressor and LinearClassifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto

from ..graphs import GraphBuilder, initializer_arrays
from .fusion import ML, FusedForm, attribute_of, computes, replace_tensors


@dataclass(frozen=True)
class FusedLinear(FusedForm):
    """Linear scores of float32, as LinearRegressor computes them.

    A scale that samples are divided by is divided into the coefficients.
    """

    samples: str  # tensor of shape (n, n_features), before the division
    scale: str  # initializer of shape (n_features,) or (1,); empty without any
    scores: str  # tensor of shape (n, k)
    coef: str  # initializer of shape (n_features, k)
    intercept: str = ""  # initializer of shape (k,)

    def by_rows(self) -> None:
        """Return nothing: products of other numbers of rows are rounded otherwise."""

    def rows(self, model: ModelProto) -> np.ndarray | None:
        """Return coefficients and intercept of each score, (k, n_features + 1); None where not in float32."""
        arrays = initializer_arrays(model, (self.coef, self.intercept, self.scale))
        coef = arrays[self.coef]
        if coef.dtype != np.float32:
            return None
        if self.scale:
            with np.errstate(all="ignore"):
                scaled = coef / arrays[self.scale].reshape(-1, 1)
            if not np.isfinite(scaled).all() or np.any(np.abs(scaled[coef != 0]) < np.finfo(coef.dtype).tiny):
                return None  # float32 does not hold them
            coef = scaled
        zeros = np.zeros(coef.shape[1], dtype=coef.dtype)
        intercept = arrays[self.intercept] if self.intercept else zeros
        return np.column_stack([coef.T, np.broadcast_to(intercept, zeros.shape)])

    def apply(self, model: ModelProto) -> ModelProto:
        rows = self.rows(model) if computes(model, self.scores) else None
        if rows is None:
            return model

        def write(op: GraphBuilder) -> None:
            options: Any = {"domain": ML, "outputs": [self.scores], "targets": len(rows)}
            op.node("LinearRegressor", self.samples, **options)
            _add_rows(op, rows)

        return replace_tensors(model, [self.scores], write)


@dataclass(frozen=True)
class FusedClasses(FusedForm):
    """Classes and probabilities of float32 scores, as LinearClassifier computes them.

    It computes linear scores, too. Of more than two classes other scores are left to the operators of the
    graph, which are as fast.
    """

    scores: str  # raw scores, of shape (n, 1) for two classes, (n, k) for more
    label: str  # classes of the largest scores, or of scores above zero; empty without any
    classes: np.ndarray  # of shape (k,), int64 or text
    probabilities: str = ""  # sigmoids of two classes, or the softmax
    linear: FusedLinear | None = None  # what computes the scores

    def by_rows(self) -> FusedClasses:
        """Return the form that does not compute the scores."""
        return replace(self, linear=None)

    def apply(self, model: ModelProto) -> ModelProto:
        wanted = [name for name in (self.label, self.probabilities) if name and computes(model, name)]
        of_two = len(self.classes) == 2
        if not wanted or (not of_two and self.label not in wanted):
            return model
        if self.linear is not None:
            rows = self.linear.rows(model)
            if rows is None:
                return model
            rows = np.vstack([-rows, rows]) if of_two else rows
            fused = self._replaced(model, wanted, self.linear.samples, rows)
            if not computes(fused, self.scores):
                return fused
        # the scores are needed for more
        both = np.array([[-1, 0], [1, 0]], dtype=np.float32)
        return self._replaced(model, wanted, self.scores, both) if of_two else model

    def _replaced(self, model: ModelProto, wanted: list[str], samples: str, rows: np.ndarray) -> ModelProto:
        def write(op: GraphBuilder) -> None:
            labels = "classlabels_strings" if self.classes.dtype.kind in "OUS" else "classlabels_ints"
            probable = self.probabilities in wanted
            link = ("LOGISTIC" if len(rows) == 2 else "SOFTMAX") if probable else "NONE"
            label = self.label if self.label in wanted else op.unique("label")
            outputs = [label, self.probabilities if probable else op.unique("scores")]
            options: Any = {"domain": ML, "outputs": outputs, "multi_class": 0, "post_transform": link}
            op.node("LinearClassifier", samples, **options, **{labels: self.classes.tolist()})
            _add_rows(op, rows)

        return replace_tensors(model, wanted, write)


def _add_rows(op: GraphBuilder, rows: np.ndarray) -> None:
    """Put coefficients and then the intercept of each score on the last node."""
    op.add_attribute(attribute_of("coefficients", rows[:, :-1].ravel()))
    op.add_attribute(attribute_of("intercepts", rows[:, -1]))

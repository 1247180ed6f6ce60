"""Training of a graph on the answers of another model: soft labels, at several temperatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from sklearn.exceptions import ConvergenceWarning

from ..estimators import OrtGradientOptimizer
from ..exceptions import ConversionError, StartKeptWarning
from ..graphs import append_nodes
from ..graphs.view import GraphView
from ..learning_rates import LearningRateAdam
from ..losses import LogLoss, SquaredErrorLoss
from ..models.weight_names import restored_names
from ..quiet import quiet
from ..runtime.deployment import deployed_session
from ..trainable.trainable_model import TrainableModel
from .files import PART, label_columns

__all__ = [
    *("LOSS", "VALIDATION", "ScoreGraph", "Term", "fit_answers", "mean_loss", "tempered", "training_options"),
]

LABEL, LOSS, WEIGHT = "label", "loss", "weight"
#: Share of the samples that decides when a training ends.
VALIDATION = 0.1
#: Losses of soft labels by link; that of softmax is here, as LogLoss has classes for labels there.
LOSSES = {"identity": SquaredErrorLoss(), "sigmoid": LogLoss()}


@dataclass(frozen=True)
class Term:
    """A part of the loss: cross entropy at a temperature T, times T**2 (Hinton et al., 2015)."""

    weight: float = 1.0
    temperature: float = 1.0


@dataclass(frozen=True)
class ScoreGraph:
    """The graph of the scores of a model, with the names of its file."""

    model: ModelProto
    score: str
    link: str
    n_outputs: int
    classes: Any

    @classmethod
    def of(cls, trainable: TrainableModel) -> ScoreGraph:
        """Return the score graph of a trainable one."""
        scores = trainable.scores
        if (
            scores is None
            or scores.positions is not None
            or scores.task not in ("classification", "regression")
        ):
            raise ConversionError(
                "Answers of this model cannot be trained on: it must be a classifier with one "
                "label per sample, or a regressor."
            )
        if scores.dtype != np.float32:
            raise ConversionError(f"The model computes in {scores.dtype}, and is trained here in float32.")
        model = restored_names(trainable.objective_graph(), trainable.original_names)
        return cls(model, scores.score, scores.link, scores.n_outputs, scores.classes)

    def targets(self, probabilities: np.ndarray) -> np.ndarray:
        """Return columns of labels from a column per class."""
        if self.link == "sigmoid" and self.n_outputs == 1 and probabilities.shape[1] == 2:
            return probabilities[:, 1:]
        return probabilities

    def one_hot(self, y: Any, classes: Any) -> np.ndarray:
        """Return labels as probabilities, or as numbers for a regressor."""
        if self.link == "identity":
            return label_columns(y, None)
        return self.targets(
            label_columns(y, np.arange(max(self.n_outputs, 2)) if classes is None else classes)
        )

    def with_loss(
        self,
        model: ModelProto,
        terms: Sequence[Term],
        hints: Sequence[tuple[str, int, float]] = (),
        weighted: bool = False,
    ) -> ModelProto:
        """Return a graph of the scores with a label input and the loss of each sample, times its weight.

        The columns of the labels are those of each term in turn, then of each hint, which is a tensor of the
        graph with its number of columns and a weight: its mean squared distance from the labels.
        """
        op = GraphView(model).op
        kind = op.type(self.score)
        elem_type = TensorProto.FLOAT if kind is None else kind.elem_type
        inputs = [LABEL, WEIGHT] if weighted else [LABEL]
        for name in inputs:
            op.claim(name)
        start, parts = 0, []
        for term in terms:
            label = self._columns(op, start, self.n_outputs)
            start += self.n_outputs
            parts.append(op.Mul(self._loss(op, label, term.temperature), term.weight * term.temperature**2))
        for tensor, width, weight in hints:
            gap = op.Sub(op.Flatten(tensor), self._columns(op, start, width))
            start += width
            parts.append(op.Mul(op.ReduceSum(op.Mul(gap, gap), [1], keepdims=0), weight / width))
        total = parts[0]
        for part in parts[1:]:
            total = op.Add(total, part)
        op.node(*(("Mul", total, WEIGHT) if weighted else ("Identity", total)), outputs=[LOSS])
        shapes: dict[str, list] = {LABEL: [None, start], WEIGHT: [None], LOSS: [None]}
        infos = [helper.make_tensor_value_info(name, elem_type, shapes[name]) for name in [*inputs, LOSS]]
        return append_nodes(model, op, inputs=infos[:-1], outputs=[*model.graph.output, infos[-1]])

    def _columns(self, op: Any, start: int, count: int) -> str:
        return op.Slice(LABEL, [start], [start + count], [1])

    def _loss(self, op: Any, label: str, temperature: float) -> str:
        """Write the loss of each sample."""
        score = self.score if temperature == 1 else op.Mul(self.score, 1 / temperature)
        if self.link in LOSSES:
            for name in (label, score):
                op.set_type(name, TensorProto.FLOAT, [None, self.n_outputs])
            return LOSSES[self.link].forward(op, label, score)
        return op.Neg(op.ReduceSum(op.Mul(label, op.LogSoftmax(score, axis=1)), [1], keepdims=0))


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Return probabilities at a temperature: proportional to ``p ** (1 / T)``."""
    powers = np.clip(probabilities, 1e-6, None) ** (1 / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def training_options(max_iter: int, batch_size: int, eta0: float, random_state: int) -> dict[str, Any]:
    """Return the options of a training by Adam, whose rates end at zero."""
    rate = LearningRateAdam(eta0=eta0, schedule="cosine")
    found = {"max_iter": max_iter, "batch_size": batch_size, "random_state": random_state}
    return {**found, "learning_rate": rate}


def fit_answers(
    model: ModelProto,
    X: Any,
    labels: np.ndarray,
    weights: Sequence[str],
    sample_weight: np.ndarray | None = None,
    validation: Mapping[str, Any] | None = None,
    **options: Any,
) -> OrtGradientOptimizer:
    """Return the trained estimator of a graph with a loss.

    The validation has samples, labels and weights under the names of these arguments.
    """
    own = validation or {}
    held = {"X_val": own.get("X"), "sample_weight_val": own.get("sample_weight")}
    held["y_val"] = own["labels"].astype(np.float32) if own else None
    trainer = OrtGradientOptimizer(
        model,
        weights_to_train=list(weights),
        warm_start=True,
        straight_through=True,
        early_stopping=True,
        loss_output_name=LOSS,
        label_name=LABEL,
        **({} if sample_weight is None else {"weight_name": WEIGHT}),
        **options,
    )
    with quiet(StartKeptWarning), quiet(ConvergenceWarning):  # the schedule ends at max_iter
        trainer.fit(X, labels.astype(np.float32), sample_weight=sample_weight, **held)
    return trainer


def mean_loss(model: ModelProto, feeds: Mapping[str, np.ndarray], labels: np.ndarray) -> float:
    """Return the mean loss of samples, for a graph of weighted losses."""
    values = {**feeds, LABEL: labels.astype(np.float32), WEIGHT: np.ones(len(labels), np.float32)}
    session = deployed_session(model)
    found = [
        session.run([LOSS], {name: array[i : i + PART] for name, array in values.items()})[0]
        for i in range(0, len(labels), PART)
    ]
    return float(np.concatenate(found).mean())

"""The training of a package, and its graphs."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from ..fitting.fitted_model import FittedModel
from ..graphs import extract_model, map_names
from ..learning_rates import BaseLearningRate
from ..problem.problem import Problem
from ..runtime.buffers import Carried
from ..training.graphs.averaging import Averaged
from ..training.graphs.names import SAMPLE_WEIGHT
from ..training.graphs.task import TrainingTask
from .graphs import PackageGraphs
from .labels import LabelUnits
from .weights import GIVEN_WEIGHT

__all__ = ["Package", "outputs_of", "prediction_graph"]


@dataclass(frozen=True)
class Package:
    """Contents of a training package."""

    fitted: FittedModel
    task: TrainingTask
    graphs: PackageGraphs
    batch_size: int
    rates: list[float]
    weighted: bool
    has_class_weights: bool
    units: LabelUnits | None = None  # those of y, if the graphs standardise it

    @property
    def weight_input(self) -> str | None:
        """Input of the training graphs for sample weights, or None."""
        if not self.weighted:
            return None
        return GIVEN_WEIGHT if self.has_class_weights else SAMPLE_WEIGHT

    @property
    def carried(self) -> dict[str, Carried]:
        """Weights and states by name."""
        return {name: item for name, (item, _) in self.graphs.carried.items()}

    @property
    def is_averaged(self) -> bool:
        """Whether predictions use averaged weights."""
        return isinstance(self.task.update.learning_rate, Averaged)

    @property
    def learning_rate(self) -> BaseLearningRate:
        """Learning rate, without the averaging of weights."""
        rate = self.task.update.learning_rate
        return rate.learning_rate if isinstance(rate, Averaged) else rate

    @property
    def evaluation_task(self) -> TrainingTask:
        """Task whose loss is evaluated, without class weights."""
        return self.fitted.problem.task(self.weighted, evaluates=True)


def outputs_of(problem: Problem, trained: ModelProto) -> dict[str, str]:
    """Return the outputs of the prediction graph by their kind."""
    scores = problem.trainable.scores
    if scores is None:
        own = problem.trainable.own_loss
        names = [v.name for v in trained.graph.output if own is None or v.name != own.output]
        return {f"output_{number}": name for number, name in enumerate(names)}
    found = {"scores": scores.score, "label": scores.label, "transformed": scores.transformed}
    if isinstance(scores.probabilities, str):
        found["probabilities"] = scores.probabilities
    if scores.task == "regression":
        found["prediction"] = scores.predicted
    unique = {name: kind for kind, name in found.items() if name}
    return {kind: name for name, kind in unique.items()}


def prediction_graph(trained: ModelProto, outputs: dict[str, str]) -> ModelProto:
    """Return the prediction graph, whose outputs are named by their kind."""
    return map_names(extract_model(trained, list(outputs.values())), {n: k for k, n in outputs.items()})

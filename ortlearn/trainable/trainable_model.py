"""Trainable graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.pipeline import Pipeline

from ..graphs import extract_model, initializer_arrays, make_inputs_of, map_names, prune, set_initializers
from ..models import Scores
from ..models.constraints.base import Constraint
from ..models.constraints.reparametrisation import Reparametrisation
from ..models.fusion import FusedForm, fuse
from ..models.parameters import Parameter, part_of
from ..models.transformations.pipelines import working_steps
from ..models.trees.ordering import ordered
from ..models.trees.packed import by_levels, for_many
from ..models.weight_names import restored_names
from ..models.writer import Members, TextSteps
from ..onnx_files.decompositions import exact_couplings
from ..onnx_files.low_rank.adapters import Adapter
from ..onnx_files.running_statistics import NEXT, for_evaluation, running_statistics, with_batch_statistics
from ..onnx_files.sample_weights import with_weight_vector
from ..onnx_files.scores import APPENDED
from ..onnx_files.simplify import remove_idle_nodes
from ..onnx_files.weight_locations import with_values
from ..preprocessing.pipeline_split import SklearnSteps, rest_of
from ..preprocessing.schema import InputSchema

__all__ = ["Entry", "OwnLoss", "TrainableModel"]


@dataclass(frozen=True)
class OwnLoss:
    """A loss that a graph computes."""

    output: str
    label: str  # input of the labels
    row_weight: str | None = None  # input of the sample weights


@dataclass(frozen=True)
class Entry:
    """Inputs of a graph, and the fitted steps of a pipeline that compute them in scikit-learn."""

    schema: InputSchema
    sklearn_steps: Pipeline | None = None
    selects_by_name: bool = False  # whether columns of a frame are, and others are ignored


@dataclass(frozen=True)
class TrainableModel:
    """A trainable graph, with stable names of its weights.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph for inference, with initializers named ``I0_...`` and unique names of nodes. It computes
        constrained parameters from free values.
    entry : Entry
        Inputs of X, and the steps that run in scikit-learn.
    scores : Scores or None
        Trained scores; None for a graph with its own loss.
    parameters : dict of str to Parameter
        All floating-point initializers.
    trained : list of str
        Names of the weights to train and of the running statistics that batches update, sorted.
    original_names : dict of str to str
        Original name by stable name.
    own_loss : OwnLoss or None
        Loss that the graph computes, or None.
    origin : str or None
        scikit-learn estimator, or step of a pipeline, of the trained part.
    reserved_names : dict of str to str
        Original names of tensors with reserved names.
    link : {"identity", "log"}
        Link function from the predictions of a regressor to its scores.
    reparametrisation : Reparametrisation
        Constraints of trained weights, whose initializers are free values.
    declared : bool
        Whether model definitions wrote the graph and declared its weights.
    exported : onnx.ModelProto or None
        For an ONNX file, the model to export, without the values of the trained weights.
    upgraded : onnx.ModelProto or None
        For an ONNX file, the trained graph with the inputs and outputs of the file.
    fused : tuple of FusedForm
        Fused operators for inference that model definitions declare.
    adapters : tuple of Adapter
        Trained low-rank adapters, with stable names.
    members : tuple of Members
        Tensors of the members of ensembles, that definitions declare.
    text_steps : tuple of TextSteps
        Steps of pipelines that compute features of documents.
    """

    model: ModelProto
    entry: Entry
    scores: Scores | None
    parameters: dict[str, Parameter]
    trained: list[str]
    original_names: dict[str, str]
    own_loss: OwnLoss | None = None
    origin: str | None = None
    reserved_names: dict[str, str] = field(default_factory=dict)
    link: str = "identity"
    reparametrisation: Reparametrisation = Reparametrisation()
    declared: bool = False
    exported: ModelProto | None = None
    upgraded: ModelProto | None = None
    fused: tuple[FusedForm, ...] = ()
    adapters: tuple[Adapter, ...] = ()
    members: tuple[Members, ...] = ()
    text_steps: tuple[TextSteps, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        # without cached properties, so that equal objects have equal pickles
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def weights(self) -> dict[str, Parameter]:
        """Former name of ``parameters``."""
        return self.parameters

    @property
    def constraints(self) -> Mapping[str, Constraint]:
        """Constraints of trained weights."""
        return self.reparametrisation.constraints

    @property
    def replaced(self) -> Members | None:
        """Outputs of parts before the last, which outputs for unseen samples replace in training, or None."""
        return next((members for members in self.members if members.replaced), None)

    @property
    def from_file(self) -> bool:
        """Whether the graph comes from an ONNX file."""
        return self.exported is not None

    @cached_property
    def input_name(self) -> str:
        """Name of the input of X, or of the first of several inputs."""
        return self.entry.schema.inputs[0].name

    @cached_property
    def input_dtype(self) -> np.dtype:
        """Floating-point type of X in the graph."""
        return self.entry.schema.float_dtype

    @property
    def n_features(self) -> int | None:
        """Number of columns of X, or None if it is unknown."""
        return self.entry.schema.n_features

    @cached_property
    def takes_numbers(self) -> bool:
        """Whether X is a matrix of floats that the graph reads without preprocessing."""
        schema = self.entry.schema
        return self.entry.sklearn_steps is None and schema.is_number_matrix and not schema.categories

    def initial_weights(self) -> dict[str, np.ndarray]:
        """Return copies of the initial weights by stable name, free values for constrained ones."""
        return {name: array.copy() for name, array in initializer_arrays(self.model, self.trained).items()}

    @property
    def objective_tensor(self) -> str:
        """Name of the trained output: the scores, or the graph's own loss."""
        if self.own_loss is not None:
            return self.own_loss.output
        assert self.scores is not None
        return self.scores.score

    def objective_graph(self) -> ModelProto:
        """Return the part of the graph up to the trained output, its only output."""
        declared = {} if self.scores is None else {self.scores.score: self.scores.type}
        return exact_couplings(extract_model(self.model, [self.objective_tensor], declared=declared))

    def transformers_of(self, source: Any) -> dict[str, Pipeline]:
        """Return the fitted steps of an estimator that compute features of documents, by their tensor."""
        if not self.text_steps:
            return {}
        model = rest_of(source, self.entry.sklearn_steps)
        found = ((item, working_steps(part_of(model, item.path))) for item in self.text_steps)
        return {item.tensor: SklearnSteps(steps[: item.count]) for item, steps in found}

    @cached_property
    def statistics(self) -> dict[str, str]:
        """Running statistics that batches update, and the outputs of the score graph with new values."""
        found = running_statistics(self.model) and running_statistics(self.objective_graph())
        return {name: NEXT.format(name) for name in sorted(found)}

    def score_graph(
        self, sample_weight: str | None = None, evaluates: bool = False, by_rows: bool = True
    ) -> ModelProto:
        """Return the graph that computes the trained output, with the trained weights as inputs.

        Its inputs are X, labels and sample weights ``sample_weight`` of a graph with its own loss, and sorted
        weights; its outputs are the scores or the loss, and the next running statistics, unless a graph that
        ``evaluates`` uses the present ones. ``by_rows`` says whether constrained tables are computed for the
        rows that samples look up: a batch needs fewer than there are, all samples look up each several times.
        """
        part = self.objective_graph()
        part = for_evaluation(part) if evaluates else with_batch_statistics(part)
        part = self.reparametrisation.by_rows(part) if by_rows else part
        part = self.reparametrisation.without_signs(part)
        if sample_weight is not None and self.own_loss is not None and self.own_loss.row_weight is not None:
            part = with_weight_vector(part, self.own_loss.row_weight, sample_weight, self.input_dtype)
        return make_inputs_of(remove_idle_nodes(part), self.trained)

    def with_stable_weights(self, arrays: dict[str, np.ndarray]) -> ModelProto:
        """Return the trainable graph with new weights, by stable name."""
        return set_initializers(self.model, arrays)

    def with_weights(
        self, arrays: dict[str, np.ndarray], keep_upgrade: bool = False, fused: bool | str = True
    ) -> ModelProto:
        """Return the graph for inference with new weights (by stable name), with original names.

        It has no nodes that only training needs. For an ONNX file, it has the inputs and outputs of the file,
        and with ``keep_upgrade`` the opset and the types of the trained graph. With ``fused``, that of an
        estimator has the fused operators that definitions declare; otherwise all weights are initializers.
        """
        exported = self.upgraded if keep_upgrade else self.exported
        if exported is not None:
            return with_values(exported, self._exported_weights(arrays))
        model = set_initializers(self.model, arrays)
        if self.own_loss is not None:
            rest = [value.name for value in model.graph.output if value.name != self.own_loss.output]
            if rest:
                model = extract_model(model, rest)
        if any(node.name.startswith(APPENDED) for node in model.graph.node):
            model = prune(model)
        return map_names(self.for_inference(model, fused), self.reserved_names)

    def for_inference(
        self, model: ModelProto, fused: bool | str = True, by_sample: bool = False, n_threads: int = 1
    ) -> ModelProto:
        """Return a graph with trained weights (with stable names), or a part of it, for inference.

        With ``by_sample``, it has only those fused operators whose result for a sample does not depend on
        other samples. ``fused`` may be a form of trees: ``"levels"``, whose session opens fast, ``"tables"``
        for many samples and a number of threads, ``"many"`` with the order of samples, too.
        """
        model = restored_names(self.reparametrisation.undone(model), self.original_names)
        if not fused:
            return model
        forms = [form.by_sample() for form in self.fused] if by_sample else self.fused
        found = [form for form in forms if form is not None]
        if fused == "levels":
            found = by_levels(found)
        elif fused in ("tables", "many"):
            found = for_many(found, n_threads)
        return fuse(model, ordered(found) if fused == "many" else found)

    def _exported_weights(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the weights of the file that training changes, with merged adapters."""
        weights = {**self.initial_weights(), **arrays}
        frozen = initializer_arrays(self.model, [adapter.weight for adapter in self.adapters])
        for adapter in self.adapters:
            a, b = weights.pop(adapter.a), weights.pop(adapter.b)
            weights[adapter.weight] = adapter.merged(frozen[adapter.weight], a, b)
        return {self.original_names[name]: array for name, array in weights.items()}

    def coefficients(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the trained parameters by original name, from weights (or free values) by stable name."""
        values = dict(arrays)
        for name in self.constraints.keys() & arrays.keys():
            array = arrays[name]
            values[name] = np.asarray(self.constraints[name].values(array), dtype=array.dtype)
        return {self.original_names[name]: array for name, array in values.items()}

    def origins(self) -> dict[str, str]:
        """Return the step and the attribute of each trained weight, by original name."""
        return {self.original_names[name]: self.parameters[name].origin for name in self.trained}

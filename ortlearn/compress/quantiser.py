"""The layers of one file, quantised with samples for calibration and training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, version_converter
from scipy.special import expit, softmax
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from ..exceptions import ConversionError
from ..graphs import extract_model, set_initializers, value_types
from ..graphs.name_patterns import matches_pattern
from ..graphs.view import GraphView
from ..onnx_files.interface import with_interface
from ..onnx_files.loading import load_onnx
from ..onnx_files.weight_locations import HALVES
from ..runtime.deployment import deployed_session
from ..trainable.conversion import to_trainable
from .files import PART, File
from .layers import Layer, find_layers
from .objectives import VALIDATION, ScoreGraph, Term, fit_answers, mean_loss
from .qdq import LOG, Plan, write_quantised, write_trainable
from .ranges import Levels, activation_levels, weight_levels

__all__ = ["Quantiser"]

#: The opset that has int4, samples of the calibration, and values that are kept of each tensor.
OPSET_OF_INT4, CALIBRATION, VALUES = 21, 1000, 2**20


class Quantiser:
    """Quantise the layers of one file, with samples for calibration and training."""

    def __init__(self, file: ModelProto, X: Any, y: Any, seed: int, int4: bool = False) -> None:
        self.file, self.X, self.y, self.seed = file, X, y, seed
        if any(v.type.tensor_type.elem_type in HALVES for v in (*file.graph.input, *file.graph.output)):
            raise ConversionError(
                "The model takes or returns float16, which layers of integers do not: export it with float32."
            )
        self.kept = ""  # why the last file is calibrated only, though it was trained
        self.model = _with_int4(load_onnx(file)) if int4 else load_onnx(file)
        self.view = GraphView(self.model)
        self.layers, self.left = find_layers(self.view)
        if not self.layers:
            reasons = "; ".join(f"{name}: {text}" for name, text in list(self.left.items())[:6])
            if any(node.op_type == "DequantizeLinear" for node in self.view.nodes):
                reasons = f"It is quantised already: pass the float model. {reasons}"
            raise ConversionError(
                "The model has no linear layer or convolution that can be quantised. Its operators are "
                f"{sorted({node.op_type for node in self.view.nodes})}. {reasons}"
            )

    def plan(self, last: int, method: str, symmetric: bool, activations: bool) -> Plan:
        """Return all layers with the levels of their weights, up to ``last``, and of activations."""
        if symmetric:  # without a zero point, a Relu is no part of the rounding before it
            self.layers = {name: _before_activation(part) for name, part in self.layers.items()}
        weights = {}
        for name, layer in self.layers.items():
            array = self.view.value(name)
            assert array is not None
            if not np.isfinite(array).all():
                raise ValueError(f"The weight {name!r} has values that are not finite.")
            weights[name] = weight_levels(array, layer.axis, last, method)
        return Plan(self.layers, weights, self._calibrated(method, symmetric) if activations else {})

    def _calibrated(self, method: str, symmetric: bool) -> dict[str, Levels]:
        """Return the levels of all activations, from their values for some samples."""
        tensors = {*Plan.tensors(self.view, self.layers.values()).values()}
        # a convolution in float leaves its copies, which then need their own levels
        names = sorted(tensors | {layer.source for layer in self.layers.values()})
        values = _activations(self.model, File(self.file), self._some(CALIBRATION), names)
        for name, array in values.items():
            if not np.isfinite(array).all():
                raise ValueError(
                    f"The tensor {name!r} has values that are not finite for samples of X: fill or remove "
                    "NaN and infinity first."
                )
        return {name: activation_levels(array, method, symmetric) for name, array in values.items()}

    def _some(self, count: int) -> Any:
        indices = check_random_state(self.seed).permutation(_num_samples(self.X))[:count]
        return _safe_indexing(self.X, np.sort(indices))

    def without(self, plan: Plan, keep_float: str | Sequence[str]) -> Plan:
        """Return a plan without layers by the names of weights and nodes."""
        patterns = [keep_float] if isinstance(keep_float, str) else list(keep_float)
        for pattern in patterns:
            found = [
                name
                for name, layer in self.layers.items()
                if matches_pattern(name, pattern) or matches_pattern(layer.name, pattern)
            ]
            if not found:
                raise ValueError(f"keep_float={pattern!r} matches none of the layers {list(self.layers)}.")
            self.left.update(dict.fromkeys(found, "stays in float, as keep_float says"))
        return plan.without(self.left)

    def quantised(self, plan: Plan, grade: str, options: Mapping[str, Any]) -> ModelProto:
        """Return the file, after the training of a grade."""
        self.kept = ""
        if not plan.layers:
            return self.file
        model = self.model
        if grade != "calibration":
            model, plan = self._trained(plan, grade, options)
        return with_interface(write_quantised(model, plan), self.file)

    def _trained(self, plan: Plan, grade: str, options: Mapping[str, Any]) -> tuple[ModelProto, Plan]:
        """Return the model and the plan with trained weights and scales."""
        classes = None if self.y is None else np.asarray(self.y)
        forced = classes is not None and classes.ndim == 1 and classes.dtype.kind in "iub"
        wide = (value_types(self.model)[self.model.graph.output[0].name].shape or (0, 1))[-1] != 1
        trainable = to_trainable(self.model, forced_task="classification" if forced and wide else None)
        graph = ScoreGraph.of(trainable)
        inner, _ = find_layers(GraphView(graph.model))
        reached = {
            name: _before_activation(inner[name]) if layer.end == layer.product else inner[name]
            for name, layer in plan.layers.items()
            if name in inner
        }
        rounded, logs = write_trainable(graph.model, replace(plan, layers=reached))
        targets = self._answers(graph) if self.y is None else graph.one_hot(self.y, graph.classes)
        held = {tensor.name for tensor in rounded.graph.initializer}
        weights = [name for n in trainable.trained if (name := trainable.original_names[n]) in held]
        weights = [] if grade == "scales" else weights
        indices = np.arange(len(targets))
        fit, held = train_test_split(indices, test_size=VALIDATION, random_state=self.seed)
        X_held, loss = _safe_indexing(self.X, held), graph.with_loss(rounded, [Term()], weighted=True)
        trained = fit_answers(
            loss,
            _safe_indexing(self.X, fit),
            targets[fit],
            [*weights, *logs],
            np.ones(len(fit)),
            {"X": X_held, "labels": targets[held], "sample_weight": np.ones(len(held))},
            **options,
        )
        found = trained.trained_coef_
        if trained.start_kept_:
            before = mean_loss(loss, File(self.file).feeds(X_held), targets[held])
            after = min(trained.validation_losses_, default=np.nan)
            self.kept = (
                f"calibrated only: the loss of {len(held)} samples is {before:.4g}, and at best {after:.4g} "
                f"after the training of grade={grade!r}"
            )
        return set_initializers(self.model, {name: found[name] for name in weights}), Plan(
            plan.layers, _scaled(plan.weights, found), _scaled(plan.activations, found)
        )

    def _answers(self, graph: ScoreGraph) -> np.ndarray:
        """Return the answers of the float model as labels."""
        scores = File(extract_model(graph.model, [graph.score])).run(self.X)[graph.score].astype(np.float64)
        if graph.link == "softmax":
            return np.asarray(softmax(scores, axis=1))
        return expit(scores) if graph.link == "sigmoid" else scores

    def by_sensitivity(self, plan: Plan) -> list[str]:
        """Return the layers, those first whose rounding alone changes the outputs most."""
        X = self._some(CALIBRATION // 2)
        expected = File(self.file).matrix(X)
        changes = {}
        for name in plan.layers:
            alone = write_quantised(self.model, plan.without(set(plan.layers) - {name}))
            changes[name] = float(
                np.square(File(with_interface(alone, self.file)).matrix(X) - expected).mean()
            )
        return sorted(changes, key=lambda name: -changes[name])


def _before_activation(layer: Layer) -> Layer:
    """Return a layer whose result is rounded before its activation."""
    has_pair = layer.op_type == "Conv" or layer.end == layer.product
    return replace(layer, end=layer.product, later="" if has_pair else layer.end)


def _scaled(levels: dict[str, Levels] | Any, found: Any) -> dict[str, Levels]:
    """Return levels with trained scales."""
    return {
        name: replace(part, scale=(part.scale * np.exp(found[LOG.format(name)])).astype(np.float32))
        if LOG.format(name) in found
        else part
        for name, part in levels.items()
    }


def _activations(model: ModelProto, file: File, X: Any, names: list[str]) -> dict[str, np.ndarray]:
    """Return values of tensors of a graph for samples, at most a number of each, equally spaced."""
    inputs = {value.name for value in model.graph.input}
    feeds = {name: array for name, array in file.feeds(X).items() if name in inputs}
    computed = [name for name in names if name not in inputs]
    found: dict[str, list[np.ndarray]] = {name: [feeds[name].ravel()] for name in names if name in inputs}
    if computed:
        session = deployed_session(extract_model(model, computed))
        needed = {value.name for value in session.get_inputs()}
        count = len(next(iter(feeds.values())))
        for start in range(0, count, PART):
            part = {name: array[start : start + PART] for name, array in feeds.items() if name in needed}
            most = max(1, VALUES * (PART) // max(count, PART))
            for name, array in zip(computed, session.run(computed, part), strict=True):
                found.setdefault(name, []).append(_extremes(array.ravel(), most))
    return {name: np.concatenate(arrays) for name, arrays in found.items()}


def _extremes(values: np.ndarray, most: int) -> np.ndarray:
    """Return equally spaced values, with the smallest and the largest."""
    some = values[:: max(1, values.size // most)]
    return np.concatenate([some, [values.min(), values.max()]]) if some.size < values.size else some


def _with_int4(model: ModelProto) -> ModelProto:
    """Return a model at an opset that has int4."""
    versions = {item.domain: item.version for item in model.opset_import}
    if versions.get("", 0) >= OPSET_OF_INT4:
        return model
    try:
        found = version_converter.convert_version(model, OPSET_OF_INT4)
    except Exception as error:
        raise ConversionError(
            f"int4 needs opset {OPSET_OF_INT4}, and onnx cannot convert the model to it: {error}"
        ) from error
    found.ir_version = max(found.ir_version, 10)
    return found

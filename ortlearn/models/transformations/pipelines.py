"""Pipelines, feature unions, column transformers, and meta-estimators with one inner estimator."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from ..base import ModelDefinition, Route
from ..capabilities import UNSEEN_OUTPUTS, SeparateParts, reproduces_samples
from ..columns import Columns
from ..registry import definition_of, find_definition, has_own_score, inner_part, needs_float64
from ..scores import Scores, label_of, transformation
from ..writer import ModelWriter

IDLE = (None, "passthrough")  # steps that return their input


def is_idle(step: Any) -> bool:
    """Return whether a step returns its input; samplers of imbalanced-learn only act in fit."""
    return step in IDLE or hasattr(step, "fit_resample")


class PipelineDefinition(ModelDefinition):
    """Pipeline: each step takes the output of the previous step."""

    exact = True
    takes_columns = True
    passes_samples = True

    def children(self, model: Any) -> Iterator[Any]:
        yield from (step for _, step in working_steps(model))

    def fitted_part(self, model: Any) -> Any:
        last = model.steps[-1][1]
        return model if is_idle(last) else last

    def has_own_score(self, model: Any) -> bool:
        last = model.steps[-1][1]
        return not is_idle(last) and has_own_score(last)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        scores: Scores | None = None
        steps = working_steps(model)
        reads_documents = x is op.documents
        for count, (name, step) in enumerate(steps):
            if scores is not None:
                if scores.transformed is None:
                    raise op.fail(model, f"the step before {name!r} does not transform.")
                x = scores.transformed
                if reads_documents and isinstance(x, str):
                    op.add_text_steps(count, x)
                if hasattr(step, UNSEEN_OUTPUTS) and isinstance(x, str):
                    op.add_members(x, replaced=True)
            scores = op.step(name, step, x, last=name == steps[-1][0])
        if scores is None:  # all steps are idle
            shape = (len(x.tensors),) if isinstance(x, Columns) else op.shape(x)
            assert shape is not None and isinstance(shape[-1], int)
            return transformation(op, x, shape[-1])
        return scores

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        steps = [step for _, step in working_steps(model) if not _passes_through(step)]
        imputed = False
        while len(steps) > 1 and (found := find_definition(steps[0])) and found.fills_gaps_only(steps[0]):
            steps, imputed = steps[1:], True
        yield Route(steps[0] if steps else None, columns, imputed)

    def needs_float64(self, model: Any, computed: bool) -> bool:
        for _, step in working_steps(model):
            if needs_float64(step, computed):
                return True
            found = find_definition(step)
            computed = computed or found is None or not found.fills_gaps_only(step)
        return False

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        for _, step in reversed(working_steps(model)):
            y = definition_of(step).write_inverse(op, step, y)
        return y

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        return model.steps[-1][1]


def working_steps(model: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline that are not idle, with their names."""
    return [(name, step) for name, step in model.steps if not is_idle(step)]


def _passes_through(step: Any) -> bool:
    found = find_definition(step)
    return found is not None and [route.part for route in found.routes(step, ())] == [None]


class _SideBySide(ModelDefinition):
    """Transformers whose outputs are concatenated."""

    exact = True
    takes_columns = True
    prefix = ""  # attribute that maps names to parts, if it is not the estimator itself

    def parts(self, model: Any) -> Iterator[tuple[str, Any, list[int] | None]]:
        """Yield the name, the transformer and the positions of the columns of each part."""
        raise NotImplementedError

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        for _, step, positions in self.parts(model):
            # members of a chain also take predictions, beyond these columns
            some = columns if positions is None else [columns[i] for i in positions if i < len(columns)]
            yield Route(None if step in IDLE else step, some)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        found: list[tuple[Any, int]] = []
        for name, step, positions in self.parts(model):
            part = x if positions is None else op.columns(x, positions)
            if step in IDLE:
                width = model.n_features_in_ if positions is None else len(positions)
            else:
                scores = op.write(step, part, f"{self.prefix}['{name}']")
                part, width = scores.transformed, scores.n_outputs
                if part is None:
                    raise op.fail(model, f"its part {name!r} does not transform.")
            factor = (model.transformer_weights or {}).get(name)
            if factor is not None:
                part = op.Mul(op.matrix(part), float(factor))
            if width:
                found.append((part, width))
        n_columns = sum(width for _, width in found)
        if not any(op.has_text(part) for part, _ in found):
            return transformation(op, op.joined([op.matrix(part) for part, _ in found]), n_columns)
        columns = tuple(op.column(part, i) for part, width in found for i in range(width))
        return transformation(op, Columns(columns), n_columns)


class FeatureUnionDefinition(_SideBySide):
    """FeatureUnion: each transformer takes all columns."""

    def parts(self, model: Any) -> Iterator[tuple[str, Any, None]]:
        yield from ((name, step, None) for name, step in model.transformer_list if step != "drop")


class ColumnTransformerDefinition(_SideBySide):
    """ColumnTransformer: each transformer takes some of the columns."""

    selects_columns = True
    prefix = "named_transformers_"

    def parts(self, model: Any) -> Iterator[tuple[str, Any, list[int]]]:
        return column_positions(model)


def column_positions(model: Any) -> Iterator[tuple[str, Any, list[int]]]:
    """Yield name, transformer and column positions of the parts of a fitted ColumnTransformer."""
    known = model._transformer_to_input_indices
    for name, step, _ in model.transformers_:
        positions = [int(position) for position in known.get(name, [])]
        if positions and not (isinstance(step, str) and step == "drop"):
            yield name, step, positions


def _inside(model: Any) -> tuple[str, Any]:
    """Return the attribute of the inner estimator, and that estimator."""
    return inner_part(model) or ("", model)


class InnerDefinition(ModelDefinition):
    """Meta-estimators with the predictions of their inner estimator."""

    takes_columns = True
    inner: Sequence[str] = ("estimator_",)

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        yield Route(_inside(model)[1], columns)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        # at the top, parameters keep the names of the inner estimator
        attribute, estimator = _inside(model)
        return op.write(estimator, x, attribute, named=bool(op.path))

    def fitted_part(self, model: Any) -> Any:
        return _inside(model)[1]

    def has_own_score(self, model: Any) -> bool:
        return has_own_score(_inside(model)[1])

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        return _inside(model)[1]


class SelfTrainingDefinition(InnerDefinition):
    """SelfTrainingClassifier."""

    unlabelled = -1


class ConsensusDefinition(InnerDefinition):
    """RANSACRegressor, without an objective, as its fit drops samples."""

    def fitted_part(self, model: Any) -> Any:
        return model


class SearchDefinition(InnerDefinition):
    """Searches over hyper-parameters that refit the best estimator."""

    inner = ("best_estimator_",)
    wraps = True
    capabilities = (
        SeparateParts(
            lambda model, given: (own for own in [(model.best_estimator_, given)]),
            lambda model, parts: setattr(model, "best_estimator_", parts[0]),
            applies=lambda model, loss: bool(model.refit) and reproduces_samples(model),
        ),
    )

    def has_own_score(self, model: Any) -> bool:
        return model.scoring is not None or super().has_own_score(model)


class FrozenDefinition(InnerDefinition):
    """FrozenEstimator: not trained by default, unless it is the outermost estimator."""

    inner = ("estimator",)
    wraps = True

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        with op.inside(reason="it is part of a FrozenEstimator" if op.path else ""):
            return super().write(op, model, x)


class ThresholdDefinition(InnerDefinition):
    """FixedThresholdClassifier and TunedThresholdClassifierCV: binary decisions by a threshold."""

    inner = ("estimator_", "estimator")

    def has_own_score(self, model: Any) -> bool:
        return False

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        scores = super().write(op, model, x)
        method, has_probabilities = model.response_method, hasattr(_inside(model)[1], "predict_proba")
        of_probability = method == "predict_proba" or (method == "auto" and has_probabilities)
        # by default, the positive class is the second one
        positive = getattr(model, "pos_label", None)
        number = 1 if positive is None else int(np.flatnonzero(scores.classes == positive)[0])
        value = _class_response(op, scores, number, of_probability)
        threshold = getattr(model, "best_threshold_", None)
        threshold = model.threshold if threshold is None else threshold
        if threshold == "auto":
            threshold = 0.5 if of_probability else 0.0
        above = op.Cast(op.GreaterOrEqual(value, float(threshold)), to=TensorProto.INT64)
        classes = scores.classes if number == 1 else scores.classes[::-1]
        return replace(scores, label=label_of(op, op.Reshape(above, [-1]), classes))


def _class_response(op: ModelWriter, scores: Scores, number: int, of_probability: bool) -> str:
    """Return the probability or the decision of one of two classes, of shape (n, 1)."""
    if of_probability and isinstance(scores.probabilities, str):
        return op.Gather(scores.probabilities, [number], axis=1)
    decision = op.difference(scores.decided) if scores.n_outputs == 2 else scores.decided
    return decision if number == 1 else op.Neg(decision)


def _of_monotonic_labels(model: Any, given: Any) -> Generator[tuple[Any, Any], Any, None]:
    """Yield the regressor and samples with transformed labels, if these keep or reverse the order."""
    if given.y.ndim == 1:
        labels = TransformedTargetDefinition().inner_labels(model, given.y)
        steps = np.diff(labels[np.argsort(given.y)])
        if (steps >= 0).all() or (steps <= 0).all():
            yield model.regressor_, replace(given, y=labels)


class TransformedTargetDefinition(InnerDefinition):
    """TransformedTargetRegressor: a regressor of transformed labels."""

    inner = ("regressor_",)
    capabilities = (
        SeparateParts(
            _of_monotonic_labels,
            lambda model, parts: setattr(model, "regressor_", parts[0]),
            applies=lambda model, loss: loss.of_quantiles and reproduces_samples(model),
        ),
    )

    def has_own_score(self, model: Any) -> bool:
        return False

    def inner_labels(self, model: Any, y: Any) -> Any:
        labels = np.asarray(y)
        found = model.transformer_.transform(labels[:, np.newaxis] if labels.ndim == 1 else labels)
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        scores = super().write(op, model, x).with_link(op, op.link)
        inverse = definition_of(model.transformer_).write_inverse
        prediction = inverse(op, model.transformer_, scores.predicted)
        transformers = (model.transformer_, *scores.target_transformers)
        return replace(scores, prediction=prediction, target_transformers=transformers)

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        model._training_dim = n_dimensions

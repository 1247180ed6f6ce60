"""Retrained models: what a model may be replaced by after a drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ..comparison.evidence import best_of, bounded
from ..comparison.measures import FOLDS, folds_of_different
from ..estimators import OrtGradientOptimizer
from ..evaluation.data_files import Table
from ..evaluation.metrics import sample_losses
from ..evaluation.onnx_model import OnnxModel
from ..evaluation.predictions import Model
from ..evaluation.sklearn_model import SklearnModel
from ..exceptions import StartKeptWarning
from ..onnx_files.loading import is_onnx_source
from ..quiet import quiet
from ..trainable.explanation import explain
from .samples import copies_in, labels_of, source_of

__all__ = ["choose_kind", "kinds_of", "retrained", "with_all_classes"]

#: Standard errors by which a candidate must improve on what is kept, in cross-validation.
EVIDENCE = 1.0


class Trained(SklearnModel):
    """A retrained model, which takes the columns of the model in use."""

    def __init__(self, estimator: Any, name: str, column_names: list[str] | None):
        super().__init__(estimator, name)
        self.column_names = self.column_names if column_names is None else column_names


def _warm_start(model: Model, new: Table, _: Table | None, parameters: Mapping[str, Any]) -> Model:
    """Train further on the new samples."""
    trainer = OrtGradientOptimizer(source_of(model), **{"warm_start": True, **parameters})
    with quiet(StartKeptWarning):  # then the gate keeps the model
        trainer.fit(model.features(new), labels_of(new, model), sample_weight=new.weights)
    if is_onnx_source(trainer.estimator):
        return OnnxModel(trainer.get_trained_onnx(), "warm_start")
    return Trained(trainer, "warm_start", model.column_names)


def _refit(model: Model, new: Table, old: Table | None, parameters: Mapping[str, Any]) -> Model:
    """Fit again, on the new samples."""
    return _fitted(model, [new], "refit", parameters)


def _refit_both(model: Model, new: Table, old: Table | None, parameters: Mapping[str, Any]) -> Model:
    """Fit again, on old and new samples."""
    assert old is not None
    return _fitted(model, [old, new], "refit_both", parameters)


def _fitted(model: Model, tables: list[Table], name: str, parameters: Mapping[str, Any]) -> Model:
    """Fit a copy of an estimator on samples of some tables."""
    import pandas as pd

    estimator = clone(source_of(model))
    if "random_state" in estimator.get_params(deep=False) and estimator.random_state is None:
        estimator.set_params(random_state=parameters.get("random_state"))
    parts = [model.features(table) for table in tables]
    X = pd.concat(parts, ignore_index=True) if hasattr(parts[0], "iloc") else np.concatenate(parts)
    y = np.concatenate([labels_of(table, model) for table in tables])
    options = {}
    if any(table.weights is not None for table in tables) and has_fit_parameter(estimator, "sample_weight"):
        options["sample_weight"] = np.concatenate([table.weight_per_sample for table in tables])
    estimator.fit(X, y, **options)
    return Trained(estimator, name, model.column_names)


#: Functions that retrain, by name.
KINDS: dict[str, Callable[[Model, Table, Table | None, Mapping[str, Any]], Model]] = {
    "warm_start": _warm_start,
    "refit": _refit,
    "refit_both": _refit_both,
}


def kinds_of(model: Model, new: Table, reference: Table | None, wanted: Any) -> list[str]:
    """Return the names of the kinds that a model and its samples allow; of given ones, all must be."""
    unknown = sorted(set(wanted or ()) - set(KINDS))
    if unknown:
        raise ValueError(f"candidates={unknown} must be some of {list(KINDS)}.")
    has_labels = reference is not None and reference.labels is not None
    possible = ["warm_start"]
    if not is_onnx_source(source_of(model)):
        possible += ["refit", "refit_both"] if has_labels else ["refit"]
    missing = sorted(set(wanted or ()) - set(possible))
    if missing:
        raise ValueError(
            f"candidates={missing} are not possible: a refit needs a scikit-learn estimator, not an ONNX "
            "file, and 'refit_both' needs reference samples with labels."
        )
    if wanted is None and len(possible) > 1 and not explain(source_of(model), model.features(new)).trainable:
        possible.remove("warm_start")  # such as of neighbours, which have no weights
    return [kind for kind in possible if wanted is None or kind in wanted]


def with_all_classes(kinds: list[str], model: Model, new: Table, reference: Table | None) -> list[str]:
    """Return the kinds that keep the classes of a classifier: a refit has those of its samples."""
    classes = model.classes
    if model.task != "classification" or classes is None:
        return kinds

    def fewest(table: Table) -> int:
        return min(int(np.count_nonzero(labels_of(table, model) == value)) for value in classes)

    if fewest(new) >= FOLDS:
        return kinds
    has_all = reference is not None and reference.labels is not None and fewest(reference) > 0
    return [kind for kind in kinds if kind == "warm_start" or (kind == "refit_both" and has_all)]


def retrained(
    kind: str, model: Model, new: Table, reference: Table | None, parameters: Mapping[str, Any]
) -> Model:
    """Return a model retrained on samples by a method."""
    return KINDS[kind](model, new, reference, parameters)


def choose_kind(
    model: Model,
    kinds: list[str],
    new: Table,
    reference: Table | None,
    parameters: Mapping[str, Any],
) -> tuple[str | None, dict[str, float]]:
    """Return the kind that cross-validation prefers, None to keep the model, and the mean losses.

    The rule of evidence is that of warm starts; the model itself was not fitted on these samples.
    """
    labels = labels_of(new, model)
    classes = labels if model.task == "classification" else None
    rows: list[list[np.ndarray]] = [[] for _ in range(1 + len(kinds))]
    weights = []
    random_state = np.random.RandomState(parameters.get("random_state"))
    known = copies_in(new, labels)

    def copies(samples: np.ndarray) -> np.ndarray | None:
        return None if known is None else np.unique(known[samples], return_inverse=True)[1]

    for train, test in folds_of_different(classes, len(new), copies, random_state):
        part, left_out = new.take(train), new.take(test)
        weights.append(left_out.weight_per_sample)
        models = [model, *(retrained(kind, model, part, reference, parameters) for kind in kinds)]
        for row, found in zip(rows, models, strict=True):
            row.append(_losses(found, left_out, labels[test]))
    table, weight = np.array([np.concatenate(row) for row in rows]), np.concatenate(weights)
    best = best_of(table, weight, kinds, EVIDENCE)
    means = dict(zip(["keep", *kinds], (table @ (weight / weight.sum())).tolist(), strict=True))
    return (None if best is None else kinds[best]), means


def _losses(model: Model, table: Table, labels: np.ndarray) -> np.ndarray:
    """Return the loss of each sample: a bounded log loss, wrong labels, or the squared error."""
    losses = sample_losses(model, labels, model.predict(table))
    return bounded(losses) if model.task == "classification" else losses

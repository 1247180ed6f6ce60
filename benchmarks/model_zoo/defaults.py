"""Trainings with default parameters only: of the wrapped estimator, and of both training classes."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from benchmarks.model_zoo.predictions import difference, predictions, run_file, same_outputs
from benchmarks.model_zoo.written import written_back
from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

__all__ = ["trains_with_defaults"]

#: Largest difference of predictions by the same weights.
SAME = 1e-5
KINDS = OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer


def trains_with_defaults(
    estimator: Any, fitted: Any, X: Any, y: Any, kinds: tuple[type, type] = KINDS
) -> dict[str, Any]:
    """Train an unfitted and a fitted estimator, and use the results.

    Parameters
    ----------
    estimator, fitted : estimator
        Unfitted and fitted, with default parameters.
    X, y : array-like
        Samples and targets.
    kinds : tuple of two classes
        Kinds of trainers.

    Returns
    -------
    dict of str to object
        Fact: the scores, the warnings, and what is wrong.
    """
    scores: dict[str, float] = {}
    problems: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name, trainer in _trainers(estimator, fitted, kinds):
            np.random.seed(0)
            trainer.fit(X, y)
            problems += [f"{name}: {problem}" for problem in _problems(trainer, X, y)]
            scores[name] = _score(trainer, X, y)
    fact = {"ok": not problems, "scores": scores, "warnings": sorted({str(item.message) for item in caught})}
    return {**fact, "reason": "; ".join(problems)} if problems else fact


def _trainers(estimator: Any, fitted: Any, kinds: tuple[type, type]) -> Iterator[tuple[str, Any]]:
    """Yield trainers of each kind, of the unfitted estimator and of the fitted one."""
    # a transformer that is fitted on labels needs them before it is trained on outputs
    needs_labels = hasattr(fitted, "transform") and get_tags(fitted).target_tags.required
    for kind in kinds:
        yield f"fresh {kind.__name__}", kind(fitted if needs_labels else copy.deepcopy(estimator))
        yield f"warm {kind.__name__}", kind(fitted, warm_start=True)


def _problems(trainer: Any, X: Any, y: Any) -> Iterator[str]:
    """Yield what differs between a trained estimator, its copies and its exports."""
    found = predictions(trainer, X)
    if not all(np.isfinite(values).all() for values in found.values() if values.dtype.kind == "f"):
        yield "predictions are not finite"
    copies = {"pickle": pickle.loads(pickle.dumps(trainer)), "deepcopy": copy.deepcopy(trainer)}
    for name, copied in copies.items():
        for method, values in predictions(copied, X).items():
            if difference(values, found[method]) > 0:
                yield f"{method} of a copy by {name} differs"
    written = written_back(trainer, X, y)
    if written["ok"] is False:
        yield written["reason"]
    trainable = trainer._fitted.problem.trainable
    steps = trainable.entry.sklearn_steps  # run in scikit-learn
    if trainable.scores.transformed is None:  # transform is then to_sklearn's
        found.pop("transform", None)
    gap = same_outputs(found, run_file(trainer.onnx_, X if steps is None else steps.transform(X)))
    if gap > SAME:
        yield f"predictions of the exported file differ by {gap:.2g}"


def _score(trainer: Any, X: Any, y: Any) -> float | None:
    try:
        return float(trainer.score(X, y))
    except Exception:
        return None

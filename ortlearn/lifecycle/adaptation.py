"""Adapt a model to new samples: detect drift, retrain, judge, promote."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..evaluation.data_files import Table
from ..evaluation.metrics import model_metrics, scores_of
from ..evaluation.predictions import Model, explain_values
from ..exceptions import OrtlearnError
from ..preprocessing.estimator_checks import is_trainer
from .drift import drifts_of, prediction_drift
from .gate import Gate
from .promotion import stored
from .results import Adaptation, Drift, onnx_bytes
from .retraining import choose_kind, kinds_of, retrained, with_all_classes
from .samples import as_table, copies_in, given_model, labels_of
from .two_samples import two_sample_test
from .versions import ModelFolder

__all__ = ["adapt"]

#: Fewest new samples, some of which are held out.
FEWEST_SAMPLES = 20


def adapt(
    model: Any,
    new: Any,
    reference: Any = None,
    *,
    candidates: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    gate: Gate | None = None,
    held_out: Any = 0.3,
    by: str | None = None,
    level: float = 0.05,
    dry_run: bool = True,
    random_state: int = 0,
    trusted: Sequence[str] = (),
) -> Adaptation:
    """Adapt a model to new samples, if the result is better.

    Columns and predictions of new samples are compared with those of reference samples. Candidates (a warm
    start, and refits where an estimator allows them) are compared with the model by cross-validation on a
    part of the new samples, and the preferred one is trained on all of the part. Then a gate decides by the
    held-out samples whether it may replace the model.

    Parameters
    ----------
    model : estimator, onnx.ModelProto, bytes, path or ModelFolder
        Model in use: a fitted scikit-learn estimator, a fitted estimator of ortlearn, an ONNX model, a file
        of one, or a folder of versions. It is not changed.
    new : tuple
        New samples, ``(X, y)`` or ``(X, y, sample_weight)``; X is an array or a frame of shape
        (n_samples, n_features).
    reference : tuple, default=None
        Samples from the time when the model was fitted; y may be None. Without them, drift is not measured.
    candidates : sequence of {"warm_start", "refit", "refit_both"}, default=None
        Trainings to compare; all that are possible by default.
    parameters : mapping, default=None
        Parameters of :class:`~ortlearn.OrtGradientOptimizer` for the warm start.
    gate : Gate, default=None
        Conditions; ``Gate()`` by default.
    held_out : float or tuple, default=0.3
        Share of the new samples that the gate gets, or other samples, as in ``new``.
    by : str, default=None
        Column whose groups the gate looks at.
    level : float, default=0.05
        Level of the tests of drift.
    dry_run : bool, default=True
        Whether a model folder remains as it is. Otherwise a promoted model becomes its current version, and
        a refused one is added without being used.
    random_state : int, default=0
        Seed of the parts, the candidates and the bootstrap.
    trusted : sequence of str, default=()
        Types that a scikit-learn model of a file may contain.

    Returns
    -------
    Adaptation
        Outcome, with the reasons.

    Raises
    ------
    ValueError
        If there are fewer than 20 new samples, labels are missing or unknown, the model has intervals or
        sets, or an argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ortlearn.lifecycle import adapt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> model = LogisticRegression().fit(X[:300], X[:300, 0] > 0)
    >>> found = adapt(model, (X[300:], X[300:, 1] > 0), (X[:300], X[:300, 0] > 0))
    >>> found.outcome, found.verdict.metric, bool(found.verdict.gain > 0.3)
    ('promoted', 'accuracy', True)
    """
    gate = Gate() if gate is None else gate
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1.")
    if candidates is not None and not candidates:
        raise ValueError("candidates must name at least one training.")
    folder = _folder(model)
    settings = {"random_state": random_state, **(parameters or {})}
    # two adaptations at once would both replace the same version
    with nullcontext() if folder is None or dry_run else folder.locked():
        old = given_model(model, trusted) if folder is None else folder.model(trusted)
        found = _adapted(old, new, reference, candidates, settings, gate, held_out, by, level, random_state)
        return found if folder is None or dry_run else stored(folder, found)


def _adapted(
    old: Model,
    new: Any,
    reference: Any,
    candidates: Sequence[str] | None,
    settings: dict[str, Any],
    gate: Gate,
    held_out: Any,
    by: str | None,
    level: float,
    random_state: int,
) -> Adaptation:
    """Return the result of an adaptation, which changes no file."""
    if old.task is None:
        raise ValueError(f"{old.path} is neither a classifier nor a regressor.")
    if not getattr(old, "is_fitted", True):
        raise NotFittedError(f"{old.path} is not fitted.")
    is_calibrated = is_trainer(old.source) and not hasattr(old.source, "to_sklearn")
    if is_calibrated or getattr(old, "intervals", None):
        raise ValueError(
            f"{old.path} has intervals or sets, whose coverage would be lost: use partial_fit or recalibrate "
            "of the OrtIntervalRegressor or OrtSetClassifier, or fit it again."
        )
    samples = as_table(new, old, by, "new")
    known = None if reference is None else as_table(reference, old, None, "reference")
    training, tested = _parts(samples, held_out, old, by, random_state)
    with ExitStack() as stack:
        for table in filter(None, (known, tested, training)):
            stack.enter_context(explain_values(table, old.column_names))
        gate.check(old, tested)
        kinds = with_all_classes(kinds_of(old, training, known, candidates), old, training, known)
        drift = None if known is None else _drift(old, known, samples, level, random_state)
        kind, losses = choose_kind(old, kinds, training, known, settings)
        verdict, replacement, content = None, old, None
        reasons = ["no candidate has a lower loss in cross-validation than the model in use"]
        if not kinds:
            reasons = ["a refit would forget classes, as the samples have too few of them"]
        outcome = "kept"
        if kind is not None:
            replacement = retrained(kind, old, training, known, settings)
            content = _content(replacement, training)
            size = None if content is None else len(content)
            verdict = gate.judged(old, replacement, tested, size, random_state)
            outcome, reasons = verdict.outcome, verdict.reasons
    return Adaptation(
        old,
        replacement,
        outcome,
        reasons,
        kind or "keep",
        losses,
        verdict,
        drift,
        len(training),
        len(tested),
        settings,
        training,
        content,
    )


def _folder(model: Any) -> ModelFolder | None:
    """Return the folder of versions that a model is, if it is one."""
    if isinstance(model, ModelFolder):
        return model
    is_path = isinstance(model, str | os.PathLike)
    if is_path and (Path(model) / "current").exists():
        return ModelFolder(model)
    return None


def _drift(model: Model, reference: Table, new: Table, level: float, random_state: int) -> Drift:
    """Return the differences between reference and new samples."""
    predictions = [model.predict(table) for table in (reference, new)]
    scores = {
        name: scores_of(model_metrics(model, labels_of(table, model), found), table.weight_per_sample)
        for name, table, found in zip(("reference", "new"), (reference, new), predictions, strict=True)
        if table.labels is not None
    }
    columns = drifts_of(reference, new, level)
    return Drift(
        columns, prediction_drift(*predictions), scores, two_sample_test(reference, new, random_state)
    )


def _parts(samples: Table, held_out: Any, model: Model, by: str | None, seed: int) -> tuple[Table, Table]:
    """Return the samples to train on, and different ones of the gate."""
    from sklearn.model_selection import train_test_split

    labels = labels_of(samples, model)
    numbers = copies_in(samples, labels)
    numbers = np.arange(len(samples)) if numbers is None else numbers
    first = np.sort(np.unique(numbers, return_index=True)[1])
    if len(first) < FEWEST_SAMPLES:
        raise ValueError(
            f"{len(first)} new samples are too few to train and to judge: {FEWEST_SAMPLES} are needed, "
            "without copies."
        )
    if not isinstance(held_out, int | float | np.number):
        tested = as_table(held_out, model, by, "held_out")
        labels_of(tested, model)
        return samples, tested
    if not 0 < held_out < 1:
        raise ValueError(f"held_out={held_out!r} must be a share between 0 and 1, or samples.")
    strata = None
    if model.task == "classification":
        counts = np.unique(labels[first], return_counts=True)[1]
        smallest = round(min(held_out, 1 - held_out) * len(first))
        strata = labels[first] if counts.min() > 1 and len(counts) <= smallest else None
    kept, left_out = train_test_split(first, test_size=held_out, random_state=seed, stratify=strata)
    # copies of a sample are in one part, and count once where models are judged
    return samples.take(np.flatnonzero(np.isin(numbers, numbers[kept]))), samples.take(np.sort(left_out))


def _content(model: Model, samples: Table) -> bytes | None:
    """Return the content of the ONNX file; None if the model has no such form."""
    try:
        return onnx_bytes(model, samples)
    except (OrtlearnError, ValueError):
        return None

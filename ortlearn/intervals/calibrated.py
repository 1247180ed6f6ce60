"""Attributes and methods that interval and set estimators share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .. import conversion
from ..exceptions import PackageError
from ..fitting.trainer import draw_seed
from ..inference.result_types import as_floats_of
from ..preprocessing.columns import as_array_like, count_samples
from ..problem.samples import Samples, check_lengths
from .arguments import check_groups, group_rows, kept_groups, sample_keys, warn_of_trained
from .bases import Increments
from .conformal import checked_coverage, needed
from .fitted import too_few
from .members import template

__all__ = ["COMMON", "CalibratedMethods", "FittedValue", "Parts"]


#: Constraints of the parameters that estimators share.
COMMON: dict[str, Any] = {
    **dict.fromkeys(("estimator", "coverage"), "no_validation"),
    "calibration": [Interval(Real, 0, 1, closed="neither"), Interval(Integral, 1, None, closed="left")],
    **dict.fromkeys(("group_min_size", "window"), [Interval(Integral, 1, None, closed="left")]),
    "step": [Interval(Real, 0, 1, closed="left")],
    "random_state": ["random_state"],
}


class Parts(NamedTuple):
    """Training and calibration samples, the groups of these, and a seed."""

    samples: Samples
    held_out: Samples
    groups: tuple  # names of groups of sufficient size
    rows: np.ndarray  # number of the group of each calibration sample
    keys: np.ndarray  # numbers that recognise training samples
    seed: int


class FittedValue:
    """Attribute that is computed from the fitted model; a NotFittedError is also an AttributeError."""

    def __init__(self, value: Any):
        self._value = value

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self._value(instance._model())


class CalibratedMethods:
    """Attributes and methods of estimators with calibration samples."""

    estimator: Any
    calibration: Any
    group_min_size: int
    random_state: Any
    _fitted: Any

    estimators_ = FittedValue(lambda fitted: [m.estimator for m in fitted.members if not m.tensor])
    levels_ = FittedValue(lambda fitted: fitted.levels)
    coverage_ = FittedValue(lambda fitted: fitted.aims(None)[1])
    n_calibration_ = FittedValue(lambda fitted: len(fitted.calibrated))
    groups_ = FittedValue(lambda fitted: list(fitted.calibrated.groups))
    n_features_in_ = FittedValue(lambda fitted: fitted.members[0].estimator.n_features_in_)
    n_iter_ = FittedValue(lambda fitted: fitted.members[0].estimator.n_iter_)
    feature_names_in_ = FittedValue(lambda fitted: fitted.members[0].estimator.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        model = template(self.estimator)
        if hasattr(model, "__sklearn_tags__") and not isinstance(model, type):
            tags.input_tags = get_tags(model).input_tags
            tags.input_tags.allow_nan = conversion.accepts_missing(model)
        for own in (tags.classifier_tags, tags.regressor_tags):
            if own is not None:
                own.poor_score = True
        return tags

    def _model(self) -> Any:
        """Return the fitted model."""
        check_is_fitted(self)
        return self._fitted

    def _predicted(
        self, X: Any, groups: Any = None, coverage: Any = (), needs_groups: bool = True
    ) -> list[dict[str, np.ndarray]]:
        """Return the outputs of the graph for the usual coverage, then for each given one."""
        given = [coverage] if coverage is None or isinstance(coverage, Real) else coverage
        wanted = [None if value is None else checked_coverage(value) for value in given]
        model, X = self._model(), as_array_like(X)
        if needs_groups and groups is None and model.calibrated.groups:
            raise ValueError(
                f"fit had groups, such as {model.calibrated.groups[0]!r}: pass groups of X, too."
            )
        rows, outputs = self._rows(groups, count_samples(X)), model.outputs(X)
        found = [model.evaluate(X, model.constants(value), rows, outputs) for value in (None, *wanted)]
        return [{name: as_floats_of(X, array) for name, array in part.items()} for part in found]

    def _packaged(self) -> tuple[Any, Any, tuple[float, float, int] | None]:
        """Return the optimizer of a training package, a function that adds outputs, and units of labels."""
        model = self._model()
        if len(model.members) != 1 or model.calibrated.groups or model.members[0].file is not None:
            raise PackageError(
                "A training package trains one model without groups, and this one has several parts: pass "
                "an element of estimators_, or fit with method='cqr' or 'residual' on an unfitted estimator."
            )
        units = (b.centre, b.spread, len(model.levels)) if isinstance(b := model.base, Increments) else None
        return model.members[0].estimator, model.onnx, units

    def _rows(self, groups: Any, n: int) -> np.ndarray:
        """Return the numbers of the groups of samples."""
        known = self._model().calibrated.groups
        found = check_groups(groups, n)
        if found is not None and known and isinstance(known[0], str) != (found.dtype.kind == "U"):
            raise ValueError(f"groups must be of the type of those of fit, such as {known[0]!r}.")
        return group_rows(found, known, n)

    def _given(self, y: Any, name: str = "y") -> np.ndarray:
        """Return checked labels of ``fit``."""
        raise NotImplementedError

    def _labels(self, y: Any) -> np.ndarray:
        """Return labels as the numbers that calibration compares."""
        return self._given(y)

    def _check_count(self, n: int, coverage: float) -> None:
        """Raise a ValueError if calibration samples are too few."""
        if n < needed(coverage):
            raise too_few(n, coverage)

    def _parts(
        self, given: Samples, groups: Any, given_cal: tuple[Any, Any, Any], coverage: float, splits: bool
    ) -> Parts:
        """Return the parts of the samples of ``fit``; unless it ``splits``, all are in both."""
        random_state = check_random_state(self.random_state)
        samples = given.with_checked_weights()
        check_lengths(samples.X, samples.y)
        groups, seed = check_groups(groups, len(samples.y)), draw_seed(random_state) % 2**31
        held_out, (X_cal, y_cal, groups_cal) = samples, given_cal
        if X_cal is None and not (y_cal is None and groups_cal is None):
            raise ValueError("X_cal is missing: pass it with y_cal and groups_cal.")
        if X_cal is not None and groups is not None and groups_cal is None:
            raise ValueError("groups_cal is missing: pass the groups of the calibration samples X_cal.")
        if X_cal is not None:
            held_out = Samples(X_cal, self._given(y_cal, "y_cal"))
            check_lengths(held_out.X, held_out.y)
            groups = check_groups(groups_cal, len(held_out.y))
        elif splits:
            samples, held_out, groups = self._split(samples, groups, random_state)
        self._check_count(len(held_out.y), coverage)
        keys = sample_keys(samples.X, samples.y)
        if X_cal is not None:
            warn_of_trained(keys, held_out.X, held_out.y)
        names = kept_groups(groups, max(self.group_min_size, needed(coverage)))
        return Parts(samples, held_out, names, group_rows(groups, names, len(held_out.y)), keys, seed)

    def _split(self, samples: Samples, groups: Any, random_state: Any) -> tuple[Samples, Samples, Any]:
        """Return training samples, some of each class first, calibration samples, and the groups of these."""
        n, share = len(samples.y), self.calibration
        count = int(share) if isinstance(share, Integral) else int(np.ceil(share * n))
        if count >= n:
            raise ValueError(f"calibration={share!r} leaves none of {n} samples for training.")
        order = random_state.permutation(n)
        if is_classifier(self):  # the classes of a stretch of the order have about equal shares
            order = order[np.argsort(_shares(samples.y[order]), kind="stable")]
        held_out, kept = np.sort(order[:count]), np.sort(order[count:])
        return samples.take(kept), samples.take(held_out), None if groups is None else groups[held_out]


def _shares(classes: np.ndarray) -> np.ndarray:
    """Return how much of its class precedes each sample from the end, from 1 for the first one to 0."""
    shares = np.empty(len(classes))
    for name in np.unique(classes):
        own = np.flatnonzero(classes == name)
        shares[own] = 1 - np.arange(len(own)) / len(own)
    return shares

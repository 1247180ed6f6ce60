"""Methods: how the members of an interval estimator are trained, and the base that they form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from .. import conversion
from ..exceptions import PrecisionWarning, StartKeptWarning, warn_user
from ..inference.fidelity import ROUNDED, WIDENED, loses_digits
from ..losses import QuantileLoss, QuantilesLoss
from ..models.capabilities import BoostedStages, ShiftedScores, capability_of
from ..preprocessing.estimator_checks import last_step
from ..preprocessing.initial_fit import fit_clone
from ..problem.samples import Samples
from ..quiet import quiet
from .bases import Base, Centre, Copies, Folds, Increments, Laplace, Leaves, Separate
from .leaf_distributions import distributions, thresholds_of, trees_of_member
from .members import Member, as_member, is_given, last_features, new_optimizer, template

__all__ = ["METHODS", "Plan", "fold_numbers"]

#: Largest number of features of the linear model of the residuals of a given model.
MOST_FEATURES = 1000
#: Interquartile range of the standard normal distribution.
NORMAL_RANGE = 1.349
#: Share of the scale of residuals that is added to them before the logarithm.
SMALLEST = 0.05
#: Number of folds in which residuals for a scale are computed.
SCALE_FOLDS = 3
#: Iterations that find the precision of the prior of the last layer.
EVIDENCE = 50
Trained = tuple[tuple[Member, ...], Base]


@dataclass(frozen=True)
class Plan:
    """Estimator to train, levels, and parameters of the methods."""

    estimator: Any
    levels: np.ndarray
    seed: int
    normalize: bool
    n_members: int

    @property
    def loss(self) -> QuantilesLoss:
        """Loss of all levels."""
        return QuantilesLoss(levels=tuple(self.levels.tolist()))

    def trained(self, samples: Samples, seed: int = 0, y: Any = None, **changed: Any) -> Member:
        """Return a new model trained on the samples, or on other labels."""
        optimizer = new_optimizer(self.estimator, self.seed + seed, **changed)
        labels = samples.y if y is None else y
        with quiet(StartKeptWarning):  # models such as SVR start from their own fit, and may keep it
            return Member(optimizer.fit(samples.X, labels, sample_weight=samples.sample_weight))

    def given(self, samples: Samples) -> list[Member]:
        """Return the given model, if there is one."""
        return [as_member(self.estimator, samples.X, samples.y)] if is_given(self.estimator) else []

    def own(self, samples: Samples) -> Member:
        """Return the given model, or a new one trained with its own loss."""
        return (self.given(samples) or [self.trained(samples)])[0]


def spread_of(y: np.ndarray) -> tuple[float, float]:
    """Return median and scale of labels, by quartiles if these differ."""
    low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
    return float(middle), float((high - low) / NORMAL_RANGE or np.std(y) or 1.0)


def fold_numbers(n: int, count: int, seed: int) -> np.ndarray:
    """Return the number of the fold of each sample."""
    folds = np.zeros(n, dtype=np.int64)
    for number, (_, held_out) in enumerate(KFold(count, shuffle=True, random_state=seed).split(folds)):
        folds[held_out] = number
    return folds


def residuals_of(member: Member, samples: Samples) -> np.ndarray:
    """Return the residuals of a member."""
    return samples.y - member.output(samples.X, None)[:, 0].astype(np.float64)


def repeated(y: np.ndarray, centre: float, scale: float, count: int) -> np.ndarray:
    """Return standardised labels, once per level."""
    return np.tile(((y - centre) / scale).reshape(-1, 1), (1, count))


def quantile_members(plan: Plan, samples: Samples) -> Trained:
    """Train quantiles together, or one model per level if the estimator has a single output."""
    if is_given(plan.estimator):
        return residual_quantiles(plan, samples)
    model = template(plan.estimator)
    if found := leaf_quantiles(model, plan, samples):
        return found
    if not get_tags(model).target_tags.multi_output:
        losses = [QuantileLoss(quantile=float(level)) for level in plan.levels]
        return tuple(
            plan.trained(samples, learning_loss=loss, keep_better=False) for loss in losses
        ), Separate()
    centre, scale = spread_of(samples.y)
    changed: dict[str, Any] = {"learning_loss": plan.loss}
    if getattr(plan.estimator, "dtype", "auto") == "auto" and loses_digits(samples.y):  # outputs have them
        warn_user(f"{ROUNDED} {WIDENED}", PrecisionWarning)
        changed["dtype"] = "float64"
    labels = repeated(samples.y, centre, scale, len(plan.levels))
    return (plan.trained(samples, y=labels, **changed),), Increments(centre, scale)


def leaf_quantiles(model: Any, plan: Plan, samples: Samples) -> Trained | None:
    """Fit trees, and store distributions in their leaves; return None for other models.

    Boosting has the distributions of residuals, of samples that other fits have not seen.
    """
    last = last_step(model)
    boosted = capability_of(last, BoostedStages)
    is_boosted = boosted is not None and boosted.applies(last)
    rule = capability_of(last, ShiftedScores)
    if not is_boosted and (rule is None or rule.attribute):
        return None
    member = as_member(_fitted(model, samples, plan.seed), samples.X, samples.y)
    form, y = trees_of_member(member), samples.y
    if form is None:
        return None
    if is_boosted:
        y = held_out_residuals(samples, plan.seed, lambda part: _fitted(model, part, plan.seed))
    thresholds = thresholds_of(y)
    table = distributions(member, form, samples.X, y, thresholds, samples.sample_weight)
    read = replace(member, tensor=form.samples)
    return (member, read), Leaves(form.nodes, table, thresholds, is_boosted)


def _fitted(model: Any, samples: Samples, seed: int) -> Any:
    """Return a clone of a model after its own fit."""
    options: Any = {"sample_weight": samples.sample_weight, "random_state": np.random.RandomState(seed)}
    return fit_clone(model, samples.X, samples.y, **options)


def held_out_residuals(samples: Samples, seed: int, fit: Callable[[Samples], Any]) -> np.ndarray:
    """Return the residual of each sample, of a model fitted on the other folds."""
    residuals = np.empty(len(samples.y))
    for _, kept, held_out in _folds(samples, SCALE_FOLDS, seed):
        part = samples.take(held_out)
        residuals[held_out] = part.y - np.ravel(fit(samples.take(kept)).predict(part.X))
    return residuals


def residual_quantiles(plan: Plan, samples: Samples) -> Trained:
    """Train a linear model of the quantiles of the residuals of a given model."""
    own = plan.own(samples)
    problem, predictions = own.estimator._model().problem, own.output(samples.X, None)
    residuals = samples.y - predictions[:, 0].astype(np.float64)
    count = problem.trainable.n_features if problem.trainable.takes_numbers else None
    reads = "both" if count is not None and count <= MOST_FEATURES else "prediction"
    centre, scale = spread_of(residuals)
    head = new_optimizer(
        make_pipeline(StandardScaler(), Ridge()), plan.seed, learning_loss=plan.loss, dtype=str(problem.dtype)
    )
    features = Member(own.estimator, reads).features(samples.X, predictions)
    head.fit(features, repeated(residuals, centre, scale, len(plan.levels)), samples.sample_weight)
    return (own, Member(head, reads)), Increments(centre, scale, is_shift=True)


def residual_members(plan: Plan, samples: Samples) -> Trained:
    """Train a model with its own loss, or take a given one; with ``normalize`` also one of the scale."""
    own = plan.own(samples)
    if not plan.normalize:
        return (own,), Centre()
    if is_given(plan.estimator):
        residuals = residuals_of(own, samples)
    else:
        residuals = held_out_residuals(samples, plan.seed, lambda part: plan.trained(part).estimator)
    smallest = SMALLEST * spread_of(residuals)[1]
    model = template(_retrained(plan, "normalize=True").estimator)
    scale = new_optimizer(clone(model), plan.seed, dtype=str(own.estimator._model().problem.dtype))
    scale.fit(samples.X, np.log(np.abs(residuals) + smallest), sample_weight=samples.sample_weight)
    return (own, Member(scale)), Centre(smallest)


def copies(plan: Plan, samples: Samples) -> Trained:
    """Train copies of the model by seeds."""
    given, plan = plan.given(samples), _retrained(plan, "method='ensemble'")
    plan = replace(plan, estimator=_unseeded(plan.estimator))
    found = tuple(plan.trained(samples, seed) for seed in range(plan.n_members))
    mean = np.mean([residuals_of(member, samples) for member in found], axis=0)
    return (*given, *found), Copies(float(np.sqrt(np.mean(mean**2))) or 1.0, bool(given))


def _unseeded(model: Any) -> Any:
    """Return a model without the seeds of its own, with which all copies would be equal."""
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return clone(model).set_params(**dict.fromkeys(names)) if names else model


def folds(plan: Plan, samples: Samples) -> Trained:
    """Train a model without each fold."""
    given, plan = plan.given(samples), _retrained(plan, "method='cv+'")
    parts = _folds(samples, plan.n_members, plan.seed)
    found = [plan.trained(samples.take(kept), number) for number, kept, _ in parts]
    return (*given, *found), Folds(bool(given))


def _folds(samples: Samples, count: int, seed: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield number, training samples and held-out samples of each fold."""
    numbers = fold_numbers(len(samples.y), count, seed)
    for number in range(count):
        yield number, np.flatnonzero(numbers != number), np.flatnonzero(numbers == number)


def _retrained(plan: Plan, what: str) -> Plan:
    """Return the plan for unfitted copies of a given model."""
    if not is_given(plan.estimator):
        return plan
    model = template(plan.estimator)
    if conversion.is_onnx_source(model):
        raise ValueError(
            f"{what} trains copies of the model, and an ONNX file is not trained anew: use method='cqr', or "
            "'residual' without a scale."
        )
    return replace(plan, estimator=clone(model))


def laplace(plan: Plan, samples: Samples) -> Trained:
    """Compute the posterior of the last layer; its prior and the noise maximise the evidence."""
    own = plan.own(samples)
    inputs = Member(own.estimator, tensor=last_features(own.estimator))
    points = inputs.output(samples.X, None).astype(np.float64)
    points = np.hstack([points, np.ones((len(points), 1))])
    residuals = residuals_of(own, samples)
    values, vectors = np.linalg.eigh(points.T @ points)
    values = np.maximum(values, 0.0)
    target = vectors.T @ (points.T @ samples.y)
    precision, noise, n = 1.0, float(np.mean(residuals**2)) or 1.0, len(residuals)
    for _ in range(EVIDENCE):
        ridge = precision * noise
        effective = float(np.sum(values / (values + ridge)))
        norm = float(np.sum((target / (values + ridge)) ** 2))
        noise = float(np.sum(residuals**2)) / max(n - effective, 1.0) or noise
        precision = min(max(effective / max(norm, 1e-300), 1e-10), 1e10)
    factor = vectors * np.sqrt(noise / (values + precision * noise))
    return (own, inputs), Laplace(factor, float(np.sqrt(noise)))


METHODS = {
    "cqr": quantile_members,
    "residual": residual_members,
    "cv+": folds,
    "ensemble": copies,
    "laplace": laplace,
}

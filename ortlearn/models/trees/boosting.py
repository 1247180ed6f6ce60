"""Gradient boosting: initial scores, and sums of the values of leaves."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import _check_monotonic_cst

from ... import losses
from ...boosting.scikit_learn import grows_by_gradients, grows_by_histograms
from ..base import ModelDefinition, Objective
from ..capabilities import BoostedStages, GrowingEnsemble
from ..categories import category_numbers
from ..forms import Reshaped, Scaled
from ..objectives import elastic
from ..parameters import Access
from ..scores import Scores, binary_classes, class_scores, regression
from ..transformations.pipelines import column_positions
from ..writer import ModelWriter
from .monotonic import MonotonicLeaves
from .nodes import STEM, Nodes, TreeLeaves, leaf_numbers, leaf_sums, trees_of
from .thresholds import ComparesInFloat32

FIRST = "base_values"  # name of the initial scores
#: Losses by name. Huber's delta is the quantile ``alpha`` of the residuals in the last round.
LOSSES: dict[str, Callable[[Any], losses.BaseLoss]] = {
    "absolute_error": lambda model: losses.AbsoluteErrorLoss(),
    "gamma": lambda model: losses.GammaLoss(),
    "huber": lambda model: losses.HuberLoss(delta=float(model._loss.closs.delta)),
    "log_loss": lambda model: losses.LogLoss(),
    "poisson": lambda model: losses.PoissonLoss(),
    "quantile": lambda model: losses.QuantileLoss(float(getattr(model, "quantile", None) or model.alpha)),
    "squared_error": lambda model: losses.SquaredErrorLoss(),
}


def _own_loss(model: Any) -> losses.BaseLoss | None:
    """Return the loss of an unfitted model; None if the fit chooses its parameters."""
    loss = None if model.loss == "huber" else LOSSES.get(model.loss)
    return None if loss is None else loss(model)


def _scores(model: Any, X: Any) -> np.ndarray:
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def _raw_scores_of(model: Any, X: Any) -> np.ndarray:
    return model._raw_predict(X)


def _shift_init(model: Any, shift: float) -> None:
    if model.init_ != "zero" and _starts_from_constants(model):
        model.init_.constant_ = model.init_.constant_ + shift
        return
    for member in model.estimators_[0]:  # each sample reaches one leaf
        member.tree_.value[member.tree_.children_left < 0] += shift / model.learning_rate


def _shift_baseline(model: Any, shift: float) -> None:
    model._baseline_prediction = model._baseline_prediction + shift


def _predictors(model: Any) -> list[Any]:
    return [tree for round_ in model._predictors for tree in round_]


#: Rounds of boosting to which others are added, relative to those of one fit; larger models are replaced.
MOST_ROUNDS = 2.0


class GrowingRounds(GrowingEnsemble):
    """Boosting, which has the rounds of both fits afterwards; its parameters stay those of one fit."""

    rounds: str  # name of the parameter with the largest number of rounds

    def shares(self, model: Any) -> tuple[float, ...]:
        too_large = self.n_trees(model) > MOST_ROUNDS * getattr(model, self.rounds)
        return (1.0,) if too_large else super().shares(model)


class GrowingBoosting(GrowingRounds):
    """Rounds of trees, and initial scores that are constant or zero."""

    rounds = "n_estimators"

    def grows(self, model: Any, n_samples: int) -> bool:
        return model.loss != "exponential" and (model.init_ == "zero" or _starts_from_constants(model))

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        found = _scores(model, X)
        return found.reshape(len(found), -1)

    def joined(self, model: Any, other: Any, share: float) -> Any:
        found, more = copy.deepcopy(model), copy.deepcopy(other)
        for ensemble, factor in ((found, 1 - share), (more, share)):
            for member in ensemble.estimators_.ravel():
                member.tree_.value[...] *= factor
        found.estimators_ = np.concatenate([found.estimators_, more.estimators_])
        found.n_estimators_ = len(found.estimators_)
        if model.init_ != "zero" and is_classifier(model):
            first = FirstScores()
            first.write(found, (1 - share) * first.read(model) + share * first.read(other))
        elif model.init_ != "zero":
            found.init_.constant_ = (1 - share) * model.init_.constant_ + share * other.init_.constant_
        return found


class GrowingHistogramBoosting(GrowingRounds):
    """Rounds of predictors and a constant; codes of categories would differ between fits."""

    rounds = "max_iter"

    def grows(self, model: Any, n_samples: int) -> bool:
        return not np.any(model.is_categorical_)

    def n_trees(self, model: Any) -> int:
        return len(model._predictors)

    def n_leaves(self, model: Any) -> float:
        return float(np.mean([tree.nodes["is_leaf"].sum() for tree in _predictors(model)]))

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        return _raw_scores_of(model, X)

    def joined(self, model: Any, other: Any, share: float) -> Any:
        found, more = copy.deepcopy(model), copy.deepcopy(other)
        for ensemble, factor in ((found, 1 - share), (more, share)):
            ensemble._baseline_prediction *= factor
            for tree in _predictors(ensemble):
                tree.nodes["value"] *= factor
        found._predictors += more._predictors
        found._baseline_prediction = found._baseline_prediction + more._baseline_prediction
        return found


class GradientBoostingDefinition(ComparesInFloat32):
    """GradientBoostingClassifier and GradientBoostingRegressor."""

    capabilities = (GrowingBoosting(), BoostedStages(grows_by_gradients, _own_loss, _scores, _shift_init))

    def children(self, model: Any) -> Iterator[Any]:
        if model.init_ != "zero" and not _starts_from_constants(model):
            yield model.init_

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        loss = LOSSES.get(model.loss)
        return None if loss is None else Objective(loss(model))

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n_rounds, n_scores = model.estimators_.shape
        expression = f"estimators_[*][{'0' if n_scores == 1 else '*'}].tree_.value"
        options: Any = {"form": Scaled(model.learning_rate, shape=(-1,)), "access": TreeLeaves()}
        table = op.parameter(model, expression, role="table", name=STEM, **options)
        numbers = leaf_numbers(op, Nodes.of_trees(trees_of(model)), x, model.n_features_in_)
        first = "" if model.init_ == "zero" else _first_scores(op, model, x)
        raw = leaf_sums(op, table, numbers, n_rounds, n_scores, first)
        if not is_classifier(model):
            return regression(op, raw)
        if n_scores > 1:
            return class_scores(op, raw, model.classes_)
        # Probabilities of the exponential loss are the sigmoid of twice the decisions.
        score = op.Mul(raw, 2.0) if model.loss == "exponential" else raw
        decision = None if score == raw else raw
        return binary_classes(op, score, model.classes_, zero_is_second=True, decision=decision)


def _starts_from_constants(model: Any) -> bool:
    if isinstance(model.init_, DummyRegressor):
        return True
    return isinstance(model.init_, DummyClassifier) and model.init_.strategy == "prior"


def _first_scores(op: ModelWriter, model: Any, x: str) -> str:
    """Append the initial scores."""
    if not _starts_from_constants(model):
        before = set(op.parameters)
        scores = op.write(model.init_, x, at="init_")
        for name in op.parameters.keys() - before:  # trees correct the fitted values, and no others
            op.parameters[name] = replace(op.parameters[name], drawn=False)
        return _raw_scores(op, model, scores) if is_classifier(model) else scores.predicted
    options: Any = {"role": "intercept", "name": FIRST}
    if is_classifier(model):
        return op.parameter(model, "_raw_predict_init(X)", **options, access=FirstScores())
    return op.parameter(model, "init_.constant_", **options, form=Reshaped((-1,)))


def _raw_scores(op: ModelWriter, model: Any, scores: Scores) -> str:
    """Append the raw scores of the initial classifier: its probabilities under the link of the loss."""
    if not isinstance(scores.probabilities, str):
        raise op.fail(model, "the probabilities of its init are not supported: use another init.")
    logarithms = op.Log(op.Max(scores.probabilities, float(np.finfo(np.float64).eps)))
    if model.estimators_.shape[1] > 1:
        return op.Sub(logarithms, op.ReduceMean(logarithms, [1], keepdims=1))
    logit = op.difference(logarithms)
    return op.Mul(logit, 0.5) if model.loss == "exponential" else logit


class FirstScores(Access):
    """Initial scores of boosted classifiers, the same for every sample."""

    def read(self, owner: Any) -> np.ndarray:
        return owner._raw_predict_init(np.zeros((1, owner.n_features_in_), dtype=np.float32)).ravel()

    def write(self, owner: Any, value: np.ndarray) -> None:
        shares = owner._loss.link.inverse(value if value.size == 1 else value[None]).ravel()
        owner.init_.class_prior_ = np.append(1 - shares, shares) if shares.size == 1 else shares
        rest = (value - self.read(owner)) / owner.learning_rate
        if value.size > 1:  # leaves add the part of multiclass scores that is not a log-probability
            for member, own in zip(owner.estimators_[0], rest, strict=True):
                member.tree_.value[member.tree_.children_left < 0] += own


class PredictorLeaves(TreeLeaves):
    """Values of the leaves of histogram-based gradient boosting."""

    def nodes_of(self, model: Any) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        return [(tree.nodes["value"], tree.nodes["is_leaf"] != 0) for tree in _predictors(model)]


def _signs(model: Any) -> np.ndarray | None:
    """Return the signs of monotonic constraints on numbers, or None."""
    several = model.n_trees_per_iteration_ > 1 or np.any(model.is_categorical_)
    return (
        None if several or model.monotonic_cst is None else _check_monotonic_cst(model, model.monotonic_cst)
    )


class HistGradientBoostingDefinition(ModelDefinition):
    """HistGradientBoostingClassifier and HistGradientBoostingRegressor."""

    takes_columns = True
    capabilities = (
        GrowingHistogramBoosting(),
        BoostedStages(grows_by_histograms, _own_loss, _raw_scores_of, _shift_baseline),
        MonotonicLeaves(lambda model: Nodes.of_predictors(_predictors(model)), _signs),
    )

    def needs_float64(self, model: Any, computed: bool) -> bool:
        return True

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        # A round minimises sum(w * l) + l2_regularization / 2 * sum(v^2), v the values of its leaves before
        # they are multiplied with the learning rate (Chen and Guestrin, "XGBoost", KDD 2016, equation 2).
        strength = model.l2_regularization / (2 * total_weight * model.learning_rate**2)
        reason = "l2_regularization applies to the leaves of each round" if strength else ""
        return Objective(LOSSES[model.loss](model), elastic(l2=strength), reason)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        n_rounds, n_scores = len(model._predictors), model.n_trees_per_iteration_
        expression = f"_predictors[*][{'0' if n_scores == 1 else '*'}].nodes['value']"
        table = op.parameter(model, expression, role="table", name=STEM, access=PredictorLeaves())
        predictors = _predictors(model)
        with op.in_types(floats=op.sample_dtype):
            if np.any(model.is_categorical_):
                nodes, x, n_columns = _split_on_categories(op, model, predictors, x)
            else:
                nodes, x, n_columns = Nodes.of_predictors(predictors), op.matrix(x), model.n_features_in_
            numbers = leaf_numbers(op, nodes, x, n_columns, in_float32=False)
        options: Any = {"form": Reshaped((-1,)), "role": "intercept", "name": FIRST}
        first = op.parameter(model, "_baseline_prediction", **options)
        raw = leaf_sums(op, table, numbers, n_rounds, n_scores, first)
        if not is_classifier(model):
            logarithms = type(model._loss.link).__name__ == "LogLink"
            return regression(op, raw, 1, "log" if logarithms else "identity")
        return (binary_classes if n_scores == 1 else class_scores)(op, raw, model.classes_)


def _split_on_categories(
    op: ModelWriter, model: Any, predictors: Sequence[Any], x: Any
) -> tuple[Nodes, str, int]:
    """Return nodes and samples with a column for each split on categories, 0 for samples that go left."""
    # the preprocessor of the model encodes categories, and puts their columns first
    positions = {name: own for name, _, own in column_positions(model._preprocessor)}
    categories = model._preprocessor.named_transformers_["encoder"].categories_
    numbers = [position for name, own in positions.items() if name != "encoder" for position in own]
    nodes = Nodes.of_predictors(predictors)
    table = np.concatenate([predictor.nodes for predictor in predictors])
    is_split = (table["is_leaf"] == 0) & (table["is_categorical"] == 1)
    feature, threshold = nodes.feature - len(categories), nodes.threshold.copy()
    tree = nodes.trees
    known, bitset_of = model._bin_mapper.make_known_categories_bitsets()
    columns = [op.matrix(op.columns(x, numbers, model.n_features_in_))] if numbers else []
    count = len(numbers)
    for index, (position, values) in enumerate(zip(positions["encoder"], categories, strict=True)):
        own = np.flatnonzero(is_split & (table["feature_idx"] == index))
        if not len(own):
            continue
        missing = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
        seen = _bits(known[bitset_of[index]], len(values)) & ~missing
        right = np.empty((len(values) + 1, len(own)), dtype=op.float_dtype)
        for column, number in enumerate(own):
            node = table[number]
            left = _bits(predictors[tree[number]].raw_left_cat_bitsets[node["bitset_idx"]], len(values))
            unseen = not node["missing_go_to_left"]
            right[:, column] = np.append(unseen, np.where(seen, ~left, unseen))
        found = op.Gather(right, category_numbers(op, op.column(x, position), values), axis=0)
        columns.append(op.Reshape(found, [-1, len(own)]))
        feature[own] = np.arange(count, count + len(own))
        threshold[own] = 0.5
        count += len(own)
    nodes = replace(nodes, feature=feature, threshold=threshold, missing_left=nodes.missing_left & ~is_split)
    return nodes, op.joined(columns), count


def _bits(bits: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` bits of 32-bit words as booleans, zero beyond the last word."""
    found = np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little").astype(bool)
    return np.resize(np.append(found, np.zeros(max(0, count - len(found)), dtype=bool)), count)

"""Nearest neighbours: regression, votes, distances, outliers, manifolds, label propagation."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import ModelDefinition
from ..capabilities import ReplacedEnsemble, ReplacedModel, ShiftedScores
from ..constraints.sets import ClosedSimplex
from ..constraints.signs import Positive
from ..forms import Form, dense_form
from ..formulas.distances import guarded_sqrt, pairwise_distances
from ..formulas.kernels import products, unit_rows
from ..formulas.linear_systems import LARGEST, solve_positive
from ..registry import all_covered
from ..scores import (
    Scores,
    classes_of_probabilities,
    classification,
    detection,
    multioutput,
    regression,
    transformation,
)
from ..transformations.projections import projected_kernel
from ..writer import FITTED, ModelWriter

NO_GRADIENT = "it only selects the nearest samples, a step function with zero gradient"
#: Smallest number above zero in float64, in which scikit-learn computes kernels.
SMALLEST = 5e-324
#: Supported metrics, and their aliases.
METRICS = {
    **{name: name for name in ("chebyshev", "cosine", "euclidean", "manhattan", "minkowski", "sqeuclidean")},
    **{"cityblock": "manhattan", "infinity": "chebyshev", "l1": "manhattan"},
    **{"l2": "euclidean", "p": "minkowski"},
}
Function = Callable[[str], str]  # of tensors


class _Neighbors(ModelDefinition):
    """Estimators that store training samples."""

    def covers(self, model: Any) -> bool:
        metric, power = model.effective_metric_, model.effective_metric_params_.get("p", 2)
        known = isinstance(metric, str) and metric in METRICS and power >= 1
        weights = getattr(model, "weights", None) in (None, "uniform", "distance")
        # an outlier label, for samples without neighbours, is not supported
        no_label = getattr(model, "outlier_label", None) is None
        return known and weights and no_label and isinstance(model._fit_X, np.ndarray)

    def finish(self, model: Any) -> None:
        if model._tree is not None:
            metric, params = model.effective_metric_, model.effective_metric_params_
            model._tree = type(model._tree)(model._fit_X, model.leaf_size, metric=metric, **params)


def _distances(op: ModelWriter, model: Any, x: str, reason: str = "") -> tuple[str, Function]:
    """Append values ordered as distances to training samples; return them and the function to distances."""
    rows = op.parameter(model, "_fit_X", role="intercept", reason=reason)
    return ordered_distances(op, x, rows, model.effective_metric_, model.effective_metric_params_)


def ordered_distances(
    op: ModelWriter, x: str, rows: str, metric: str, params: Mapping[str, Any]
) -> tuple[str, Function]:
    """Append values ordered as distances to ``rows``; return them and the function to distances."""
    metric = METRICS[metric]
    if metric == "cosine":
        cosines = products(op, unit_rows(op, x), unit_rows(op, rows))
        return op.Max(op.Sub(1.0, cosines), 0.0), lambda name: name
    if metric == "euclidean":
        squares = pairwise_distances(op, x, rows, "sqeuclidean")
        return squares, lambda name: guarded_sqrt(op, name, op.float_dtype)
    if metric != "minkowski":
        return pairwise_distances(op, x, rows, metric), lambda name: name
    power, tiny = float(params.get("p", 2)), float(np.finfo(op.float_dtype).tiny)
    if params.get("w") is not None:
        factor = (np.asarray(params["w"]) ** (1 / power)).astype(op.float_dtype)
        x, rows = op.Mul(x, factor), op.Mul(rows, factor)
    powers = pairwise_distances(op, x, rows, "minkowski", power)
    return powers, lambda name: op.Pow(op.Max(name, tiny), 1 / power)


def nearest(op: ModelWriter, model: Any, x: str, count: int, reason: str = "") -> tuple[str, str]:
    """Append distances to the nearest samples in increasing order, and their indices, (n, count)."""
    ordered, to_distances = _distances(op, model, x, reason)
    values, indices = op.TopK(ordered, [count], axis=1, largest=0, n_outputs=2)
    return to_distances(values), indices


def _reciprocal(op: ModelWriter, distances: str) -> str:
    """Append ``1 / distances``, finite at zero, where it outweighs all other samples."""
    return op.Reciprocal(op.Max(distances, float(np.sqrt(np.finfo(op.float_dtype).tiny))))


def _mean(op: ModelWriter, model: Any, x: str) -> Function:
    """Return the function from a value for each training sample to the mean over neighbours."""
    by_distance = model.weights == "distance"
    if model.n_neighbors is None:
        ordered, to_distances = _distances(op, model, x, "" if by_distance else NO_GRADIENT)
        distances = to_distances(ordered)
        weights = op.ones_where(op.LessOrEqual(distances, float(model.radius)))
        if by_distance:
            weights = op.Mul(weights, _reciprocal(op, distances))
        # NaN without samples within the radius
        shares = op.Div(weights, op.ReduceSum(weights, [1], keepdims=1))
        return lambda values: op.MatMul(shares, values)
    distances, indices = nearest(op, model, x, model.n_neighbors, "" if by_distance else NO_GRADIENT)
    if not by_distance:
        return lambda values: op.ReduceMean(op.Gather(values, indices, axis=0), [1], keepdims=0)
    weights = _reciprocal(op, distances)
    shares = op.Unsqueeze(op.Div(weights, op.ReduceSum(weights, [1], keepdims=1)), [2])
    return lambda values: op.ReduceSum(op.Mul(op.Gather(values, indices, axis=0), shares), [1], keepdims=0)


@dataclass(frozen=True)
class ValuesOfSamples(Form):
    """Values of training samples, stored once for the duplicates of a bootstrap."""

    first: np.ndarray
    group: np.ndarray

    @classmethod
    def of(cls, model: Any) -> "ValuesOfSamples":
        """Return the form for the samples of a fitted estimator."""
        values = np.asarray(model._y).reshape(len(model._y), -1)
        rows = np.ascontiguousarray(np.column_stack([model._fit_X, values]))
        keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return cls(first[order], np.argsort(order)[group.ravel()])

    def forward(self, value: np.ndarray) -> np.ndarray:
        return value.reshape(len(value), -1)[self.first]

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return value[self.group].reshape(like.shape)


class ReplacedNeighbors(ReplacedEnsemble):
    """Stored samples, which are replaced as a whole."""

    def grows(self, model: Any, n_samples: int) -> bool:
        """Of fewer samples, none may be within the radius, where predictions are NaN."""
        return model.radius is None or n_samples >= len(model._fit_X)

    def window(self, model: Any) -> int:
        return max(1_000, len(model._fit_X))


class NeighborsRegressorDefinition(_Neighbors):
    """KNeighborsRegressor and RadiusNeighborsRegressor: the mean over neighbours."""

    capabilities = ReplacedNeighbors(), ShiftedScores()

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        mean, form = _mean(op, model, x), ValuesOfSamples.of(model)
        values = op.parameter(model, "_y", form=form, role="table")
        if len(form.first) < len(model._y):
            values = op.Gather(values, form.group, axis=0)
        return regression(op, mean(values), model._y.size // len(model._y))

    def shape_predictions(self, model: Any, n_dimensions: int) -> None:
        model._y = model._y.reshape((-1, 1)[:n_dimensions])


class NeighborsClassifierDefinition(_Neighbors):
    """KNeighborsClassifier and RadiusNeighborsClassifier: votes, weighted by distances or not."""

    untrained = "it counts votes of the nearest training samples, a step function with zero gradient"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        mean = _mean(op, model, x)
        if not isinstance(model.classes_, list):
            return classes_of_probabilities(op, _votes(op, mean, model._y, model.classes_), model.classes_)
        shares = [_votes(op, mean, *pair) for pair in zip(model._y.T, model.classes_, strict=True)]
        return multioutput(op, shares, model.classes_)


def _votes(op: ModelWriter, mean: Function, y: np.ndarray, classes: np.ndarray) -> str:
    """Append the share of votes of each class."""
    return mean(op.constant(np.eye(len(classes), dtype=op.float_dtype)[np.ravel(y)]))


class NearestNeighborsDefinition(_Neighbors):
    """NearestNeighbors: distances to the nearest samples."""

    untrained = "its output is the nearest training samples, a step function without a gradient"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return regression(op, nearest(op, model, x, model.n_neighbors)[0], model.n_neighbors)


class NeighborsTransformerDefinition(_Neighbors):
    """KNeighborsTransformer and RadiusNeighborsTransformer: distances to neighbours, zero to others."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        by_distance = model.mode == "distance"
        ordered, to_distances = _distances(op, model, x, "" if by_distance else NO_GRADIENT)
        if model.n_neighbors is None:
            near = op.ones_where(op.LessOrEqual(to_distances(ordered), float(model.radius)))
        else:
            count = model.n_neighbors + by_distance
            values, indices = op.TopK(ordered, [count], axis=1, largest=0, n_outputs=2)
            nothing = op.ones_where(op.Less(ordered, 0.0))
            ones = op.ones_where(op.GreaterOrEqual(values, 0.0))
            near = op.ScatterElements(nothing, indices, ones, axis=1)
        result = op.Mul(to_distances(ordered), near) if by_distance else near
        return transformation(op, result, len(model._fit_X))


class LocalOutlierFactorDefinition(_Neighbors):
    """LocalOutlierFactor for new samples: density relative to neighbours (Breunig et al., 2000)."""

    def covers(self, model: Any) -> bool:
        return super().covers(model) and model.novelty

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        count = model.n_neighbors_
        distances, indices = nearest(op, model, x, count, FITTED)
        table = op.parameter(model, "_distances_fit_X_", role="table", reason=FITTED)
        farthest = op.Gather(op.Gather(table, count - 1, axis=1), indices, axis=0)
        reach = op.ReduceMean(op.Max(distances, farthest), [1], keepdims=1)
        densities = op.parameter(model, "_lrd", role="table", constraint=Positive())
        around = op.ReduceMean(op.Gather(densities, indices, axis=0), [1], keepdims=1)
        factor = op.Mul(around, op.Add(reach, 1e-10))
        return detection(op, op.Sub(-float(model.offset_), factor))


class IsomapDefinition(ModelDefinition):
    """Isomap: kernel PCA of ``-d^2 / 2``, d geodesic distances (Tenenbaum et al., Science 290, 2000)."""

    def covers(self, model: Any) -> bool:
        return model.n_neighbors is not None and NearestNeighborsDefinition().covers(model.nbrs_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        with op.inside("nbrs_"):
            distances, indices = nearest(op, model.nbrs_, x, model.n_neighbors, FITTED)
        geodesics = op.parameter(model, "dist_matrix_", role="table", reason=FITTED)
        paths = op.Add(op.Gather(geodesics, indices, axis=0), op.Unsqueeze(distances, [2]))
        shortest = op.ReduceMin(paths, [1], keepdims=0)
        kernel = op.Mul(op.Mul(shortest, shortest), -0.5)
        result = projected_kernel(op, model, kernel, "kernel_pca_.")
        return transformation(op, result, model.embedding_.shape[1])

    def finish(self, model: Any) -> None:
        model.embedding_ = model.kernel_pca_.transform(-0.5 * model.dist_matrix_**2)


class LocallyLinearDefinition(ModelDefinition):
    """LocallyLinearEmbedding: the weighted sum of the embeddings of the nearest neighbours."""

    # The weights w sum to one, and solve (C C' + reg trace(C C') I) w = 1, C the differences of neighbours
    # from the sample (Saul and Roweis, "Think globally, fit locally", JMLR 4, 2003, section 2).

    def covers(self, model: Any) -> bool:
        return model.n_neighbors <= LARGEST and NearestNeighborsDefinition().covers(model.nbrs_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        size = int(model.n_neighbors)
        with op.inside("nbrs_"):
            _, indices = nearest(op, model.nbrs_, x, size, FITTED)
            rows = op.parameter(model.nbrs_, "_fit_X", role="intercept", reason=FITTED)
        differences = op.Sub(op.Gather(rows, indices, axis=0), op.Unsqueeze(x, [1]))
        pairs = op.Mul(op.Unsqueeze(differences, [2]), op.Unsqueeze(differences, [1]))
        matrix = op.ReduceSum(pairs, [3], keepdims=0)
        trace = op.ReduceSum(op.Mul(differences, differences), [1, 2], keepdims=1)
        ridge = op.Mul(op.Where(op.Greater(trace, 0.0), trace, 1.0), float(model.reg))
        matrix = op.Add(matrix, op.Mul(ridge, np.eye(size, dtype=op.float_dtype)))
        ones = op.Add(op.Mul(op.ReduceSum(matrix, [2], keepdims=1), 0.0), 1.0)
        weights, _ = solve_positive(op, matrix, ones, size, 1)
        weights = op.Div(weights, op.ReduceSum(weights, [1], keepdims=1))
        embeddings = op.Gather(op.parameter(model, "embedding_", role="table"), indices, axis=0)
        result = op.ReduceSum(op.Mul(embeddings, weights), [1], keepdims=0)
        return transformation(op, result, model.embedding_.shape[1])


class LabelPropagationDefinition(ModelDefinition):
    """LabelPropagation and LabelSpreading: the mean of ``label_distributions_``, weighted by a kernel."""

    capabilities = (ReplacedModel(),)
    # Zhu, X. and Ghahramani, Z., "Learning from labeled and unlabeled data with label propagation",
    # CMU-CALD-02-107, 2002; the softmax keeps the weights of remote samples from underflowing to zero
    unlabelled = -1

    def covers(self, model: Any) -> bool:
        if model.kernel != "knn":
            return model.kernel == "rbf"
        return all_covered(model.nn_fit)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if model.kernel == "rbf":
            rows = op.parameter(model, "X_", form=dense_form(model.X_), role="intercept", reason=FITTED)
            squares = pairwise_distances(op, x, rows, "sqeuclidean")
            exponents = op.Mul(squares, -float(model.gamma))
            sums = op.MatMul(op.Softmax(exponents, axis=1), self._shares(op, model))
        else:
            with op.inside("nn_fit"):
                indices = nearest(op, model.nn_fit, x, model.n_neighbors, NO_GRADIENT)[1]
            near = op.Gather(self._shares(op, model), indices, axis=0)
            sums = op.ReduceSum(near, [1], keepdims=0)
        # distributions of training samples without a propagated label are zero
        probabilities = op.Div(sums, op.ReduceSum(sums, [1], keepdims=1))
        if model.kernel != "rbf":
            return classes_of_probabilities(op, probabilities, model.classes_)
        # scikit-learn predicts the first class of samples for which all kernels underflow
        known = op.GreaterOrEqual(op.ReduceMax(exponents, [1], keepdims=1), math.log(SMALLEST))
        compared, score = op.Where(known, probabilities, 0.0), op.log_probabilities(probabilities)
        return classification(op, score, "softmax", compared, model.classes_, probabilities=probabilities)

    def _shares(self, op: ModelWriter, model: Any) -> str:
        constraint = ClosedSimplex((len(model.classes_),))
        return op.parameter(model, "label_distributions_", role="table", constraint=constraint)

    def finish(self, model: Any) -> None:
        model.transduction_ = model.classes_[np.argmax(model.label_distributions_, axis=1)]

"""Discriminant analysis, nearest centroids, elliptic envelopes."""

from typing import Any

import numpy as np

from ..base import ModelDefinition
from ..capabilities import ReplacedModel
from ..constraints.sets import Simplex, Triangular
from ..constraints.signs import Positive
from ..forms import FactorOfInverse
from ..formulas.distances import pairwise_distances
from ..formulas.kernels import products
from ..scores import Scores, binary_classes, class_scores, classification, detection
from ..writer import ModelWriter
from .linear import linear_scores


class LinearDiscriminantDefinition(ModelDefinition):
    """LinearDiscriminantAnalysis: linear scores, and discriminant coordinates as a transformer."""

    capabilities = (ReplacedModel(),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        score, transformed = linear_scores(op, model, x), self._transformed(op, model, x)
        finish = binary_classes if len(model.classes_) == 2 else class_scores
        return finish(op, score, model.classes_, transformed=transformed)

    def _transformed(self, op: ModelWriter, model: Any, x: str) -> str | None:
        if model.solver == "lsqr":
            return None
        if model.solver == "svd":
            x = op.Sub(x, op.parameter(model, "xbar_", role="intercept"))
        product = op.MatMul(x, op.parameter(model, "scalings_", role="weight"))
        n_columns = model.scalings_.shape[1]
        return op.columns(product, range(min(model._max_components, n_columns)), n_columns)


class QuadraticDiscriminantDefinition(ModelDefinition):
    """QuadraticDiscriminantAnalysis: ``log p_k - sum_j (log s_kj + ((x - m_k) R_k)_j^2 / s_kj) / 2``."""

    capabilities = (ReplacedModel(),)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        terms = [self._term(op, model, x, index) for index in range(len(model.classes_))]
        priors = op.parameter(model, "priors_", role="intercept", constraint=Simplex())
        score = op.Add(op.Mul(op.Concat(*terms, axis=1), -0.5), op.Log(priors))
        decision = op.difference(score) if len(terms) == 2 else None
        return class_scores(op, score, model.classes_, decision=decision)

    def _term(self, op: ModelWriter, model: Any, x: str, index: int) -> str:
        """Append the sum over the principal axes of a class, of shape (n, 1)."""
        mean = op.parameter(model, "means_", index=index, role="intercept")
        rotation = op.parameter(model, "rotations_", index=index, role="weight")
        scaling = op.parameter(model, "scalings_", index=index, role="scale", constraint=Positive())
        rotated = op.MatMul(op.Sub(x, mean), rotation)
        squares = op.Div(op.Mul(rotated, rotated), scaling)
        return op.ReduceSum(op.Add(squares, op.Log(scaling)), [1], keepdims=1)


class NearestCentroidDefinition(ModelDefinition):
    """NearestCentroid: ``-d(x / s, c_k / s)^2 + 2 log p_k``, with centroids c, deviations s and priors p."""

    capabilities = (ReplacedModel(),)
    # Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning", 2009, equation 18.2. With equal
    # priors, or with manhattan distances, scikit-learn predicts the nearest centroid of nearest features.

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centroids = op.parameter(model, "centroids_", role="weight")
        is_euclidean = model.metric == "euclidean"
        is_equal = bool(np.isclose(model.class_prior_, 1 / len(model.classes_)).all())
        nearest = op.Neg(pairwise_distances(op, x, centroids, "sqeuclidean" if is_euclidean else "manhattan"))
        if is_equal and not is_euclidean:
            return classification(op, nearest, "softmax", nearest, model.classes_, decision="")
        score = self._discriminants(op, model, x, centroids, is_equal)
        predicted = nearest if is_equal else score
        if not is_euclidean:
            return classification(op, score, "softmax", predicted, model.classes_, decision="")
        decision = op.difference(score) if len(model.classes_) == 2 else None
        shares = op.Softmax(score, axis=1)
        outputs = {"probabilities": shares, "decision": decision}
        return classification(op, score, "softmax", predicted, model.classes_, **outputs)

    def _discriminants(self, op: ModelWriter, model: Any, x: str, centroids: str, is_equal: bool) -> str:
        deviations = op.parameter(model, "within_class_std_dev_", role="scale", constraint=Positive())
        if not model.within_class_std_dev_.all():
            deviations = op.Where(op.Equal(deviations, 0.0), 1.0, deviations)
        metric = "sqeuclidean" if model.metric == "euclidean" else "manhattan"
        distances = pairwise_distances(op, op.Div(x, deviations), op.Div(centroids, deviations), metric)
        squares = distances if metric == "sqeuclidean" else op.Mul(distances, distances)
        reason = "predict ignores equal priors" if is_equal else ""
        priors = op.parameter(model, "class_prior_", role="intercept", constraint=Simplex(), reason=reason)
        return op.Sub(op.Mul(op.Log(priors), 2.0), squares)


class EllipticEnvelopeDefinition(ModelDefinition):
    """EllipticEnvelope: ``-|R (x - location_)|^2 - offset_``, with ``R'R`` the inverse of ``covariance_``."""

    # Rousseeuw and Van Driessen, "A fast algorithm for the minimum covariance determinant estimator", 1999

    def covers(self, model: Any) -> bool:
        eigenvalues = np.linalg.eigvalsh(model.covariance_)
        return eigenvalues.min() > np.finfo(np.float64).eps * len(eigenvalues) * eigenvalues.max()

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centred = op.Sub(x, op.parameter(model, "location_", role="intercept"))
        form, constraint = FactorOfInverse(), Triangular()
        factor = op.parameter(model, "covariance_", form=form, role="weight", constraint=constraint)
        whitened = products(op, centred, factor)
        distances = op.ReduceSum(op.Mul(whitened, whitened), [1], keepdims=1)
        return detection(op, op.Sub(op.Neg(distances), op.parameter(model, "offset_", role="intercept")))

    def finish(self, model: Any) -> None:
        if model.store_precision:
            model.precision_ = np.linalg.inv(model.covariance_)

"""Covariances of samples: the distance of a sample to their location."""

from typing import Any

import numpy as np

from .base import ModelDefinition
from .constraints.sets import Triangular
from .forms import FactorOfInverse
from .kernels import products
from .scores import OUTLIERS, Scores, decisions
from .writer import ModelWriter


class EllipticEnvelopeDefinition(ModelDefinition):
    """EllipticEnvelope: ``-|R (x - location_)|^2 - offset_``, with ``R'R`` the inverse of ``covariance_``.

    Rousseeuw, P. J. and Van Driessen, K., "A fast algorithm for the minimum covariance determinant
    estimator", Technometrics 41, 1999.
    """

    def covers(self, model: Any) -> bool:
        eigenvalues = np.linalg.eigvalsh(model.covariance_)
        return eigenvalues.min() > np.finfo(np.float64).eps * len(eigenvalues) * eigenvalues.max()

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        centred = op.Sub(x, op.parameter(model, "location_", role="intercept"))
        form, constraint = FactorOfInverse(), Triangular()
        factor = op.parameter(model, "covariance_", form=form, role="weight", constraint=constraint)
        whitened = products(op, centred, factor)
        distances = op.ReduceSum(op.Mul(whitened, whitened), [1], keepdims=1)
        decision = op.Sub(op.Neg(distances), op.parameter(model, "offset_", role="intercept"))
        return decisions(op, decision, OUTLIERS, zero_is_second=True)

    def finish(self, model: Any) -> None:
        if model.store_precision:
            model.precision_ = np.linalg.inv(model.covariance_)

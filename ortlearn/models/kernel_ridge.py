"""Kernel ridge regression: kernels of samples with those of the fit, weighted."""

from typing import Any

from .base import ModelDefinition
from .forms import Form, Reshaped, Transposed
from .kernels import PAIRWISE, default_gamma, fitted_rows, pairwise_kernel
from .scores import Scores, regression
from .support_vectors import weighted_kernel
from .writer import ModelWriter


class KernelRidgeDefinition(ModelDefinition):
    """KernelRidge: ``K(x, X_fit_) dual_coef_``.

    A sample of a precomputed kernel is its kernel with all samples of the fit. What is minimised has the
    norm of a function space, ``alpha tr(dual_coef_' K dual_coef_)``, which no penalty of ours is (Murphy,
    "Machine Learning: a probabilistic perspective", 2012, section 14.4.3).
    """

    not_in_objective = ("alpha",)

    def covers(self, model: Any) -> bool:
        return isinstance(model.kernel, str) and model.kernel in PAIRWISE

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        rows = fitted_rows(op, model, "X_fit_", model.kernel)
        gamma = default_gamma(model.kernel, model.gamma, model.n_features_in_)
        options = gamma, float(model.coef0), float(model.degree)
        kernel = pairwise_kernel(op, x, rows, model.kernel, *options)
        n_outputs = model.dual_coef_.size // len(model.dual_coef_)
        form: Form = Reshaped((1, -1)) if model.dual_coef_.ndim == 1 else Transposed()
        weights = op.parameter(model, "dual_coef_", form=form, role="weight")
        return regression(op, weighted_kernel(op, kernel, weights), n_outputs)

    def shape_predictions(self, model: Any, n_dimensions: int) -> None:
        model.dual_coef_ = model.dual_coef_.reshape((-1, 1)[:n_dimensions])

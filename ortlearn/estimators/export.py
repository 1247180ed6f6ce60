"""What a trained estimator gives away: the scikit-learn model, the ONNX model, and its graphs as files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, ClassVar

from onnx import ModelProto
from sklearn.utils.validation import check_is_fitted

from .. import conversion
from ..exceptions import WriteBackError
from ..graphs import initializer_arrays
from ..graphs.files import save_model
from ..training import Device
from ..training.base_step import BaseStep
from .inference import Inference
from .problem import Problem

__all__ = ["ExportMixin"]


class ExportMixin:
    """``to_sklearn``, ``get_trained_onnx`` and ``save_onnx_graph``."""

    n_jobs: int | None
    onnx_: ModelProto
    _problem: Problem
    _source: Any
    _step_class: ClassVar[type[BaseStep]]
    _trained: ModelProto

    def _device(self) -> Device:
        raise NotImplementedError

    def _runner(self) -> Inference:
        raise NotImplementedError

    def to_sklearn(self) -> Any:
        """Return the scikit-learn model with the trained weights in its attributes.

        ``coef_``, ``intercept_``, ``coefs_``, ``cluster_centers_``, the leaves of trees and so on, in
        pipelines and inside of other models too. What its prediction does not read, such as ``n_iter_``,
        ``labels_`` or ``feature_importances_``, stays from scikit-learn's own fit.

        Returns
        -------
        estimator
            A copy of the fitted model: neither this object nor the estimator it was given is changed.
            It predicts as this object does, to the digits of float32, and in the same shape where its
            attributes can tell: of y with shape (n, 1), linear models get ``coef_`` of shape
            (1, n_features). SVR, MLP, trees and others always predict (n_samples,).

        Raises
        ------
        WriteBackError
            If the model has no attributes that can hold the weights, or was an ONNX model.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> X = np.linspace(0, 1, 50).reshape(-1, 1)
        >>> trained = OrtGradientOptimizer(LinearRegression(), random_state=0).fit(X, 2 * X.ravel() + 1)
        >>> model = trained.to_sklearn()
        >>> type(model).__name__, np.allclose(model.predict(X), trained.predict(X), atol=1e-5)
        ('LinearRegression', True)
        """
        check_is_fitted(self)
        if self._source is None:
            raise WriteBackError(
                "to_sklearn is for scikit-learn models: this one was trained from an ONNX model, and is "
                "there as one: get_trained_onnx, save_onnx_graph."
            )
        trainable = self._problem.trainable
        weights = trainable.coefficients(initializer_arrays(self._trained, trainable.trained))
        return conversion.write_weights(self._source, trainable, weights, self._problem.y_ndim)

    def _written(self) -> Any:
        """Return what ``to_sklearn`` does, made once for the weights as they are."""
        runner = self._runner()
        if runner.written is None:
            runner.written = self.to_sklearn()
        return runner.written

    def get_trained_onnx(self) -> ModelProto:
        """Return a copy of the trained ONNX model, its weights under the names they came with.

        Returns
        -------
        onnx.ModelProto
            Model.
        """
        check_is_fitted(self)
        return copy.deepcopy(self.onnx_)

    def save_onnx_graph(self, folder) -> dict[str, Path]:
        """Write the trained model and the training graphs to files.

        Parameters
        ----------
        folder : str or pathlib.Path
            Where; it is made if missing.

        Returns
        -------
        dict of str to pathlib.Path
            Path of each file: ``trained`` and the graphs of the training step.
        """
        check_is_fitted(self)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        step = getattr(self, "_step", None)
        if step is None:
            step = self._step_class(self._problem.task(False), self._device(), self.n_jobs)
        models = {"trained": self.onnx_, **step.graphs()}
        paths = {name: folder / f"{name}.onnx" for name in models}
        for name, model in models.items():
            save_model(model, paths[name])
        return paths

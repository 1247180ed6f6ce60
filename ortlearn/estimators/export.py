"""What a trained estimator gives away: the scikit-learn model, the ONNX model, and its graphs as files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, ClassVar

from onnx import ModelProto
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import conversion
from ..exceptions import WriteBackError
from ..graphs import initializer_arrays
from ..graphs.files import save_model
from ..training import Device, FullBatchStep, TrainingTask
from ..training.base_step import BaseStep
from .inference import Inference
from .problem import Problem
from .sources import check_source

__all__ = ["ExportMixin"]


class ExportMixin:
    """``to_sklearn``, ``get_trained_onnx`` and ``save_onnx_graph``."""

    estimator: Any
    n_jobs: int | None
    onnx_: ModelProto
    random_state: Any
    _validate_params: Any
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

    def save_onnx_graph(self, folder=None):
        """Write the trained model and the training graphs to files, or return them as bytes.

        Before ``fit``, they follow from the shapes of an ONNX model, or of a fitted scikit-learn estimator.

        Parameters
        ----------
        folder : str or pathlib.Path, default=None
            Where; it is made if missing. None returns bytes and writes nothing.

        Returns
        -------
        dict of str to pathlib.Path, or dict of str to bytes
            Path, or serialized model, of each graph: ``trained`` (``model`` before ``fit``), and those of the
            training step.

        Raises
        ------
        NotFittedError
            If neither this object nor its estimator is fitted.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> model = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
        >>> graphs = OrtGradientOptimizer(model).save_onnx_graph()
        >>> {name: type(graph).__name__ for name, graph in graphs.items()}
        {'model': 'bytes', 'step': 'bytes'}
        """
        models = self._graphs_of_training() if hasattr(self, "onnx_") else self._graphs_before_training()
        if folder is None:
            return {name: model.SerializeToString() for name, model in models.items()}
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {name: folder / f"{name}.onnx" for name in models}
        for name, model in models.items():
            save_model(model, paths[name])
        return paths

    def _graphs_of_training(self) -> dict[str, ModelProto]:
        step = getattr(self, "_step", None)
        if step is None:
            step = self._new_step(self._problem.task(False))
        return {"trained": self.onnx_, **step.graphs()}

    def _graphs_before_training(self) -> dict[str, ModelProto]:
        self._validate_params()
        check_source(self.estimator)
        if not conversion.is_onnx_source(self.estimator) and not conversion.is_fitted(self.estimator):
            raise NotFittedError(
                f"This {type(self.estimator).__name__} is not fitted, and its graphs depend on the data: "
                "call fit before, or pass a fitted estimator."
            )
        problem = Problem.pose(self, None, None, None, check_random_state(self.random_state))
        trainable = problem.trainable
        model = trainable.with_weights(trainable.initial_weights())
        return {"model": model, **self._new_step(problem.task(False)).graphs()}

    def _new_step(self, task: TrainingTask) -> Any:
        """Return a training step."""
        step_class = FullBatchStep if task.learning_rate.full_batch else self._step_class
        return step_class(task, self._device(), self.n_jobs)

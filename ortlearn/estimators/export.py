"""Exports of an estimator: the scikit-learn model, the ONNX model, and its graphs as files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from .. import conversion
from .fitted_estimator import FittedEstimator

if TYPE_CHECKING:
    from onnx import ModelProto

    from .configuration import Configuration

__all__ = ["ExportMethods"]


class ExportMethods(FittedEstimator):
    """``to_sklearn``, ``get_trained_onnx`` and ``save_onnx_graph``."""

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
        return self._model().to_sklearn()

    def get_trained_onnx(
        self,
        zipmap: bool = False,
        *,
        keep_upgrade: bool = False,
        merged: bool = True,
        fused: bool = True,
    ) -> ModelProto:
        """Return a copy of the trained ONNX model.

        That of a scikit-learn model has the fused operators of ``ai.onnx.ml`` where there are some: trees,
        linear models and the classes of two-class models, with the weights in their attributes. With
        ``fused=False`` all weights are initializers, under the names of ``trained_coef_``.

        That of an ONNX file is the file with other numbers: nodes, names, types, metadata and opset are as
        they came, where the file holds its weights in initializers or constants, those of inner graphs and
        functions included. A ``ConstantOfShape`` whose numbers are trained becomes a ``Constant``. Where they
        were attributes of fused operators, it is the graph that was trained, with inputs, outputs and
        metadata of the file, ``ZipMap`` included.

        Parameters
        ----------
        zipmap : bool, default=False
            Whether a scikit-learn classifier has the outputs that skl2onnx writes by default:
            ``output_label``, and ``output_probability``, one map from class to probability per sample.
        keep_upgrade : bool, default=False
            Whether a trained ONNX file stays at the opset that it was brought to for training, and in float32
            where it came in float16 or bfloat16.
        merged : bool, default=True
            Whether adapters (``lora``) are added to their weights, so that the file has the nodes that it
            came with. Otherwise its weights are those that it came with, and the matrices of adapters are
            inputs that need not be given, zero by default: :meth:`save_adapter` writes them.

        fused : bool, default=True
            Whether a scikit-learn model has fused operators, which take less time.

        Returns
        -------
        onnx.ModelProto
            Model.

        Raises
        ------
        ValueError
            If ``zipmap`` is True for an ONNX file, or for a model that does not predict the probabilities of
            one column of classes; if ``keep_upgrade`` is True for a scikit-learn model; if ``merged`` is
            False for a model without adapters.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> trained = OrtGradientOptimizer(LogisticRegression(), random_state=0)
        >>> trained = trained.fit([[0.0], [1.0]], ["a", "b"])
        >>> [value.name for value in trained.get_trained_onnx().graph.output]
        ['label', 'probabilities']
        >>> [value.name for value in trained.get_trained_onnx(zipmap=True).graph.output]
        ['output_label', 'output_probability']
        """
        model = self._model()
        if not merged:
            separate = model.separate_onnx(keep_upgrade)
            return model.with_zipmap() if zipmap else separate
        if keep_upgrade:
            return model.upgraded_onnx()
        if zipmap:
            return model.with_zipmap(fused)
        return copy.deepcopy(model.onnx) if fused else model.plain_onnx()

    def save_adapter(self, path, *, keep_upgrade: bool = False) -> Path:
        """Write the trained low-rank adapters to a file of onnxruntime's own format.

        onnxruntime 1.20 or later (not onnxruntime-training) adds them to the file that
        ``get_trained_onnx(merged=False)`` returns: ``adapter.Load(path)`` of a ``LoraAdapter``, and
        ``options.add_active_adapter(adapter)`` of the ``RunOptions`` that ``run`` takes.

        Parameters
        ----------
        path : str or pathlib.Path
            Where; the name of such a file ends with ``.onnx_adapter``.
        keep_upgrade : bool, default=False
            As in :meth:`get_trained_onnx`, whose file the adapters are for.

        Returns
        -------
        pathlib.Path
            The path.

        Raises
        ------
        ValueError
            If the model was trained without ``lora``.

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> from onnx import parser
        >>> from ortlearn import OrtGradientOptimizer
        >>> file = parser.parse_model('''
        ...     <ir_version: 8, opset_import: ["": 18]>
        ...     g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1, 0, 0, 1, 1, 1}>
        ...     { y = MatMul (x, w) }''')
        >>> X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
        >>> trained = OrtGradientOptimizer(file, lora=1, random_state=0).fit(X, X[:, :2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained.save_adapter(f"{folder}/one.onnx_adapter").stat().st_size > 0
        True
        >>> [value.name for value in trained.get_trained_onnx(merged=False).graph.input]
        ['x', 'w.lora_A', 'w.lora_B']
        """
        from ..graphs.files import write_atomically
        from ..onnx_files.adapter_files import adapter_bytes

        content, path = adapter_bytes(self._model().adapter_arrays(keep_upgrade)), Path(path)
        write_atomically(path, lambda file: file.write(content))
        return path

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
        fitted = self.__sklearn_is_fitted__()
        models = self._model().graphs() if fitted else _graphs_before_training(self._configuration())
        if folder is None:
            return {name: model.SerializeToString() for name, model in models.items()}
        from ..graphs.files import save_model

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {name: folder / f"{name}.onnx" for name in models}
        for name, model in models.items():
            save_model(model, paths[name])
        return paths

    def get_node_providers(self):
        """Return which execution provider of onnxruntime runs which nodes of the training.

        Returns
        -------
        dict of str to dict of str to dict of str to int
            Numbers of nodes by graph of the training step, execution provider and operator. What a provider
            leaves to another one costs a copy of tensors to it and back.

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        DeviceError
            If ``device`` is another than the CPU, and onnxruntime older than 1.24.

        Examples
        --------
        >>> from sklearn.linear_model import SGDRegressor
        >>> from ortlearn import OrtGradientOptimizer
        >>> trainer = OrtGradientOptimizer(SGDRegressor(), learning_rate="SGD", max_iter=2)
        >>> providers = trainer.fit([[0.0], [1.0]], [1.0, 3.0]).get_node_providers()
        >>> providers["epoch"]["CPUExecutionProvider"]["Loop"]
        1
        """
        from ..training.placement import node_providers

        model = self._model()
        graphs, runtime = model.graphs(), model.runner.runtime
        left_out = {"trained", "step"} if "epoch" in graphs else {"trained"}
        running = {name: graph for name, graph in graphs.items() if name not in left_out}
        return {n: node_providers(g, runtime.device, runtime.n_jobs) for n, g in running.items()}


def _graphs_before_training(configuration: Configuration) -> dict[str, ModelProto]:
    """Return the model, and the graphs of its training step for samples of any number."""
    from .problem import Problem

    source = configuration.source
    if not conversion.is_onnx_source(source) and not conversion.is_fitted(source):
        raise NotFittedError(
            f"This {type(source).__name__} is not fitted, and its graphs depend on the data: "
            "call fit before, or pass a fitted estimator."
        )
    problem = Problem.of(configuration, random_state=check_random_state(configuration.random_state))
    problem = problem.with_objective_of(configuration, None, None)
    trainable = problem.trainable
    model = trainable.with_weights(trainable.initial_weights())
    return {"model": model, **configuration.runtime.new_step(problem.task(False)).graphs()}

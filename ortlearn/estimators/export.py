"""Exports of an estimator: the scikit-learn model, the ONNX model, and its graphs as files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from .. import conversion
from .fitted_estimator import FittedEstimator

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..problem.configuration import Configuration

__all__ = ["ExportMethods"]


class ExportMethods(FittedEstimator):
    """``to_sklearn``, ``get_trained_onnx`` and ``save_onnx_graph``."""

    def to_sklearn(self) -> Any:
        """Return the scikit-learn model with the trained weights in its attributes.

        These are ``coef_``, ``intercept_``, ``coefs_``, ``cluster_centers_``, the leaves of trees and so on,
        also in pipelines and nested models. Attributes that predictions do not depend on, such as
        ``n_iter_``, ``labels_`` or ``feature_importances_``, are those of scikit-learn's fit.

        Returns
        -------
        estimator
            A copy of the fitted model; this object and the given estimator are not changed. Its predictions
            are equal up to the precision of float32. Linear models trained on y of shape (n, 1) get ``coef_``
            of shape (1, n_features) and predict the same shape; SVR, MLP, trees and others always predict
            (n_samples,).

        Raises
        ------
        WriteBackError
            If the model is an ONNX model, or has no attributes for the trained weights.

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
        fused: bool | Literal["many"] = True,
    ) -> ModelProto:
        """Return a copy of the trained ONNX model.

        A scikit-learn model is written with the fused operators of ``ai.onnx.ml`` if available, for trees,
        linear models and the labels of binary classifiers; their weights are attributes of nodes. With
        ``fused=False`` all weights are initializers with the names of ``trained_coef_``.

        An ONNX file keeps its nodes, names, types, metadata and opset if its weights are initializers or
        constants, also in subgraphs and functions; only their values change. A ``ConstantOfShape`` with
        trained values becomes a ``Constant``. If the weights were attributes of fused operators, the result
        is the trained graph with the inputs, outputs and metadata of the file, including ``ZipMap``.

        Parameters
        ----------
        zipmap : bool, default=False
            Whether a scikit-learn classifier has the default outputs of skl2onnx: ``output_label``, and
            ``output_probability``, a map from class to probability for each sample.
        keep_upgrade : bool, default=False
            Whether a trained ONNX file keeps the opset that it was converted to for training, and float32 if
            the original type is float16 or bfloat16.
        merged : bool, default=True
            Whether adapters (``lora``) are added to their weights, so that the nodes of the file do not
            change. Otherwise the original weights are kept, and the matrices of adapters are optional inputs,
            zero by default; :meth:`save_adapter` writes their values.
        fused : bool or {"many"}, default=True
            Whether a scikit-learn model has fused operators, which are faster. With ``"many"``, trees of a
            scikit-learn model have the form that is fastest for 500 samples or more, as in ``predict``: small
            trees are tables of comparisons, whose results take memory (pass about 1,000 samples a call), and
            large trees read samples in the order of their leaves. Predictions are equal, bit for bit with one
            thread; those of a single sample take some microseconds longer.

        Returns
        -------
        onnx.ModelProto
            Trained model.

        Raises
        ------
        ValueError
            If ``zipmap`` is True for an ONNX file, or for a model that does not predict probabilities of a
            single output; if ``keep_upgrade`` is True for a scikit-learn model; if ``merged`` is False for a
            model without adapters; if ``fused`` is another text than ``"many"``.

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
        if fused not in (True, False, "many"):
            raise ValueError(f"fused={fused!r} is not known: pass True, False or 'many'.")
        model = self._model()
        if not merged:
            separate = model.separate_onnx(keep_upgrade)
            return model.with_zipmap() if zipmap else separate
        if keep_upgrade:
            return model.upgraded_onnx()
        if zipmap:
            return model.with_zipmap(fused)
        return copy.deepcopy(model.onnx) if fused is True else model.other_onnx(fused)

    def save_adapter(self, path: Any, *, keep_upgrade: bool = False) -> Path:
        """Write the trained low-rank adapters to a file in the adapter format of onnxruntime.

        The adapters belong to the model that ``get_trained_onnx(merged=False)`` returns. onnxruntime 1.20 or
        later (not onnxruntime-training) loads them with ``LoraAdapter.Load(path)`` and applies them with
        ``RunOptions.add_active_adapter(adapter)``.

        Parameters
        ----------
        path : str or pathlib.Path
            File to write, by convention with the suffix ``.onnx_adapter``.
        keep_upgrade : bool, default=False
            The value passed to :meth:`get_trained_onnx` for the model.

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
        from ..onnx_files.low_rank.files import adapter_bytes

        content, path = adapter_bytes(self._model().adapter_arrays(keep_upgrade)), Path(path)
        write_atomically(path, lambda file: file.write(content))
        return path

    def save_onnx_graph(self, folder: Any = None) -> Any:
        """Write the trained model and the training graphs to files, or return them as bytes.

        Before ``fit``, the graphs are available for an ONNX model or a fitted scikit-learn estimator.

        Parameters
        ----------
        folder : str or pathlib.Path, default=None
            Folder to write, created if missing. With None, bytes are returned and nothing is written.

        Returns
        -------
        dict of str to pathlib.Path, or dict of str to bytes
            Path or serialized model of each graph: ``trained`` (``model`` before ``fit``), and the graphs of
            the training step.

        Raises
        ------
        NotFittedError
            If neither this object nor its estimator is fitted.
        ValueError
            If ``folder`` ends with ``.onnx``, as the name of a file does.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> model = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
        >>> graphs = OrtGradientOptimizer(model).save_onnx_graph()
        >>> {name: type(graph).__name__ for name, graph in graphs.items()}
        {'model': 'bytes', 'step': 'bytes'}
        """
        from ..graphs.external_tensors import with_own_locations

        fitted = self.__sklearn_is_fitted__()
        models = self._model().graphs() if fitted else _graphs_before_training(self._configuration())
        if folder is None:
            return {name: with_own_locations(model).SerializeToString() for name, model in models.items()}
        from ..graphs.files import save_model

        folder = Path(folder)
        if folder.suffix == ".onnx":
            raise ValueError(
                f"save_onnx_graph writes files to a folder, and {str(folder)!r} is a file name: pass a "
                "folder, or write get_trained_onnx().SerializeToString() to the file."
            )
        folder.mkdir(parents=True, exist_ok=True)
        paths = {name: folder / f"{name}.onnx" for name in models}
        for name, model in models.items():
            save_model(model, paths[name])
        return paths

    def get_node_providers(self) -> Any:
        """Return the number of training nodes that each execution provider of onnxruntime runs.

        Returns
        -------
        dict of str to dict of str to dict of str to int
            Number of nodes by graph of the training step, execution provider and operator. Each change of the
            provider requires copies of tensors between devices.

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        DeviceError
            If ``device`` is not the CPU and onnxruntime is older than 1.24.

        Examples
        --------
        >>> from sklearn.linear_model import SGDRegressor
        >>> from ortlearn import OrtGradientOptimizer
        >>> trainer = OrtGradientOptimizer(SGDRegressor(), learning_rate="SGD", max_iter=2)
        >>> providers = trainer.fit([[0.0], [1.0]], [1.0, 3.0]).get_node_providers()
        >>> providers["epoch"]["CPUExecutionProvider"]["Loop"]
        1
        """
        from ..runtime.placement import node_providers

        model = self._model()
        graphs, runtime = model.graphs(), model.runner.runtime
        unused = {"trained", "step"} if "epoch" in graphs else {"trained"}
        return {
            name: node_providers(graph, runtime.device, runtime.n_jobs)
            for name, graph in graphs.items()
            if name not in unused
        }


def _graphs_before_training(configuration: Configuration) -> dict[str, ModelProto]:
    """Return the model, and the graphs of its training step for any number of samples."""
    from ..problem.problem import Problem

    source = configuration.source
    if not conversion.is_onnx_source(source) and not conversion.is_fitted(source):
        raise NotFittedError(
            f"This {type(source).__name__} is not fitted, and its graphs depend on the data: call fit first, "
            "or pass a fitted estimator."
        )
    configuration = configuration.in_batches(1)  # its graphs take any number of samples
    problem = Problem.of(configuration, random_state=check_random_state(configuration.random_state))
    problem = problem.with_objective_of(configuration, None, None)
    trainable = problem.trainable
    model = trainable.with_weights(trainable.initial_weights())
    return {"model": model, **configuration.runtime.new_step(problem.task(False)).graphs()}

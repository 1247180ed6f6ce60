"""A fitted model as a differentiable function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from ..graphs.files import save_model
from ..runtime.errors import runtime_errors
from .arrays import FLOATS, FunctionArrays
from .outputs import with_output
from .parameter_gradients import ParameterGradients
from .smooth_trees import trees_of_source
from .sources import Arrays, Source

__all__ = ["DifferentiableFunction"]

KINDS = ("value", "gradient", "vjp", "jvp", "hessian_vector", "parameter_gradient")


class DifferentiableFunction(FunctionArrays):
    """A function of samples with gradients, of a graph; :func:`differentiable` makes it.

    X is validated as in scikit-learn. Gradients have the shape of X. If inputs are named columns, they are
    dictionaries from columns to gradients, None for columns of categories and text. Samples are independent:
    the gradient of the output of a sample is that with respect to the same sample.

    Parameters
    ----------
    source : Source
        Graph of the model.
    model : onnx.ModelProto
        Its part with one output.
    output : str
        Name of the method.

    Attributes
    ----------
    bare : BareFunction
        The same methods on arrays of type ``dtype`` without validation, for inner loops.
    dtype : numpy.dtype
        Floating-point type of the inputs of the graph.
    input_names_ : list of str
        Names of the inputs of the graph.
    classes_ : ndarray or None
        Classes, in the order of the columns of the output.
    parameters : dict of str to ndarray
        Learned weights by name, in the form of the graph.
    """

    def __init__(self, source: Source, model: ModelProto, output: str):
        super().__init__(source, model, output)
        self._parameter_gradients = ParameterGradients(self.bare, list(self.parameters))

    @runtime_errors()
    def __call__(self, X: Any) -> np.ndarray:
        """Return the output for samples, in the shape that the method has in scikit-learn."""
        return self.bare(self.read(X))

    @runtime_errors()
    def gradient(self, X: Any, output: Any = None) -> Any:
        """Return the gradient of one output of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        output : int or str, default=None
            Column of the output, or its class if classes are text; required if there are several.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or dict
            Gradients.
        """
        return self.value_and_gradient(X, output)[1]

    @runtime_errors()
    def value_and_gradient(self, X: Any, output: Any = None) -> tuple[np.ndarray, Any]:
        """Return the output of samples, and the gradient of one output, computed together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        output : int or str, default=None
            Column of the output, or its class if classes are text; required if there are several.

        Returns
        -------
        value : ndarray
            Output, of all columns.
        gradient : ndarray of shape (n_samples, n_features), or dict
            Gradients.
        """
        samples = self.read(X)
        index = self.column_of(output, self._shape_of(samples))
        value, gradients = self.bare.value_and_gradient(samples, index)
        return value, self._written(gradients)

    @runtime_errors()
    def jacobian(self, X: Any) -> Any:
        """Return the gradients of all outputs of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_outputs, n_features), or dict
            Jacobians.
        """
        samples = self.read(X)
        value = self.bare(samples)
        shape, flat = value.shape[1:], []
        for number in range(int(np.prod(shape))):
            u = np.zeros((len(value), int(np.prod(shape))), dtype=value.dtype)
            u[:, number] = 1
            flat.append(self._parts(self.bare.vjp(samples, u.reshape(value.shape))))
        found = [np.stack(parts, axis=1) for parts in zip(*flat, strict=True)]
        found = [part.reshape(len(value), *shape, *part.shape[2:]) for part in found]
        if self._source.takes_matrix:
            return found[0]
        columns = self._source.columns
        return dict.fromkeys(columns.values()) | {
            columns[name]: part[..., 0] for name, part in zip(self.graphs.wrt, found, strict=True)
        }

    @staticmethod
    def _parts(gradients: Any) -> list[np.ndarray]:
        return [gradients] if isinstance(gradients, np.ndarray) else list(gradients)

    @runtime_errors()
    def vjp(self, X: Any, u: Any = None) -> Any:
        """Return the vector-Jacobian product: the gradient of the sum of the output times u.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        u : array-like of the shape of the output, default=None
            Weights of the outputs; ones if there is one output per sample.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or dict
            Gradients.
        """
        samples = self.read(X)
        return self._written(self.bare.vjp(samples, self._cotangent(u, samples)))

    @runtime_errors()
    def jvp(self, X: Any, v: Any) -> np.ndarray:
        """Return the Jacobian-vector product: the derivative of the output along a direction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        v : array-like of shape (n_samples, n_features), or dict
            Directions.

        Returns
        -------
        ndarray of the shape of the output
            Derivatives.
        """
        samples = self.read(X)
        return self.bare.jvp(samples, self._direction(v, samples))

    @runtime_errors()
    def hessian_vector(self, X: Any, v: Any, u: Any = None) -> Any:
        """Return the product of a Hessian and a vector: the derivative along v of ``vjp(X, u)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        v : array-like of shape (n_samples, n_features), or dict
            Directions.
        u : array-like of the shape of the output, default=None
            Weights of the outputs; ones if there is one output per sample.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or dict
            Products.
        """
        samples = self.read(X)
        cotangent = self._cotangent(u, samples)
        return self._written(self.bare.hessian_vector(samples, self._direction(v, samples), cotangent))

    @runtime_errors()
    def parameter_gradient(self, X: Any, u: Any = None, *, per_sample: bool = False) -> Arrays:
        """Return the gradient of the sum of the output times u, with respect to the learned weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        u : array-like of the shape of the output, default=None
            Weights of the outputs; ones if there is one output per sample.
        per_sample : bool, default=False
            Whether to return the gradient of each sample instead of their sum.

        Returns
        -------
        dict of str to ndarray
            Gradients by the names of ``parameters``, with a first axis of samples if ``per_sample``.
        """
        samples = self.read(X)
        return self._parameter_gradients(samples, self._cotangent(u, samples), per_sample)

    @runtime_errors()
    def smoothing_error(self, X: Any) -> np.ndarray:
        """Return the error of smoothed trees: the absolute difference from the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of the shape of the output
            Absolute differences; zero if the function is not smoothed.
        """
        if self._source.exact is None:
            return np.zeros_like(self(X))
        source = replace(self._source, model=self._source.exact)
        exact = self.bare.call("exact", lambda: with_output(source, self._output))
        samples = self.read(X)
        return np.abs(self.bare(samples) - exact(samples if isinstance(samples, list) else [samples])[0])

    # Files

    def to_onnx(self, kind: str = "gradient", output: Any = None) -> ModelProto:
        """Return the graph of the function or of a derivative.

        Parameters
        ----------
        kind : str, default="gradient"
            ``"value"``; ``"gradient"``, with the output and the gradient of one output; ``"vjp"``, with the
            additional input ``<output>_grad``; ``"jvp"``, with ``<input>_direction``; ``"hessian_vector"``,
            with both; or ``"parameter_gradient"``, with ``<output>_grad``.
        output : int or str, default=None
            Column of the output for ``"gradient"``, as in :meth:`gradient`.

        Returns
        -------
        onnx.ModelProto
            Graph.
        """
        graphs = self.graphs
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} must be one of {KINDS}.")
        if kind == "gradient":
            return graphs.selected(self._index(output))
        if kind == "parameter_gradient":
            return graphs.of_parameters(list(self.parameters))
        return getattr(graphs, kind)

    def save(self, path: str | Path, kind: str = "gradient", output: Any = None) -> None:
        """Write an ONNX file that computes a derivative; see :meth:`to_onnx`.

        Parameters
        ----------
        path : str or pathlib.Path
            File.
        kind : str, default="gradient"
            Derivative.
        output : int or str, default=None
            Column of the output, for ``"gradient"``.
        """
        save_model(self.to_onnx(kind, output), path)

    @property
    def omits_trees(self) -> bool:
        """Whether the output depends on trees, too, whose jumps have no gradient."""
        return bool(trees_of_source(self._source))

    def explain(self) -> str:
        """Return which inputs have a gradient, and why others have none.

        Returns
        -------
        str
            A line for the output, and for each input.
        """
        lines = [f"{self._output} of {self._source.name}, computed in {self.dtype}"]
        if self._source.sklearn_steps is not None:
            names = ", ".join(name for name, _ in self._source.sklearn_steps.steps)
            lines.append(f"the steps {names} run in scikit-learn: gradients are those of their output")
        for item in self._source.schema.inputs:
            title = "X" if item.column is None else f"column {item.column!r}"
            if item.name in self.graphs.wrt:
                lines.append(f"{title}: gradient")
            elif item.known.elem_type in FLOATS:
                lines.append(f"{title}: no gradient, the output depends on it only in steps or not at all")
            else:
                lines.append(f"{title}: no gradient, it has categories or text")
        if self.omits_trees:
            lines.append("jumps of trees are left out of gradients")
        return "\n".join(lines)

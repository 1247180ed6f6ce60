"""Low-rank adapters: pairs of thin matrices that are trained instead of a weight."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from ...exceptions import ConversionError, NoTrainableWeightError
from ...graphs.name_patterns import matches_pattern
from ...graphs.nodes import all_nodes, attribute
from ...models.parameters import Parameter

ADAPTABLE = "a matrix product, a convolution or a recurrent layer"  # operators with adapters, for messages
RECURRENT = {"GRU", "LSTM", "RNN"}
OUTPUTS_FIRST = {"Conv", "DeformConv", "FusedConv", *RECURRENT}  # operators with weights (outputs, inputs)
CONVOLUTIONS = {"Conv", "ConvTranspose", "DeformConv", "FusedConv"}
STACKS = {"FusedMatMul", "MatMul", "TransposeMatMul", *RECURRENT}  # operators with stacks of matrices


class LoRA(BaseEstimator):
    """Low-rank adaptation: replace a frozen weight W by ``W + alpha / rank * A B``.

    A, of shape (n_inputs, rank), is initialized as weights of products are, and B, of shape
    (rank, n_outputs), is initialized to zero, so that the initial predictions are those of the file. The
    weight of a convolution is reshaped to a matrix with a row for each output channel. Other weights of three
    or more dimensions are stacks of matrices, each with a separate A and B: in batched products, and for the
    directions of a recurrent layer, whose outputs are its gates.

    Parameters
    ----------
    rank : int, default=8
        Number of columns of A, and of rows of B.
    alpha : float, default=None
        The product of A and B is multiplied by ``alpha / rank``. None uses the rank, for a factor of one.
    target : str or list of str, default=None
        Weights to adapt: names or patterns of weights, nodes, operators or layers, as in
        ``weights_to_train`` (``"MatMul"``, ``"*query*"``). None adapts all weights of matrix products,
        convolutions and recurrent layers that are larger than their adapter.

    See Also
    --------
    ortlearn.OrtGradientOptimizer : Trains it as ``lora``, and exports the merged model or an adapter.

    References
    ----------
    Hu, E. et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021, arXiv:2106.09685, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx import parser
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.onnx_files import LoRA
    >>> file = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1, 0, 0, 1, 1, 1}> { y = MatMul (x, w) }''')
    >>> X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    >>> y = X @ [[2, 1], [1, 2], [0, 0]]
    >>> trained = OrtGradientOptimizer(file, lora=LoRA(rank=1), random_state=0).fit(X, y)
    >>> {name: array.shape for name, array in trained.get_weights().items()}
    {'w.lora_A': (3, 1), 'w.lora_B': (1, 2)}
    """

    _parameter_constraints: dict = {
        "rank": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "target": [str, list, tuple, None],
    }

    def __init__(self, rank: int = 8, *, alpha: Any = None, target: Any = None) -> None:
        self.rank = rank
        self.alpha = alpha
        self.target = target

    @property
    def scale(self) -> float:
        """Factor of the product of A and B."""
        return 1.0 if self.alpha is None else float(self.alpha) / self.rank

    def adapters(
        self, model: ModelProto, weights: Mapping[str, Parameter], original_names: Mapping[str, str]
    ) -> list[Adapter]:
        """Return an adapter for each matched weight; raise an error if none is possible."""
        self._validate_params()
        shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        found = {name: _matrix(weight, shapes[name]) for name, weight in weights.items()}
        known = {name: matrix for name, matrix in found.items() if matrix is not None}
        if self.target is None:
            sizes = {name: matrix[-2:] for name, matrix in known.items()}
            chosen = [name for name, size in sizes.items() if self.rank * sum(size) < math.prod(size)]
        else:
            chosen = _matched(self.target, known, weights, original_names)
            self._check_rank([(original_names.get(n, n), shapes[n], known[n]) for n in chosen])
        if not chosen:
            described = {original_names.get(name, name): shapes[name] for name in known}
            raise NoTrainableWeightError(
                f"No weight of {ADAPTABLE} is larger than its adapter of rank {self.rank}, among "
                f"{described}: lower the rank, or train the weights themselves (lora=None)."
            )
        turned = {name for node in all_nodes(model.graph) if _is_turned(node) for name in node.input}
        new = [(n, f"{n}.lora_A", f"{n}.lora_B") for n in chosen]
        return [Adapter(n, a, b, self.scale, self.rank, n in turned, known[n]) for n, a, b in new]

    def _check_rank(self, chosen: Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> None:
        small = [(min(matrix[-2:]), name, shape) for name, shape, matrix in chosen]
        if small and min(small)[0] < self.rank:
            size, name, shape = min(small)
            raise ConversionError(
                f"LoRA: rank={self.rank} exceeds the {size} rows or columns of weight {name!r} of shape "
                f"{shape}: lower the rank, or remove the weight from target={self.target!r}."
            )


@dataclass(frozen=True)
class Adapter:
    """Update ``scale * A B`` of a weight W."""

    weight: str
    a: str  # of shape (..., n_inputs, rank)
    b: str  # of shape (..., rank, n_outputs)
    scale: float
    rank: int
    transposed: bool  # whether W has the shape (..., n_outputs, n_inputs)
    matrix: tuple[int, ...]  # shape of W as a matrix, or as a stack of matrices

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of A and B."""
        *stack, rows, columns = self.matrix
        n_inputs, n_outputs = (columns, rows) if self.transposed else (rows, columns)
        return (*stack, n_inputs, self.rank), (*stack, self.rank, n_outputs)

    def merged(self, weight: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the weight plus the update, computed in float64, in the type of the weight."""
        product = self.scale * (a.astype(np.float64) @ b.astype(np.float64))
        product = np.swapaxes(product, -1, -2) if self.transposed else product
        return (weight.astype(np.float64) + product.reshape(weight.shape)).astype(weight.dtype)


def _matrix(weight: Parameter, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of a weight as a matrix or a stack of matrices; None if it is neither."""
    operators = {*weight.operators}
    if weight.role != "weight" or not weight.learned or len(shape) < 2 or min(shape) < 1:
        return None
    if len(shape) == 2:
        return None if operators & RECURRENT else shape  # peephole weights are not matrices
    if operators <= CONVOLUTIONS:
        return shape[0], math.prod(shape[1:])
    return shape if operators <= STACKS else None


def _is_turned(node: NodeProto) -> bool:
    return node.op_type in OUTPUTS_FIRST or bool(attribute(node, "transB", 0))


def _matched(
    target: str | Sequence[str], known: Collection, weights: Mapping[str, Parameter], original_names: Mapping
) -> list[str]:
    """Return the weights that patterns match; raise an error for a pattern without a match."""
    found = set()
    for pattern in [target] if isinstance(target, str) else target:
        matched = {name for name in known if _matches(pattern, weights[name], original_names.get(name, name))}
        if not matched:
            shown = [f"{original_names.get(n, n)!r} ({', '.join(weights[n].nodes)})" for n in known]
            raise NoTrainableWeightError(
                f"LoRA: target={pattern!r} matches no weight of {ADAPTABLE}, nor its node, operator or "
                f"layer: choose among [{', '.join(shown)}].{_others(pattern, known, weights, original_names)}"
            )
        found |= matched
    return [name for name in known if name in found]


def _matches(pattern: str, weight: Parameter, original: str) -> bool:
    names = [*weight.names(original), *weight.locations(original)]
    return any(matches_pattern(name, pattern) or name == pattern.strip("/") for name in names)


def _others(
    pattern: str, known: Collection[str], weights: Mapping[str, Parameter], original_names: Mapping[str, str]
) -> str:
    """Return a sentence about matched weights that do not support adapters, if any."""
    found = {original_names.get(name, name): weight for name, weight in weights.items() if name not in known}
    matched = [f"{n!r} of {' and '.join(w.operators)}" for n, w in found.items() if _matches(pattern, w, n)]
    if not matched:
        return ""
    return (
        f" It matches {', '.join(matched)}, which do not support low-rank adapters: train them by "
        "weights_to_train."
    )

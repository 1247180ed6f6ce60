"""Low-rank adapters: two thin matrices that are trained in the place of the weight of a product."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from ..exceptions import ConversionError, NoTrainableWeightError
from ..graphs import GraphBuilder, graph_names, node_inputs, opset_versions
from ..graphs.editing import renamed_node, with_fields
from ..graphs.name_patterns import matches_pattern
from ..graphs.nodes import all_nodes, attribute, captured_names, copy_node
from ..models.weight import Weight

__all__ = ["Adapter", "LoRA", "with_adapters"]

#: Operators whose weight has the number of outputs first, and those whose weight is read as a matrix.
OUTPUTS_FIRST = {"Conv", "DeformConv", "FusedConv"}
CONVOLUTIONS = {*OUTPUTS_FIRST, "ConvTranspose"}


class LoRA(BaseEstimator):
    """Low-rank adaptation: ``W + alpha / rank * A B`` in the place of a weight W, which stays as it is.

    A of shape (n_inputs, rank) is drawn as other factors of products are, B of shape (rank, n_outputs) begins
    at zero: the first prediction is that of the file. The weight of a convolution is taken for the matrix of
    all that one of its outputs reads.

    Parameters
    ----------
    rank : int, default=8
        Columns of A, and rows of B.
    alpha : float, default=None
        Scale of the product, times the rank; the rank by default, for a scale of one.
    target : str or list of str, default=None
        Names or patterns of the weights that get an adapter, of their nodes, operators or layers, as
        ``weights_to_train`` takes them (``"MatMul"``, ``"*query*"``). By default all weights of matrix
        products and convolutions that are larger than their adapter would be.

    See Also
    --------
    ortlearn.OrtGradientOptimizer : Takes it as ``lora``, and writes the merged file or an adapter.

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

    def __init__(self, rank=8, *, alpha=None, target=None):
        self.rank = rank
        self.alpha = alpha
        self.target = target

    @property
    def scale(self) -> float:
        """Factor of the product of A and B."""
        return 1.0 if self.alpha is None else float(self.alpha) / self.rank

    def adapters(
        self, model: ModelProto, weights: Mapping[str, Weight], original_names: Mapping[str, str]
    ) -> list[Adapter]:
        """Return the adapters of the weights of a graph.

        Parameters
        ----------
        model : onnx.ModelProto
            Graph.
        weights : mapping of str to Weight
            Its weights.
        original_names : mapping of str to str
            Names that patterns may be of, too.

        Returns
        -------
        list of Adapter
            Adapters, in the order of the weights.

        Raises
        ------
        NoTrainableWeightError
            If no weight has room for an adapter, or if a pattern matches none.
        ConversionError
            If the rank is larger than a weight that a pattern matches has rows or columns.
        InvalidParameterError
            If a parameter is invalid.
        """
        self._validate_params()
        shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        known = [name for name, weight in weights.items() if _is_matrix(weight, shapes[name])]
        if self.target is None:
            chosen = [n for n in known if self.rank * sum(_matrix(shapes[n])) < math.prod(shapes[n])]
        else:
            chosen = _matched(self.target, known, weights, original_names)
            self._check_rank({original_names.get(name, name): shapes[name] for name in chosen})
        if not chosen:
            raise NoTrainableWeightError(
                "No weight of a matrix product or a convolution is larger than its adapter of rank "
                f"{self.rank} would be, among {_described(known, shapes, original_names)}: lower the rank, "
                "or train weights as they are (lora=None)."
            )
        turned = {name for node in all_nodes(model.graph) if _is_turned(node) for name in node.input}
        return [
            Adapter(name, f"{name}.lora_A", f"{name}.lora_B", self.scale, self.rank, name in turned)
            for name in chosen
        ]

    def _check_rank(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        small = {name: shape for name, shape in shapes.items() if self.rank > min(_matrix(shape))}
        if small:
            name, shape = min(small.items(), key=lambda item: min(_matrix(item[1])))
            raise ConversionError(
                f"LoRA: rank={self.rank} is more than weight {name!r} of shape {shape} has rows or columns, "
                f"{min(_matrix(shape))}: lower the rank, or leave it out of target={self.target!r}."
            )


@dataclass(frozen=True)
class Adapter:
    """What is added to a weight W: ``scale * A B``, transposed where W has its outputs first.

    Attributes
    ----------
    weight, a, b : str
        Names of W, A of shape (n_inputs, rank) and B of shape (rank, n_outputs).
    scale : float
        Factor.
    rank : int
        Columns of A.
    transposed : bool
        Whether the number of outputs comes first in the shape of W.
    """

    weight: str
    a: str
    b: str
    scale: float
    rank: int
    transposed: bool

    def shapes(self, shape: Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the shapes of A and B for a weight of some shape."""
        rows, columns = _matrix(shape)
        n_inputs, n_outputs = (columns, rows) if self.transposed else (rows, columns)
        return (n_inputs, self.rank), (self.rank, n_outputs)

    def merged(self, weight: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the weight with its adapter added; summed in float64, of the type of the weight."""
        product = self.scale * (a.astype(np.float64) @ b.astype(np.float64))
        product = product.T if self.transposed else product
        return (weight.astype(np.float64) + product.reshape(weight.shape)).astype(weight.dtype)


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    """Return the shape of a weight as a matrix."""
    return shape[0], math.prod(shape[1:])


def _is_matrix(weight: Weight, shape: Sequence[int]) -> bool:
    is_factor = weight.role == "weight" and weight.learned and min(shape, default=0) > 0
    return is_factor and (len(shape) == 2 or (len(shape) > 2 and {*weight.operators} <= CONVOLUTIONS))


def _is_turned(node: NodeProto) -> bool:
    return node.op_type in OUTPUTS_FIRST or bool(attribute(node, "transB", 0))


def _matched(
    target: str | Sequence[str],
    known: Collection[str],
    weights: Mapping[str, Weight],
    original_names: Mapping[str, str],
) -> list[str]:
    """Return the weights that some patterns match, each of them at least one."""
    found = set()
    for pattern in [target] if isinstance(target, str) else target:
        matched = set()
        for name in known:
            original = original_names.get(name, name)
            names = [*weights[name].names(original), *weights[name].places(original)]
            if any(matches_pattern(n, pattern) or n == pattern.strip("/") for n in names):
                matched.add(name)
        if not matched:
            shown = [f"{original_names.get(n, n)!r} ({', '.join(weights[n].nodes)})" for n in known]
            raise NoTrainableWeightError(
                f"LoRA: target={pattern!r} matches no weight of a matrix product or a convolution, nor its "
                f"node, operator or layer, among [{', '.join(shown)}]."
            )
        found |= matched
    return [name for name in known if name in found]


def _described(
    names: Collection[str], shapes: Mapping[str, tuple[int, ...]], original_names: Mapping[str, str]
) -> dict[str, tuple[int, ...]]:
    return {original_names.get(name, name): shapes[name] for name in names}


def with_adapters(
    model: ModelProto,
    adapters: Sequence[Adapter],
    shapes: Mapping[str, Sequence[int]],
    as_inputs: bool = False,
) -> ModelProto:
    """Return a graph with adapters, which are zero.

    A product x W by a matrix becomes ``x W + scale (x A) B``, so that no gradient of W is computed. Other
    weights, those of convolutions and those that several nodes read, become ``W + scale A B``.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph with the weights in its main graph.
    adapters : sequence of Adapter
        Adapters, under names that no tensor has.
    shapes : mapping of str to sequence of int
        Shapes of the weights.
    as_inputs : bool, default=False
        Whether A and B are inputs that need not be given, as adapters of onnxruntime are.

    Returns
    -------
    onnx.ModelProto
        Graph with more nodes, and the initializers A and B.
    """
    graph, own = model.graph, {adapter.weight: adapter for adapter in adapters}
    names = graph_names(graph) | {name for adapter in adapters for name in (adapter.a, adapter.b)}
    op = GraphBuilder(opset_versions(model).get("", 18), existing_names=names, prefix="lora_")
    types = _element_types(model, own)
    reads = [name for node in graph.node for name in (*node.input, *captured_names(node)) if name in own]
    renamed: dict[str, str] = {}
    for node in graph.node:
        read = sorted(node_inputs(node) & own.keys())
        if len(read) == 1 and reads.count(read[0]) == 1 and _is_product(node, own[read[0]], shapes[read[0]]):
            _write_product(op, node, own[read[0]], types[read[0]])
            continue
        for name in read:
            if name not in renamed:
                renamed[name] = _write_sum(op, own[name], shapes[name], types[name])
        op.nodes.append(renamed_node(node, {name: renamed[name] for name in read}))
    zeros = [
        numpy_helper.from_array(np.zeros(shape, types[adapter.weight]), name)
        for adapter in adapters
        for name, shape in zip((adapter.a, adapter.b), adapter.shapes(shapes[adapter.weight]), strict=True)
    ]
    infos = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in zeros if as_inputs]
    constants = [*graph.initializer, *zeros, *op.initializers]
    return with_fields(model, node=op.nodes, initializer=constants, input=[*graph.input, *infos])


def _element_types(model: ModelProto, names: Collection[str]) -> dict[str, Any]:
    """Return the types of weights, initializers or constants of the main graph."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] in names:
            tensors[node.output[0]] = attribute(node, "value")
    return {name: helper.tensor_dtype_to_np_dtype(tensors[name].data_type) for name in names}


def _is_product(node: NodeProto, adapter: Adapter, shape: Sequence[int]) -> bool:
    """Return whether a node computes x W of a matrix W, or x W' where it has its outputs first."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("Gemm", "MatMul") or len(shape) != 2:
        return False
    return node.input[1] == adapter.weight and bool(attribute(node, "transB", 0)) == adapter.transposed


def _write_product(op: GraphBuilder, node: NodeProto, adapter: Adapter, dtype: Any) -> None:
    """Write x W + scale (x A) B, and what else the node adds."""
    x, scale = node.input[0], adapter.scale * attribute(node, "alpha", 1.0)
    inner = op.MatMul(op.Transpose(x, perm=[1, 0]) if attribute(node, "transA", 0) else x, adapter.a)
    inner = inner if scale == 1.0 else op.Mul(inner, op.constant(np.asarray(scale, dtype)))
    own = copy_node(node, outputs=[op.unique("base")])
    op.nodes.append(own)
    op.Add(own.output[0], op.MatMul(inner, adapter.b), outputs=[node.output[0]])


def _write_sum(op: GraphBuilder, adapter: Adapter, shape: Sequence[int], dtype: Any) -> str:
    """Write W + scale A B, and return its name."""
    a, b = adapter.a, adapter.b
    if adapter.scale != 1.0:
        a = op.Mul(a, op.constant(np.asarray(adapter.scale, dtype)))
    if adapter.transposed:
        product = op.MatMul(op.Transpose(b, perm=[1, 0]), op.Transpose(a, perm=[1, 0]))
    else:
        product = op.MatMul(a, b)
    product = product if len(shape) == 2 else op.Reshape(product, list(shape))
    return op.Add(adapter.weight, product)

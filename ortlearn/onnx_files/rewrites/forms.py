"""Rewrite subgraphs of converters to equivalent ones with correct gradients."""

from functools import partial

import numpy as np
from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, replace_nodes
from ...graphs.nodes import attributes_of
from ...graphs.patterns import PatternView
from ...graphs.portable_nodes import portable_nodes
from ...models.formulas.distances import guarded_sqrt, reduced
from .scan_distances import rewrite_scan_distances
from .sequences import without_sequences

#: Patterns of sums of squares and powers, whose roots have infinite gradients at zero.
SUMS = (
    ("Max", "x", 0),  # squared distance, as a difference of products
    ("ReduceSumSquare", "x"),
    ("ReduceSum", ("Abs|Pow", "x")),
    ("ReduceSum", ("Mul", "x", "x")),
)


class _Graph(PatternView):
    between = ("Transpose", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Cast")

    def is_sum(self, name: str) -> bool:
        """Return whether a floating-point tensor is a sum of squares or of powers."""
        return self.is_float(name) and self.match_any(self.origin(name, self.between), SUMS) is not None


def rewrite_forms(model: ModelProto) -> ModelProto:
    """Return an equivalent model whose distances, roots and products have correct gradients."""
    model = rewrite_scan_distances(portable_nodes(without_sequences(model)))
    rules = {
        ("", "MatMul"): _matrix_product,
        ("", "Sqrt"): _square_root,
        ("", "Pow"): _root,
        ("", "Where"): _masked_softmax,
        ("com.microsoft", "Solve"): _solution,
    }
    graph = _Graph(model)
    return replace_nodes(model, {key: partial(rule, graph) for key, rule in rules.items()})


def _matrix_product(graph: _Graph, node: NodeProto, op: GraphBuilder) -> bool:
    """Replace a product with a vector on the right by a product with a column."""
    # onnxruntime's fusion of Transpose and MatMul with a vector is wrong, and its gradient builder assumes
    # matrices.
    left, right = node.input
    if len(op.shape(right) or ()) != 1:
        return False
    op.Squeeze(op.MatMul(left, op.Unsqueeze(right, [1])), [-1], outputs=[node.output[0]])
    return True


def _solution(graph: _Graph, node: NodeProto, op: GraphBuilder) -> bool:
    """Replace a linear system with a constant matrix (skl2onnx, Gaussian processes) by a product."""
    matrix, flags = graph.value(node.input[0]), attributes_of(node)
    if matrix is None or matrix.ndim != 2:
        return False
    full = np.tril(matrix) if flags.get("lower") else matrix
    full = full.T if flags.get("transposed") else full
    inverse = np.linalg.inv(full.astype(np.float64)).astype(matrix.dtype)
    op.MatMul(op.constant(inverse), node.input[1], outputs=[node.output[0]])
    return True


def _square_root(graph: _Graph, node: NodeProto, op: GraphBuilder) -> bool:
    """Replace a square root by one with gradient zero at zero, where it is 1e-19 in float32."""
    x = node.input[0]
    if not graph.is_sum(x):
        return False
    guarded_sqrt(op, x, op.dtype(x), outputs=[node.output[0]])
    return True


def _root(graph: _Graph, node: NodeProto, op: GraphBuilder) -> bool:
    """Replace another root by one with gradient zero at zero."""
    x, exponent = node.input
    value = graph.value(exponent)
    if value is None or value.size != 1 or not 0 < value.item() < 1 or not graph.is_sum(x):
        return False
    zero, one = (op.constant(number, op.dtype(x)) for number in (0.0, 1.0))
    is_zero = op.Equal(x, zero)
    root = op.Pow(op.Where(is_zero, one, x), exponent)
    op.Where(is_zero, zero, root, outputs=[node.output[0]])
    return True


def _masked_softmax(graph: _Graph, node: NodeProto, op: GraphBuilder) -> bool:
    """Replace a softmax by that of zeros in the rows whose result is replaced afterwards."""
    # The softmax of a completely masked row of attention is NaN, and would make all gradients NaN.
    condition, other, result = node.input
    softmax, known = graph.producer(result, "Softmax", passing=("Cast",)), op.type(result)
    if softmax is None or known is None or op.dtype(softmax.input[0]) is None:
        return False
    x, axis = softmax.input[0], attributes_of(softmax).get("axis", -1)
    sizes, rows = op.shape(condition), condition
    before, is_nan = graph.producer(x, "Where"), graph.producer(condition, "IsNaN")
    if is_nan is not None and graph.origin(is_nan.input[0], ("Cast",)) == softmax.output[0]:
        rows = op.IsInf(reduced(op, "ReduceMax", x, axis), detect_positive=0)
    elif axis != -1 or not sizes or sizes[-1] != 1 or (before and before.input[0] == condition):
        return False
    found = op.Softmax(op.Where(rows, op.constant(0.0, op.dtype(x)), x), axis=axis)
    if op.dtype(result) != op.dtype(x):
        found = op.Cast(found, to=known.elem_type)
    replaced = rows if rows == condition else op.Or(rows, op.IsNaN(found))
    op.Where(replaced, other, found, outputs=[node.output[0]])
    return True

"""Matrices of a training step, stored transposed where the products are faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from onnx import NodeProto, ValueInfoProto

from ...graphs.editing import with_fields
from ...graphs.nodes import attributes_of, copy_node
from ...graphs.queries import copy_value
from ...graphs.view import GraphView
from ..graphs.step_graphs import StepGraph

__all__ = ["Layout", "faster_layouts", "product_cost"]

#: Function of a step and fixed choices that returns the step in another layout, or None.
Layout = Callable[[StepGraph, Mapping[str, bool] | None], StepGraph | None]

ELEMENTWISE = set(
    "Abs Add Cast Ceil Clip Cos Div Elu Equal Erf Exp Floor Greater HardSigmoid Identity LeakyRelu Less "
    "Log Max Min Mul Neg Not Pow Reciprocal Relu Sigmoid Sign Sin Softplus Softsign Sqrt Sub Sum Tanh "
    "Where".split()
)
REDUCTIONS = set("ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare".split())
#: Group of the matrices that are never transposed.
AS_WRITTEN = ""
#: Number of groups up to which all combinations are compared.
MAX_GROUPS = 6


def product_cost(m: int, n: int, k: int, trans_a: bool, trans_b: bool, beta: float | None) -> float:
    """Return the estimated nanoseconds of a Gemm in float32 in onnxruntime on one core of a CPU.

    Fitted to 1,224 measured products of 20 shapes; half of the estimates differ by less than 5 %.
    """
    if beta in (None, 1.0) and ((m == 1 and not trans_a) or (n == 1 and (k == 1 or not trans_b))):
        return 236 + 0.046 * m * n * k + 0.22 * m * n  # a matrix times a vector
    width, depth = 128, 128  # of the panels of the second operand that are copied
    if n >= k:
        while depth >= 2 * k:
            width, depth = 2 * width, depth // 2
    else:
        while width > 16 and width >= 2 * n:
            width, depth = width // 2, 2 * depth
    columns = -(-n // 16) * 16
    cost = 265 + 0.113 * k * columns + 0.0091 * m * columns * k + 0.141 * m * n * -(-k // depth)
    if trans_a:  # copied again for each panel
        cost += 0.207 * m * k * -(-n // width)
    return cost + (0 if beta is None else 0.118 if beta in (0.0, 1.0) else 0.259) * m * n


@dataclass(frozen=True)
class _Product:
    """A product ``alpha a b + beta c``; ``trans`` says whether a and b are transposed."""

    a: str
    b: str
    c: str
    result: str
    sizes: tuple[int, int, int]
    trans: tuple[bool, bool]
    alpha: float = 1.0
    beta: float = 1.0

    def operands(self, a: bool, b: bool, result: bool) -> tuple[tuple[str, bool], tuple[str, bool]]:
        """Return the operands and whether to transpose them, given which matrices are stored transposed."""
        first, second = (self.a, self.trans[0] ^ a), (self.b, self.trans[1] ^ b)
        # (A B)^T = B^T A^T
        return ((second[0], not second[1]), (first[0], not first[1])) if result else (first, second)

    def cost(self, estimate: Callable[..., float], a: bool, b: bool, result: bool) -> float:
        """Return the estimated nanoseconds."""
        (_, trans_a), (_, trans_b) = self.operands(a, b, result)
        m, n, k = self.sizes
        beta = self.beta if self.c and self.alpha == 1.0 else 0.5 if self.c else None
        return estimate(n if result else m, m if result else n, k, trans_a, trans_b, beta)


class _Groups:
    """Matrices that are stored alike, since nodes combine their elements."""

    def __init__(self, graph: GraphView, step: StepGraph):
        self.graph = graph
        self.products: dict[str, _Product] = {}
        self._parents: dict[str, str] = {}
        carried = {item.source for item in step.carried} | {item.result for item in step.carried}
        for item in step.carried:
            self._join(self._matrices((item.source, item.result)))
        ends = [value.name for value in (*graph.graph.input, *graph.graph.output)]
        self._join([AS_WRITTEN, *self._matrices(name for name in ends if name not in carried)])
        self._join([AS_WRITTEN, *self._matrices(graph.captured)])
        for node in graph.nodes:
            self._add(node)

    def of(self, name: str) -> str:
        """Return the group of a tensor; constants and tensors of other ranks are stored as written."""
        return self._root(name) if name in self._parents else AS_WRITTEN

    def _root(self, name: str) -> str:
        while self._parents.setdefault(name, name) != name:
            name = self._parents[name]
        return name

    def _join(self, names: Sequence[str]) -> None:
        roots = {self._root(name) for name in names}
        first = AS_WRITTEN if AS_WRITTEN in roots else min(roots, default="")
        self._parents.update(dict.fromkeys(roots, first))

    def _matrices(self, names: Iterable[str]) -> list[str]:
        """Return the tensors that are not constant, of two dimensions or unknown ones, once each."""
        return [n for n in dict.fromkeys(names) if n and self._rank(n) in (2, None) and not self._is_fixed(n)]

    def _rank(self, name: str) -> int | None:
        shape = self.graph.op.shape(name)
        return None if shape is None else len(shape)

    def _is_fixed(self, name: str) -> bool:
        """Return whether a tensor is constant, or has a single element."""
        return self.graph.is_single(name) or self.graph.value(name) is not None

    def _add(self, node: NodeProto) -> None:
        matrices = self._matrices((*node.input, *node.output))
        if node.domain in ("", "ai.onnx"):
            if node.op_type in ("Gemm", "MatMul"):
                found = _product(self.graph, node)
                if found is not None:
                    self.products[node.output[0]] = found
                    self._join([n for n in matrices if n in (found.c, found.result)])
                    return
            if node.op_type in ELEMENTWISE and all(self._fits(name) for name in node.input):
                self._join(matrices)
                return
            if node.op_type in REDUCTIONS and _axes(self.graph, node) is not None:
                self._join(matrices)
                return
        self._join([AS_WRITTEN, *matrices])

    def _fits(self, name: str) -> bool:
        """Return whether an operand is a matrix of known size or has one element."""
        sizes = self.graph.sizes(name) if name else ()
        return sizes is not None and (len(sizes) == 2 or np.prod(sizes, dtype=int) == 1)


def _product(graph: GraphView, node: NodeProto) -> _Product | None:
    """Return a product of matrices of known size."""
    a, b, c = (*node.input, "")[:3]
    shapes = [graph.sizes(name) for name in (a, b, node.output[0])]
    if any(sizes is None or len(sizes) != 2 for sizes in shapes) or not graph.is_float(a):
        return None
    if c and graph.sizes(c) is None:
        return None
    found = attributes_of(node)
    trans = bool(found.get("transA", 0)), bool(found.get("transB", 0))
    sizes = *shapes[2], shapes[0][0 if trans[0] else 1]  # type: ignore[index, misc]
    return _Product(a, b, c, node.output[0], sizes, trans, found.get("alpha", 1.0), found.get("beta", 1.0))


def _axes(graph: GraphView, node: NodeProto) -> list[int] | None:
    """Return the axes of a reduction of a matrix, empty for all; None if they are unknown."""
    sizes = graph.sizes(node.input[0])
    if sizes is None or len(sizes) != 2 or "axes" in attributes_of(node):
        return None
    if len(node.input) < 2 or not node.input[1]:
        return []
    value = graph.value(node.input[1])
    return None if value is None else [int(axis) % 2 for axis in value]


def faster_layouts(
    step: StepGraph, fixed: Mapping[str, bool] | None = None, cost: Callable[..., float] = product_cost
) -> StepGraph | None:
    """Return a step with the matrices stored transposed that make its products faster.

    Matrices combined by elementwise operators, and a weight with its states, form a group that is stored
    transposed or not. The choice has the smallest estimated time, ``cost``, with the given choice
    for ``fixed`` weights and states. None if these transpose a matrix that is needed as written.
    """
    shapes = {value.name: len(value.type.tensor_type.shape.dim) for value in step.model.graph.input}
    if fixed is None and not any(shapes[item.source] == 2 for item in step.carried):
        return step
    graph = GraphView(step.model, prefix="layout_")
    groups = _Groups(graph, step)
    given = {AS_WRITTEN: False}
    for name, is_transposed in (fixed or {}).items():
        if given.setdefault(groups.of(name), is_transposed) != is_transposed:
            return None
    chosen = _fastest(groups, given, cost)
    transposed = {group for group, is_transposed in chosen.items() if is_transposed}
    if not transposed:
        return step
    return _written(step, graph, groups, lambda name: groups.of(name) in transposed)


def _fastest(groups: _Groups, given: Mapping[str, bool], cost: Callable[..., float]) -> dict[str, bool]:
    """Return whether each group is stored transposed, for the smallest sum of estimated times."""
    terms = []
    for item in groups.products.values():
        own = tuple(groups.of(name) for name in (item.a, item.b, item.result))
        terms.append((own, {bits: item.cost(cost, *bits) for bits in product((False, True), repeat=3)}))
    free = [name for name in dict.fromkeys(n for own, _ in terms for n in own) if name not in given]
    chosen = {**given, **dict.fromkeys(free, False)}

    def total(changed: Mapping[str, bool]) -> float:
        bits = {**chosen, **changed}
        return sum(costs[bits[own[0]], bits[own[1]], bits[own[2]]] for own, costs in terms)

    if len(free) <= MAX_GROUPS:
        combinations = product((False, True), repeat=len(free))
        candidates: list[Mapping[str, bool]] = [dict(zip(free, bits, strict=True)) for bits in combinations]
        best = min(candidates, key=total)
        return {**chosen, **best}
    steps = [{n for n in own if n not in given} for own, _ in terms] + [{name} for name in free]
    improved = True
    while improved:
        improved = False
        for step in steps:
            changed = {name: not chosen[name] for name in step}
            if total(changed) < total({}) - 1e-6:
                chosen.update(changed)
                improved = True
    return chosen


def _written(
    step: StepGraph, graph: GraphView, groups: _Groups, is_transposed: Callable[[str], bool]
) -> StepGraph:
    graph.rewrite(partial(_rewrite, graph, groups, is_transposed))
    model = graph.to_model()
    inputs, outputs = (
        [_swapped(value) if is_transposed(value.name) else value for value in values]
        for values in (model.graph.input, model.graph.output)
    )
    known = [value for value in model.graph.value_info if not is_transposed(value.name)]
    carried = [replace(item, transposed=is_transposed(item.source)) for item in step.carried]
    return replace(
        step, model=with_fields(model, input=inputs, output=outputs, value_info=known), carried=carried
    )


def _rewrite(
    graph: GraphView, groups: _Groups, is_transposed: Callable[[str], bool], node: NodeProto
) -> bool:
    item, op = groups.products.get(node.output[0]), graph.op
    if item is not None:
        stored = tuple(map(is_transposed, (item.a, item.b, item.result)))
        if not any(stored):
            return False
        (a, trans_a), (b, trans_b) = item.operands(*stored)
        c = _third(graph, item.c) if stored[2] else item.c
        op.Gemm(
            *([a, b, c] if c else [a, b]),
            outputs=node.output,
            alpha=item.alpha,
            beta=item.beta,
            transA=int(trans_a),
            transB=int(trans_b),
        )
        return True
    names = [name for name in (*node.input, *node.output) if name and is_transposed(name)]
    if not names:
        return False
    if node.op_type in REDUCTIONS:
        axes = _axes(graph, node)
        if not axes:
            return False
        flipped = op.constant(np.array([1 - axis for axis in axes], dtype=np.int64))
        op.nodes.append(copy_node(node, [node.input[0], flipped]))
        return True
    inputs = [_constant(graph, name) for name in node.input]
    if inputs == list(node.input):
        return False
    op.nodes.append(copy_node(node, inputs))
    return True


def _third(graph: GraphView, name: str) -> str:
    """Return the third operand of a product whose result is stored transposed."""
    value, sizes = graph.value(name) if name else None, graph.sizes(name) if name else None
    if value is not None and value.size > 1:
        return graph.op.constant(np.atleast_2d(value).T.copy())
    return graph.op.Unsqueeze(name, np.array([1])) if sizes is not None and len(sizes) == 1 else name


def _constant(graph: GraphView, name: str) -> str:
    """Return a constant matrix transposed, and other operands as they are."""
    value = graph.value(name) if name else None
    return name if value is None or value.ndim != 2 or value.size == 1 else graph.op.constant(value.T.copy())


def _swapped(value: ValueInfoProto) -> ValueInfoProto:
    """Return the information of a matrix that is stored transposed."""
    copied = copy_value(value)
    first, second = copied.type.tensor_type.shape.dim
    first.dim_value, second.dim_value = second.dim_value, first.dim_value
    return copied

"""Which initializers are learned weights: decided by what the graph does with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto

from ...graphs import node_inputs, subgraphs
from .weight_names import get_train_initializer

__all__ = ["CONSTANT", "Weight", "find_weights"]

#: Operators that multiply by a weight, and the positions of their weights and of their intercept.
LINEAR = {
    "MatMul": ((0, 1), None),
    "Gemm": ((0, 1), 2),
    "Conv": ((1,), 2),
    "ConvTranspose": ((1,), 2),
}
#: Operators that read rows of their first input under the numbers in the second.
TABLES = {("", "Gather"), ("", "GatherElements"), ("", "GatherND"), ("ai.onnx.ml", "ArrayFeatureExtractor")}
#: Operators that only pass values on between a product and the sum with its intercept.
PASSING = {"Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}
#: Why a number of a formula is not trained.
CONSTANT = "constant of a formula"
#: A name in brackets, and what it is looked up in: nothing for a pipeline or a union.
STEP = re.compile(r"(\w*)\['([^']*)'\]")


@dataclass(frozen=True)
class Weight:
    """A floating-point initializer and what the graph does with it.

    Attributes
    ----------
    name : str
        Name of the initializer.
    role : {"weight", "intercept", "scale", "table", "other"}
        A factor of a product, what is added to one, a factor or divisor, a table whose rows are
        looked up, or something else.
    learned : bool
        Whether it is trained unless told otherwise.
    fans : tuple of int
        Numbers of inputs and outputs of a product's weight, (1, 1) for others.
    attribute : str or None
        Expression of the fitted attribute it holds, ``coef_`` or ``estimators_[3].tree_.value``, from
        the step on; None where it is not known.
    step : str or None
        Step of the pipeline it belongs to; None where there is none, or where it is not known.
    drawn : bool
        Whether a training from fresh weights draws it anew, rather than start from its value.
    reason : str
        Why it is not trained unless told otherwise; empty where it is, or where the graph alone tells.
    form : str
        What the converter made of the attribute, ``{}`` in its place: ``"log({})"``, ``"1 / {}"``.
    """

    name: str
    role: str
    learned: bool
    fans: tuple[int, int] = (1, 1)
    attribute: str | None = None
    step: str | None = None
    drawn: bool = True
    reason: str = ""
    form: str = "{}"

    @property
    def expression(self) -> str | None:
        """What it holds of the attribute: ``coef_``, ``log(weights_)``; None where it is not known."""
        return None if self.attribute is None else self.form.format(self.attribute)

    @property
    def origin(self) -> str:
        """Where the weight comes from, ``"ridge: coef_"``; empty where it is not known."""
        return ": ".join(part for part in (self.step, self.expression) if part)

    @property
    def steps(self) -> list[str]:
        """Names of the steps it is part of, one in another joined by ``__`` as in ``set_params``."""
        inner = STEP.findall(self.attribute or "")
        chain = [self.step] if self.step else []
        chain += [name for owner, name in inner if owner in ("", "named_transformers_")]
        return ["__".join(chain[i:j]) for i in range(len(chain)) for j in range(i + 1, len(chain) + 1)]

    def names(self, original: str) -> list[str]:
        """Return what the weight may be called in ``weights_to_train``, given its original name.

        Parameters
        ----------
        original : str
            Name of the initializer in the graph as it came.

        Returns
        -------
        list of str
            Names, the stable one first.
        """
        named = [self.name, original, self.attribute, self.expression]
        if self.step is not None and self.attribute is not None:
            named += [f"{self.step}.{self.attribute}", f"{self.step}.{self.expression}", self.origin]
        return [name for name in named if name]


def find_weights(model: ModelProto, frozen: Iterable[str] = ()) -> dict[str, Weight]:
    """Return the floating-point initializers of a graph with their roles.

    Learned weights are the operands of MatMul, Gemm and convolutions, what is added to their
    results, and tables whose rows are looked up under computed numbers. Parameters of preprocessing
    (a mean subtracted, a scale divided by) and constants of formulas are not. A graph without any of
    these learns what is added to or multiplied with its values, scalars excepted.

    Parameters
    ----------
    model : onnx.ModelProto
        Model without fused operators.
    frozen : iterable of str, default=()
        Initializers known to belong to preprocessing.

    Returns
    -------
    dict of str to Weight
        Weights by name, in the graph's order.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import find_weights
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y)
    ...     <float[2] mean = {0, 1}, float[2,1] coef = {2, 3}, float[1] intercept = {1}>
    ...     { c = Sub (x, mean) z = MatMul (c, coef) y = Add (z, intercept) }''')
    >>> [weight.name for weight in find_weights(model).values() if weight.learned]
    ['coef', 'intercept']
    """
    arrays = {name: array for name, (array, _) in get_train_initializer(model).items()}
    nodes = list(_all_nodes(model.graph))
    producers = {name: node for node in nodes for name in node.output}
    constants = _constants(model)
    frozen = set(frozen)
    readers: dict[str, tuple[NodeProto, int]] = {}
    for node in nodes:
        for position, name in enumerate(node.input):
            readers.setdefault(name, (node, position))
    found = {
        name: _role(name, *_final_reader(name, readers, constants), arrays[name], producers, constants)
        for name in arrays
        if name in readers
    }
    if not any(weight.learned and weight.name not in frozen for weight in found.values()):
        found = {
            name: replace(w, learned=w.role in ("intercept", "scale") and arrays[name].ndim > 0)
            for name, w in found.items()
        }
    return {name: replace(w, learned=w.learned and name not in frozen) for name, w in found.items()}


def _constants(model: ModelProto) -> set[str]:
    """Return the tensors that depend on no input."""
    inputs = {value.name for value in model.graph.input}
    constants = {tensor.name for tensor in model.graph.initializer} - inputs
    for node in model.graph.node:
        if node_inputs(node) <= constants:
            constants.update(node.output)
    return constants


def _all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph and of its subgraphs."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from _all_nodes(inner)


def _final_reader(
    name: str, readers: dict[str, tuple[NodeProto, int]], constants: set[str]
) -> tuple[NodeProto, int]:
    """Return the first node that computes with an initializer: what only passes it on does not count.

    Neither does what shifts, scales or cuts it before an input comes in.
    """
    node, position = readers[name]
    while position == 0 and node.output[0] in readers:
        if node.op_type not in PASSING | {"Transpose"} and node.output[0] not in constants:
            break
        node, position = readers[node.output[0]]
    return node, position


def _role(
    name: str,
    node: NodeProto,
    position: int,
    array: np.ndarray,
    producers: dict[str, NodeProto],
    constants: set[str],
) -> Weight:
    if (node.domain, node.op_type) in TABLES and position == 0:
        looked_up = array.ndim > 0 and array.size > 1 and node.input[1] not in constants
        return Weight(name, "table", looked_up, drawn=False)
    if node.op_type in LINEAR and node.domain == "":
        factors, intercept = LINEAR[node.op_type]
        if position == intercept:
            return Weight(name, "intercept", True)
        return Weight(name, "weight", position in factors, _fans(node, array))
    if node.op_type in ("Add", "Sub") and len(node.input) == 2:
        other = producers.get(node.input[1 - position])
        while other is not None and other.op_type in PASSING:
            other = producers.get(other.input[0])
        return Weight(name, "intercept", other is not None and other.op_type in LINEAR)
    if node.op_type in ("Mul", "Div"):
        return Weight(name, "scale", False)
    return Weight(name, "other", False)


def _fans(node: NodeProto, array: np.ndarray) -> tuple[int, int]:
    if array.ndim < 2:
        return max(array.size, 1), 1
    if node.op_type in ("Conv", "ConvTranspose"):
        field = int(np.prod(array.shape[2:]))
        return array.shape[1] * field, array.shape[0] * field
    if node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute):
        return array.shape[1], array.shape[0]
    return array.shape[-2], array.shape[-1]

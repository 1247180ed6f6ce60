"""Parameters that a converter stores in several initializers -> one initializer that feeds them all.

skl2onnx writes the centres of KMeans and their squared norms, the variances of a naive Bayes model
and the logarithm of their product, and so on, as separate constants. Trained one by one they would
not belong together any more. Here each is computed in the graph from the attribute itself, which
becomes an initializer of its own, named and shaped as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from ...graphs import GraphBuilder, append_nodes, graph_names, initializer_arrays, opset_versions, prune
from ..weights.fitted_attributes import known_class, trained_members
from ..weights.number_index import evidence
from .tied_formulas import FORMULAS, Formula

__all__ = ["tie_parameters"]

#: Sums and logarithms of float32 numbers are compared to this, relative to the largest.
TOLERANCE = 1e-5


def tie_parameters(model: ModelProto, estimator: Any) -> tuple[ModelProto, list[str]]:
    """Compute initializers that follow from one attribute of an estimator from that attribute.

    Parameters
    ----------
    model : onnx.ModelProto
        Converted estimator.
    estimator : estimator
        Fitted estimator or pipeline; only what is trained of it is looked at.

    Returns
    -------
    model : onnx.ModelProto
        Model that computes the same; the very model where there is nothing to tie.
    loose : list of str
        Initializers that follow from an attribute while others that do were not found: trained, they
        would contradict the others.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from ortlearn.conversion import sklearn_to_onnx
    >>> from ortlearn.conversion.constraints.ties import tie_parameters
    >>> estimator = KMeans(2, random_state=0).fit([[0.1, 0.2], [0.3, 0.1], [2.3, 1.7], [2.1, 1.9]])
    >>> tied, loose = tie_parameters(sklearn_to_onnx(estimator, 2), estimator)
    >>> [tensor.name for tensor in tied.graph.initializer if tensor.name.endswith("_")], loose
    (['cluster_centers_'], [])
    """
    members = trained_members(estimator, FORMULAS)
    if not members:
        return model, []
    arrays = {n: a for n, a in initializer_arrays(model).items() if a.dtype.kind == "f" and a.size}
    op = GraphBuilder(opset_versions(model).get("", 18), existing_names=graph_names(model.graph))
    loose: list[str] = []
    for member in members:
        formulas = FORMULAS[known_class(member)](member)
        values = [_value_of(formula, member) for formula in formulas]
        found = list(zip(formulas, _holders(values, arrays), strict=True))
        names = [name for _, holders in found for name in holders]
        if len(found) > 1 and all(holders for _, holders in found):
            _write(op, member, found, arrays)
            arrays = {name: array for name, array in arrays.items() if name not in names}
        else:
            loose += names
    return (_replaced(model, op) if op.nodes else model), loose


def _value_of(formula: Formula, member: Any) -> np.ndarray:
    return _value(formula, [np.asarray(getattr(member, name), np.float64) for name in formula.attributes])


def _holders(values: list[np.ndarray], arrays: Mapping[str, np.ndarray]) -> list[list[str]]:
    """Return the initializers that hold each of some values, the nearest one where several are near."""
    held: list[list[str]] = [[] for _ in values]
    for name, array in arrays.items():
        near = [number for number, value in enumerate(values) if _is_near(array, value)]
        if near:
            held[min(near, key=lambda number: _apart(array, values[number]))].append(name)
    return held


def _is_near(array: np.ndarray, value: np.ndarray) -> bool:
    scale = TOLERANCE * max(np.abs(value).max(), 1e-30)
    return (
        array.size == value.size
        and (evidence(array) > 0 or len(np.unique(array)) > 1)
        and np.allclose(array.ravel(), value.ravel(), rtol=TOLERANCE, atol=scale)
    )


def _apart(array: np.ndarray, value: np.ndarray) -> float:
    """Return the mean relative difference: small numbers of an array count as much as its largest."""
    wide, value = np.asarray(array, np.float64).ravel(), value.ravel()
    return float(np.mean(np.abs(wide - value) / np.maximum(np.abs(wide) + np.abs(value), 1e-300)))


def _value(formula: Formula, values: list[np.ndarray]) -> np.ndarray:
    """Return the value of a formula, computed by its own nodes in float64."""
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" for i in range(len(values))]
    op = GraphBuilder(dtype=np.float64, existing_names=names)
    result = formula.write(op, *names)
    tensors = [numpy_helper.from_array(value, name) for name, value in zip(names, values, strict=True)]
    output = helper.make_empty_tensor_value_info(result)
    graph = helper.make_graph(op.nodes, "formula", [], [output], [*tensors, *op.initializers])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", op.opset)])
    outputs = list(ReferenceEvaluator(model).run(None, {}))
    return np.asarray(outputs[0])


def _write(
    op: GraphBuilder, member: Any, found: list[tuple[Formula, list[str]]], arrays: Mapping[str, np.ndarray]
) -> None:
    """Append the attributes of an estimator as initializers, and the nodes that compute from them."""
    dtype = arrays[found[0][1][0]].dtype
    op.float_dtype = dtype
    names = {}
    for attribute in sorted({name for formula, _ in found for name in formula.attributes}):
        name = attribute if op.claim(attribute) else op.unique(attribute)
        values = np.ascontiguousarray(getattr(member, attribute), dtype=dtype)
        op.initializers.append(numpy_helper.from_array(values, name))
        names[attribute] = name
    for formula, holders in found:
        result = formula.write(op, *(names[attribute] for attribute in formula.attributes))
        for holder in holders:
            shape = np.array(arrays[holder].shape, dtype=np.int64)
            op.node("Reshape", result, shape, outputs=[holder])


def _replaced(model: ModelProto, op: GraphBuilder) -> ModelProto:
    """Return the model with computed tensors in the place of initializers of the same names."""
    computed = {name for node in op.nodes for name in node.output}
    result = append_nodes(model, op, first=True)
    kept = [tensor for tensor in result.graph.initializer if tensor.name not in computed]
    del result.graph.initializer[:]
    result.graph.initializer.extend(kept)
    return prune(result)

"""Fused operators that replace parts of a trained graph for inference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, helper, numpy_helper

from ..graphs import GraphBuilder, graph_names, node_inputs, opset_versions
from ..graphs.editing import with_fields
from ..graphs.external_tensors import tensor_array
from ..graphs.nodes import needed_nodes
from ..graphs.view import GraphView

ML, ML_OPSET = "ai.onnx.ml", 3  # domain and version of the operators


class FusedForm:
    """A part of a graph that a fused operator can replace for inference, with the same tensor names."""

    def apply(self, graph: FusedGraph) -> None:
        """Replace the part by the fused operator, if it applies."""
        raise NotImplementedError

    def by_sample(self) -> FusedForm | None:
        """Return the form whose result for a sample does not depend on other samples, or None."""
        return self


def add_array(node: NodeProto, name: str, values: np.ndarray) -> None:
    """Add an array as an attribute of a node, float64 as a tensor; onnx.helper would check every element.

    Lists are read from their encoding, whose fields 7 to 9 are packed floats, packed ints and strings
    (``onnx.proto``): elements that are added one by one take seconds for a large forest.
    """
    if values.dtype == np.float64:
        node.attribute.append(helper.make_attribute(f"{name}_as_tensor", numpy_helper.from_array(values)))
        return
    kinds = {"f": AttributeProto.FLOATS, "S": AttributeProto.STRINGS}
    kind = values.dtype.kind
    added = node.attribute.add(name=name, type=kinds.get(kind, AttributeProto.INTS))
    if kind == "S":
        added.MergeFromString(_strings(values))
    elif kind == "f":
        packed = values.astype("<f4").tobytes()
        added.MergeFromString(b"\x3a" + _varints(len(packed)) + packed)
    elif values.size and (values.min() < 0 or values.max() >= 2**28):
        added.ints.extend(values.tolist())
    else:
        packed = _varints(values)
        added.MergeFromString(b"\x42" + _varints(len(packed)) + packed)


def _strings(values: np.ndarray) -> bytes:
    """Return the encoding of short texts: the tag, the length, and the text without padding."""
    texts = values.view(np.uint8).reshape(len(values), -1)
    encoded = np.full((len(texts), 2 + texts.shape[1]), 0x4A, dtype=np.uint8)
    encoded[:, 1], encoded[:, 2:] = np.count_nonzero(texts, axis=1), texts
    return encoded.tobytes().replace(b"\0", b"")


def _varints(values: Any) -> bytes:
    """Return integers below 2^28 as varints of 1, 2 or 4 bytes: seven bits each, and one if more follow."""
    own = np.asarray(values, dtype=np.uint32)
    most = own.max(initial=0)
    if most < 2**7:
        return own.astype(np.uint8).tobytes()
    if most < 2**14:
        return (own & 0x7F | 0x80 | own >> 7 << 8).astype("<u2").tobytes()
    parts = ((own >> 7 * i & 0x7F) << 8 * i for i in range(4))
    return (sum(parts, np.uint32(0x808080))).astype("<u4").tobytes()


class FusedGraph:
    """A graph for inference, in which fused operators replace tensors one after the other.

    What computes and what reads a tensor is known, so that a replacement does not search the whole graph. The
    model itself is not changed.
    """

    def __init__(self, model: ModelProto):
        self._model, outputs = model, [value.name for value in model.graph.output]
        self._names = graph_names(model.graph)
        self._nodes: dict[tuple[int, ...], NodeProto] = {}  # by keys, which sort them
        self._producers: dict[str, tuple[int, ...]] = {}
        self._readers = Counter(outputs)
        for number, node in enumerate(needed_nodes(model.graph.node, outputs)):
            self._add((number,), node)
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._is_changed = False

    def computes(self, tensor: str, without: Iterable[str] = ()) -> bool:
        """Return whether a node outputs a tensor, also if nothing computes some others that may need it."""
        key = self._producers.get(tensor)
        return key is not None and key not in self._unneeded(self._producers[name] for name in without)

    def arrays(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the values of initializers by name."""
        return {name: tensor_array(self._initializers[name]) for name in names if name}

    def replace(self, tensors: Iterable[str], write: Callable[[GraphBuilder], None]) -> None:
        """Replace the nodes of some tensors by those that ``write`` appends."""
        op = GraphBuilder(opset_versions(self._model).get("", 18), existing_names=self._names)
        write(op)
        old = {self._producers[name] for name in tensors if name in self._producers}
        keys = [(*min(old), number) for number in range(len(op.nodes))]
        for key, node in zip(keys, op.nodes, strict=True):
            self._add(key, node)
            self._names.update((*node.input, *node.output, node.name))
        self._initializers |= {tensor.name: tensor for tensor in op.initializers}
        unread = (key for key in keys if not any(self._readers[name] for name in self._nodes[key].output))
        for key in self._unneeded([*old, *unread]):
            node = self._nodes.pop(key)
            self._readers.subtract(node_inputs(node))
            for name in node.output:
                if self._producers.get(name) == key:
                    del self._producers[name]
        self._is_changed = True

    def to_model(self) -> ModelProto:
        """Return the model with the current nodes; the same model if nothing was replaced."""
        if not self._is_changed:
            return self._model
        nodes = [self._nodes[key] for key in sorted(self._nodes)]
        read = [tensor for name, tensor in self._initializers.items() if self._readers[name]]
        return with_fields(self._model, {ML: ML_OPSET}, node=nodes, initializer=read)

    def _add(self, key: tuple[int, ...], node: NodeProto) -> None:
        """Add a node, which replaces others that output the same tensors."""
        self._nodes[key] = node
        self._producers |= {name: key for name in node.output if name}
        self._readers.update(node_inputs(node))

    def _unneeded(self, keys: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
        """Return some nodes, and those that only they need."""
        found, read = set(keys), Counter[str]()
        waiting = list(found)
        while waiting:
            for name in node_inputs(self._nodes[waiting.pop()]):
                read[name] += 1
                key = self._producers.get(name)
                if key is None or key in found:
                    continue
                if all(read[own] == self._readers[own] for own in self._nodes[key].output):
                    found.add(key)
                    waiting.append(key)
        return found


def fuse(model: ModelProto, forms: Iterable[FusedForm]) -> ModelProto:
    """Return a model for inference with the fused operators that definitions declared."""
    graph = FusedGraph(model)
    for form in reversed(tuple(forms)):  # later forms may include earlier ones
        form.apply(graph)
    return _without_copies(graph.to_model())


def _without_copies(model: ModelProto) -> ModelProto:
    """Return the model without Identity nodes at outputs, some of which onnxruntime executes."""
    view, names = GraphView(model), dict[str, str]()
    for node in view.nodes:
        if (node.domain, node.op_type) != ("", "Identity") or node.output[0] not in view.outputs:
            continue
        source = node.input[0]
        if source in view.producers and source not in view.outputs and source not in names:
            names[source] = node.output[0]
    view.rename(names)
    return with_fields(model, node=view.nodes) if names else model


@dataclass(frozen=True)
class FusedLinear(FusedForm):
    """Linear float32 scores by LinearRegressor, with coefficients divided by the scale of the features."""

    samples: str  # tensor of shape (n, n_features), before the division
    scale: str  # initializer of shape (n_features,) or (1,); empty if not scaled
    scores: str  # tensor of shape (n, k)
    coef: str  # initializer of shape (n_features, k)
    intercept: str = ""  # initializer of shape (k,)

    def by_sample(self) -> None:
        """Return None, as the rounding of products depends on the number of samples."""

    def rows(self, graph: FusedGraph) -> np.ndarray | None:
        """Return coefficients and intercepts, of shape (k, n_features + 1), or None if not in float32."""
        arrays = graph.arrays((self.coef, self.intercept, self.scale))
        coef = arrays[self.coef]
        if coef.dtype != np.float32:
            return None
        if self.scale:
            with np.errstate(all="ignore"):
                scaled = coef / arrays[self.scale].reshape(-1, 1)
            if not np.isfinite(scaled).all() or np.any(np.abs(scaled[coef != 0]) < np.finfo(coef.dtype).tiny):
                return None  # overflow or underflow in float32
            coef = scaled
        zeros = np.zeros(coef.shape[1], dtype=coef.dtype)
        intercept = arrays[self.intercept] if self.intercept else zeros
        return np.column_stack([coef.T, np.broadcast_to(intercept, zeros.shape)])

    def apply(self, graph: FusedGraph) -> None:
        rows = self.rows(graph) if graph.computes(self.scores) else None
        if rows is None:
            return

        def write(op: GraphBuilder) -> None:
            options: Any = {"domain": ML, "outputs": [self.scores], "targets": len(rows)}
            op.node("LinearRegressor", self.samples, **options)
            _add_coefficients(op, rows)

        graph.replace([self.scores], write)


@dataclass(frozen=True)
class FusedClasses(FusedForm):
    """Classes and probabilities of float32 scores, or of linear models, by LinearClassifier."""

    scores: str  # raw scores, of shape (n, 1) for two classes, (n, k) for more
    label: str  # predicted classes; empty if not computed
    classes: np.ndarray  # of shape (k,), int64 or text
    probabilities: str = ""  # sigmoid for two classes, softmax for more
    linear: FusedLinear | None = None  # form of the scores

    def by_sample(self) -> FusedClasses:
        """Return the form without the linear scores."""
        return replace(self, linear=None)

    def apply(self, graph: FusedGraph) -> None:
        wanted = [name for name in (self.label, self.probabilities) if name and graph.computes(name)]
        binary = len(self.classes) == 2
        if not wanted or (not binary and self.label not in wanted):
            return
        if self.linear is not None:
            rows = self.linear.rows(graph)
            if rows is None:
                return
            if not graph.computes(self.scores, without=wanted):
                rows = np.vstack([-rows, rows]) if binary else rows
                self._replace(graph, wanted, self.linear.samples, rows)
                return
        # the scores are used elsewhere; for more than two classes, standard operators are as fast
        if binary:
            self._replace(graph, wanted, self.scores, np.array([[-1, 0], [1, 0]], dtype=np.float32))

    def _replace(self, graph: FusedGraph, wanted: list[str], samples: str, rows: np.ndarray) -> None:
        def write(op: GraphBuilder) -> None:
            labels = "classlabels_strings" if self.classes.dtype.kind in "OUS" else "classlabels_ints"
            has_probabilities = self.probabilities in wanted
            link = ("LOGISTIC" if len(rows) == 2 else "SOFTMAX") if has_probabilities else "NONE"
            label = self.label if self.label in wanted else op.unique("label")
            outputs = [label, self.probabilities if has_probabilities else op.unique("scores")]
            options: Any = {"domain": ML, "outputs": outputs, "multi_class": 0, "post_transform": link}
            op.node("LinearClassifier", samples, **options, **{labels: self.classes.tolist()})
            _add_coefficients(op, rows)

        graph.replace(wanted, write)


def _add_coefficients(op: GraphBuilder, rows: np.ndarray) -> None:
    """Add coefficients and intercepts to the last node as attributes."""
    add_array(op.nodes[-1], "coefficients", rows[:, :-1].ravel())
    add_array(op.nodes[-1], "intercepts", rows[:, -1])

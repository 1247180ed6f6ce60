"""Fused operators that replace parts of a trained graph for inference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, helper, numpy_helper

from ..graphs import GraphBuilder, graph_names, initializer_arrays, node_inputs, opset_versions
from ..graphs.editing import with_fields
from ..graphs.nodes import needed_nodes
from ..graphs.view import GraphView

ML, ML_OPSET = "ai.onnx.ml", 3  # domain and version of the operators


class FusedForm:
    """A part of a graph that a fused operator can replace for inference, with the same tensor names."""

    def apply(self, model: ModelProto) -> ModelProto:
        """Return a model for inference with the fused operator, or the same model if it does not apply."""
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


def computes(model: ModelProto, tensor: str) -> bool:
    """Return whether a node of the main graph outputs a tensor."""
    return any(tensor in node.output for node in model.graph.node)


def fuse(model: ModelProto, forms: Iterable[FusedForm]) -> ModelProto:
    """Return a model for inference with the fused operators that definitions declared."""
    for form in reversed(tuple(forms)):  # later forms may include earlier ones
        model = form.apply(model)
    return _without_copies(model)


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


def replace_tensors(
    model: ModelProto, tensors: Sequence[str], write: Callable[[GraphBuilder], None]
) -> ModelProto:
    """Return the model with the nodes of some tensors replaced by those that ``write`` appends."""
    graph = model.graph
    op = GraphBuilder(opset_versions(model).get("", 18), existing_names=graph_names(graph))
    write(op)
    kept = [node for node in graph.node if set(tensors).isdisjoint(node.output)]
    first = next(i for i, node in enumerate(graph.node) if not set(tensors).isdisjoint(node.output))
    outputs = [value.name for value in graph.output]
    nodes = needed_nodes([*kept[:first], *op.nodes, *kept[first:]], outputs)
    read = set(outputs).union(*map(node_inputs, nodes))
    tensors = [tensor for tensor in (*graph.initializer, *op.initializers) if tensor.name in read]
    return with_fields(model, {ML: ML_OPSET}, node=nodes, initializer=tensors)


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

    def rows(self, model: ModelProto) -> np.ndarray | None:
        """Return coefficients and intercepts, of shape (k, n_features + 1), or None if not in float32."""
        arrays = initializer_arrays(model, (self.coef, self.intercept, self.scale))
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

    def apply(self, model: ModelProto) -> ModelProto:
        rows = self.rows(model) if computes(model, self.scores) else None
        if rows is None:
            return model

        def write(op: GraphBuilder) -> None:
            options: Any = {"domain": ML, "outputs": [self.scores], "targets": len(rows)}
            op.node("LinearRegressor", self.samples, **options)
            _add_coefficients(op, rows)

        return replace_tensors(model, [self.scores], write)


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

    def apply(self, model: ModelProto) -> ModelProto:
        wanted = [name for name in (self.label, self.probabilities) if name and computes(model, name)]
        binary = len(self.classes) == 2
        if not wanted or (not binary and self.label not in wanted):
            return model
        if self.linear is not None:
            rows = self.linear.rows(model)
            if rows is None:
                return model
            rows = np.vstack([-rows, rows]) if binary else rows
            fused = self._replaced(model, wanted, self.linear.samples, rows)
            if not computes(fused, self.scores):
                return fused
        # the scores are used elsewhere; for more than two classes, standard operators are as fast
        both = np.array([[-1, 0], [1, 0]], dtype=np.float32)
        return self._replaced(model, wanted, self.scores, both) if binary else model

    def _replaced(self, model: ModelProto, wanted: list[str], samples: str, rows: np.ndarray) -> ModelProto:
        def write(op: GraphBuilder) -> None:
            labels = "classlabels_strings" if self.classes.dtype.kind in "OUS" else "classlabels_ints"
            has_probabilities = self.probabilities in wanted
            link = ("LOGISTIC" if len(rows) == 2 else "SOFTMAX") if has_probabilities else "NONE"
            label = self.label if self.label in wanted else op.unique("label")
            outputs = [label, self.probabilities if has_probabilities else op.unique("scores")]
            options: Any = {"domain": ML, "outputs": outputs, "multi_class": 0, "post_transform": link}
            op.node("LinearClassifier", samples, **options, **{labels: self.classes.tolist()})
            _add_coefficients(op, rows)

        return replace_tensors(model, wanted, write)


def _add_coefficients(op: GraphBuilder, rows: np.ndarray) -> None:
    """Add coefficients and intercepts to the last node as attributes."""
    add_array(op.nodes[-1], "coefficients", rows[:, :-1].ravel())
    add_array(op.nodes[-1], "intercepts", rows[:, -1])

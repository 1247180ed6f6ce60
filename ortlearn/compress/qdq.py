"""Graphs with QuantizeLinear and DequantizeLinear: the file of integers, and the graph that trains it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..graphs import prune
from ..graphs.nodes import attributes_of
from ..graphs.view import GraphView
from ..onnx_files.integer_weights import RANGES
from .layers import PASSING, Layer
from .ranges import Levels

__all__ = ["LOG", "Plan", "write_quantised", "write_trainable"]

#: Names of trained logarithms of scales, by the tensor.
LOG = "{}_log_scale"


@dataclass(frozen=True)
class Plan:
    """Layers to quantise, with the levels of weights and of activations by their names; {} leaves floats."""

    layers: Mapping[str, Layer]
    weights: Mapping[str, Levels]
    activations: Mapping[str, Levels]

    @staticmethod
    def tensors(view: GraphView, layers: Collection[Layer]) -> dict[str, str]:
        """Return the activations that are integers, and for each the tensor that gives the range.

        Outputs of convolutions are among them: without them onnxruntime has no integer kernel.
        """
        found = {layer.end: layer.end for layer in layers if layer.op_type == "Conv"}
        ends = set(found)
        for layer in layers:
            name, copies = layer.source, []
            while name not in ends and (node := view.producer(name)) is not None and node.op_type in PASSING:
                copies.append(name)
                name = node.input[0]
            found |= dict.fromkeys(copies, name) if name in ends else {layer.source: layer.source}
        return found | {layer.product: layer.later for layer in layers if layer.later in found}

    def without(self, names: Collection[str]) -> Plan:
        """Return the plan with some layers in float."""
        return Plan(
            {name: part for name, part in self.layers.items() if name not in names},
            self.weights,
            self.activations,
        )


def write_quantised(model: ModelProto, plan: Plan) -> ModelProto:
    """Return the file: integer weights, int32 biases, and pairs of QuantizeLinear and DequantizeLinear."""
    return _Writer(model, plan).write()


def write_trainable(model: ModelProto, plan: Plan) -> tuple[ModelProto, list[str]]:
    """Return the graph that rounds floats as the file does, and the names of the logarithms of its scales.

    A scale is ``initial * exp(r)`` with the trained r of value 0: it stays positive, and an update changes it
    by a share of itself. Its gradient is that of LSQ (Esser et al., Learned step size quantization, 2020),
    as the rules of QuantizeLinear and DequantizeLinear give it.
    """
    writer = _TrainableWriter(model, plan)
    return writer.write(), writer.logs


class _Writer:
    """Rewrite the layers of a plan."""

    def __init__(self, model: ModelProto, plan: Plan) -> None:
        self.view, self.plan = GraphView(model), plan
        self.by_output = {layer.output: layer for layer in plan.layers.values()}
        tensors = Plan.tensors(self.view, plan.layers.values()) if plan.activations else {}
        self.levels = {name: plan.activations[origin] for name, origin in tensors.items()}
        self.origins = tensors
        # Outputs of convolutions, and copies of them, are followed by a pair that takes over the name.
        ends = {layer.end for layer in plan.layers.values() if layer.op_type == "Conv"}
        self.ends = {name for name, origin in tensors.items() if origin in ends}
        # Without a pair before it, newer versions of onnxruntime join layer and Relu in floats.
        self.ends |= {layer.product for layer in plan.layers.values() if layer.later in tensors}
        self.added: dict[str, Layer] = {}
        self.rounded: dict[str, str] = {}

    def write(self) -> ModelProto:
        """Return the rewritten model."""
        self.view.rewrite(self._rule)
        return prune(self.view.to_model())

    def _rule(self, node: NodeProto) -> bool:
        output = node.output[0] if node.output else ""
        if output in self.added:  # its Gemm adds the bias
            return True
        layer = self.by_output.get(output)
        if layer is None and output not in self.ends:
            return False
        if layer is None:
            self._copy(node, list(node.input), output)
            return True
        weight = self._weight(layer)
        inputs = [self._activation(layer.source) if self.levels else layer.source, weight]
        if self.levels and layer.is_added and self._fits_gemm(layer):
            self.added[layer.product] = layer
            self._finish("Gemm", [*inputs, self._bias(layer)], layer.product, {})
        else:
            own = bool(layer.bias) and not layer.is_added
            self._copy(node, [*inputs, *([self._bias(layer)] if own else [])], output)
        return True

    def _fits_gemm(self, layer: Layer) -> bool:
        """Return whether a product with a bias is one of matrices."""
        return len(self.view.op.shape(layer.source) or ()) == 2

    def _copy(self, node: NodeProto, inputs: list[str], output: str) -> None:
        self._finish(node.op_type, inputs, output, attributes_of(node), node.name)

    def _finish(self, op_type: str, inputs: list[str], output: str, attributes: dict, name: str = "") -> None:
        """Write a node, followed by a pair if it ends a convolution."""
        op = self.view.op
        raw = op.unique(f"{output}_float") if output in self.ends else output
        op.nodes.append(
            helper.make_node(op_type, inputs, [raw], name or op.unique(f"node_{op_type}"), **attributes)
        )
        if raw != output:
            self.rounded[output] = self._pair(raw, output, output)

    def _activation(self, name: str) -> str:
        """Return the rounded form of an activation, and those of the tensors it is copied from."""
        if name not in self.rounded:
            self.rounded[name] = self._pair(name, name, self.view.op.unique(f"{name}_rounded"))
        return self.rounded[name]

    def _pair(self, value: str, tensor: str, output: str) -> str:
        """Write QuantizeLinear and DequantizeLinear of an activation."""
        op, levels = self.view.op, self.levels[tensor]
        origin = self.origins[tensor]
        scale, zero = self._scale(origin, levels), self._stored(f"{origin}_zero_point", levels.zero)
        quantised = op.node("QuantizeLinear", value, scale, zero, outputs=[op.unique(f"{tensor}_quantized")])
        return op.node("DequantizeLinear", quantised, scale, zero, outputs=[output])

    def _scale(self, tensor: str, levels: Levels) -> str:
        """Return the name of a scale."""
        return self._stored(f"{tensor}_scale", levels.scale)

    def _weight(self, layer: Layer) -> str:
        """Return the name of the dequantised weight."""
        op, levels, name = self.view.op, self.plan.weights[layer.weight], layer.weight
        integers = self._stored(f"{name}_quantized", self._integers(layer), levels.elem_type)
        scale = self._scale(name, levels)
        zero = self._stored(f"{name}_zero_point", levels.zero, levels.elem_type)
        return op.node(
            "DequantizeLinear", integers, scale, zero, axis=layer.axis, outputs=[op.unique(f"{name}_rounded")]
        )

    def _integers(self, layer: Layer) -> np.ndarray:
        """Return the nearest levels of a weight."""
        levels, array = self.plan.weights[layer.weight], self.view.value(layer.weight)
        assert array is not None
        scale = levels.scale.astype(np.float64).reshape(layer.by_channel(array.ndim))
        found = np.rint(array.astype(np.float64) / scale)
        return np.clip(found, levels.low, levels.high).astype(np.int8)

    def _bias(self, layer: Layer) -> str:
        """Return the name of the bias, in levels of the products, whose scales are those of both factors."""
        array = self.view.value(layer.bias)
        assert array is not None
        if not self.levels:
            return layer.bias
        op = self.view.op
        scale = self.levels[layer.source].scale * self.plan.weights[layer.weight].scale
        largest = 2.0**31 - 1
        integers = np.clip(
            np.rint(array.ravel().astype(np.float64) / scale.astype(np.float64)), -largest, largest
        )
        names = [
            self._stored(f"{layer.bias}_quantized", integers.astype(np.int32)),
            self._stored(f"{layer.bias}_scale", scale.astype(np.float32)),
        ]
        return op.node("DequantizeLinear", *names, axis=0, outputs=[op.unique(f"{layer.bias}_rounded")])

    def _stored(self, name: str, array: np.ndarray, elem_type: int | None = None) -> str:
        """Add an initializer unless it exists, and return its name."""
        op = self.view.op
        if op.claim(name):
            if elem_type is None or elem_type == TensorProto.INT8:
                op.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
            else:
                halves = np.append(array.ravel(), [0] * (array.size % 2)).astype(np.uint8) & 15
                data = (halves[::2] | halves[1::2] << 4).tobytes()
                op.initializers.append(helper.make_tensor(name, elem_type, array.shape, data, raw=True))
        return name


class _TrainableWriter(_Writer):
    """Rewrite the layers of a plan for training: weights and biases stay floats."""

    def __init__(self, model: ModelProto, plan: Plan) -> None:
        super().__init__(model, plan)
        self.logs: list[str] = []
        self.scales: dict[str, str] = {}

    def _scale(self, tensor: str, levels: Levels) -> str:
        if tensor not in self.scales:
            op, log = self.view.op, LOG.format(tensor)
            initial = self._stored(f"{tensor}_scale", levels.scale)
            self.logs.append(self._stored(log, np.zeros_like(levels.scale)))
            self.scales[tensor] = op.Mul(initial, op.Exp(log))
        return self.scales[tensor]

    def _weight(self, layer: Layer) -> str:
        op, levels, name = self.view.op, self.plan.weights[layer.weight], layer.weight
        scale, value = self._scale(name, levels), name
        if levels.high < RANGES[TensorProto.INT8][1]:  # the node below rounds to all of int8
            array = self.view.value(name)
            assert array is not None
            wide = op.Reshape(scale, layer.by_channel(array.ndim))
            value = op.Max(op.Min(value, op.Mul(wide, float(levels.high))), op.Mul(wide, float(levels.low)))
        zero = self._stored(f"{name}_zero_point", levels.zero)
        quantised = op.QuantizeLinear(value, scale, zero, axis=layer.axis)
        return op.DequantizeLinear(quantised, scale, zero, axis=layer.axis)

    def _bias(self, layer: Layer) -> str:
        return layer.bias

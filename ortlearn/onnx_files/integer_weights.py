"""Quantised weights: integers that DequantizeLinear reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..exceptions import ConversionError
from ..graphs.external_tensors import tensor_array
from ..graphs.nodes import attribute, captured_names, constant_value

#: Smallest and largest value of each integer type.
RANGES = {
    **{getattr(TensorProto, f"INT{bits}"): (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (4, 8, 16)},
    **{getattr(TensorProto, f"UINT{bits}"): (0, 2**bits - 1) for bits in (4, 8, 16)},
    TensorProto.INT32: (-(2**31), 2**31 - 1),
}
#: Positions of the integer weights of operators that multiply integers.
MULTIPLIED = {"MatMulInteger": 1, "ConvInteger": 1, "MatMulIntegerToFloat": 1, "DynamicQuantizeMatMul": 1}
MULTIPLIED |= {"MatMulNBits": 1, "QLinearMatMul": 3, "QLinearConv": 3, "QGemm": 3, "DynamicQuantizeLSTM": 1}
Holder = TensorProto | NodeProto  # an initializer, or a Constant
Unique = Callable[[str], str]  # returns a new name


@dataclass(frozen=True)
class Quantisation:
    """Dequantisation ``(level - zero) * scale`` (ONNX, DequantizeLinear), per tensor or along an axis."""

    scale: Holder
    zero: Holder | None
    axis: int

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether scale and zero point are valid for a shape, which damaged files may violate."""
        if any(array_of(part).dtype.kind in "OSUc" for part in (self.scale, self.zero) if part is not None):
            return False
        size = shape[self.axis] if -len(shape) <= self.axis < len(shape) else 1
        scale, zero = self._arrays()
        is_known = bool((np.isfinite(scale) & (scale > 0)).all())
        return is_known and {scale.size, zero.size} <= {1, size} and max(scale.ndim, zero.ndim) < 2

    def floats(self, levels: np.ndarray) -> np.ndarray:
        """Return dequantised values, in float32."""
        scale, zero = self._along(levels.ndim)
        return ((levels.astype(np.float64) - zero) * scale).astype(np.float32)

    def levels(self, array: np.ndarray, elem_type: int) -> np.ndarray:
        """Return the nearest integers of a type, clipped to its range."""
        scale, zero = self._along(array.ndim)
        found = np.clip(np.rint(array / scale) + zero, *RANGES[elem_type])
        return found.astype(helper.tensor_dtype_to_np_dtype(elem_type))

    def _along(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Return scale and zero point in float64, in a shape that broadcasts to a tensor of a rank."""
        shape = [-1 if axis == self.axis % max(rank, 1) else 1 for axis in range(rank)]
        scale, zero = (array.reshape(shape if array.size > 1 else ()) for array in self._arrays())
        return scale, zero

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scale and zero point in float64."""
        zero = np.zeros(1) if self.zero is None else array_of(self.zero)
        return array_of(self.scale).astype(np.float64), zero.astype(np.float64)


def array_of(holder: Holder) -> np.ndarray:
    """Return the value of an initializer or a Constant."""
    if isinstance(holder, TensorProto):
        return tensor_array(holder)
    value = constant_value(holder)
    assert value is not None
    return value


def check_multiplied_integers(model: ModelProto) -> None:
    """Raise an error for integer weights that operators multiply, since only others would be trained."""
    stored, found = {tensor.name for tensor in model.graph.initializer}, dict[str, str]()
    for node in model.graph.node:
        position = MULTIPLIED.get(node.op_type, len(node.input))
        if node.input[position : position + 1] and node.input[position] in stored:
            found[node.input[position]] = node.op_type
    if found:
        raise ConversionError(
            f"The weights {list(found)} are integers of {', '.join(sorted({*found.values()}))}, which cannot "
            "be trained. Train the model before quantize_dynamic, or quantise it by quantize_static in the "
            "format QDQ and pass straight_through=True. To train other weights only, name them by "
            "weights_to_train."
        )


def dequantised(graph: GraphProto, constants: Mapping[str, Holder]) -> dict[str, Quantisation]:
    """Return the quantisation of tensors that only DequantizeLinear reads, if it is not blockwise."""
    reads: Counter[str] = Counter(value.name for value in graph.output)
    found: dict[str, set[tuple[str, str, int]]] = {}
    dequantised_reads: Counter[str] = Counter()
    for node in graph.node:
        reads.update((*node.input, *captured_names(node)))
        if node.op_type != "DequantizeLinear" or len(node.input) < 2:
            continue
        if any(item.ref_attr_name for item in node.attribute) or attribute(node, "block_size", 0):
            continue
        name, scale, zero = (*node.input, "")[:3]
        if scale in constants and (not zero or zero in constants):
            found.setdefault(name, set()).add((scale, zero, attribute(node, "axis", 1)))
            dequantised_reads[name] += 1
    return {
        name: Quantisation(constants[scale], constants[zero] if zero else None, axis)
        for name, kinds in found.items()
        for scale, zero, axis in list(kinds)[:1]
        if len(kinds) == 1 and reads[name] == dequantised_reads[name]
    }


def add_rounding(
    graph: GraphProto, inner: str, weight: str, kind: Quantisation, tensor: TensorProto, unique: Unique
) -> None:
    """Replace the integers of a graph by a float weight, which the graph quantises."""
    readers = [node for node in graph.node if node.op_type == "DequantizeLinear" and node.input[0] == inner]
    for value in (*graph.input, *graph.value_info):
        if value.name == inner:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    first = readers[0]
    is_wide = tensor.data_type == TensorProto.INT32
    new = _cast_nodes(first, weight, len(tensor.dims), kind, unique) if is_wide else []
    if not is_wide:
        scale, zero = first.input[1], (*first.input, "")[2]
        if not zero:  # the default type of QuantizeLinear is uint8
            dtype, zero = helper.tensor_dtype_to_np_dtype(tensor.data_type), unique(f"{weight}_zero")
            new.append(_constant(np.zeros_like(array_of(kind.scale), dtype=dtype), zero))
        levels = [unique(f"{weight}_levels")]
        new.append(helper.make_node("QuantizeLinear", [weight, scale, zero], levels, domain=first.domain))
        new[-1].attribute.extend(item for item in first.attribute if item.name == "axis")
    index = next(i for i, node in enumerate(graph.node) if node.output[:1] == first.output[:1])
    for reader in readers:
        reader.input[0] = new[-1].output[0]
    for node in reversed(new):
        graph.node.insert(index, node)


def _cast_nodes(
    reader: NodeProto, weight: str, rank: int, kind: Quantisation, unique: Unique
) -> list[NodeProto]:
    """Return nodes that round a weight to int32 by a Cast of x + sign(x) / 2, instead of QuantizeLinear."""
    scale, shape, wide, ratio, sign, half, part, moved, levels = (
        unique(f"{weight}_{part}")
        for part in ("scale", "shape", "wide", "ratio", "sign", "half", "part", "moved", "levels")
    )
    axes = np.array([-1 if axis == kind.axis % max(rank, 1) else 1 for axis in range(rank)], np.int64)
    is_one = array_of(kind.scale).size == 1
    return [
        _constant(np.zeros(0, np.int64) if is_one else axes, shape),
        helper.make_node("Reshape", [reader.input[1], shape], [scale]),
        helper.make_node("Cast", [scale], [wide], to=TensorProto.FLOAT),
        helper.make_node("Div", [weight, wide], [ratio]),
        helper.make_node("Sign", [ratio], [sign]),
        _constant(np.array(0.5, np.float32), half),
        helper.make_node("Mul", [sign, half], [part]),
        helper.make_node("Add", [part, ratio], [moved]),
        helper.make_node("Cast", [moved], [levels], to=TensorProto.INT32),
    ]


def _constant(array: np.ndarray, name: str) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))

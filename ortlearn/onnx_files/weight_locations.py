"""Locations of the weights in a model: initializers and constants of graphs, subgraphs and functions."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..exceptions import WriteBackError, limit_address
from ..graphs import copy_model, subgraphs
from ..graphs.external_tensors import tensor_array
from ..graphs.functions import called_functions
from ..graphs.nodes import attribute, constant_value
from .integer_weights import RANGES, Holder, Quantisation, array_of, dequantised

Part = GraphProto | FunctionProto
HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)  # trained in float32
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *HALVES)
#: Maximum size of all expanded ConstantOfShape nodes in bytes, since protobuf limits a model to 2 GiB.
MAX_FILLED = 2**30


@dataclass
class WeightLocation:
    """Location of a weight: an initializer or a constant node, of floats or of quantised integers."""

    name: str  # name of the weight, unique in the whole model
    graph: Part
    holder: Holder  # initializer, Constant or ConstantOfShape
    tensor: TensorProto  # value; for ConstantOfShape, the repeated element
    shape: tuple[int, ...]
    quantisation: Quantisation | None = None  # None for floats
    function: FunctionProto | None = None  # enclosing function, if any

    @property
    def elem_type(self) -> int:
        """Element type of the floats."""
        return self.tensor.data_type if self.quantisation is None else TensorProto.FLOAT

    @property
    def inner_name(self) -> str:
        """Name of the tensor in its graph."""
        return self.holder.name if isinstance(self.holder, TensorProto) else self.holder.output[0]

    def value(self) -> np.ndarray:
        """Return the weight as floats."""
        array, kind = tensor_array(self.tensor), self.quantisation
        return np.broadcast_to(array, self.shape) if kind is None else kind.floats(array)

    def set(self, array: np.ndarray) -> None:
        """Write new values, rounded to the type in the graph; quantise them if that is an integer type."""
        if self.quantisation is not None:
            self._write(self.quantisation.levels(np.asarray(array), self.tensor.data_type))
            return
        dtype = helper.tensor_dtype_to_np_dtype(self.elem_type)
        with np.errstate(over="ignore"):
            rounded = np.asarray(array).astype(dtype)
        if not np.array_equal(np.isfinite(rounded.astype(np.float64)), np.isfinite(array)):
            raise WriteBackError(
                f"Weight {self.name!r} has values up to {np.abs(array).max():.3g}, which overflow {dtype}: "
                "train with a penalty, or get the model in float32 by keep_upgrade=True."
                f"{limit_address('float16')}"
            )
        self._write(rounded)

    def _write(self, values: np.ndarray) -> None:
        """Write values of the type in the graph."""
        tensor = numpy_helper.from_array(np.ascontiguousarray(values).reshape(self.shape), self.inner_name)
        if isinstance(self.holder, TensorProto):
            _replace_values(self.holder, tensor)
        else:
            _set_constant(self.holder, tensor, values)


def _replace_values(old: TensorProto, new: TensorProto) -> None:
    """Replace the values of a tensor, but not its description and metadata."""
    new.doc_string = old.doc_string
    new.metadata_props.extend(old.metadata_props)
    if not old.HasField("doc_string"):
        new.ClearField("doc_string")
    old.CopyFrom(new)


def _set_constant(node: NodeProto, tensor: TensorProto, values: np.ndarray) -> None:
    """Write values into a Constant; a ConstantOfShape becomes a Constant."""
    if node.op_type == "ConstantOfShape":
        node.op_type = "Constant"
        del node.input[:], node.attribute[:]
        node.attribute.append(helper.make_attribute("value", tensor))
        return
    (item,) = (a for a in node.attribute if a.name.startswith("value"))
    if item.name == "value":
        tensor.name = item.t.name
        _replace_values(item.t, tensor)
    elif item.name == "value_float":
        item.f = float(values.item())
    else:
        item.floats[:] = values.tolist()


def weight_locations(model: ModelProto) -> dict[str, WeightLocation]:
    """Return the locations of weights by name: floats, and integers that DequantizeLinear reads."""
    # Names are tensor names, with a numeric suffix for duplicates in subgraphs and functions. Constants that
    # are outputs, ConstantOfShape of a computed shape, and integers in functions are not weights.
    budget, found = [MAX_FILLED], dict[str, WeightLocation]()
    parts: list[Part] = [model.graph, *called_functions(model)]
    counts = Counter(name for part in parts for name in defined_names(part))
    pairs = [(part, location) for part in parts for location in _locations(part, {}, budget)]
    for part, location in pairs:
        name, number, is_outer = location.inner_name, 1, location.graph is model.graph
        location.function = part if isinstance(part, FunctionProto) else None
        is_constant = location.graph is part and isinstance(location.holder, NodeProto)
        if is_constant and name in output_names(part):
            continue
        if location.function is not None and location.quantisation is not None:
            continue
        while not is_outer and (name in found or counts[name] > (name == location.inner_name)):
            number += 1
            name = f"{location.inner_name}_{number}"
        location.name = name
        found[name] = location
    return found


def output_names(part: Part) -> list[str]:
    """Return the outputs of a graph or a function."""
    return [value if isinstance(value, str) else value.name for value in part.output]


def defined_names(part: Part) -> Iterator[str]:
    """Yield each definition of a tensor name in a graph or a function, and in its subgraphs."""
    yield from {value if isinstance(value, str) else value.name for value in part.input}.union(
        tensor.name for tensor in initializers(part)
    )
    for node in part.node:
        yield from filter(None, node.output)
        for inner in subgraphs(node):
            yield from defined_names(inner)


def initializers(part: Part) -> Sequence[TensorProto]:
    """Return the initializers of a graph; functions have none."""
    return () if isinstance(part, FunctionProto) else part.initializer


def _locations(graph: Part, outer: Mapping[str, Holder], budget: list[int]) -> Iterator[WeightLocation]:
    """Yield the locations of weights in a graph and its subgraphs, unnamed; ``budget`` has the bytes left."""
    constants: dict[str, Holder] = {**outer, **{tensor.name: tensor for tensor in initializers(graph)}}
    constants.update(
        (n.output[0], n) for n in graph.node if _tensor(n) is not None and n.op_type == "Constant"
    )
    integers = {} if isinstance(graph, FunctionProto) else dequantised(graph, constants)
    for stored in initializers(graph):
        kind = integers.get(stored.name)
        if _holds_floats(stored, kind):
            yield WeightLocation("", graph, stored, stored, tuple(stored.dims), kind)
    for node in graph.node:
        tensor = _tensor(node)
        if tensor is None:
            continue
        name = node.output[0]
        if node.op_type == "Constant":
            if _holds_floats(tensor, integers.get(name)):
                yield WeightLocation("", graph, node, tensor, tuple(tensor.dims), integers.get(name))
        elif node.input and _is_shape(constants.get(node.input[0])):
            shape = tuple(array_of(constants[node.input[0]]).tolist())
            is_weight = shape and min(shape) > 0 and tensor.data_type in FLOATS
            n_bytes = math.prod(shape) * 4 if is_weight else 0
            if 0 < n_bytes <= budget[0]:
                budget[0] -= n_bytes
                yield WeightLocation("", graph, node, tensor, shape)
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _locations(inner, constants, budget)


def _holds_floats(tensor: TensorProto, quantisation: Quantisation | None) -> bool:
    """Return whether a tensor holds floats or valid quantised integers."""
    if quantisation is None:
        return tensor.data_type in FLOATS
    return tensor.data_type in RANGES and quantisation.fits(tensor.dims)


def _is_shape(holder: Holder | None) -> bool:
    tensor = _tensor(holder) if isinstance(holder, NodeProto) else holder
    return tensor is not None and tensor.data_type == TensorProto.INT64 and len(tensor.dims) == 1


def _tensor(node: NodeProto) -> TensorProto | None:
    """Return the value of a numeric Constant, or the element of a ConstantOfShape; None for other nodes."""
    if node.op_type not in ("Constant", "ConstantOfShape") or node.domain not in ("", "ai.onnx"):
        return None
    if not node.output or any(item.ref_attr_name for item in node.attribute):
        return None  # the attribute may differ at each call of a function
    value = attribute(node, "value")
    if value is None and node.op_type == "ConstantOfShape":
        return numpy_helper.from_array(np.zeros(1, np.float32))
    array = constant_value(node) if value is None else None
    return value if array is None or array.dtype == object else numpy_helper.from_array(array)


def with_values(file: ModelProto, arrays: Mapping[str, np.ndarray]) -> ModelProto:
    """Return a model with new values of named weights, rounded to their types."""
    result = copy_model(file)
    locations = weight_locations(result)
    # Integers last, since their scale may be trained too.
    for name in sorted(arrays, key=lambda name: locations[name].quantisation is not None):
        location, array = locations[name], arrays[name]
        if location.shape != array.shape:
            raise ValueError(f"Weight {name!r} must have the shape {location.shape}, got {array.shape}.")
        location.set(array)
    return result

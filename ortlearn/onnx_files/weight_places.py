"""Weights of a file wherever it keeps them: initializers and constants, of inner graphs and functions too."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..exceptions import WriteBackError
from ..graphs import copy_model, subgraphs
from ..graphs.external_tensors import tensor_array
from ..graphs.functions import called_functions
from ..graphs.nodes import attribute, constant_value
from .integer_weights import RANGES, Holder, Quantisation, array_of, dequantised

Part = GraphProto | FunctionProto  # what holds nodes
HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)  # types that are trained in float32
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *HALVES)
#: Bytes of the numbers that nodes ConstantOfShape may become together: a model of 2 GiB cannot be stored.
MAX_FILLED = 2**30


@dataclass
class Place:
    """An initializer or a node that holds floating-point numbers, or integers that stand for some."""

    name: str  # name of the weight, unique in the whole model
    graph: Part
    holder: Holder  # initializer, Constant or ConstantOfShape
    tensor: TensorProto  # its value; what a ConstantOfShape repeats
    shape: tuple[int, ...]
    #: What its integers stand for, None for floating-point numbers.
    quantisation: Quantisation | None = None
    function: FunctionProto | None = None  # function that it is in

    @property
    def elem_type(self) -> int:
        """Type of its numbers."""
        return self.tensor.data_type if self.quantisation is None else TensorProto.FLOAT

    @property
    def inner_name(self) -> str:
        """Name of its tensor in the graph that it is in."""
        return self.holder.name if isinstance(self.holder, TensorProto) else self.holder.output[0]

    def value(self) -> np.ndarray:
        """Return its numbers."""
        array = tensor_array(self.tensor)
        return (
            np.broadcast_to(array, self.shape)
            if self.quantisation is None
            else self.quantisation.floats(array)
        )

    def set(self, array: np.ndarray) -> None:
        """Write other numbers into the graph, in the type that it has there, integers that stand for them."""
        if self.quantisation is not None:
            self._write(self.quantisation.levels(np.asarray(array), self.tensor.data_type))
            return
        dtype = helper.tensor_dtype_to_np_dtype(self.elem_type)
        with np.errstate(over="ignore"):
            own = np.asarray(array).astype(dtype)
        if not np.array_equal(np.isfinite(own.astype(np.float64)), np.isfinite(array)):
            raise WriteBackError(
                f"Weight {self.name!r} has values up to {np.abs(array).max():.3g}, and {dtype} holds none as "
                "large: train with a penalty, or get the model in float32 by keep_upgrade=True."
            )
        self._write(own)

    def _write(self, own: np.ndarray) -> None:
        """Write numbers of the type that the graph has."""
        tensor = numpy_helper.from_array(np.ascontiguousarray(own).reshape(self.shape), self.inner_name)
        if isinstance(self.holder, TensorProto):
            _keep_description(self.holder, tensor)
        else:
            _set_constant(self.holder, tensor, own)


def _keep_description(old: TensorProto, new: TensorProto) -> None:
    """Replace the values of a tensor, not what describes it."""
    new.doc_string = old.doc_string
    new.metadata_props.extend(old.metadata_props)
    if not old.HasField("doc_string"):
        new.ClearField("doc_string")
    old.CopyFrom(new)


def _set_constant(node: NodeProto, tensor: TensorProto, values: np.ndarray) -> None:
    """Write numbers into a Constant, which a ConstantOfShape becomes."""
    if node.op_type == "ConstantOfShape":
        node.op_type = "Constant"
        del node.input[:], node.attribute[:]
        node.attribute.append(helper.make_attribute("value", tensor))
        return
    (own,) = (a for a in node.attribute if a.name.startswith("value"))
    if own.name == "value":
        tensor.name = own.t.name
        _keep_description(own.t, tensor)
    elif own.name == "value_float":
        own.f = float(values.item())
    else:
        own.floats[:] = values.tolist()


def weight_places(model: ModelProto) -> dict[str, Place]:
    """Return the weights of a model by name: floats, and integers that DequantizeLinear reads."""
    # Names are those of tensors, with a number for repeated ones of inner graphs and functions. Constants
    # that are outputs, ConstantOfShape of a computed shape, and integers in functions are not weights.
    budget, found = [MAX_FILLED], dict[str, Place]()
    parts: list[Part] = [model.graph, *called_functions(model)]
    counts = Counter(name for part in parts for name in defined_names(part))
    pairs = [(part, place) for part in parts for place in _places(part, {}, budget)]
    for part, place in pairs:
        name, number, is_outer = place.inner_name, 1, place.graph is model.graph
        place.function = part if isinstance(part, FunctionProto) else None
        is_output = place.graph is part and isinstance(place.holder, NodeProto) and name in output_names(part)
        if is_output or (place.function is not None and place.quantisation is not None):
            continue
        while not is_outer and (name in found or counts[name] > (name == place.inner_name)):
            number += 1
            name = f"{place.inner_name}_{number}"
        place.name = name
        found[name] = place
    return found


def output_names(part: Part) -> list[str]:
    """Return the outputs of a graph or a function."""
    return [value if isinstance(value, str) else value.name for value in part.output]


def defined_names(part: Part) -> Iterator[str]:
    """Yield the tensors of a graph or a function and of the graphs inside, as often as they are defined."""
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


def _places(graph: Part, outer: Mapping[str, Holder], budget: list[int]) -> Iterator[Place]:
    """Yield the places of a graph and of those inside; ``budget`` are the bytes left for repeated numbers."""
    constants: dict[str, Holder] = {**outer, **{tensor.name: tensor for tensor in initializers(graph)}}
    constants.update(
        (n.output[0], n) for n in graph.node if _tensor(n) is not None and n.op_type == "Constant"
    )
    integers = {} if isinstance(graph, FunctionProto) else dequantised(graph, constants)
    for held in initializers(graph):
        if _holds_numbers(held, integers.get(held.name)):
            yield Place("", graph, held, held, tuple(held.dims), integers.get(held.name))
    for node in graph.node:
        tensor = _tensor(node)
        if tensor is None:
            continue
        name = node.output[0]
        if node.op_type == "Constant":
            if _holds_numbers(tensor, integers.get(name)):
                yield Place("", graph, node, tensor, tuple(tensor.dims), integers.get(name))
        elif node.input and _is_shape(constants.get(node.input[0])):
            shape = tuple(array_of(constants[node.input[0]]).tolist())
            is_one = shape and min(shape) > 0 and tensor.data_type in FLOATS
            n_bytes = math.prod(shape) * 4 if is_one else 0
            if 0 < n_bytes <= budget[0]:
                budget[0] -= n_bytes
                yield Place("", graph, node, tensor, shape)
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _places(inner, constants, budget)


def _holds_numbers(tensor: TensorProto, quantisation: Quantisation | None) -> bool:
    """Return whether a tensor holds floating-point numbers, or integers that stand for some."""
    if quantisation is None:
        return tensor.data_type in FLOATS
    return tensor.data_type in RANGES and quantisation.fits(tensor.dims)


def _is_shape(holder: Holder | None) -> bool:
    tensor = _tensor(holder) if isinstance(holder, NodeProto) else holder
    return tensor is not None and tensor.data_type == TensorProto.INT64 and len(tensor.dims) == 1


def _tensor(node: NodeProto) -> TensorProto | None:
    """Return the value of a Constant, where it is a tensor of numbers; what a ConstantOfShape repeats."""
    if node.op_type not in ("Constant", "ConstantOfShape") or node.domain not in ("", "ai.onnx"):
        return None
    if not node.output or any(item.ref_attr_name for item in node.attribute):
        return None  # the attribute of a function may be another one at each call
    value = attribute(node, "value")
    if value is None and node.op_type == "ConstantOfShape":
        return numpy_helper.from_array(np.zeros(1, np.float32))
    array = constant_value(node) if value is None else None
    return value if array is None or array.dtype == object else numpy_helper.from_array(array)


def with_values(file: ModelProto, arrays: Mapping[str, np.ndarray]) -> ModelProto:
    """Return a file with new values of weights of :func:`weight_places`, rounded to their types."""
    result = copy_model(file)
    places = weight_places(result)
    # Integers last, as their scale may be trained too.
    for name in sorted(arrays, key=lambda name: places[name].quantisation is not None):
        place, array = places[name], arrays[name]
        if place.shape != array.shape:
            raise ValueError(f"Weight {name!r} has the shape {place.shape}, got {array.shape}.")
        place.set(array)
    return result

"""Weights of a file wherever it keeps them: initializers, constants, and those of branches and bodies."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..exceptions import WriteBackError
from ..graphs import GraphBuilder, copy_model, subgraphs
from ..graphs.editing import map_node
from ..graphs.nodes import attribute, constant_value
from .integer_weights import RANGES, Holder, Quantisation, add_rounding, array_of, dequantised

#: Types that are trained in float32.
HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *HALVES)
#: Bytes of the numbers that nodes ConstantOfShape may become together: a model of 2 GiB cannot be stored.
MAX_FILLED = 2**30


@dataclass
class Place:
    """An initializer or a node that holds floating-point numbers, or integers that stand for some."""

    #: Name of the weight, unique in the whole model.
    name: str
    graph: GraphProto
    #: Initializer, Constant or ConstantOfShape.
    holder: Holder
    #: Its value; what a ConstantOfShape repeats.
    tensor: TensorProto
    shape: tuple[int, ...]
    #: What its integers stand for, None for floating-point numbers.
    quantisation: Quantisation | None = None

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
        array = numpy_helper.to_array(self.tensor)
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
    """Return the places that hold floating-point numbers, or integers that DequantizeLinear makes such of.

    Their names are unique in the model.
    A weight is named by its tensor. One of a branch or body whose name other tensors of the model have too
    gets a number behind it. Constants that are outputs of the main graph are no weights, nor what
    ConstantOfShape makes of a computed shape. :meth:`Place.set` changes the model.
    """
    outputs, budget = {value.name for value in model.graph.output}, [MAX_FILLED]
    counts = Counter(_defined_names(model.graph))
    found: dict[str, Place] = {}
    for place in _places(model.graph, {}, budget):
        name, number, is_outer = place.inner_name, 1, place.graph is model.graph
        if is_outer and isinstance(place.holder, NodeProto) and name in outputs:
            continue
        while not is_outer and (name in found or counts[name] > (name == place.inner_name)):
            number += 1
            name = f"{place.inner_name}_{number}"
        place.name = name
        found[name] = place
    return found


def _defined_names(graph: GraphProto) -> Iterator[str]:
    """Yield the tensors of a graph and of those inside, as often as they are defined."""
    yield from {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        yield from filter(None, node.output)
        for inner in subgraphs(node):
            yield from _defined_names(inner)


def _places(graph: GraphProto, outer: Mapping[str, Holder], budget: list[int]) -> Iterator[Place]:
    """Yield the places of a graph and of those inside; ``budget`` are the bytes left for repeated numbers."""
    constants: dict[str, Holder] = {**outer, **{tensor.name: tensor for tensor in graph.initializer}}
    constants.update((node.output[0], node) for node in graph.node if constant_value(node) is not None)
    integers = dequantised(graph, constants)
    for tensor in graph.initializer:
        if _holds_numbers(tensor, integers.get(tensor.name)):
            yield Place("", graph, tensor, tensor, tuple(tensor.dims), integers.get(tensor.name))
    for node in graph.node:
        tensor = _tensor(node) if node.domain in ("", "ai.onnx") and node.output else None
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
    if node.op_type not in ("Constant", "ConstantOfShape"):
        return None
    value = attribute(node, "value")
    if value is None and node.op_type == "ConstantOfShape":
        return numpy_helper.from_array(np.zeros(1, np.float32))
    array = constant_value(node) if value is None else None
    return value if array is None or array.dtype == object else numpy_helper.from_array(array)


def with_named_weights(model: ModelProto, integers: bool = False) -> ModelProto:
    """Return a model, its functions inlined, whose floating-point constants are main initializers.

    A constant keeps the name that it has in :func:`weight_places`; outputs of branches and bodies are copies.
    With ``integers``, so are the numbers that integers stand for, which the graph rounds to those.
    """
    result = copy_model(model)
    unique = GraphBuilder(existing_names={*_defined_names(result.graph)}).unique
    for name, place in weight_places(result).items():
        graph, inner, kind = place.graph, place.inner_name, place.quantisation
        if kind is not None and not integers:
            continue
        if kind is None and graph is result.graph and isinstance(place.holder, TensorProto):
            continue
        array = place.value().astype(helper.tensor_dtype_to_np_dtype(place.elem_type))
        initializer = isinstance(place.holder, TensorProto)
        if kind is not None:
            add_rounding(graph, inner, name, kind, place.tensor, unique)
        (graph.initializer if initializer else graph.node).remove(place.holder)
        result.graph.initializer.append(numpy_helper.from_array(array, name))
        if kind is None:
            _rename(graph, inner, name, graph is not result.graph, unique)
    return result


def _rename(graph: GraphProto, inner: str, name: str, is_inner: bool, unique: Callable[[str], str]) -> None:
    """Name a constant of a graph that became a main initializer as that is."""
    if name != inner:
        for node in graph.node:
            map_node(node, {inner: name})
    if is_inner and any(value.name == inner for value in graph.output):
        copied = unique(f"{name}_copy")
        graph.node.append(helper.make_node("Identity", [name], [copied]))
        for value in graph.output:
            value.name = copied if value.name == inner else value.name


def with_values(file: ModelProto, arrays: Mapping[str, np.ndarray]) -> ModelProto:
    """Return a file with other numbers in some of its weights, by the names of :func:`weight_places`.

    They are rounded to the type that the file has; a WriteBackError says that a finite value is infinite
    there. A ConstantOfShape becomes a Constant of the same name.
    """
    result = copy_model(file)
    places = weight_places(result)
    # Integers last, as their scale may be trained too.
    for name in sorted(arrays, key=lambda name: places[name].quantisation is not None):
        place, array = places[name], arrays[name]
        if place.shape != array.shape:
            raise ValueError(f"Weight {name!r} has the shape {place.shape}, got {array.shape}.")
        place.set(array)
    return result

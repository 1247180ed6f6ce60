"""Replace constants that depend on the number of samples that a model was exported for."""

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper

from ..graphs import GraphBuilder, graph_names, node_inputs, opset_versions, subgraphs
from ..graphs.editing import with_fields
from ..graphs.external_tensors import tensor_array
from ..graphs.nodes import attribute, copy_node

TIMES = 3  # shapes are also inferred for so many times the samples, to find the dimensions that grow
SMALL = 1024  # maximum number of elements of a constant in shape computations
STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}  # positions of initial states of recurrent operators
#: Shapes of a tensor for the exported number of samples, and for ``TIMES`` as many.
Sizes = tuple[tuple[int | None, ...], tuple[int | None, ...]]


def without_sample_constants(model: ModelProto, number: int | None) -> tuple[ModelProto, NodeProto | None]:
    """Return a model without constants that depend on the number of samples, and a failing node or None."""
    # The dimension of samples becomes -1 in the shape of a Reshape, and 1 in that of an Expand. Constants
    # that are concatenated with all samples, and initial states of recurrent operators, are repeated. Squeeze
    # without axes gets those of size one except samples. With number=None, shapes of Reshape are unchanged.
    op = GraphBuilder(existing_names=graph_names(model.graph))
    sizes, failing = _Sizes(model, number or 1), None
    for node in model.graph.node:
        start, constants = len(op.nodes), len(op.initializers)
        new = _with_repeated_inputs(op, node, sizes)
        new = _with_free_shape(op, node, sizes) if new is None and number is not None else new
        new = _with_axes(op, node, sizes) if node.op_type == "Squeeze" else new
        op.nodes.append(node if new is None else new)
        sizes.add_constants(op.initializers[constants:])
        for added in op.nodes[start:]:
            if not sizes.add(added) and failing is None:
                failing = node
    outputs = [_with_rank(value, sizes.of(value.name)) for value in model.graph.output]
    initializers = [*model.graph.initializer, *op.initializers]
    return with_fields(model, node=op.nodes, initializer=initializers, output=outputs), failing


class _Sizes:
    """Types of tensors for two numbers of samples, and values of tensors that depend on shapes only."""

    def __init__(self, model: ModelProto, number: int):
        self.number = number
        self.inner: set[str] = set()  # tensors with a dimension (other, samples) flattened
        self._versions, self._ir_version = opset_versions(model), model.ir_version
        self._types: tuple[dict[str, TypeProto], ...] = ({}, {})
        self._values: tuple[dict[str, np.ndarray], ...] = ({}, {})
        for value in model.graph.input:
            for types, count in zip(self._types, (number, number * TIMES), strict=True):
                types[value.name] = TypeProto()
                types[value.name].CopyFrom(value.type)
                dims = types[value.name].tensor_type.shape.dim
                if dims and not dims[0].HasField("dim_value"):
                    dims[0].dim_value = count
        self.add_constants(model.graph.initializer)

    def of(self, name: str) -> Sizes | None:
        """Return the shapes of a tensor, None if its rank is unknown."""
        shapes = [_shape(types.get(name)) for types in self._types]
        if shapes[0] is None or shapes[1] is None or len(shapes[0]) != len(shapes[1]):
            return None
        return shapes[0], shapes[1]

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a tensor if it is the same for both numbers of samples, None otherwise."""
        values = [known.get(name) for known in self._values]
        if values[0] is None or values[1] is None or not np.array_equal(values[0], values[1]):
            return None
        return values[0]

    def add_constants(self, tensors: Sequence[TensorProto]) -> None:
        """Record initializers."""
        for tensor in tensors:
            for types, values in zip(self._types, self._values, strict=True):
                types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
                if math.prod(tensor.dims) <= SMALL:
                    values[tensor.name] = tensor_array(tensor)

    def add(self, node: NodeProto) -> bool:
        """Record the outputs of a node; return whether it supports more samples."""
        found = [self._infer(node, *known) for known in zip(self._types, self._values, strict=True)]
        if node.op_type != "Reshape" and not self.inner.isdisjoint(node.input):
            self.inner.update(node.output)
        return found[1] or not found[0]

    def _infer(self, node: NodeProto, types: dict[str, TypeProto], values: dict[str, np.ndarray]) -> bool:
        """Record the outputs of a node for one number of samples; return whether its inputs are valid."""
        value = _value(node, types, values, self._versions)
        if value is not None:
            values[node.output[0]] = value
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            types[node.output[0]] = helper.make_tensor_type_proto(kind, value.shape)
            return True
        domain = "" if node.domain == "ai.onnx" else node.domain
        read = [name for name in node.input if name]
        if any(name not in types for name in read):
            return True
        try:
            schema = onnx.defs.get_schema(node.op_type, self._versions.get(domain, 1), domain)
        except onnx.defs.SchemaError:  # unknown operator of another domain
            return True
        data = {name: numpy_helper.from_array(values[name], name) for name in read if name in values}
        imports = [helper.make_opsetid(key, version) for key, version in self._versions.items()]
        try:
            made = onnx.shape_inference.infer_node_outputs(
                schema, node, {name: types[name] for name in read}, data, None, imports, self._ir_version
            )
        except onnx.shape_inference.InferenceError:
            return False
        types.update(made)
        return node.op_type != "Reshape" or _same_size(types.get(node.input[0]), types.get(node.output[0]))


def _shape(known: TypeProto | None) -> tuple[int | None, ...] | None:
    """Return the shape of a type, None if the rank is unknown."""
    if known is None or not known.tensor_type.HasField("shape"):
        return None
    dims = known.tensor_type.shape.dim
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in dims)


def _same_size(*types: TypeProto | None) -> bool:
    """Return whether the known numbers of elements of tensors are equal."""
    shapes = [_shape(known) for known in types]
    products = {math.prod(shape) for shape in shapes if shape is not None and None not in shape}  # type: ignore
    return len(products) < 2


def _value(
    node: NodeProto, types: dict[str, TypeProto], values: dict[str, np.ndarray], versions: dict[str, int]
) -> np.ndarray | None:
    """Return the output of a node that reads shapes and small constants only, None for other nodes."""
    if node.domain not in ("", "ai.onnx") or len(node.output) != 1 or any(subgraphs(node)):
        return None
    if node.op_type == "Shape" and node.input[0] in types:
        shape = _shape(types[node.input[0]])
        if shape is None:
            return None
        part = shape[attribute(node, "start", 0) : attribute(node, "end", None)]
        return None if None in part else np.array(part, dtype=np.int64)
    if node.op_type.startswith("Random") or not {*node_inputs(node)} <= values.keys():
        return None
    from onnx.reference import ReferenceEvaluator  # slow to import

    inputs = {name: values[name] for name in node.input if name}
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    infos = [helper.make_tensor_value_info(name, kind, inputs[name].shape) for name, kind in kinds.items()]
    graph = helper.make_graph([node], "node", infos, [onnx.ValueInfoProto(name=node.output[0])])
    imports = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    try:
        (found,) = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports)).run(None, inputs)
    except Exception:  # some operators have no reference implementation
        return None
    return found if isinstance(found, np.ndarray) and found.size <= SMALL else None


def _with_free_shape(op: GraphBuilder, node: NodeProto, sizes: _Sizes) -> NodeProto | None:
    """Return a Reshape or Expand for any number of samples, None if it needs no change."""
    if node.op_type not in ("Reshape", "Expand") or len(node.input) < 2:
        return None
    target, known = sizes.constant(node.input[1]), sizes.of(node.input[0])
    if target is None or target.ndim != 1 or known is None:
        return None
    if node.op_type == "Expand":
        new = _expand_target(target.tolist(), known)
    else:
        found = _reshape_target(target.tolist(), known, sizes.number, node.input[0] in sizes.inner)
        if found is None:
            return None
        new, is_inner = found
        sizes.inner |= {*node.output} if is_inner else set()
    if new == target.tolist():
        return None
    return copy_node(node, [node.input[0], op.constant(np.array(new, dtype=np.int64))])


def _with_axes(op: GraphBuilder, node: NodeProto, sizes: _Sizes) -> NodeProto | None:
    """Return a Squeeze with the axes of size one for any number of samples, None if it has axes."""
    known = sizes.of(node.input[0])
    if len(node.input) > 1 or node.attribute or known is None or None in known[1]:
        return None
    axes = [axis for axis, size in enumerate(known[1]) if size == 1]
    return copy_node(node, [node.input[0], op.constant(np.array(axes, dtype=np.int64))]) if axes else None


def _with_rank(value: ValueInfoProto, known: Sizes | None) -> ValueInfoProto:
    """Return an output with its inferred shape if the declared rank is wrong."""
    kind = value.type.tensor_type
    if known is None or not kind.HasField("shape") or len(kind.shape.dim) == len(known[1]):
        return value
    shape = [None if one != more else more for one, more in zip(*known, strict=True)]
    return helper.make_tensor_value_info(value.name, kind.elem_type, shape)


def _with_repeated_inputs(op: GraphBuilder, node: NodeProto, sizes: _Sizes) -> NodeProto | None:
    """Return a node with inputs of one sample repeated for all samples, None if it needs no change."""
    shapes = [sizes.of(name) if name else None for name in node.input]
    inputs = list(node.input)
    if node.op_type == "Concat":
        axes = _joined_axes(node, shapes)
    elif node.op_type in STATES and node.domain in ("", "ai.onnx") and shapes[0] is not None:
        axis = 1 - attribute(node, "layout", 0)
        axes = {i: axis for i in STATES[node.op_type] if i < len(shapes) and _grows(shapes[0], axis)}
    else:
        return None
    for index, axis in axes.items():
        known = shapes[index]
        if known is not None and known[1][axis] == 1:
            like = next(n for n, s in zip(node.input, shapes, strict=True) if s and _grows(s, axis))
            inputs[index] = _repeated(op, inputs[index], like, axis, len(known[0]))
    return None if inputs == list(node.input) else copy_node(node, inputs)


def _repeated(op: GraphBuilder, name: str, like: str, axis: int, rank: int) -> str:
    """Return a tensor repeated along an axis of size one, to the size of another tensor."""
    count = op.Gather(op.Shape(like), op.constant(np.array([axis], np.int64)), axis=0)
    ones = [op.constant(np.ones(size, np.int64)) for size in (axis, rank - axis - 1)]
    return op.Expand(name, op.Concat(ones[0], count, ones[1], axis=0))


def _grows(shapes: Sizes, axis: int) -> bool:
    return shapes[0][axis] != shapes[1][axis]


def _joined_axes(node: NodeProto, shapes: Sequence[Sizes | None]) -> dict[int, int]:
    """Return the positions of inputs of a Concat with a fixed number of samples, and the axis of samples."""
    known = [shape for shape in shapes if shape is not None and shape[0]]
    if len(known) != len(shapes) or len({len(shape[0]) for shape in known}) != 1:
        return {}
    rank = len(known[0][0])
    joined = attribute(node, "axis", 0) % rank
    growing = [axis for axis in range(rank) if axis != joined and any(_grows(s, axis) for s in known)]
    return {i: axis for axis in growing for i, shape in enumerate(known) if not _grows(shape, axis)}


def _reshape_target(
    target: list[int], known: Sizes, number: int, inner: bool
) -> tuple[list[int], bool] | None:
    """Return the shape of a Reshape for any number of samples, and whether samples are inner there."""
    # Samples are a dimension of the input, or are flattened with another one, before or after it. They have
    # the same stride in the output. If two dimensions match, the last one is that of features.
    narrow, wide = known
    growing = [axis for axis in range(len(narrow)) if narrow[axis] != wide[axis]]
    if len(growing) != 1:
        return None
    (axis,) = growing
    if axis == 0 and target and target[0] == number == narrow[0]:
        return [0, *target[1:]], False  # other dimensions may be unknown
    if None in narrow or 0 in target:
        return None
    total = math.prod(narrow)  # type: ignore[arg-type]
    sizes = [total // -math.prod(target) if size == -1 else size for size in target]
    if math.prod(sizes) != total:
        return None
    block = math.prod(narrow[axis:]) if not inner else number * math.prod(narrow[axis + 1 :])  # type: ignore
    fitting = [j for j, size in enumerate(sizes) if size % number == 0]
    outer = [j for j in fitting if math.prod(sizes[j:]) == block]
    inside = [(j, True) for j in fitting if number * math.prod(sizes[j + 1 :]) == block]
    found = [(j, False) for j in outer if sizes[j] == number]
    found += [*((j, False) for j in outer if j < len(sizes) - 1), *inside, *((j, False) for j in outer)]
    if not found:
        return None
    position, is_inner = found[0]
    return [-1 if j == position else size for j, size in enumerate(sizes)], is_inner


def _expand_target(target: list[int], known: Sizes) -> list[int]:
    """Return the shape of an Expand for any number of samples: one for the dimension of samples."""
    narrow, wide = known
    first = len(target) - len(narrow)
    return [
        1 if axis >= first and narrow[axis - first] != wide[axis - first] and size != -1 else size
        for axis, size in enumerate(target)
    ]

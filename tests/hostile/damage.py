"""Random damage to ONNX models: bytes, attributes, initializers, names, types, shapes and edges."""

from onnx import TensorProto

SIZES = [-1, 0, 1, 2, 3, 7, 100, 2**31, -(2**31), 2**40, 2**62, -(2**63)]
NUMBERS = [0.0, -1.0, 0.3, 1e38, float("nan"), float("inf")]
TEXTS = [b"", b"x", b"LEAF", b"BRANCH_EQ", b"LINEAR", b"PROBIT", b"\xff\xfe", b"y" * 300]
OPERATORS = [
    *("Add", "MatMul", "Gemm", "Identity", "Reshape", "Cast", "Gather", "Softmax", "Transpose", "Concat"),
    *("Expand", "Split", "Conv", "MaxPool", "TopK", "OneHot", "Loop", "If", "Scan", "Where", "Pad", "Slice"),
    *("ReduceSum", "Shape", "ConstantOfShape", "Tile", "Range", "LSTM", "Einsum", "NonZero", "ScatterND"),
    *("Scaler", "LinearClassifier", "SVMRegressor", "TreeEnsembleClassifier", "ZipMap", "DoesNotExist"),
]


def damaged(model, rng):
    """Return the bytes of a model with one to three faults."""
    broken = type(model).FromString(model.SerializeToString())
    kinds = [rng.choice(list(FAULTS)) for _ in range(rng.choice([1, 1, 2, 3]))]
    for kind in kinds:
        if kind != "bytes":
            FAULTS[kind](broken, rng)
    content = bytearray(broken.SerializeToString())
    return bytes(_bytes(content, rng) if "bytes" in kinds else content)


def _bytes(content, rng):
    for _ in range(rng.choice([1, 1, 3, 10])):
        place, way = rng.randrange(len(content)), rng.random()
        if way < 0.6:
            content[place] = rng.randrange(256)
        elif way < 0.8:
            del content[place : place + rng.choice([1, 2, 50])]
        else:
            content[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 4])))
        if not content:
            break
    return content


def _graphs(model):
    graphs = [model.graph]
    for graph in graphs:
        for node in graph.node:
            graphs.extend(a.g for a in node.attribute if a.HasField("g"))
    return graphs


def _node(model, rng):
    nodes = [n for part in (*_graphs(model), *model.functions) for n in part.node]
    return rng.choice(nodes) if nodes else None


def _tensor_names(model):
    names = {name for part in (*_graphs(model), *model.functions) for n in part.node for name in n.output}
    return sorted(
        names | {v.name for g in _graphs(model) for v in (*g.input, *g.initializer)} | {"", "nowhere"}
    )


def _attribute(model, rng):
    node = _node(model, rng)
    if node is None or not node.attribute:
        return
    attribute = rng.choice(node.attribute)
    if rng.random() < 0.15:
        node.attribute.remove(attribute)
        return
    lists = {6: ("floats", NUMBERS), 7: ("ints", SIZES), 8: ("strings", TEXTS)}
    if attribute.type in lists:
        field, values = lists[attribute.type]
        items = list(getattr(attribute, field))
        items = _changed(items, values, rng)
        del getattr(attribute, field)[:]
        getattr(attribute, field).extend(items)
    elif attribute.type == 1:
        attribute.f = rng.choice(NUMBERS)
    elif attribute.type == 2:
        attribute.i = rng.choice(SIZES)
    elif attribute.type == 3:
        attribute.s = rng.choice(TEXTS)
    if rng.random() < 0.1:
        attribute.type = rng.randrange(12)


def _changed(items, values, rng):
    way = rng.random()
    if way < 0.3:
        return items[: rng.randrange(len(items) + 1)]
    if way < 0.5:
        return items + items[: rng.randrange(len(items) + 1)]
    for _ in range(rng.choice([1, 3]) if items else 0):
        items[rng.randrange(len(items))] = rng.choice(values)
    return items


def _initializer(model, rng):
    tensors = [tensor for graph in _graphs(model) for tensor in graph.initializer]
    if not tensors:
        return
    tensor, way = rng.choice(tensors), rng.random()
    if way < 0.3 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(SIZES)
    elif way < 0.4:
        tensor.dims.append(rng.choice([1, 0, 2]))
    elif way < 0.5:
        tensor.data_type = rng.randrange(25)
    elif way < 0.6:
        tensor.data_location = TensorProto.EXTERNAL
    elif way < 0.7 and tensor.int64_data:
        tensor.int64_data[0] = rng.choice(SIZES)
    elif way < 0.8 and tensor.data_type == TensorProto.INT64 and tensor.raw_data:
        tensor.raw_data = rng.choice(SIZES).to_bytes(8, "little", signed=True) + tensor.raw_data[8:]
    elif way < 0.9:
        del tensor.dims[:]
    else:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]


def _name(model, rng):
    names = _tensor_names(model)
    new = rng.choice([*names, "ortlearn_order", "x" * 1000, "é", "a/b"])
    items = [item for graph in _graphs(model) for item in (*graph.input, *graph.output, *graph.initializer)]
    rng.choice([*items, _node(model, rng) or model.graph]).name = new


def _edge(model, rng):
    node = _node(model, rng)
    if node is None:
        return
    field, way = rng.choice([node.input, node.input, node.output]), rng.random()
    if way < 0.7 and field:
        field[rng.randrange(len(field))] = rng.choice(_tensor_names(model))
    elif way < 0.85 and field:
        del field[rng.randrange(len(field))]
    else:
        field.append(rng.choice(_tensor_names(model)))


def _operator(model, rng):
    node = _node(model, rng)
    if node is not None:
        node.op_type = rng.choice(OPERATORS)
        node.domain = rng.choice([node.domain, node.domain, "", "ai.onnx.ml", "own", "com.microsoft"])


def _nodes(model, rng):
    graph = rng.choice(_graphs(model))
    if graph.node:
        index = rng.randrange(len(graph.node))
        if rng.random() < 0.5:
            del graph.node[index]
        else:
            graph.node.append(graph.node[index])


def _value(model, rng):
    values = [value for graph in _graphs(model) for value in (*graph.input, *graph.output)]
    if not values:
        return
    known, way = rng.choice(values).type.tensor_type, rng.random()
    if way < 0.3:
        known.elem_type = rng.randrange(25)
    elif way < 0.7 and known.shape.dim:
        rng.choice(known.shape.dim).dim_value = rng.choice(SIZES)
    elif way < 0.8 and known.shape.dim:
        rng.choice(known.shape.dim).ClearField("value")
    elif way < 0.9:
        known.shape.dim.add().dim_value = rng.choice([1, 2, 3])
    elif known.shape.dim:
        del known.shape.dim[-1]


def _version(model, rng):
    if model.opset_import and rng.random() < 0.7:
        rng.choice(model.opset_import).version = rng.choice([-1, 0, 1, 5, 9, 12, 13, 17, 21, 22, 25, 999])
    else:
        model.ir_version = rng.choice([-1, 0, 1, 3, 4, 7, 11, 99])


FAULTS = {
    "attribute": _attribute,
    "bytes": _bytes,
    "edge": _edge,
    "initializer": _initializer,
    "name": _name,
    "nodes": _nodes,
    "operator": _operator,
    "value": _value,
    "version": _version,
}

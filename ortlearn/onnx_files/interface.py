"""Interface of an ONNX file: the inputs, outputs and metadata that a trained model has in common with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ..graphs import graph_names, map_names, node_inputs, opset_versions, prune
from ..graphs.editing import renamed_node, with_fields
from ..graphs.nodes import copy_node
from .versions import MAX_OPSET

__all__ = ["holds_weights", "with_interface", "with_zipmap", "without_tensors"]

ML = "ai.onnx.ml"
#: Fields of a model that say where it comes from.
METADATA = ("doc_string", "domain", "model_version", "producer_name", "producer_version")


def holds_weights(file: ModelProto, model: ModelProto, names: Collection[str]) -> bool:
    """Return whether some weights of a graph are initializers of the file that the graph was made from.

    Those of operators that were decomposed are not, nor those of a file of an opset that is not supported.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.interface import holds_weights
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> holds_weights(model, model, ["w"])
    True
    """
    of_file, of_model = (
        {t.name: (t.data_type, tuple(t.dims)) for t in each.graph.initializer} for each in (file, model)
    )
    read = set().union(*map(node_inputs, file.graph.node))
    if opset_versions(file).get("", 1) > MAX_OPSET:
        return False  # no supported onnxruntime would read it
    return all(name in read and name in of_file and of_file[name] == of_model[name] for name in names)


def without_tensors(file: ModelProto, outputs: Collection[str], inputs: Collection[str]) -> ModelProto:
    """Return a file without some of its outputs, what only they need, and inputs that nothing reads then.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.interface import without_tensors
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N] x, float[N] label) => (float[N] loss, float[N] y)
    ...     { y = Neg (x) loss = Sub (y, label) }''')
    >>> [value.name for value in without_tensors(model, ["loss"], ["label"]).graph.input]
    ['x']
    """
    left = [value for value in file.graph.output if value.name not in outputs]
    rest = prune(with_fields(file, output=left))
    read = set().union(*map(node_inputs, rest.graph.node), {value.name for value in left})
    kept = [value for value in rest.graph.input if value.name not in inputs or value.name in read]
    return with_fields(rest, input=kept)


def with_interface(model: ModelProto, file: ModelProto) -> ModelProto:
    """Return a graph with the inputs, outputs, domains and metadata of the file that it was made from.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph with the outputs of the file, a matrix in the place of each ``ZipMap``.
    file : onnx.ModelProto
        The file.

    Returns
    -------
    onnx.ModelProto
        Graph that takes the place of the file.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.interface import with_interface
    >>> file, model = (parser.parse_model(f'''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[{rows},2] x) => (float[{rows},1] y) <float[2,1] w = {{1, 2}}>
    ...     {{ y = MatMul (x, w) }}''') for rows in ("batch", "N"))
    >>> with_interface(model, file).graph.input[0].type.tensor_type.shape.dim[0].dim_param
    'batch'
    """
    names = {value.name for value in file.graph.output}
    maps = [node for node in file.graph.node if node.op_type == "ZipMap" and node.output[0] in names]
    result = with_fields(
        model,
        opset_versions(file),
        node=_with_maps(model, maps),
        input=file.graph.input,
        output=file.graph.output,
        initializer=[*model.graph.initializer, *_defaults(model, file)],
        value_info=(),
    )
    for name in METADATA:
        setattr(result, name, getattr(file, name))
    result.graph.name, result.graph.doc_string = file.graph.name, file.graph.doc_string
    del result.metadata_props[:]
    result.metadata_props.extend(file.metadata_props)
    return result


def with_zipmap(model: ModelProto, classes: np.ndarray) -> ModelProto:
    """Return a classifier with its probabilities as maps from class to probability, one per sample.

    Parameters
    ----------
    model : onnx.ModelProto
        Classifier with two outputs: labels, and a matrix of probabilities.
    classes : ndarray
        Classes in the order of the columns.

    Returns
    -------
    onnx.ModelProto
        Classifier with the outputs that skl2onnx writes by default: ``output_label``, and
        ``output_probability`` of type ``seq(map)``.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.interface import with_zipmap
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (int64[N] label, float[N,2] p)
    ...     { p = Softmax (x) label = ArgMax <axis = 1, keepdims = 0> (p) }''')
    >>> [value.name for value in with_zipmap(model, np.array([0, 1])).graph.output]
    ['output_label', 'output_probability']
    """
    labels, probabilities = model.graph.output
    taken = graph_names(model.graph)
    label, maps = _free("output_label", taken), _free("output_probability", taken)
    result = map_names(model, {labels.name: label})
    texts = np.asarray(classes).dtype.kind in "OUS"
    keys = [str(c) for c in classes] if texts else [int(c) for c in classes]
    matrix, nodes = probabilities.name, []
    if probabilities.type.tensor_type.elem_type != TensorProto.FLOAT:  # ZipMap takes nothing else
        matrix = _free(f"{matrix}_float", taken)
        nodes = [helper.make_node("Cast", [probabilities.name], [matrix], to=TensorProto.FLOAT)]
    last = helper.make_node("ZipMap", [matrix], [maps], _free("ZipMap", taken), domain=ML)
    name = "classlabels_strings" if texts else "classlabels_int64s"
    last.attribute.append(helper.make_attribute(name, keys))
    nodes.append(last)
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    key = TensorProto.STRING if texts else TensorProto.INT64
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, value))
    outputs = [result.graph.output[0], helper.make_value_info(maps, kind)]
    return with_fields(result, {ML: 1}, node=[*result.graph.node, *nodes], output=outputs)


def _with_maps(model: ModelProto, maps: Iterable[NodeProto]) -> list[NodeProto]:
    """Return the nodes of a graph with some ``ZipMap`` at its end, of the matrices under their names."""
    nodes, taken = list(model.graph.node), graph_names(model.graph)
    for node in maps:
        name = node.output[0]
        position = next(i for i, other in enumerate(nodes) if name in other.output)
        found = nodes[position]
        if found.op_type == "Identity" and not any(name in node_inputs(other) for other in nodes):
            matrix, taken = found.input[0], taken - {found.name}
            del nodes[position]
        else:
            matrix = _free(f"{name}_matrix", taken)
            nodes = [renamed_node(other, {name: matrix}) for other in nodes]
        last = copy_node(node, [matrix])
        last.name = _free(node.name or "ZipMap", taken)
        nodes.append(last)
        taken |= {matrix, last.name}
    return nodes


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _defaults(model: ModelProto, file: ModelProto) -> list[TensorProto]:
    """Return the values of optional inputs of a file that a graph has no use for."""
    known = {tensor.name for tensor in model.graph.initializer}
    inputs: Iterable[ValueInfoProto] = file.graph.input
    missing = {value.name for value in inputs} - known
    return [tensor for tensor in file.graph.initializer if tensor.name in missing]

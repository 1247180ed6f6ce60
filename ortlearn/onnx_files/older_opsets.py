"""Files of opsets older than gradient rules are written for, brought to one that they are written for."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto, checker, defs, helper, version_converter

from ..exceptions import ConversionError
from ..graphs import GraphBuilder, opset_versions, replace_nodes, subgraphs
from ..graphs.nodes import all_nodes, attribute

#: Opsets that took the batch axis from Scan, gave Resize a choice of coordinates, and Hardmax a single axis.
#: The first one made operators broadcast as NumPy does.
BROADCASTING, ONE_SCAN, COORDINATES, ONE_AXIS = 7, 9, 11, 13


def with_newer_opset(model: ModelProto, version: int, opset: int) -> ModelProto:
    """Return a model of an older opset at a newer one that computes the same.

    onnx converts it. What it converts into something else is written here: Hardmax of several axes, and the
    coordinates of Resize and Upsample.

    Parameters
    ----------
    model : onnx.ModelProto
        Model of IR version 4 or later.
    version : int
        Opset of the model.
    opset : int
        Version that it is to have.

    Returns
    -------
    onnx.ModelProto
        Model of that version.

    Raises
    ------
    ConversionError
        If onnx cannot convert it; the message names the operators.
    """
    if version < ONE_AXIS:
        model = replace_nodes(model, {("", "Hardmax"): _hardmax})
    try:
        if version < ONE_SCAN and any(node.op_type == "Scan" for node in all_nodes(model.graph)):
            raise ValueError("Scan has a batch axis there")
        converted = version_converter.convert_version(model, opset)
        _check_nodes(converted, opset)
    except Exception as error:
        culprits = _culprits(model, version, opset, error)
        raise ConversionError(
            f"The model has opset {version}, and {culprits} could not be converted to {opset}: {error}. "
            f"Export the model again with opset {opset}."
        ) from error
    if version < BROADCASTING:
        converted = replace_nodes(converted, {("", "PRelu"): _channel_slopes})
    if version < COORDINATES:
        for node in all_nodes(converted.graph):
            if node.op_type == "Resize" and node.domain in ("", "ai.onnx"):
                _set_old_coordinates(node)
    return converted


def _check_nodes(model: ModelProto, opset: int) -> None:
    """Raise a ValidationError for operators that onnx passed on without a form in the new version."""
    context = checker.C.CheckerContext()
    context.ir_version, context.opset_imports = model.ir_version, {**opset_versions(model), "": opset}
    for node in all_nodes(model.graph):
        if node.domain in ("", "ai.onnx") and not any(subgraphs(node)):
            checker.check_node(node, context)


def _hardmax(node: NodeProto, op: GraphBuilder) -> bool:
    """Write Hardmax of all axes from one on as that of a matrix, which every version computes alike."""
    x, axis = node.input[0], attribute(node, "axis", 1)
    matrix = op.Hardmax(op.Flatten(x, axis=axis), axis=1)
    op.Reshape(matrix, op.Shape(x), outputs=[node.output[0]])
    return True


def _channel_slopes(node: NodeProto, op: GraphBuilder) -> bool:
    """Write slopes of channels, one for each, in the shape that broadcasts to them."""
    x, slopes = (op.shape(name) for name in node.input)
    if x is None or slopes is None or len(slopes) != 1 or slopes[0] == 1 or len(x) < 3:
        return False
    wide = op.Reshape(node.input[1], [-1, *[1] * (len(x) - 2)])
    op.PRelu(node.input[0], wide, outputs=[node.output[0]])
    return True


def _set_old_coordinates(node: NodeProto) -> None:
    """Make Resize compute what it computed in opset 10, and Upsample before it."""
    for name, value in (("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", "floor")):
        for old in [a for a in node.attribute if a.name == name]:
            node.attribute.remove(old)
        if name != "nearest_mode" or attribute(node, "mode", b"nearest") == b"nearest":
            node.attribute.append(helper.make_attribute(name, value))


def _culprits(model: ModelProto, version: int, opset: int, error: Exception) -> str:
    """Return the operators that an error of the conversion is about, for a message."""
    changed = sorted({node.op_type for node in _changed(model, version, opset)})
    named = [op_type for op_type in changed if op_type in str(error)]
    return f"the operators {named or changed}" if changed else "its graph"


def _changed(model: ModelProto, version: int, opset: int) -> Iterator[NodeProto]:
    """Yield the nodes whose operators differ between two opsets, or are in one of them only."""
    for node in all_nodes(model.graph):
        if node.domain not in ("", "ai.onnx"):
            continue
        if not all(defs.has(node.op_type, max_inclusive_version=v) for v in (version, opset)):
            yield node
        elif defs.get_schema(node.op_type, version).since_version != (
            defs.get_schema(node.op_type, opset).since_version
        ):
            yield node

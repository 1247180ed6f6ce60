"""Convert models to opsets and IR versions that the installed onnxruntime trains."""

from collections.abc import Iterator, Mapping

from onnx import ModelProto, NodeProto, TensorProto, checker, defs, helper, version_converter
from onnx import __version__ as onnx_version

from ..differentiation.expand import expand_node
from ..differentiation.gradient_builder import GradientBuilder
from ..exceptions import ConversionError, GradientError, limit_address
from ..graphs import (
    GraphBuilder,
    copy_model,
    graph_names,
    opset_versions,
    replace_nodes,
    subgraphs,
    value_types,
)
from ..graphs.editing import with_fields
from ..graphs.nodes import all_nodes, attribute
from ..runtime.errors import NEWER_RUNTIME
from ..runtime.readable_versions import (
    FLOOR_IR,
    FLOOR_OPSET,
    has_kernel,
    newest_ir_version,
    newest_opset,
    runtime_name,
)
from .weights import ROUNDING

OPSET = 18  # of converted models
MIN_OPSET = 13  # oldest opset of training graphs
MIN_IR_VERSION = 4  # oldest IR version with initializers that are not inputs
#: Opsets that introduced NumPy's broadcasting, Scan without a batch axis, coordinate modes of Resize, and
#: Hardmax along a single axis.
BROADCASTING, ONE_SCAN, COORDINATES, ONE_AXIS = 7, 9, 11, 13
#: Types of integers that QuantizeLinear and DequantizeLinear have since opset 21.
NEW_INTEGERS = [getattr(TensorProto, name) for name in ("INT4", "UINT4", "INT16", "UINT16")]
MAX_DEPTH = 8  # depth of nested function bodies


def pin_versions(model: ModelProto) -> ModelProto:
    """Return a model at an opset and an IR version that the installed onnxruntime reads.

    Operators that are newer than opset 21 are replaced by their definitions, if they have one. The opset is
    kept if onnxruntime reads it and has kernels of all operators. Otherwise the model is converted to opset
    21, which every supported onnxruntime reads.

    Parameters
    ----------
    model : onnx.ModelProto
        Model of any opset.

    Returns
    -------
    onnx.ModelProto
        The same model, with opset 13 or later and IR version 4 or later, without inputs that repeat an
        initializer, as IR version 3 required.

    Raises
    ------
    ConversionError
        If an operator or an attribute cannot be converted.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import pin_versions
    >>> from ortlearn.graphs import opset_versions
    >>> model = parser.parse_model(
    ...     '<ir_version: 3, opset_import: ["": 11]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    ... )
    >>> pinned = pin_versions(model)
    >>> pinned.ir_version, opset_versions(pinned)
    (4, {'': 18})
    """
    pinned = upgraded(model)
    pinned.ir_version = min(pinned.ir_version, newest_ir_version())
    constants = {tensor.name for tensor in pinned.graph.initializer}
    for value in [value for value in pinned.graph.input if value.name in constants]:
        pinned.graph.input.remove(value)
    pinned = with_definitions(pinned)
    return pinned if _runs(pinned) else _downgraded(pinned)


def _runs(model: ModelProto) -> bool:
    """Return whether onnxruntime reads the opset of a model, and has kernels of its operators."""
    version = opset_versions(model).get("", MIN_OPSET)
    if not FLOOR_OPSET < version <= newest_opset():
        return version <= FLOOR_OPSET
    types = value_types(model)
    return all(has_kernel(node, types, version) for node in _standard_nodes(model))


def upgraded(model: ModelProto) -> ModelProto:
    """Return a copy of a model with opset 13 and IR version 4, or newer ones.

    Inputs that repeat an initializer, as IR version 3 requires, are removed from older models.
    """
    versions: dict[str, int] = {}
    for item in model.opset_import:  # some exporters declare a domain twice
        domain = "" if item.domain == "ai.onnx" else item.domain
        versions[domain] = max(item.version, versions.get(domain, item.version))
    versions.setdefault("", OPSET)  # rewrites write standard operators
    _check_exist(versions)
    result = copy_model(model)
    del result.opset_import[:]
    result.opset_import.extend(helper.make_opsetid(*item) for item in versions.items())
    result.ir_version = max(result.ir_version or FLOOR_IR, MIN_IR_VERSION)
    version = versions.get("", MIN_OPSET)
    if model.ir_version < MIN_IR_VERSION or version < MIN_OPSET:
        constants = {tensor.name for tensor in result.graph.initializer}
        for value in [value for value in result.graph.input if value.name in constants]:
            result.graph.input.remove(value)
    return _with_standard_rounding(_upgraded(result, version) if version < MIN_OPSET else result)


def _with_standard_rounding(model: ModelProto) -> ModelProto:
    """Return a model whose integers are rounded by standard operators instead of those of onnxruntime."""
    version, kinds = opset_versions(model)[""], {t.name: t.data_type for t in model.graph.initializer}
    rounding = [node for node in all_nodes(model.graph) if node.op_type in ROUNDING]
    new = [node for node in rounding if any(kinds.get(name) in NEW_INTEGERS for name in node.input)]
    if version < FLOOR_OPSET and any(node.domain in ("", "ai.onnx") for node in new):
        raise ConversionError(
            f"QuantizeLinear and DequantizeLinear of opset {version} have no integers of 4 and 16 bits: "
            f"export the model with opset {FLOOR_OPSET}, or convert it by "
            f"onnx.version_converter.convert_version(model, {FLOOR_OPSET})."
        )
    for node in rounding:
        node.domain = "" if node.domain == "com.microsoft" else node.domain
    return version_converter.convert_version(model, FLOOR_OPSET) if new and version < FLOOR_OPSET else model


def _check_exist(versions: Mapping[str, int]) -> None:
    """Raise a ConversionError for opsets that the installed onnx does not define."""
    known = {"": defs.onnx_opset_version(), "ai.onnx.ml": max(row[3] for row in helper.VERSION_TABLE)}
    for domain, newest in known.items():
        version = versions.get(domain, newest)
        if not 1 <= version <= newest:
            of_domain = f" of the domain {domain!r}" if domain else ""
            advice = f"with opset {newest_opset()}" if not domain else f"with a version from 1 to {newest}"
            raise ConversionError(
                f"The model declares opset {version}{of_domain}, which does not exist in onnx "
                f"{onnx_version}: its opsets are 1 to {newest}. Export the model again {advice}, or install "
                "a newer onnx if it defines that opset."
            )


def _standard_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Yield the nodes of standard operators of a model, including its subgraphs."""
    return (node for node in all_nodes(model.graph) if node.domain in ("", "ai.onnx"))


def _upgraded(model: ModelProto, version: int) -> ModelProto:
    """Return a model of an older opset converted to ``OPSET``."""
    # The conversion of onnx is corrected for Hardmax, slopes of PRelu, and coordinates of Resize.
    if version < ONE_AXIS:
        model = replace_nodes(model, {("", "Hardmax"): _hardmax})
    try:
        if version < ONE_SCAN and any(node.op_type == "Scan" for node in all_nodes(model.graph)):
            raise ValueError("Scan of this opset has a batch axis")
        converted = version_converter.convert_version(model, OPSET)
        _check_nodes(converted)
    except Exception as error:
        kinds = {node.op_type for node in _standard_nodes(model)}
        changed = sorted(kind for kind in kinds if _since(kind, version) != _since(kind, OPSET))
        named = [kind for kind in changed if kind in str(error)] or changed
        part = f"the operators {named}" if changed else "its graph"
        raise ConversionError(
            f"The model has opset {version}, and onnx cannot convert {part} to {OPSET}: "
            f"{str(error).rstrip('.')}. Export it again with opset {OPSET}.{limit_address('old-opsets')}"
        ) from error
    if version < BROADCASTING:
        converted = replace_nodes(converted, {("", "PRelu"): _channel_slopes})
    if version < COORDINATES:
        for node in _standard_nodes(converted):
            if node.op_type == "Resize":
                _set_old_coordinates(node)
    return converted


def _check_nodes(model: ModelProto) -> None:
    """Raise a ValidationError for operators that onnx did not convert."""
    context = checker.C.CheckerContext()
    context.ir_version, context.opset_imports = model.ir_version, {**opset_versions(model), "": OPSET}
    for node in _standard_nodes(model):
        if not any(subgraphs(node)):
            checker.check_node(node, context)


def _since(op_type: str, opset: int) -> int | None:
    """Return the opset that introduced the version of an operator in an opset, None for unknown operators."""
    known = defs.has(op_type, max_inclusive_version=opset)
    return defs.get_schema(op_type, opset).since_version if known else None


def _hardmax(node: NodeProto, op: GraphBuilder) -> bool:
    """Replace Hardmax over several axes by that of a matrix, which all opsets define equally."""
    x, axis = node.input[0], attribute(node, "axis", 1)
    matrix = op.Hardmax(op.Flatten(x, axis=axis), axis=1)
    op.Reshape(matrix, op.Shape(x), outputs=[node.output[0]])
    return True


def _channel_slopes(node: NodeProto, op: GraphBuilder) -> bool:
    """Reshape the slopes of channels of PRelu for broadcasting."""
    x, slopes = (op.shape(name) for name in node.input)
    if x is None or slopes is None or len(slopes) != 1 or slopes[0] == 1 or len(x) < 3:
        return False
    wide = op.Reshape(node.input[1], [-1, *[1] * (len(x) - 2)])
    op.PRelu(node.input[0], wide, outputs=[node.output[0]])
    return True


def _set_old_coordinates(node: NodeProto) -> None:
    """Set the coordinate modes that Resize of opset 10, and Upsample before it, used."""
    for name, value in (("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", "floor")):
        for old in [a for a in node.attribute if a.name == name]:
            node.attribute.remove(old)
        if name != "nearest_mode" or attribute(node, "mode", b"nearest") == b"nearest":
            node.attribute.append(helper.make_attribute(name, value))


def with_definitions(model: ModelProto) -> ModelProto:
    """Return a model in which definitions replace operators that are newer than ``FLOOR_OPSET``."""
    # The definitions can be differentiated, and rewritten where their gradient is not finite.
    version = opset_versions(model).get("", MIN_OPSET)
    for _ in range(MAX_DEPTH):
        if all(_exists(node) for node in model.graph.node):
            break
        op = GradientBuilder(version, existing_names=graph_names(model.graph), types=value_types(model))
        bodies = [[node] if _exists(node) else _definition(op, node) for node in model.graph.node]
        nodes = [node for body in bodies for node in body]
        if nodes == list(model.graph.node):
            break
        initializers = [*model.graph.initializer, *op.initializers]
        model = with_fields(model, op.opsets, node=nodes, initializer=initializers)
    return model


def _definition(op: GradientBuilder, node: NodeProto) -> list[NodeProto]:
    """Return the nodes that define an operator, or the node if it has no definition with a gradient."""
    try:
        return expand_node(op, node) or [node]
    except GradientError:
        return [node]


def _downgraded(model: ModelProto) -> ModelProto:
    """Return a model of a newer opset, without new operators that have a definition, at ``FLOOR_OPSET``."""
    # Newer versions of other operators only add element types and attributes.
    version = opset_versions(model)[""]
    faults = sorted({fault for node in _standard_nodes(model) for fault in _faults(node)})
    if faults:
        reads = version <= newest_opset()
        reason = "has no kernel of some operators" if reads else f"reads opsets up to {newest_opset()}"
        advice = f"Export the model again with opset {FLOOR_OPSET}" + (
            "." if reads else f", or install a newer onnxruntime: {NEWER_RUNTIME}."
        )
        raise ConversionError(
            f"The model has opset {version}, and {runtime_name()} {reason}. It cannot be converted to opset "
            f"{FLOOR_OPSET}, which has no {', '.join(faults)}. {advice}"
        )
    result = copy_model(model)
    for item in result.opset_import:
        item.version = FLOOR_OPSET if item.domain == "" else item.version
    return result


def _exists(node: NodeProto) -> bool:
    """Return whether ``FLOOR_OPSET`` has an operator; other domains are not checked."""
    return node.domain not in ("", "ai.onnx") or defs.has(node.op_type, max_inclusive_version=FLOOR_OPSET)


def _faults(node: NodeProto) -> list[str]:
    """Return the operator or its attributes that ``FLOOR_OPSET`` does not have."""
    if not _exists(node):
        return [node.op_type]
    known = defs.get_schema(node.op_type, FLOOR_OPSET).attributes
    return [f"{node.op_type}({a.name}=...)" for a in node.attribute if a.name not in known]

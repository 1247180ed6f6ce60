"""Versions a graph must have to be trained by every supported onnxruntime."""

from __future__ import annotations

from onnx import ModelProto, helper

from ..graphs import copy_model
from .newer_opsets import with_older_opset
from .older_opsets import with_newer_opset

#: Opset at conversion: earlier ones lose some scikit-learn models, later ones give the same graphs.
OPSET = 18
#: Oldest opset whose operators the training graphs are written for.
MIN_OPSET = 13
#: Newest opset that onnxruntime-training 1.19.2 reads.
MAX_OPSET = 21
#: Oldest IR version whose initializers need not be inputs too.
MIN_IR_VERSION = 4
#: Newest IR version that onnxruntime-training 1.19.2 reads.
IR_VERSION = 10


def pin_versions(model: ModelProto) -> ModelProto:
    """Return a model at an opset and an IR version that every supported onnxruntime reads.

    Parameters
    ----------
    model : onnx.ModelProto
        Model of any opset.

    Returns
    -------
    onnx.ModelProto
        The same model, with opset 13 to 21 and IR version 4 to 10, without the inputs that only repeat an
        initializer, as IR version 3 required. A ConversionError names what has no form there.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import pin_versions
    >>> from ortlearn.graphs import opset_versions
    >>> model = parser.parse_model(
    ...     '<ir_version: 11, opset_import: ["": 11]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    ... )
    >>> pinned = pin_versions(model)
    >>> pinned.ir_version, opset_versions(pinned)
    (10, {'': 18})
    """
    versions: dict[str, int] = {}
    for item in model.opset_import:  # some exporters declare a domain twice
        domain = "" if item.domain == "ai.onnx" else item.domain
        versions[domain] = max(item.version, versions.get(domain, 0))
    pinned = copy_model(model)
    del pinned.opset_import[:]
    pinned.opset_import.extend(helper.make_opsetid(*item) for item in versions.items())
    pinned.ir_version = max(min(pinned.ir_version or IR_VERSION, IR_VERSION), MIN_IR_VERSION)
    constants = {tensor.name for tensor in pinned.graph.initializer}
    for value in [value for value in pinned.graph.input if value.name in constants]:
        pinned.graph.input.remove(value)
    version = versions.get("", MIN_OPSET)
    if version < MIN_OPSET:
        return with_newer_opset(pinned, version, OPSET)
    return with_older_opset(pinned, MAX_OPSET) if version > MAX_OPSET else pinned

"""Functions that a model brings with it."""

from __future__ import annotations

from onnx import ModelProto, defs, inliner

from .editing import copy_model
from .queries import opset_versions

__all__ = ["inline_functions"]


def inline_functions(model: ModelProto) -> ModelProto:
    """Return the model with the bodies of its functions in place of the nodes that call them.

    A function with the domain and the name of a standard operator is left out: ONNX leaves open which
    of the two a node means, and onnxruntime computes the operator.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model without functions; the one given where it has none.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import inline_functions
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18, "own": 1]>
    ...     g (float[N] x) => (float[N] y) { y = own.twice (x) }
    ...     <domain: "own", opset_import: ["": 18]> twice (a) => (b) { b = Add (a, a) }''')
    >>> [node.op_type for node in inline_functions(model).graph.node]
    ['Add']
    """
    if not model.functions:
        return model
    versions = opset_versions(model)
    kept = [
        function for function in model.functions if not _is_standard(function.domain, function.name, versions)
    ]
    result = copy_model(model)
    del result.functions[:]
    result.functions.extend(kept)
    return inliner.inline_local_functions(result)


def _is_standard(domain: str, name: str, versions: dict[str, int]) -> bool:
    domain = "" if domain == "ai.onnx" else domain
    return domain in versions and defs.has(name, max_inclusive_version=versions[domain], domain=domain)
